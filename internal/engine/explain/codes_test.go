package explain

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestCodesAreDocumented verifies that docs/simulate.md explains exactly the codes of plans that documents of simulate and
// explain can contain.
func TestCodesAreDocumented(t *testing.T) {
	// These codes are those of commands that are in progress, which only the controller has.
	internal := []plan.Code{plan.OK, plan.NodeGone, plan.NodeBusy, plan.ReplacementChanged, plan.PodGone, plan.ReplacementLost,
		plan.DeadlinePassed, plan.CommandUnreadable}
	page, err := os.ReadFile("../../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	inTable := false
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "|") {
			inTable = false
		}
		if inTable {
			first, _, _ := strings.Cut(line[1:], "|")
			for _, match := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(first, -1) {
				documented = append(documented, match[1])
			}
		}
		inTable = inTable || line == "| code | meaning |\n"
	}
	for code := range sayings {
		name := Code(plan.Code(code))
		if has := slices.Contains(documented, name); has == slices.Contains(internal, plan.Code(code)) {
			t.Errorf("documented is %t: %s", has, name)
		}
		documented = slices.DeleteFunc(documented, func(other string) bool { return other == name })
	}
	if len(documented) > 0 {
		t.Errorf("documented, and no code: %v", documented)
	}
}
