package disruption_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestReplacementsHaveNamesOfTheirOwn covers a node that was launched for the same pods that move. It has the name
// that its replacement would have; here it is the name of the other node, which is removed too.
func TestReplacementsHaveNamesOfTheirOwn(t *testing.T) {
	b := model.NewBuilder()
	b.UpsertPool(pool(t, "p", map[string]string{"after": "0s", "budget": ",100%"}))
	pods := []model.PodSpec{pod("pod", "a", map[string]string{"node": "n1"}), pod("pod", "b", map[string]string{"node": "n2"})}
	for i, name := range []string{"n1", "n2"} {
		n := node(t, name, map[string]string{"pool": "p"})
		n.Claim = plan.ClaimName(&model.PoolSpec{Name: "p", UID: "uid-p"}, []*model.Pod{{UID: pods[1-i].UID}}, func(string) bool { return false })
		n.Drifted, n.DriftedSince = "NodePoolDrifted", noon
		b.UpsertNode(n)
	}
	for _, p := range pods {
		b.UpsertPod(p)
	}
	snap := b.Snapshot(noon)
	proposal := disruption.Propose(snap, disruption.Options{})
	replaced := 0
	for _, c := range proposal.Commands {
		for i := range c.Replacements {
			replaced++
			if n := snap.Claim(c.Replacements[i].Name); n != nil {
				t.Errorf("node %s is to be replaced by %s, which already exists", c.Candidates[0].Node, n.Name)
			}
		}
	}
	if replaced != 2 {
		t.Errorf("%d nodes are replaced, want 2: %s", replaced, say(proposal))
	}
}

// TestReplacementsAreOfTheSeries checks that a replacement has another name when a claim of the pool has gone since,
// which may have been one for the same pods.
func TestReplacementsAreOfTheSeries(t *testing.T) {
	for _, static := range []bool{false, true} {
		names := map[string]string{}
		for _, series := range []string{"", "1", "2"} {
			b := model.NewBuilder()
			p := pool(t, "p", map[string]string{"after": "0s", "budget": ",100%"})
			p.ClaimSeries, p.Static, p.Replicas = series, static, 1
			b.UpsertPool(p)
			n := node(t, "n", map[string]string{"pool": "p"})
			n.Drifted, n.DriftedSince = "NodePoolDrifted", noon
			b.UpsertNode(n)
			b.UpsertPod(pod("pod", "a", map[string]string{"node": "n"}))
			proposal := disruption.Propose(b.Snapshot(noon), disruption.Options{Static: true})
			if len(proposal.Commands) != 1 || len(proposal.Commands[0].Replacements) != 1 {
				t.Fatalf("commands %+v, want one with one replacement: %s", proposal.Commands, say(proposal))
			}
			name := proposal.Commands[0].Replacements[0].Name
			if other, used := names[name]; used {
				t.Errorf("static %t: the name %s is of the series %q and %q", static, name, other, series)
			}
			names[name] = series
		}
	}
}

// TestCommandsSayWhatTheyCountOn checks that a command, whatever its reason, records the nodes that it moves pods to
// and the generations of the pools that it was made for.
func TestCommandsSayWhatTheyCountOn(t *testing.T) {
	for _, reason := range []plan.Reason{plan.Drifted, plan.Underutilized} {
		for where, want := range map[string]plan.Destination{
			"nowhere":           {},
			"on another node":   {Claim: "claim-other", ClaimUID: "uid-claim-other"},
			"on a foreign node": {Node: "other", NodeUID: "uid-other"},
		} {
			room := where != "nowhere"
			if !room && reason == plan.Underutilized {
				continue // a spot node would replace a spot node
			}
			b := model.NewBuilder()
			p := pool(t, "p", map[string]string{"after": ",0s", "budget": ",100%", "policy": ",WhenEmptyOrUnderutilized"})
			p.Generation = 7
			b.UpsertPool(p)
			n := node(t, "old", map[string]string{"pool": ",p", "type": ",large"})
			if reason == plan.Drifted {
				n.Drifted, n.DriftedSince = "NodePoolDrifted", noon
			}
			b.UpsertNode(n)
			b.UpsertPod(pod("pod", "a", map[string]string{"node": ",old"}))
			if room {
				has := map[string]string{"pool": ",p"}
				if want.Claim == "" {
					has["unmanaged"] = ""
				}
				b.UpsertNode(node(t, "other", has))
				busy := pod("pod", "b", map[string]string{"node": ",other"})
				busy.ProtectedUntil = model.Forever
				b.UpsertPod(busy)
			}
			commands := disruption.Propose(b.Snapshot(noon), disruption.Options{}).Commands
			if len(commands) != 1 || commands[0].Reason != reason {
				t.Fatalf("%s: %d commands", reason, len(commands))
			}
			c := commands[0]
			var destinations []plan.Destination
			if room {
				want.Pods = model.ParsePodRefs("uid-a")
				destinations = []plan.Destination{want}
			}
			if diff := cmp.Diff(destinations, c.Destinations); diff != "" {
				t.Errorf("%s, room %s: destinations (-want +got):\n%s", reason, where, diff)
			}
			if buys := len(c.Replacements) == 1 && c.Replacements[0].PoolGeneration == 7; buys == room {
				t.Errorf("%s: replacements %+v, there is room %s", reason, c.Replacements, where)
			}
		}
	}
}
