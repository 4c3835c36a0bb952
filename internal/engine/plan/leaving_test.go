package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// shop gives the world's pool a catalog with two instance types.
func (w *world) shop() {
	kind := func(name string, cpu, price int64) model.InstanceType {
		amounts := []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: 110}}
		in := func(key, value string) label.Requirement {
			return label.Requirement{Key: key, Operator: label.In, Values: []string{value}}
		}
		return model.InstanceType{Name: name, Capacity: amounts, Allocatable: amounts,
			Requirements: []label.Requirement{in(model.LabelType, name), in(model.LabelZone, "z"), in(model.LabelCapacityType, "on-demand")},
			Offerings:    []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: price * model.Nano / 100, Available: true}}}
	}
	w.pools[0].Catalogue = &model.Catalogue{Types: []model.InstanceType{kind("small", 2000, 10), kind("large", 4000, 20)},
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
}

// run binds a ready pod whose owner recreates it elsewhere after an eviction.
func (w *world) run(pod, owner, node string, cpu int64) *model.PodSpec {
	w.pods = append(w.pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Bound, Node: node, Ready: true,
		Reschedulable: true, Labels: map[string]string{"app": owner}, Controller: model.Owner{Kind: "ReplicaSet", Name: owner, UID: owner},
		Requests: []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: 1}}})
	return &w.pods[len(w.pods)-1]
}

// replace does what follows an eviction: the pod is gone, and its owner creates another.
func (w *world) replace(pod, by string) {
	at := slices.IndexFunc(w.pods, func(p model.PodSpec) bool { return p.Name == pod })
	p := w.pods[at]
	w.pods = slices.Delete(w.pods, at, at+1)
	p.Name, p.UID, p.State, p.Node, p.Ready, p.ProtectedUntil = by, "uid-"+by, model.Pending, "", false, time.Time{}
	w.pods = append(w.pods, p)
}

// buy creates the claims of a plan, as the executor and the watch would show them.
func (w *world) buy(p *plan.Provision) {
	for _, c := range p.Claims {
		n := &model.NodeSpec{Name: c.Name, UID: "uid-" + c.Name, Claim: c.Name, ClaimUID: "uid-" + c.Name, Pool: c.Pool, Stage: model.Launching,
			Requirements: c.Requirements, Requests: c.Requests, Labels: map[string]string{model.LabelPool: c.Pool}}
		for _, pod := range c.Pods {
			owner := ""
			if pod.Node != "" {
				owner = pod.Controller.UID
			}
			n.Promised, n.Owners = append(n.Promised, pod.UID), append(n.Owners, owner)
		}
		w.nodes[c.Name] = n
	}
}

// planned makes a plan, verifies that a check on the same snapshot drops nothing, and returns the plan with a listing
// of its placements.
func (w *world) planned() (*plan.Provision, string) {
	w.t.Helper()
	snap := w.snapshot()
	p := placement.Schedule(plan.Ahead(snap), placement.Options{})
	kept, dropped := plan.CheckProvision(snap, p)
	if len(dropped) > 0 || len(kept.Claims) != len(p.Claims) || len(kept.Placed) != len(p.Placed) {
		w.t.Errorf("a fresh plan loses %+v", dropped)
	}
	var lines []string
	say := func(where string, pods []*model.Pod) {
		var names []string
		for _, pod := range pods {
			names = append(names, pod.Name)
		}
		slices.Sort(names)
		lines = append(lines, where+": "+strings.Join(names, " "))
	}
	for i, c := range p.Claims {
		say(fmt.Sprint("new ", i), c.Pods)
	}
	for _, placed := range p.Placed {
		say(placed.Node, placed.Pods)
	}
	for _, r := range p.Refused {
		say("refused", r.Pods)
	}
	slices.Sort(lines)
	return p, strings.Join(lines, "\n")
}

