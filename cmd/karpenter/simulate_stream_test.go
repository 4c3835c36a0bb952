package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStream checks that writing element by element gives the same text as writing at once.
func TestStream(t *testing.T) {
	for name, a := range map[string]*answer{
		"empty": {Nodes: []newNode{}, ExistingNodes: []existing{}, Unschedulable: []refusal{}},
		"nil":   {},
		"full": {Pods: podCounts{Total: 3}, Nodes: []newNode{
			{Name: "a<b>&", InstanceTypes: []string{"x", "y"}, Pods: []string{}, Requests: map[string]string{"cpu": "1", "memory": "2Gi"}}, {Name: "c"}},
			ExistingNodes: []existing{{Name: "n", Pods: []string{"p"}}}, Unschedulable: []refusal{{"p", []reason{{Code: "c", Message: "m > n"}}}},
			BindOrder: []string{"p", "q"}, PricePerHour: 1.25e-7, Preferences: &preferences{Nodes: -1}, Stats: &stats{CPUSeconds: 0.5}},
	} {
		var want, got bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetIndent("", " ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(a); err != nil {
			t.Fatal(err)
		}
		if err := a.writeJSON(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%s (-at once +piece by piece):\n%s", name, diff)
		}
	}
}
