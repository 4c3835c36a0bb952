package offline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriteMoves checks that the text names the node pairs with most pods, and mentions that there are more.
func TestWriteMoves(t *testing.T) {
	step := Step{Add: []AddedNode{{Name: "fresh", InstanceType: "small"}}}
	for i := range 7 {
		step.Moves = append(step.Moves, PodMove{fmt.Sprintf("ns/p%d", i), "a", fmt.Sprintf("to-%d", i)})
	}
	for i := range 4 {
		step.Moves = append(step.Moves, PodMove{fmt.Sprintf("ns/q%d", i), "b", "fresh"})
	}
	var b strings.Builder
	step.writeMoves(&b, 3, separator(0))
	want := "STEP 3 from b to new fresh (small): ns/q0,ns/q1,ns/q2 and 1 more\n" +
		"STEP 3 from a to to-0: ns/p0\nSTEP 3 from a to to-1: ns/p1\nSTEP 3 from a to to-2: ns/p2\nSTEP 3 from a to to-3: ns/p3\n" +
		"STEP 3 between 3 pairs of nodes more: -o json names them\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
