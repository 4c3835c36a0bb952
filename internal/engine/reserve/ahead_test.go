package reserve_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// shop gives the world's pool a catalog with two instance types.
func shop(w *plantest.World) {
	kind := func(name string, cpu, price int64) model.InstanceType {
		amounts := []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: 110}}
		in := func(key, value string) label.Requirement {
			return label.Requirement{Key: key, Operator: label.In, Values: []string{value}}
		}
		return model.InstanceType{Name: name, Capacity: amounts, Allocatable: amounts,
			Requirements: []label.Requirement{in(model.LabelType, name), in(model.LabelZone, "z"), in(model.LabelCapacityType, "on-demand")},
			Offerings:    []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: price * model.Nano / 100, Available: true}}}
	}
	w.Pools[0].Catalog = &model.Catalog{Types: []model.InstanceType{kind("small", 2000, 10), kind("large", 4000, 20)},
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
}

// bindOwned binds a ready pod whose owner recreates it elsewhere after an eviction.
func bindOwned(w *plantest.World, pod, owner, node string, cpu int64) *model.PodSpec {
	w.Pods = append(w.Pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Bound, Node: node, Ready: true,
		Reschedulable: true, Labels: map[string]string{"app": owner}, Controller: model.Owner{Kind: "ReplicaSet", Name: owner, UID: owner},
		Requests: []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: 1}}})
	return &w.Pods[len(w.Pods)-1]
}

// replace does what follows an eviction: the pod is gone, and its owner creates another.
func replace(w *plantest.World, pod, by string) {
	at := slices.IndexFunc(w.Pods, func(p model.PodSpec) bool { return p.Name == pod })
	p := w.Pods[at]
	w.Pods = slices.Delete(w.Pods, at, at+1)
	p.Name, p.UID, p.State, p.Node, p.Ready, p.ProtectedUntil = by, "uid-"+by, model.Pending, "", false, time.Time{}
	w.Pods = append(w.Pods, p)
}

// launch creates the claims of a plan, as the executor and the watch would show them.
func launch(w *plantest.World, p *plan.Provision) {
	for _, c := range p.Claims {
		n := &model.NodeSpec{Name: c.Name, UID: "uid-" + c.Name, Claim: c.Name, ClaimUID: "uid-" + c.Name, Pool: c.Pool, Stage: model.Launching,
			Requirements: c.Requirements, Requests: c.Requests, Labels: map[string]string{model.LabelPool: c.Pool}}
		n.LaunchedFor = c.PodRefs()
		w.Nodes[c.Name] = n
	}
}

