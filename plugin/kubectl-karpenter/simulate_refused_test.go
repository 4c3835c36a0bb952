package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// TestNodesOfRefusedPools checks that nodes of a pool that the API server would reject are kept, with the pool's
// error as the reason, and that pods that need the pool get the same reason.
func TestNodesOfRefusedPools(t *testing.T) {
	for name, c := range map[string]struct{ from, to, message string }{
		"out of range":  {"spec:\n", "spec:\n  weight: 500\n", "spec.weight: is 500, want 100 or less"},
		"wrong type":    {"spec:\n", "spec:\n  weight: heavy\n", "spec.weight: is of type string, want an integer"},
		"what is worse": {`nodes: "100%"`, `nodes: "100%", schedule: "@never"`, "spec.disruption.budgets[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			texts := mixed()
			texts["pool.yaml"] = strings.Replace(disruptPool, c.from, c.to, 1)
			texts["pod.yaml"] = podYAML("waits", "", "60", "")
			folder := files(t, texts)
			out, err := simulate(t, "", "-f", folder, "--disrupt", "-o", "json")
			if err == nil || !strings.Contains(err.Error(), "NodePool default: "+c.message) {
				t.Errorf("got %v, want %q", err, c.message)
			}
			var a offline.DisruptAnswer
			if err := json.Unmarshal([]byte(out), &a); err != nil {
				t.Fatal(err)
			}
			said := map[string]string{}
			for _, k := range a.Kept {
				said[k.Node] = k.Reasons[0].Code
				if m := k.Reasons[0].Message; !strings.HasPrefix(m, "the pool of node "+k.Node+" is refused: "+c.message) {
					t.Errorf("%s is kept because %s", k.Node, m)
				}
			}
			want := map[string]string{"empty": "PoolRefused", "idle-1": "PoolRefused", "idle-2": "PoolRefused", "held": "PoolRefused"}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			var planned offline.LaunchAnswer
			out, _ = simulate(t, "", "-f", folder, "-o", "json")
			if err := json.Unmarshal([]byte(out), &planned); err != nil {
				t.Fatal(err)
			}
			if n := len(planned.Unschedulable); n != 1 {
				t.Fatalf("%d pods are unschedulable, want 1: %+v", n, planned.Unschedulable)
			}
			switch reason := planned.Unschedulable[0].Reasons[0]; {
			case reason.Code != "PoolBlocked":
				t.Errorf("the pending pod is refused because of %+v, want PoolBlocked", reason)
			case !strings.Contains(reason.Message, c.message):
				t.Errorf("the pending pod is refused because %q, want %q in it", reason.Message, c.message)
			}
		})
	}
}

// TestSimulateUnreadableFolder checks that no empty answer is printed if the pending pods may be in a file that cannot
// be read; what can be decided still is.
func TestSimulateUnreadableFolder(t *testing.T) {
	folder := files(t, map[string]string{"b.yaml": poolYAML})
	if err := os.Symlink("nowhere", filepath.Join(folder, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	out, err := simulate(t, "", "-f", folder)
	if cli.ExitCode(err) != 2 || !strings.Contains(fmt.Sprint(err), "a.yaml: no such file") || out != "" {
		t.Errorf("without pods: %v\n%s", err, out)
	}
	pods := files(t, map[string]string{"web.yaml": webYAML})
	out, err = simulate(t, "", "-f", folder, "-f", pods)
	if cli.ExitCode(err) != 2 || !strings.Contains(out, "3 pods") {
		t.Errorf("with pods: %v\n%s", err, out)
	}
}
