package gates

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference again")

const head = `# Features

Generated from ` + "`internal/gates/features.go`" + ` (` + "`make reference`" + `; a test compares). Features without a row here have no
switch. Gates are set by ` + "`--feature-gates=Name=true,...`" + `, or by ` + "`settings.featureGates`" + ` of the chart.

An alpha feature may change or go in any release; changes of a beta feature are announced a release before; a stable one
stays. Since is the version that had the feature first.

| feature | switch | default | stage | since | |
|---|---|---|---|---|---|
`

// TestReference compares the page with the table.
func TestReference(t *testing.T) {
	var want strings.Builder
	want.WriteString(head)
	for _, f := range Features {
		by := "gate"
		if f.Flag != "" {
			by = "`--" + f.Flag + "`"
		}
		fmt.Fprintf(&want, "| [%s](../%s) | %s | %s | %s | %s | %s |\n", f.Name, f.Page, by, cmp.Or(f.Default, "-"), f.Stage, f.Since,
			strings.ReplaceAll(f.Does, "|", `\|`))
	}
	path := "../../docs/reference/features.md"
	if *update {
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s does not match the code (make reference), -code +page:\n%s", path, diff)
	}
}

// TestFeatures checks what each row needs: a page that names its switch, and a value of the chart for each gate.
func TestFeatures(t *testing.T) {
	values, err := os.ReadFile("../../charts/karpenter/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(Features, func(a, b Feature) int { return cmp.Or(cmp.Compare(a.Flag, b.Flag), cmp.Compare(a.Name, b.Name)) }) {
		t.Error("features are not sorted by flag and name")
	}
	for _, f := range Features {
		page, err := os.ReadFile(filepath.Join("../../docs", f.Page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), cmp.Or(f.Flag, f.Name)) {
			t.Errorf("docs/%s does not name %s", f.Page, cmp.Or(f.Flag, f.Name))
		}
		if !slices.Contains([]Stage{Alpha, Beta, Stable}, f.Stage) || !regexp.MustCompile(`^\d+\.\d+$`).MatchString(f.Since) {
			t.Errorf("%s: stage %q, since %q", f.Name, f.Stage, f.Since)
		}
		row := fmt.Sprintf("\n    %s%s: %s\n", strings.ToLower(f.Name[:1]), f.Name[1:], f.Default)
		if f.Flag == "" && !strings.Contains(string(values), row) {
			t.Errorf("values.yaml has no line %q", row)
		}
	}
}

func TestRead(t *testing.T) {
	on, notes, err := Read("StaticCapacity=true, NodeRepair=false,Other=true")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]string{"feature gate Other is not known and ignored"}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for gate, want := range map[string]bool{StaticCapacity: true, NodeRepair: false, ReservedCapacity: true, NodeOverlay: false} {
		if on.On(gate) != want {
			t.Errorf("gate %s is on: %v, want %v", gate, on.On(gate), want)
		}
	}
	if _, _, err := Read("NodeRepair=maybe"); err == nil {
		t.Error("a gate that is neither true nor false is accepted")
	}
}