// planned makes a plan, verifies that a check on the same snapshot drops nothing, and returns the plan with a listing
// of its placements.
func planned(w *plantest.World) (*plan.Provision, string) {
	w.T.Helper()
	snap := w.Snapshot()
	p := placement.Schedule(reserve.Ahead(snap, nil), placement.Options{})
	kept, dropped := guard.CheckProvision(snap, p)
	if len(dropped) > 0 {
		w.T.Errorf("a fresh plan loses %+v", dropped)
	}
	if got, want := len(kept.Claims)+len(kept.Placed), len(p.Claims)+len(p.Placed); got != want {
		w.T.Errorf("a fresh plan has %d claims and nodes, and keeps %d", want, got)
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
	w := plantest.New(t, 1)
	shop(w)
	bindOwned(w, "web-1", "web", "n0", 1900)
	bindOwned(w, "web-2", "web", "n0", 1000)
	bindOwned(w, "db-1", "db", "n0", 1000)
	if _, where := planned(w); where != "" {
		t.Errorf("without a node to remove the plan is %s", where)
	}
	w.Nodes["c0"].Deleting = true
	p, where := planned(w)
	if len(p.Claims) == 0 || strings.Contains(where, "refused") {
		t.Fatalf("for the pods of a node that is being deleted the plan is %q", where)
	}
	bought := len(p.Claims)
	launch(w, p)
	places := func(what string) map[string]string {
		t.Helper()
		p, where := planned(w)
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
	first := places("while all still run")
	for _, step := range []struct{ old, new string }{{"db-1", "db-2"}, {"web-1", "web-3"}, {"web-2", "web-4"}} {
		replace(w, step.old, step.new)
		if diff := cmp.Diff(first, places(step.new+" came for "+step.old)); diff != "" {
			t.Errorf("%s replaced %s and the reservations changed (-before +after):\n%s", step.new, step.old, diff)
		}
	}
	delete(w.Nodes, "c0")
	if diff := cmp.Diff(first, places("when the node is gone")); diff != "" {
		t.Errorf("the node is gone and the reservations changed (-before +after):\n%s", diff)
	}
}

// TestSuccessorsInherit: first fit would place the successors so that one is unschedulable; the reservations of their
// predecessors hold them all. A pod of the same owner with its own reservation takes no other.
func TestSuccessorsInherit(t *testing.T) {
	w := plantest.New(t, 0)
	shop(w)
	claim := func(name, launchedFor string) {
		w.Nodes[name] = &model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "p", Stage: model.Launched,
			Labels: map[string]string{model.LabelPool: "p"}, LaunchedFor: model.ParsePodRefs(launchedFor),
			Capacity:    []quantity.Amount{{Name: "cpu", Value: 2000}, {Name: "pods", Value: 110}},
			Allocatable: []quantity.Amount{{Name: "cpu", Value: 2000}, {Name: "pods", Value: 110}}}
	}
	claim("a", "gone-1/half gone-2/half")
	claim("b", "gone-3/most uid-own gone-4/less")
	for _, p := range []struct {
		name, owner string
		cpu         int64
	}{{"most-5", "most", 1200}, {"half-6", "half", 1000}, {"half-7", "half", 1000}, {"own", "half", 100}, {"less-8", "less", 700}} {
		bindOwned(w, p.name, p.owner, "nowhere", p.cpu)
		replace(w, p.name, p.name)
	}
	w.Pods[3].UID = "uid-own"
	if _, where := planned(w); where != "a: half-6 half-7\nb: less-8 most-5 own" {
		t.Errorf("placed\n%s", where)
	}
}

// TestSuccessorsInheritTheNewest: two claims were created for a pod that is replaced. Its capacity on the older node
// may be in use by another pod, so the successor takes the reservation on the newer node, and no other pod takes the
// old one.
func TestSuccessorsInheritTheNewest(t *testing.T) {
	w := plantest.New(t, 2)
	for i, claim := range []string{"c0", "c1"} {
		n := w.Nodes[claim]
		n.Stage, n.Created = model.Launched, plantest.Noon.Add(time.Duration(i)*time.Second)
		n.LaunchedFor = model.ParsePodRefs("gone/web")
	}
	for _, pod := range []string{"next", "other"} {
		bindOwned(w, pod, "web", "nowhere", 100)
		replace(w, pod, pod)
	}
	snap := reserve.Ahead(w.Snapshot(), nil)
	got := map[string][]string{"n0": podsOf(snap.Node("n0")), "n1": podsOf(snap.Node("n1"))}
	if diff := cmp.Diff(map[string][]string{"n0": {"gone"}, "n1": {"gone", "uid-next"}}, got); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
}

// TestUsedReservations: a bound successor has used its reservation; a predecessor that is still planned keeps its own.
func TestUsedReservations(t *testing.T) {
	w := plantest.New(t, 2)
	w.Nodes["c0"].Stage, w.Nodes["c0"].LaunchedFor = model.Registered, model.ParsePodRefs("gone/web uid-old/web bare")
	w.Nodes["c1"].Deleting = true
	bindOwned(w, "old", "web", "n1", 100)
	arrived := bindOwned(w, "arrived", "web", "n0", 100)
	bindOwned(w, "next", "web", "n1", 100)
	replace(w, "next", "next")
	reserved := func() []string { return podsOf(reserve.Ahead(w.Snapshot(), nil).Node("n0")) }
	if diff := cmp.Diff([]string{"gone", "uid-old", "bare"}, reserved()); diff != "" {
		t.Errorf("both reservations are taken, reserved (-want +got):\n%s", diff)
	}
	arrived.Controller.UID = "another"
	w.Pods[1] = *arrived
	if diff := cmp.Diff([]string{"gone", "uid-old", "bare", "uid-next"}, reserved()); diff != "" {
		t.Errorf("one reservation is free, reserved (-want +got):\n%s", diff)
	}
}

// podsOf returns the UIDs of the pods with a reservation on the node.
func podsOf(n *model.Node) []string {
	var uids []string
	for _, r := range n.Reservations {
		uids = append(uids, r.Pod.UID)
	}
	return uids
}

// aheadCase is a change of a world, and whether the pod of its node c0 is planned for.
type aheadCase struct {
	name   string
	change func(w *plantest.World)
	pdbs   []model.PDBSpec
	want   bool
}

func aheadPDB(name string, change func(*model.PDBSpec)) model.PDBSpec {
	p := model.PDBSpec{UID: name, Namespace: "default", Name: name, Selector: model.Selector{Namespaces: []string{"default"}}}
	change(&p)
	return p
}

func withCommand(phase plan.Phase) func(*plantest.World) {
	return func(w *plantest.World) {
		cmd := w.Command("c0")
		cmd.Phase = phase
		w.Nodes["c0"].Command = cmd.Encode()
	}
}

func deleteNode(w *plantest.World) { w.Nodes["c0"].Deleting = true }

// checkAhead checks whether the pod is planned for, and that the snapshot itself does not change.
func checkAhead(t *testing.T, cases []aheadCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			w := plantest.New(t, 1)
			bindOwned(w, "pod", "web", "n0", 100)
			test.change(w)
			snap := snapshotWith(w, test.pdbs)
			ahead := reserve.Ahead(snap, nil)
			if got := len(ahead.Groups) == 1; got != test.want {
				t.Errorf("planned for: %v, want %v", got, test.want)
			}
			if got := plan.Leaving(snap.Nodes[0].NodeSpec); got != ahead.Nodes[0].Disrupted {
				t.Errorf("leaving %v, closed %v", got, ahead.Nodes[0].Disrupted)
			}
			if n := snap.Nodes[0]; n.Disrupted || len(n.Pods) != 1 {
				t.Errorf("the node in the snapshot itself has changed: %+v", n)
			}
			if len(snap.Groups) > 0 {
				t.Errorf("the snapshot itself has pods to plan: %+v", snap.Groups)
			}
		})
	}
}

