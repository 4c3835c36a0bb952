package aws

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// comparisonPage compares upstream's provider with this one.
const comparisonPage = root + "/docs/aws-comparison.md"

// TestComparison checks that each row of docs/aws-comparison.md has a verdict of the four, that each claim has a proof
// which exists (a test, a golden document of a launch, or a path), and that nothing else has one.
func TestComparison(t *testing.T) {
	text, err := os.ReadFile(comparisonPage)
	check(t, err)
	tests := testNames(t)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || strings.HasPrefix(line, "|--") || cells[3] == " here " {
			continue
		}
		rows++
		name, verdict := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3])
		var proofs []string
		for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[5], -1) {
			proofs = append(proofs, found[1])
		}
		switch {
		case !slices.Contains([]string{"same", "more", "not yet", "neither"}, verdict):
			t.Errorf("%s: the verdict is %q, want same, more, not yet or neither", name, verdict)
		case (verdict == "same" || verdict == "more") != (len(proofs) > 0):
			t.Errorf("%s: the verdict %q has the proofs %v", name, verdict, proofs)
		}
		for _, proof := range proofs {
			_, golden := os.Stat("launch/testdata/" + proof + ".txtar")
			_, path := os.Stat(root + "/" + proof)
			if !tests[proof] && golden != nil && path != nil {
				t.Errorf("%s: there is no test, golden document or path %s", name, proof)
			}
		}
	}
	if rows < 40 {
		t.Errorf("the page has %d rows: the test reads the wrong ones", rows)
	}
}

// testNames returns the names of the tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, declaration := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	check(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			names[string(found[1])] = true
		}
		return err
	}))
	return names
}

// TestComparisonOfFields checks that the page lists the fields that are accepted without effect.
func TestComparisonOfFields(t *testing.T) {
	text, err := os.ReadFile(comparisonPage)
	check(t, err)
	_, list, _ := strings.Cut(string(text), "\nAccepted without effect yet: ")
	list, _, _ = strings.Cut(list, "([")
	class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{
		CapacityReservationSelectorTerms: []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}},
		PlacementGroupSelector:           &awsv1.PlacementGroupSelector{Name: "group"},
		Kubelet:                          &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromString("vcpus * 8"))},
	}}
	for _, field := range class.NotYetActedOn() {
		if !strings.Contains(list, "`"+field.Field+"`") {
			t.Errorf("%s has no effect yet, and %s does not say so", field.Field, comparisonPage)
		}
	}
}
