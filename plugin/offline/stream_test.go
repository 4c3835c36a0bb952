package offline

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStream checks that writing element by element gives the same text as writing at once.
func TestStream(t *testing.T) {
	for name, a := range map[string]*LaunchAnswer{
		"empty": {Nodes: []NewNode{}, ExistingNodes: []ExistingNode{}, Unschedulable: []Unschedulable{}},
		"nil":   {},
		"full": {Pods: PodCounts{Total: 3}, Nodes: []NewNode{
			{Name: "a<b>&", InstanceTypes: []string{"x", "y"}, Pods: []string{}, Requests: map[string]string{"cpu": "1", "memory": "2Gi"}}, {Name: "c"}},
			ExistingNodes: []ExistingNode{{Name: "n", Pods: []string{"p"}}}, Unschedulable: []Unschedulable{{"p", []Reason{{Code: "c", Message: "m > n"}}}},
			BindOrder: []string{"p", "q"}, PricePerHour: 1.25e-7, Preferences: &PreferencesCost{Nodes: -1}, Stats: &Stats{CPUSeconds: 0.5}},
	} {
		var want, got bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetIndent("", " ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(a); err != nil {
			t.Fatal(err)
		}
		if err := a.WriteJSON(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%s (-at once +piece by piece):\n%s", name, diff)
		}
	}
}
