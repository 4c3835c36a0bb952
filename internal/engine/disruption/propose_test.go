package disruption_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// tell builds a snapshot from lines, so that a case is one text whose lines can be added in any order:
//
//	pool NAME after=30s|Never policy=P budget=N|N%[:REASON][:inactive] broken
//	node NAME pool=P type=small|large age=1m quiet=10s stage=S deleting tainted notready
//	     protected sent=10s nominated=5s command=TEXT unmanaged
//	pod NAME node=N daemon terminating cheap protected
//	pending NAME nominated=N
func tell(t *testing.T, lines []string) *model.Snapshot {
	t.Helper()
	b := model.NewBuilder()
	for _, line := range lines {
		words := strings.Fields(line)
		has := map[string]string{}
		for _, word := range words[2:] {
			key, value, _ := strings.Cut(word, "=")
			has[key] = has[key] + "," + value
		}
		switch words[0] {
		case "pool":
			b.UpsertPool(pool(t, words[1], has))
		case "node":
			b.UpsertNode(node(t, words[1], has))
		case "pod", "pending":
			b.UpsertPod(pod(words[0], words[1], has))
		default:
			t.Fatalf("unknown line: %s", line)
		}
	}
	return b.Snapshot(noon)
}

// catalog is shared by all pools, as the builder requires.
var catalog = &model.Catalog{Types: []model.InstanceType{kind("small", 1), kind("large", 4)},
	WellKnown: map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true}}

func kind(name string, price int64) model.InstanceType {
	amounts := []quantity.Amount{{Name: "cpu", Value: 1000 * price}}
	return model.InstanceType{Name: name, Capacity: amounts, Allocatable: amounts,
		Offerings: []model.Offering{{Zone: "z", CapacityType: "spot", Price: price * model.Nano, Available: true}}}
}

func pool(t *testing.T, name string, has map[string]string) model.PoolSpec {
	p := model.PoolSpec{Name: name, UID: "uid-" + name, ConsolidateAfter: -1, Catalog: catalog, Policy: first(has["policy"])}
	if after := first(has["after"]); after != "Never" {
		p.ConsolidateAfter = duration(t, after)
	}
	for _, text := range strings.Split(has["budget"], ",")[1:] {
		var b model.Budget
		parts := strings.Split(text, ":")
		amount, percent := strings.CutSuffix(parts[0], "%")
		var n int64
		if _, err := fmt.Sscan(amount, &n); err != nil {
			t.Fatalf("budget %q: %v", text, err)
		}
		if b.IsPercent = percent; percent {
			b.Percent = n
		} else {
			b.Count = n
		}
		for _, part := range parts[1:] {
			if part == "inactive" {
				b.Inactive = true
			} else {
				b.Reasons = append(b.Reasons, part)
			}
		}
		p.Budgets = append(p.Budgets, b)
	}
	if _, broken := has["broken"]; broken {
		p.BudgetError = "cannot be read"
	}
	return p
}

func node(t *testing.T, name string, has map[string]string) model.NodeSpec {
	flag := func(key string) bool { _, ok := has[key]; return ok }
	n := model.NodeSpec{Name: name, UID: "uid-" + name, Claim: "claim-" + name, ClaimUID: "uid-claim-" + name, Pool: first(has["pool"]),
		Stage: model.Initialized, Ready: !flag("notready"), Deleting: flag("deleting"), Disrupted: flag("tainted"),
		DoNotDisrupt: flag("protected"), Command: first(has["command"]), InitializedAt: noon.Add(-time.Hour),
		Labels: map[string]string{model.LabelPool: first(has["pool"]), model.LabelType: "small", model.LabelZone: "z", model.LabelCapacityType: "spot"}}
	if flag("type") {
		n.Labels[model.LabelType] = first(has["type"])
	}
	if flag("age") {
		n.InitializedAt = noon.Add(-duration(t, first(has["age"])))
	}
	if flag("quiet") {
		n.LastPodEvent = noon.Add(-duration(t, first(has["quiet"])))
	}
	if flag("sent") {
		n.PodsSentAt = noon.Add(-duration(t, first(has["sent"])))
	}
	if flag("nominated") {
		n.NominatedUntil = noon.Add(duration(t, first(has["nominated"])))
	}
	if flag("stage") {
		n.Stage = map[string]model.Stage{"launching": model.Launching, "launched": model.Launched, "registered": model.Registered}[first(has["stage"])]
	}
	if flag("unmanaged") {
		n.Claim, n.ClaimUID, n.Pool = "", "", ""
	}
	return n
}