// TestAheadNodes checks which nodes count as being removed.
func TestAheadNodes(t *testing.T) {
	checkAhead(t, []aheadCase{
		{"node stays", func(*plantest.World) {}, nil, false},
		{"deleting", deleteNode, nil, true},
		{"deleting, without a claim", func(w *plantest.World) { deleteNode(w); w.Nodes["c0"].Claim = "" }, nil, false},
		{"proposed", withCommand(plan.Proposed), nil, false},
		{"cordoned", withCommand(plan.Cordoned), nil, false},
		{"launching", withCommand(plan.Launching), nil, true},
		{"draining", withCommand(plan.Draining), nil, true},
		{"a command of another claim", func(w *plantest.World) { withCommand(plan.Launching)(w); w.Nodes["c0"].ClaimUID = "another" }, nil, false},
		{"an unreadable command", func(w *plantest.World) { w.Nodes["c0"].Command = "{" }, nil, false},
		{"pod protected indefinitely", func(w *plantest.World) { deleteNode(w); w.Pods[0].ProtectedUntil = model.Forever }, nil, false},
		{"protected, termination grace period ends in five minutes", func(w *plantest.World) {
			deleteNode(w)
			w.Pods[0].ProtectedUntil, w.Nodes["c0"].DrainEnds = model.Forever, plantest.Noon.Add(5*time.Minute)
		}, nil, true},
		{"protected, termination grace period ends in an hour", func(w *plantest.World) {
			deleteNode(w)
			w.Pods[0].ProtectedUntil, w.Nodes["c0"].DrainEnds = model.Forever, plantest.Noon.Add(time.Hour)
		}, nil, false},
		{"protected, a launching command's grace period would end", func(w *plantest.World) {
			withCommand(plan.Launching)(w)
			w.Pods[0].ProtectedUntil, w.Nodes["c0"].DrainEnds = model.Forever, plantest.Noon.Add(time.Minute)
		}, nil, false},
	})
}

