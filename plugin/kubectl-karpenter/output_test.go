package main

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// widest returns the length of the longest line.
func widest(text string) int {
	longest := 0
	for line := range strings.Lines(text) {
		longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return longest
}

// onTerminal runs the program with arguments on a terminal of a width, and returns its output.
func onTerminal(t *testing.T, columns int, arguments ...string) string {
	t.Helper()
	root, out := newRootCommand(), &terminal{columns: columns}
	root.SetOut(out)
	root.SetErr(&strings.Builder{})
	root.SetArgs(arguments)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wideFleet is a fleet with names as AWS gives them: nodes that can be replaced, pending pods for new nodes with chosen
// labels, and pods that are unschedulable for reasons of more than 120 characters.
func wideFleet() map[string]string {
	longer := strings.NewReplacer("idle-1", "ip-10-0-17-221.eu-central-1.compute.internal", "idle-2",
		"ip-10-0-17-99.eu-central-1.compute.internal", "empty", "ip-10-0-3-7.eu-central-1.compute.internal", "name: one,",
		"name: orders-service-6f7c9d8b7-x2x4z,")
	fleet := maps.Clone(mixed())
	fleet["cluster.yaml"] = longer.Replace(fleet["cluster.yaml"])
	fleet["pool.yaml"] = strings.Replace(disruptPool, "requirements: [",
		"requirements: [{key: example.com/team, operator: In, values: [red, blue]}, ", 1)
	fleet["web.yaml"] = strings.Replace(webYAML, "replicas: 3", "replicas: 120", 1)
	fleet["lost.yaml"] = strings.NewReplacer("web", "lost", "    spec:\n",
		"    spec:\n      nodeSelector: {example.com/a-label-that-no-pool-defines: value, "+
			"topology.kubernetes.io/zone: a-zone-that-does-not-exist}\n").Replace(webYAML)
	return fleet
}

// TestSimulateFits checks that the output of simulate on a terminal fits its width, and that -o wide prints there what
// is printed to a file.
func TestSimulateFits(t *testing.T) {
	folder := files(t, wideFleet())
	arguments := []string{"simulate", "-f", folder, "--instance-types", filepath.Join(folder, "instance-types.json")}
	for _, flags := range [][]string{nil, {"--disrupt"}, {"--disrupt", "--until-stable"}} {
		arguments := append(arguments, flags...)
		whole, err := runProgram(t, "", arguments...)
		if err != nil {
			t.Fatal(err)
		}
		if n := widest(whole); n <= 120 {
			t.Errorf("%v: a file has up to %d characters in a line, want more than 120:\n%s", flags, n, whole)
		}
		for _, columns := range []int{40, 80, 120} {
			text := onTerminal(t, columns, arguments...)
			if n := widest(text); n > columns && columns > 40 { // names of nodes are longer than 40
				t.Errorf("%v: %d characters on %d:\n%s", flags, n, columns, text)
			}
			if diff := cmp.Diff(whole, onTerminal(t, columns, append(arguments, "-o", "wide")...)); diff != "" {
				t.Errorf("%v: -o wide on %d characters, -file +terminal:\n%s", flags, columns, diff)
			}
		}
	}
}

// TestWrappedProse checks that lines are broken between words, and not within commands.
func TestWrappedProse(t *testing.T) {
	const patch = `kubectl patch node n --type=json -p '[{"op":"remove","path":"/metadata/finalizers/0"}]'`
	for text, want := range map[string]string{
		"  fix: short\n": "  fix: short\n",
		"  fix: verify that its instance does not exist, then run " + patch + "\n": "" +
			"  fix: verify that its instance does not\n    exist, then run\n    " + patch + "\n",
		"  fix: kubectl -n NAMESPACE get deployment NAME; kubectl -n NAMESPACE logs deployment/NAME; see the log": "  fix:\n" +
			"    kubectl -n NAMESPACE get deployment NAME;\n    kubectl -n NAMESPACE logs deployment/NAME;\n    see the log",
		"a list of its pods (kubectl get pods -A -o wide), or the log of kube-scheduler": "a list of its pods\n" +
			"  (kubectl get pods -A -o wide), or the\n  log of kube-scheduler",
		"set a name that `aws eks list-clusters` lists in this region": "" +
			"set a name that `aws eks list-clusters`\n  lists in this region",
		"it is created from provisioner/old: kubectl edit provisioner old, which is kept": "" +
			"it is created from provisioner/old:\n  kubectl edit provisioner old, which is\n  kept",
	} {
		if diff := cmp.Diff(want, wrappedProse(text, 40)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if got := wrappedProse(text, 0); got != text {
			t.Errorf("without a width, %q becomes %q", text, got)
		}
	}
}