func pod(state, name string, has map[string]string) model.PodSpec {
	flag := func(key string) bool { _, ok := has[key]; return ok }
	p := model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, Daemon: flag("daemon"), Node: first(has["node"]),
		Nominated: first(has["nominated"]), State: model.Bound, Reschedulable: !flag("daemon") && !flag("terminating")}
	if state == "pending" {
		p.State = model.Pending
	}
	if flag("cheap") {
		p.Priority, p.EvictionCost = -1<<30, -10000
	}
	if flag("protected") {
		p.ProtectedUntil = model.Forever
	}
	return p
}

func first(values string) string {
	parts := strings.Split(values, ",")
	return parts[len(parts)-1]
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var codes = map[plan.Code]string{plan.NodeBusy: "busy", plan.NodeProtected: "protected", plan.NodeNominated: "nominated", plan.NoSaving: "no saving", plan.NodeTooYoung: "too young",
	plan.NodeNotReady: "not initialized", plan.NodeTaken: "taken", plan.NodeLeaving: "leaving", plan.BudgetExhausted: "budget",
	plan.BudgetUnreadable: "budget unreadable", plan.PolicyForbids: "policy", plan.PoolGone: "pool gone", plan.NodeExpecting: "expecting"}

// say returns a proposal as text.
func say(p disruption.Proposal) string {
	var b strings.Builder
	for _, c := range p.Commands {
		for _, candidate := range c.Candidates {
			fmt.Fprintf(&b, "%s %s because %s (%s)\n", c.Decision(), candidate.Node, c.Reason, c.Method)
		}
	}
	for _, k := range p.Kept {
		fmt.Fprintf(&b, "keep %s: %s\n", k.Node, codes[k.Verdict.Code])
	}
	if !p.Next.IsZero() {
		fmt.Fprintf(&b, "next in %s\n", p.Next.Sub(noon))
	}
	return b.String()
}

// proposalCase is a world and the proposal for it, as text.
type proposalCase struct{ name, world, want string }

// checkProposals checks the proposal of each case, that it does not depend on the order in which the world was told,
// and that its commands are admitted.
func checkProposals(t *testing.T, cases []proposalCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			lines, want := linesOf(c.world), strings.Join(linesOf(c.want), "\n")+"\n"
			if diff := cmp.Diff(want, say(disruption.Propose(tell(t, lines), disruption.Options{}))); diff != "" {
				t.Errorf("proposal (-want +got):\n%s", diff)
			}
			random := rand.New(rand.NewPCG(1, 2))
			for range 10 {
				random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
				snap := tell(t, lines)
				proposal := disruption.Propose(snap, disruption.Options{})
				if diff := cmp.Diff(want, say(proposal)); diff != "" {
					t.Fatalf("lines in another order (-want +got):\n%s", diff)
				}
				g := guard.New(snap)
				for _, command := range proposal.Commands {
					if v := g.Admit(command); !v.OK() {
						t.Errorf("a proposed command is not admitted: %+v", v)
					}
				}
			}
		})
	}
}

