package disruption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// mostBytes is half of the API server's limit.
const mostBytes = 128 << 10

// crowd returns a snapshot with three nodes that may be removed, the third with room for the pods of all.
func crowd(t *testing.T) *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(pool(t, "p", map[string]string{"after": ",0s", "budget": ",100%", "policy": ",WhenEmptyOrUnderutilized"}))
	for _, name := range []string{"a", "b", "c"} {
		b.UpsertNode(node(t, name, map[string]string{"pool": ",p", "type": ",large"}))
		b.UpsertPod(pod("pod", "x-"+name, map[string]string{"node": "," + name}))
	}
	return b.Snapshot(noon)
}

// TestLargeCommandsNameFewerTypes checks that a command that does not fit into an annotation lists fewer types: the
// cheapest ones, and as many as minValues require.
func TestLargeCommandsNameFewerTypes(t *testing.T) {
	for _, least := range []int{0, 400} {
		var claims []plan.NewClaim
		var names []string
		options := make([]plan.Option, plan.MaxTypes)
		for i := range options {
			options[i] = plan.Option{Type: fmt.Sprintf("family-%04d.metal-48xl", i), Zone: "z", CapacityType: "spot", Price: int64(i + 1)}
			names = append(names, options[i].Type)
		}
		for range 12 {
			claims = append(claims, plan.NewClaim{Pool: "p", PoolUID: "uid-p", Options: options,
				Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: names, MinValues: least}}})
		}
		cmd := disruption.CommandOf(crowd(t), claims, "a")
		if size := len(cmd.Encode()); size >= mostBytes || size < mostBytes/3 {
			t.Errorf("at least %d: the command has %d bytes", least, size)
		}
		for i := range cmd.Replacements {
			r := &cmd.Replacements[i]
			if len(r.Options) < max(15, least) || len(names) != plan.MaxTypes {
				t.Errorf("at least %d: %d types of %d", least, len(r.Options), len(names))
			}
			if diff := cmp.Diff(names[:len(r.Options)], r.Requirements[0].Values); diff != "" || r.Requirements[0].MinValues != least {
				t.Errorf("at least %d: types (-want +got):\n%s", least, diff)
			}
		}
	}
}

// TestNodesOfCommandsThatAreTooLargeGoAlone checks that nodes are evaluated individually if they cannot be removed
// together because nothing can be shortened.
func TestNodesOfCommandsThatAreTooLargeGoAlone(t *testing.T) {
	claim := plan.NewClaim{Pool: "p", PoolUID: "uid-p", Labels: map[string]string{"note": strings.Repeat("x", mostBytes)}}
	commands := disruption.Accepted(crowd(t), []plan.NewClaim{claim}, "a", "b")
	if len(commands) == 0 {
		t.Error("no node is removed")
	}
	for i := range commands {
		if c := &commands[i]; len(c.Candidates) != 1 || len(c.Encode()) >= mostBytes {
			t.Errorf("%d candidates in %d bytes", len(c.Candidates), len(c.Encode()))
		}
	}
}

// TestLargeCommandsForgetUnmanagedNodes checks that assignments on unmanaged nodes, which help after a crash but
// are not required, are dropped from a command that would be too large to store, and that assignments on managed nodes
// are kept.
func TestLargeCommandsForgetUnmanagedNodes(t *testing.T) {
	for pods, want := range map[int][]string{2: {"", "claim-c"}, 2000: {"claim-c"}} {
		b := model.NewBuilder()
		b.UpsertPool(pool(t, "p", map[string]string{"after": ",0s", "budget": ",100%", "policy": ",WhenEmptyOrUnderutilized"}))
		b.UpsertNode(node(t, "a", map[string]string{"pool": ",p", "type": ",large"}))
		b.UpsertNode(node(t, "c", map[string]string{"pool": ",p", "type": ",large"}))
		b.UpsertNode(node(t, "foreign", map[string]string{"unmanaged": "", "type": ",large"}))
		for i := range pods {
			b.UpsertPod(pod("pod", fmt.Sprintf("0b5d3f9e-7d0c-4b5e-9b1c-%012d-%036d", i, i), map[string]string{"node": ",a"}))
		}
		cmd := disruption.Moving(b.Snapshot(noon), "a", map[string]int{"foreign": pods - 1, "c": 1})
		if size := len(cmd.Encode()); size >= mostBytes {
			t.Errorf("%d pods: the command has %d bytes", pods, size)
		}
		var claims []string
		for _, l := range cmd.Destinations {
			claims = append(claims, l.Claim)
		}
		slices.Sort(claims)
		if diff := cmp.Diff(want, claims); diff != "" {
			t.Errorf("%d pods: nodes that receive them (-want +got):\n%s", pods, diff)
		}
	}
}