// TestPodsOfLeavingNodesArePlanned: capacity is launched for the pods of a node under deletion while they still run. It
// serves their successors too: nothing is launched twice as the pods are evicted and recreated one by one.
func TestPodsOfLeavingNodesArePlanned(t *testing.T) {
	w := newWorld(t, 1)
	w.shop()
	w.run("web-1", "web", "n0", 1900)
	w.run("web-2", "web", "n0", 1000)
	w.run("db-1", "db", "n0", 1000)
	if _, where := w.planned(); where != "" {
		t.Errorf("without a node to remove the plan is %s", where)
	}
	w.nodes["c0"].Deleting = true
	p, where := w.planned()
	if len(p.Claims) == 0 || strings.Contains(where, "refused") {
		t.Fatalf("for the pods of a node that is being deleted the plan is %q", where)
	}
	bought := len(p.Claims)
	w.buy(p)
	seats := func(what string) map[string]string {
		t.Helper()
		p, where := w.planned()
		if len(p.Claims) > 0 || len(p.Refused) > 0 {
			t.Fatalf("%s: with %d claims in flight the next plan is\n%s", what, bought, where)
		}
		by := map[string]string{}
		for _, placed := range p.Placed {
			for _, pod := range placed.Pods {
				by[pod.Controller.Name+" "+fmt.Sprint(pod.Requests)] += placed.Node
			}
		}
		return by
	}
	first := seats("while all still run")
	for _, step := range []struct{ old, new string }{{"db-1", "db-2"}, {"web-1", "web-3"}, {"web-2", "web-4"}} {
		w.replace(step.old, step.new)
		if diff := cmp.Diff(first, seats(step.new+" came for "+step.old)); diff != "" {
			t.Errorf("%s replaced %s and the reservations changed (-before +after):\n%s", step.new, step.old, diff)
		}
	}
	delete(w.nodes, "c0")
	if diff := cmp.Diff(first, seats("when the node is gone")); diff != "" {
		t.Errorf("the node is gone and the reservations changed (-before +after):\n%s", diff)
	}
}

// TestSuccessorsTakeSeats: first fit would place the successors so that one is unschedulable; the reservations of their
// predecessors hold them all. A pod of the same owner with its own reservation takes no other.
func TestSuccessorsTakeSeats(t *testing.T) {
	w := newWorld(t, 0)
	w.shop()
	claim := func(name string, promised, owners []string) {
		w.nodes[name] = &model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "p", Stage: model.Launched,
			Labels: map[string]string{model.LabelPool: "p"}, Promised: promised, Owners: owners,
			Capacity:    []quantity.Amount{{Name: "cpu", Value: 2000}, {Name: "pods", Value: 110}},
			Allocatable: []quantity.Amount{{Name: "cpu", Value: 2000}, {Name: "pods", Value: 110}}}
	}
	claim("a", []string{"gone-1", "gone-2"}, []string{"half", "half"})
	claim("b", []string{"gone-3", "uid-own", "gone-4"}, []string{"most", "", "less"})
	for _, p := range []struct {
		name, owner string
		cpu         int64
	}{{"most-5", "most", 1200}, {"half-6", "half", 1000}, {"half-7", "half", 1000}, {"own", "half", 100}, {"less-8", "less", 700}} {
		w.run(p.name, p.owner, "nowhere", p.cpu)
		w.replace(p.name, p.name)
	}
	w.pods[3].UID = "uid-own"
	if _, where := w.planned(); where != "a: half-6 half-7\nb: less-8 most-5 own" {
		t.Errorf("placed\n%s", where)
	}
}