// TestProposeEmpty checks which nodes are empty.
func TestProposeEmpty(t *testing.T) {
	checkProposals(t, []proposalCase{
		{"empty nodes under every policy", `
			pool p after=0s policy=WhenEmpty
			pool q after=0s policy=WhenEmptyOrUnderutilized
			pool r after=0s policy=Balanced
			node a pool=p
			node b pool=q
			node c pool=r
			node d pool=p
			pod web node=d`, `
			delete a because Empty (empty)
			delete b because Empty (empty)
			delete c because Empty (empty)
			keep d: policy`},
		{"DaemonSet pods and terminating pods are not counted", `
			pool p after=0s
			node a pool=p
			pod agent node=a daemon
			pod bye node=a terminating`, `
			delete a because Empty (empty)`},
		{"a pod of the lowest priority keeps its node from being empty", `
			pool p after=0s
			node a pool=p
			pod batch node=a cheap`, `
			keep a: no saving`},
	})
}

// TestProposeConsolidateAfter checks when nodes may be removed.
func TestProposeConsolidateAfter(t *testing.T) {
	checkProposals(t, []proposalCase{
		{"consolidateAfter counts from the last pod event, or else from initialization", `
			pool p after=30s
			node a pool=p age=20s
			node b pool=p quiet=10s
			node c pool=p age=10s quiet=31s
			node d pool=p age=30s`, `
			delete c because Empty (empty)
			delete d because Empty (empty)
			keep a: too young
			keep b: too young
			next in 10s`},
		{"consolidateAfter Never", `
			pool p after=Never
			node a pool=p`, `
			keep a: policy`},
	})
}

// TestProposeBudgets checks which nodes the budgets allow.
func TestProposeBudgets(t *testing.T) {
	checkProposals(t, []proposalCase{
		{"a budget in nodes: the most expensive first, then by name; deleting and not ready nodes count", `
			pool p after=0s budget=4
			node a pool=p
			node b pool=p
			node c pool=p type=large
			node d pool=p
			node e pool=p deleting
			node f pool=p notready
			pod web node=f`, `
			delete c because Empty (empty)
			delete a because Empty (empty)
			keep b: budget
			keep d: budget
			keep e: leaving
			keep f: budget`},
		{"a budget in percent of the initialized nodes is rounded up", `
			pool p after=0s budget=10%
			node a pool=p
			node b pool=p
			node c pool=p
			node d pool=p
			node e pool=p stage=registered`, `
			delete a because Empty (empty)
			keep b: budget
			keep c: budget
			keep d: budget
			keep e: not initialized`},
		{"the strictest active budget for the reason applies", `
			pool p after=0s budget=100% budget=0:Drifted budget=0:inactive budget=1:Empty
			node a pool=p
			node b pool=p`, `
			delete a because Empty (empty)
			keep b: budget`},
		{"an unreadable budget blocks only its pool", `
			pool p after=0s broken
			pool q after=0s
			node a pool=p
			node b pool=q`, `
			delete b because Empty (empty)
			keep a: budget unreadable`},
	})
}

// TestProposeKept checks which empty nodes are kept.
func TestProposeKept(t *testing.T) {
	checkProposals(t, []proposalCase{
		{"protected, nominated and taken nodes", `
			pool p after=0s
			node a pool=p protected
			node b pool=p
			pod agent node=b daemon protected
			node c pool=p nominated=5s
			node d pool=p
			pending web nominated=d
			node e pool=p command=something`, `
			keep a: protected
			keep b: protected
			keep c: nominated
			keep d: nominated
			keep e: taken
			next in 5s`},
		{"an empty node that a pending pod fits on is kept without a nomination", `
			pool p after=0s
			node a pool=p
			node b pool=p
			pending web`, `
			delete b because Empty (empty)
			keep a: nominated`},
		{"claims in flight, unmanaged nodes and nodes of a deleted pool", `
			pool p after=0s
			node a pool=p stage=launching
			node b pool=p stage=launched
			node c unmanaged
			node d pool=gone`, `
			keep a: not initialized
			keep b: not initialized
			keep d: pool gone`},
	})
}

