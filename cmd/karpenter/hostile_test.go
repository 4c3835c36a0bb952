package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// argumentsVariable makes TestAsProgram the program, with these arguments, one a line.
const argumentsVariable = "KARPENTER_TEST_ARGUMENTS"

func TestAsProgram(t *testing.T) {
	arguments, ok := os.LookupEnv(argumentsVariable)
	if !ok {
		t.Skip("this is run by other tests, as a process of its own")
	}
	root := newRootCommand()
	root.SetArgs(strings.Split(arguments, "\n"))
	os.Exit(run(t.Context(), root))
}

// program runs the program as a process, and returns what it printed and its peak of resident memory in MiB.
func program(t *testing.T, arguments ...string) (string, int64) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsProgram$")
	command.Env = append(os.Environ(), argumentsVariable+"="+strings.Join(arguments, "\n"))
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("karpenter %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output), command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
}

const hostileBase = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"general"},"spec":{"limits":{"cpu":"2000"},"template":{"spec":{
"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"},"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","on-demand"]}]}}}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"plain","namespace":"other"},"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"cpu":"1"}}}]},
"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}
`

// hostilePods are pods with so many node affinity terms each, all different, with a NotIn of a value of its own for each key.
func hostilePods(pods, terms int, keys ...string) string {
	var text strings.Builder
	for i := range pods {
		var list []any
		for j := range terms {
			var expressions []any
			for _, key := range keys {
				expressions = append(expressions, map[string]any{"key": key, "operator": "NotIn", "values": []string{fmt.Sprintf("x%d-%d", i, j)}})
			}
			list = append(list, map[string]any{"matchExpressions": expressions})
		}
		encoded, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&text, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","namespace":"tenant"},"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"cpu":"100m"}}}],
"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":%s}}}},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}
`, i, encoded)
	}
	return text.String()
}

// TestHostileAffinity: pods with very many node affinity terms take little memory, whether their terms can be merged or not, and the
// pods of others have their place.
func TestHostileAffinity(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base.json")
	if err := os.WriteFile(base, []byte(hostileBase), 0o600); err != nil {
		t.Fatal(err)
	}
	_, baseline := program(t, "simulate", "-f", base)
	for _, test := range []struct {
		name        string
		pods, terms int
		keys        []string
		most        int64 // MiB beyond the baseline
		placed      bool
	}{
		{"10 pods of 6,000 terms", 10, 6000, []string{"node.kubernetes.io/instance-type"}, 100, true},
		{"300 pods of 300 terms", 300, 300, []string{"node.kubernetes.io/instance-type"}, 200, true},
		{"10 pods of 6,000 terms of two keys", 10, 6000, []string{"node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"}, 100, false},
		{"300 pods of 300 terms of two keys", 300, 300, []string{"node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"}, 200, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pods.json")
			if err := os.WriteFile(file, []byte(hostilePods(test.pods, test.terms, test.keys...)), 0o600); err != nil {
				t.Fatal(err)
			}
			output, peak := program(t, "simulate", "-f", base, "-f", file)
			t.Logf("%d MiB beyond %d MiB", peak-baseline, baseline)
			if peak-baseline > test.most {
				t.Errorf("%d MiB beyond those of one pod, want at most %d", peak-baseline, test.most)
			}
			if strings.Contains(output, "NO PLACE for other/plain") {
				t.Errorf("the other pod has no place:\n%s", output)
			}
			if said := strings.Contains(output, "too many alternatives"); said == test.placed {
				t.Errorf("pods were set aside: %t, want %t:\n%.2000s", said, !test.placed, output)
			}
		})
	}
}