// TestSuccessorsTakeTheNewestPlace: two claims were created for a pod that is replaced. Its capacity on the older node
// may be in use by another pod, so the successor takes the reservation on the newer node, and no other pod takes the
// old one. A reservation (ReservedFor) is newer than both claims. A claim that was created for the pod and is reserved
// for it too has one place for it.
func TestSuccessorsTakeTheNewestPlace(t *testing.T) {
	for name, test := range map[string]struct {
		reserved []string
		want     map[string][]string
	}{
		"created later":         {nil, map[string][]string{"n0": {"gone"}, "n1": {"gone", "uid-next"}}},
		"reserved on the older": {[]string{"gone/web"}, map[string][]string{"n0": {"gone", "uid-next"}, "n1": {"gone"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			for i, claim := range []string{"c0", "c1"} {
				n := w.nodes[claim]
				n.Stage, n.Created = model.Launched, noon.Add(time.Duration(i)*time.Second)
				n.BoughtFor, n.Promised, n.Owners = []string{"gone"}, []string{"gone"}, []string{"web"}
			}
			if n := w.nodes["c0"]; test.reserved != nil {
				n.ReservedFor, n.Promised, n.Owners = test.reserved, append(n.Promised, "gone"), append(n.Owners, "web")
			}
			for _, pod := range []string{"next", "other"} {
				w.run(pod, "web", "nowhere", 100)
				w.replace(pod, pod)
			}
			snap := plan.Ahead(w.snapshot())
			got := map[string][]string{"n0": snap.Node("n0").Promised, "n1": snap.Node("n1").Promised}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("promised (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeatsThatAreTaken: a bound successor has used its reservation; a predecessor that is still planned keeps its own.
func TestSeatsThatAreTaken(t *testing.T) {
	w := newWorld(t, 2)
	w.nodes["c0"].Stage, w.nodes["c0"].Promised, w.nodes["c0"].Owners = model.Registered, []string{"gone", "uid-old", "bare"}, []string{"web", "web", ""}
	w.nodes["c1"].Deleting = true
	w.run("old", "web", "n1", 100)
	arrived := w.run("arrived", "web", "n0", 100)
	w.run("next", "web", "n1", 100)
	w.replace("next", "next")
	promised := func() []string { return plan.Ahead(w.snapshot()).Node("n0").Promised }
	if diff := cmp.Diff([]string{"gone", "uid-old", "bare"}, promised()); diff != "" {
		t.Errorf("both reservations are taken, promised (-want +got):\n%s", diff)
	}
	arrived.Controller.UID = "another"
	w.pods[1] = *arrived
	if diff := cmp.Diff([]string{"gone", "uid-old", "bare", "uid-next"}, promised()); diff != "" {
		t.Errorf("one reservation is free, promised (-want +got):\n%s", diff)
	}
}

// TestWhoIsPlannedAhead: which nodes are being removed, and which of their pods are planned for.
func TestWhoIsPlannedAhead(t *testing.T) {
	selects := model.Selector{Namespaces: []string{"default"}}
	pdb := func(name string, change func(*model.PDBSpec)) model.PDBSpec {
		p := model.PDBSpec{UID: name, Namespace: "default", Name: name, Selector: selects}
		change(&p)
		return p
	}
	as := func(phase plan.Phase) func(*world) {
		return func(w *world) {
			cmd := w.command("c0")
			cmd.Phase = phase
			w.nodes["c0"].Command = cmd.Encode()
		}
	}
	deleting := func(w *world) { w.nodes["c0"].Deleting = true }
	for _, test := range []struct {
		name   string
		change func(w *world)
		pdbs   []model.PDBSpec
		want   bool
	}{
		{"nothing", func(*world) {}, nil, false},
		{"deleting", deleting, nil, true},
		{"deleting, not ours", func(w *world) { deleting(w); w.nodes["c0"].Claim = "" }, nil, false},
		{"proposed", as(plan.Proposed), nil, false},
		{"cordoned", as(plan.Cordoned), nil, false},
		{"launching", as(plan.Launching), nil, true},
		{"draining", as(plan.Draining), nil, true},
		{"a command of another", func(w *world) { as(plan.Launching)(w); w.nodes["c0"].ClaimUID = "another" }, nil, false},
		{"a command that cannot be read", func(w *world) { w.nodes["c0"].Command = "{" }, nil, false},
		{"protected for ever", func(w *world) { deleting(w); w.pods[0].ProtectedUntil = model.Forever }, nil, false},
		{"protected, the drain ends in five minutes", func(w *world) {
			deleting(w)
			w.pods[0].ProtectedUntil, w.nodes["c0"].DrainEnds = model.Forever, noon.Add(5*time.Minute)
		}, nil, true},
		{"protected, the drain ends in an hour", func(w *world) {
			deleting(w)
			w.pods[0].ProtectedUntil, w.nodes["c0"].DrainEnds = model.Forever, noon.Add(time.Hour)
		}, nil, false},
		{"protected, the drain of a command that only buys would end", func(w *world) {
			as(plan.Launching)(w)
			w.pods[0].ProtectedUntil, w.nodes["c0"].DrainEnds = model.Forever, noon.Add(time.Minute)
		}, nil, false},
		{"a PDB that never does, two minutes before the end", func(w *world) { deleting(w); w.nodes["c0"].DrainEnds = noon.Add(2 * time.Minute) },
			[]model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Blocking = true })}, true},
		{"a PDB that wants all there are, after the end", func(w *world) { deleting(w); w.nodes["c0"].DrainEnds = noon.Add(-time.Minute) },
			[]model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Full = true })}, true},
		{"two PDBs, at the end", func(w *world) { deleting(w); w.nodes["c0"].DrainEnds = noon },
			[]model.PDBSpec{pdb("a", func(*model.PDBSpec) {}), pdb("b", func(*model.PDBSpec) {})}, true},
		{"protected until now", func(w *world) { deleting(w); w.pods[0].ProtectedUntil = noon }, nil, true},
		{"no controller recreates it", func(w *world) { deleting(w); w.pods[0].Reschedulable = false }, nil, false},
		{"a PDB that allows nothing now", deleting, []model.PDBSpec{pdb("a", func(*model.PDBSpec) {})}, true},
		{"a PDB that never does", deleting, []model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Blocking = true })}, false},
		{"a PDB that wants all there are", deleting, []model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Full = true })}, false},
		{"one that wants all there should be, and there are more", deleting, []model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Full, p.Allowed = true, 1 })}, true},
		{"one that wants all, not ready beside healthy ones", func(w *world) { deleting(w); w.pods[0].Ready = false },
			[]model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Full, p.Healthy = true, true })}, true},
		{"one that never does, not ready", func(w *world) { deleting(w); w.pods[0].Ready = false },
			[]model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Blocking = true })}, false},
		{"one that lets go who is not ready", func(w *world) { deleting(w); w.pods[0].Ready = false },
			[]model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Blocking, p.AlwaysEvictUnready = true, true })}, true},
		{"two PDBs", deleting, []model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Allowed = 1 }), pdb("b", func(p *model.PDBSpec) { p.Allowed = 1 })}, false},
		{"two PDBs, one of another namespace", deleting, []model.PDBSpec{pdb("a", func(p *model.PDBSpec) { p.Allowed = 1 }), pdb("b", func(p *model.PDBSpec) {
			p.Namespace, p.Selector.Namespaces = "other", []string{"other"}
		})}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.run("pod", "web", "n0", 100)
			test.change(w)
			snap := w.snapshotWith(test.pdbs)
			ahead := plan.Ahead(snap)
			if got := len(ahead.Groups) == 1; got != test.want {
				t.Errorf("planned for: %v, want %v", got, test.want)
			}
			if got := plan.Leaving(snap.Nodes[0].NodeSpec); got != ahead.Nodes[0].Disrupted {
				t.Errorf("leaving %v, closed %v", got, ahead.Nodes[0].Disrupted)
			}
			if len(snap.Groups) > 0 || snap.Nodes[0].Disrupted || len(snap.Nodes[0].Pods) != 1 {
				t.Error("the snapshot itself has changed")
			}
		})
	}
}