func linesOf(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestNextWhenRoomSettles covers a node with room for the pods to which a pod was bound a moment ago. It is kept and
// becomes available after the pool's consolidateAfter, which is the time of the next run.
func TestNextWhenRoomSettles(t *testing.T) {
	lines := []string{
		"pool p after=30s budget=100% policy=WhenEmptyOrUnderutilized",
		"node a pool=p type=large quiet=1h",
		"pod x node=a",
		"node b pool=p type=large quiet=10s protected",
		"pod y node=b",
	}
	proposal := disruption.Propose(tell(t, lines), disruption.Options{})
	if len(proposal.Commands) > 0 {
		t.Fatalf("commands %v, want none: no pod may be moved to b yet", proposal.Commands)
	}
	if want := noon.Add(20 * time.Second); !proposal.Next.Equal(want) {
		t.Errorf("next run at %v, want %v", proposal.Next, want)
	}
}

// TestNextWhenNoPodArrives covers an empty node to which pods were moved that have not been bound. It is kept for a
// minute, which is the time of the next run even without events; then it is removed.
func TestNextWhenNoPodArrives(t *testing.T) {
	tellOf := func(sent string) disruption.Proposal {
		return disruption.Propose(tell(t, []string{"pool p after=0s budget=100%", "node a pool=p type=large age=5m sent=" + sent}), disruption.Options{})
	}
	early := tellOf("10s")
	if got, want := say(early), "keep a: expecting\nnext in 50s\n"; got != want {
		t.Errorf("proposal (-want +got):\n%s", cmp.Diff(want, got))
	}
	if at := disruption.ChangesAt(tell(t, []string{"pool p after=0s budget=100%", "node a pool=p type=large age=5m sent=10s"}), disruption.Options{}, early.Kept[0]); !at.Equal(noon.Add(50 * time.Second)) {
		t.Errorf("the verdict may change at %v", at)
	}
	if late := tellOf("1m"); len(late.Commands) != 1 || late.Commands[0].Reason != plan.Empty {
		t.Errorf("after a minute: %s", say(late))
	}
}

// TestRoomThatIsSpokenFor checks that an empty node that awaits pods is not available for pods of another node,
// whatever the reason. When it has pods again, it may be.
func TestRoomThatIsSpokenFor(t *testing.T) {
	world := []string{
		"pool p after=0s budget=100% policy=WhenEmptyOrUnderutilized",
		"node a pool=p type=small quiet=1h",
		"pod x node=a",
	}
	for _, c := range []struct{ intent, there, want string }{
		{"no pod has come", "node b pool=p type=small age=5m sent=10s", "keep a: no saving\nkeep b: expecting\nnext in 50s\n"},
		{"a pod has come", "node b pool=p type=small quiet=5s sent=10s", "delete b because Empty (empty)\nkeep a: no saving\n"},
	} {
		proposal := disruption.Propose(tell(t, append(world[:len(world):len(world)], c.there)), disruption.Options{})
		if diff := cmp.Diff(c.want, say(proposal)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.intent, diff)
		}
	}
	for sent, want := range map[string]string{"10s": "replace", "2m": "delete"} {
		b := model.NewBuilder()
		b.UpsertPool(pool(t, "p", map[string]string{"after": ",0s", "budget": ",100%"}))
		drifted := node(t, "a", map[string]string{"pool": ",p", "type": ",small"})
		drifted.Drifted, drifted.DriftedSince = "NodePoolDrifted", noon
		b.UpsertNode(drifted)
		b.UpsertPod(pod("pod", "x", map[string]string{"node": ",a"}))
		room := node(t, "b", map[string]string{"pool": ",p", "type": ",small", "sent": "," + sent})
		room.DoNotDisrupt = true // otherwise it would be removed
		b.UpsertNode(room)
		commands := disruption.Propose(b.Snapshot(noon), disruption.Options{}).Commands
		if len(commands) != 1 || commands[0].Decision() != want {
			t.Errorf("sent %s ago: %d commands, want one with the decision %s", sent, len(commands), want)
		}
	}
}