// TestAheadPods checks which pods of nodes that are being removed are planned for.
func TestAheadPods(t *testing.T) {
	checkAhead(t, []aheadCase{
		{"blocking PDB, two minutes before the grace period ends", func(w *plantest.World) { deleteNode(w); w.Nodes["c0"].DrainEnds = plantest.Noon.Add(2 * time.Minute) },
			[]model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Blocking = true })}, true},
		{"full PDB, after the grace period", func(w *plantest.World) { deleteNode(w); w.Nodes["c0"].DrainEnds = plantest.Noon.Add(-time.Minute) },
			[]model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Full = true })}, true},
		{"two PDBs, at the end of the grace period", func(w *plantest.World) { deleteNode(w); w.Nodes["c0"].DrainEnds = plantest.Noon },
			[]model.PDBSpec{aheadPDB("a", func(*model.PDBSpec) {}), aheadPDB("b", func(*model.PDBSpec) {})}, true},
		{"protected until now", func(w *plantest.World) { deleteNode(w); w.Pods[0].ProtectedUntil = plantest.Noon }, nil, true},
		{"pod without a controller", func(w *plantest.World) { deleteNode(w); w.Pods[0].Reschedulable = false }, nil, false},
		{"PDB that allows no eviction now", deleteNode, []model.PDBSpec{aheadPDB("a", func(*model.PDBSpec) {})}, true},
		{"blocking PDB", deleteNode, []model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Blocking = true })}, false},
		{"full PDB", deleteNode, []model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Full = true })}, false},
		{"full PDB with surplus pods", deleteNode, []model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Full, p.Allowed = true, 1 })}, true},
		{"full PDB, pod not ready", func(w *plantest.World) { deleteNode(w); w.Pods[0].Ready = false },
			[]model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Full, p.Healthy = true, true })}, true},
		{"blocking PDB, pod not ready", func(w *plantest.World) { deleteNode(w); w.Pods[0].Ready = false },
			[]model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Blocking = true })}, false},
		{"blocking PDB that always allows eviction of unhealthy pods", func(w *plantest.World) { deleteNode(w); w.Pods[0].Ready = false },
			[]model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Blocking, p.AlwaysEvictUnready = true, true })}, true},
		{"two PDBs", deleteNode, []model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Allowed = 1 }), aheadPDB("b", func(p *model.PDBSpec) { p.Allowed = 1 })}, false},
		{"two PDBs, one of another namespace", deleteNode, []model.PDBSpec{aheadPDB("a", func(p *model.PDBSpec) { p.Allowed = 1 }), aheadPDB("b", func(p *model.PDBSpec) {
			p.Namespace, p.Selector.Namespaces = "other", []string{"other"}
		})}, true},
	})
}

func snapshotWith(w *plantest.World, pdbs []model.PDBSpec) *model.Snapshot {
	b := model.NewBuilder()
	for _, p := range w.Pools {
		b.UpsertPool(p)
	}
	for _, n := range w.Nodes {
		b.UpsertNode(*n)
	}
	for _, p := range w.Pods {
		b.UpsertPod(p)
	}
	for _, p := range pdbs {
		b.UpsertPDB(p)
	}
	return b.Snapshot(w.Now)
}

// TestLimitsHoldWhileNodesLeave: the node of a command in the phase launching still counts against the limit.
func TestLimitsHoldWhileNodesLeave(t *testing.T) {
	w := plantest.New(t, 1)
	shop(w)
	w.Pools[0].Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 1}}
	bindOwned(w, "web-1", "web", "n0", 1000)
	cmd := w.Command("c0")
	cmd.Phase = plan.Launching
	w.Nodes["c0"].Command = cmd.Encode()
	if p, where := planned(w); len(p.Claims) > 0 || where != "refused: web-1" {
		t.Errorf("beyond the limit of one node the plan is %s", where)
	}
}

// TestOnlyWaitingPodsAreNominated: a pod that still runs is not nominated, although the plan places it.
func TestOnlyWaitingPodsAreNominated(t *testing.T) {
	w := plantest.New(t, 2)
	w.Nodes["c0"].Deleting = true
	w.Nodes["c1"].Allocatable = append(w.Nodes["c1"].Allocatable, quantity.Amount{Name: "pods", Value: 110})
	bindOwned(w, "web-1", "web", "n0", 1000)
	w.Pend("new", "")
	p, where := planned(w)
	if where != "n1: new web-1" {
		t.Fatalf("placed\n%s", where)
	}
	actions, _ := nominate.Nominations(w.Snapshot(), p)
	if got := plantest.Texts(actions); got != "nominate pod default/new to node n1" {
		t.Errorf("nominations %s", got)
	}
	if waiting := plan.Waiting(p.Placed[0].Pods); len(waiting) != 1 || waiting[0].Name != "new" {
		t.Errorf("waiting are %d pods", len(waiting))
	}
}