func (w *world) snapshotWith(pdbs []model.PDBSpec) *model.Snapshot {
	b := model.NewBuilder()
	for _, p := range w.pools {
		b.UpsertPool(p)
	}
	for _, n := range w.nodes {
		b.UpsertNode(*n)
	}
	for _, p := range w.pods {
		b.UpsertPod(p)
	}
	for _, p := range pdbs {
		b.UpsertPDB(p)
	}
	return b.Snapshot(w.now)
}

// TestLimitsHoldWhileNodesLeave: the node of a command in the phase launching still counts against the limit.
func TestLimitsHoldWhileNodesLeave(t *testing.T) {
	w := newWorld(t, 1)
	w.shop()
	w.pools[0].Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 1}}
	w.run("web-1", "web", "n0", 1000)
	cmd := w.command("c0")
	cmd.Phase = plan.Launching
	w.nodes["c0"].Command = cmd.Encode()
	if p, where := w.planned(); len(p.Claims) > 0 || where != "refused: web-1" {
		t.Errorf("beyond the limit of one node the plan is %s", where)
	}
}

// TestOnlyWaitingPodsAreNominated: a pod that still runs is not nominated, although the plan places it.
func TestOnlyWaitingPodsAreNominated(t *testing.T) {
	w := newWorld(t, 2)
	w.nodes["c0"].Deleting = true
	w.nodes["c1"].Allocatable = append(w.nodes["c1"].Allocatable, quantity.Amount{Name: "pods", Value: 110})
	w.run("web-1", "web", "n0", 1000)
	w.pend("new", "")
	p, where := w.planned()
	if where != "n1: new web-1" {
		t.Fatalf("placed\n%s", where)
	}
	actions, _ := plan.Nominations(w.snapshot(), p)
	if got := texts(actions); got != "nominate pod default/new to node n1" {
		t.Errorf("nominations %s", got)
	}
	if waiting := plan.Waiting(p.Placed[0].Pods); len(waiting) != 1 || waiting[0].Name != "new" {
		t.Errorf("waiting are %d pods", len(waiting))
	}
}

// TestWhoCameBackIsNoLongerPlanned: after a rollback of the command, its planned claims are dropped.
func TestWhoCameBackIsNoLongerPlanned(t *testing.T) {
	w := newWorld(t, 1)
	w.shop()
	w.run("web-1", "web", "n0", 1000)
	w.nodes["c0"].Deleting = true
	p, _ := w.planned()
	w.nodes["c0"].Deleting = false
	w.now = w.now.Add(time.Second)
	kept, dropped := plan.CheckProvision(w.snapshot(), p)
	if len(kept.Claims) > 0 || len(dropped) != 1 || dropped[0].Verdict.Code != plan.PodGone {
		t.Errorf("kept %d claims, dropped %+v", len(kept.Claims), dropped)
	}
}

// TestNothingIsBoughtTwice: on random fleets, nodes are removed in any order, pods are evicted one by one and recreated
// under other names, claims become nodes and receive their pods. At every step the launched capacity is enough.
func TestNothingIsBoughtTwice(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, 4)
		w.shop()
		for i := range 6 + rng.IntN(20) {
			owner := fmt.Sprint("app-", rng.IntN(4))
			w.run(fmt.Sprint("pod-", i), owner, fmt.Sprint("n", rng.IntN(4)), 100+150*int64(owner[4]-'0')*3)
		}
		for i := range 4 {
			n := w.nodes[fmt.Sprint("c", i)]
			if n.Deleting = i < 1+rng.IntN(4); n.Deleting && seed%2 == 1 {
				n.DrainEnds = w.now.Add(2 * time.Minute) // interrupted: protected pods are deleted too
				for j := range w.pods {
					if w.pods[j].Node == n.Name && rng.IntN(3) == 0 {
						w.pods[j].ProtectedUntil = model.Forever
					}
				}
			}
		}
		p, _ := w.planned()
		w.buy(p)
		for step := 0; ; step++ {
			p, where := w.planned()
			if len(p.Claims)+len(p.Refused) > 0 {
				t.Fatalf("seed %d, step %d: there is capacity for all pods, and the plan is\n%s", seed, step, where)
			}
			left := slices.DeleteFunc(slices.Clone(w.pods), func(p model.PodSpec) bool {
				n := w.node(p.Node)
				return n == nil || !n.Deleting
			})
			if len(left) == 0 {
				break
			}
			switch rng.IntN(4) {
			case 0: // a claim becomes a node, and the pods planned there are bound
				w.open(p, rng.IntN(8))
			default:
				w.replace(left[rng.IntN(len(left))].Name, fmt.Sprintf("pod-%d-again", step))
			}
		}
	}
}

// open turns a remaining claim of the plan, if there is one, into a node, and binds its pending pods.
func (w *world) open(p *plan.Provision, at int) {
	if len(p.Placed) == 0 {
		return
	}
	placed := p.Placed[at%len(p.Placed)]
	n := w.node(placed.Node)
	if n.Stage != model.Initialized {
		kind := w.pools[0].Catalogue.Types[0]
		for _, r := range n.Requirements {
			if r.Key == model.LabelType && !slices.Contains(r.Values, kind.Name) {
				kind = w.pools[0].Catalogue.Types[1]
			}
		}
		n.Stage, n.Capacity, n.Allocatable, n.Ready = model.Registered, kind.Capacity, kind.Allocatable, true
	}
	for _, pod := range plan.Waiting(placed.Pods) {
		for i := range w.pods {
			if w.pods[i].UID == pod.UID {
				w.pods[i].State, w.pods[i].Node, w.pods[i].Ready = model.Bound, n.Name, true
			}
		}
	}
}