// TestWhoCameBackIsNoLongerPlanned: after a rollback of the command, its planned claims are dropped.
func TestWhoCameBackIsNoLongerPlanned(t *testing.T) {
	w := plantest.New(t, 1)
	shop(w)
	bindOwned(w, "web-1", "web", "n0", 1000)
	w.Nodes["c0"].Deleting = true
	p, _ := planned(w)
	w.Nodes["c0"].Deleting = false
	w.Now = w.Now.Add(time.Second)
	kept, dropped := guard.CheckProvision(w.Snapshot(), p)
	if len(kept.Claims) > 0 {
		t.Errorf("kept %d claims, want none", len(kept.Claims))
	}
	if len(dropped) != 1 || dropped[0].Verdict.Code != plan.PodGone {
		t.Errorf("dropped %+v, want one claim whose pod is gone", dropped)
	}
}

// TestNothingIsLaunchedTwice: on random fleets, nodes are removed in any order, pods are evicted one by one and recreated
// under other names, claims become nodes and receive their pods. At every step the launched capacity is enough.
func TestNothingIsLaunchedTwice(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := plantest.New(t, 4)
		shop(w)
		for i := range 6 + rng.IntN(20) {
			owner := fmt.Sprint("app-", rng.IntN(4))
			bindOwned(w, fmt.Sprint("pod-", i), owner, fmt.Sprint("n", rng.IntN(4)), 100+150*int64(owner[4]-'0')*3)
		}
		for i := range 4 {
			n := w.Nodes[fmt.Sprint("c", i)]
			if n.Deleting = i < 1+rng.IntN(4); n.Deleting && seed%2 == 1 {
				n.DrainEnds = w.Now.Add(2 * time.Minute) // interrupted: protected pods are deleted too
				for j := range w.Pods {
					if w.Pods[j].Node == n.Name && rng.IntN(3) == 0 {
						w.Pods[j].ProtectedUntil = model.Forever
					}
				}
			}
		}
		p, _ := planned(w)
		launch(w, p)
		for step := 0; ; step++ {
			p, where := planned(w)
			if len(p.Claims)+len(p.Refused) > 0 {
				t.Fatalf("seed %d, step %d: there is capacity for all pods, and the plan is\n%s", seed, step, where)
			}
			left := slices.DeleteFunc(slices.Clone(w.Pods), func(p model.PodSpec) bool {
				n := w.Node(p.Node)
				return n == nil || !n.Deleting
			})
			if len(left) == 0 {
				break
			}
			switch rng.IntN(4) {
			case 0: // a claim becomes a node, and the pods planned there are bound
				open(w, p, rng.IntN(8))
			default:
				replace(w, left[rng.IntN(len(left))].Name, fmt.Sprintf("pod-%d-again", step))
			}
		}
	}
}

// open turns a remaining claim of the plan, if there is one, into a node, and binds its pending pods.
func open(w *plantest.World, p *plan.Provision, at int) {
	if len(p.Placed) == 0 {
		return
	}
	placed := p.Placed[at%len(p.Placed)]
	n := w.Node(placed.Node)
	if n.Stage != model.Initialized {
		kind := w.Pools[0].Catalog.Types[0]
		for _, r := range n.Requirements {
			if r.Key == model.LabelType && !slices.Contains(r.Values, kind.Name) {
				kind = w.Pools[0].Catalog.Types[1]
			}
		}
		n.Stage, n.Capacity, n.Allocatable, n.Ready = model.Registered, kind.Capacity, kind.Allocatable, true
	}
	for _, pod := range plan.Waiting(placed.Pods) {
		for i := range w.Pods {
			if w.Pods[i].UID == pod.UID {
				w.Pods[i].State, w.Pods[i].Node, w.Pods[i].Ready = model.Bound, n.Name, true
			}
		}
	}
}
