package model_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// history is a sequence of changes and the resulting objects.
type history struct {
	*rand.Rand
	builder  *model.Builder
	catalogs []*model.Catalog
	pods     map[string]model.PodSpec
	nodes    map[string]model.NodeSpec
	pools    map[string]model.PoolSpec
	daemons  map[string]model.DaemonSpec
	// settled: nodes have no resource and no taint that only they have, and no volumes are shared.
	settled bool
}

func newHistory(seed uint64) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 3)), builder: model.NewBuilder(), pods: map[string]model.PodSpec{},
		nodes: map[string]model.NodeSpec{}, pools: map[string]model.PoolSpec{}, daemons: map[string]model.DaemonSpec{}}
	for i := range 3 {
		h.catalogs = append(h.catalogs, catalog(int64(i+1)))
	}
	return h
}

func in(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In, Values: values}
}

// catalog returns a catalog of four sizes. The third catalog has a resource of its own, whose name sorts first.
func catalog(n int64) *model.Catalog {
	c := &model.Catalog{WellKnown: map[string]bool{model.LabelZone: true, model.LabelType: true, model.LabelCapacityType: true, model.LabelPool: true, "arch": true}}
	for cpus := int64(2); cpus <= 16; cpus *= 2 {
		amounts := []quantity.Amount{{Name: "cpu", Value: cpus * 1000}, {Name: "memory", Value: cpus * n << 30}, {Name: "pods", Value: 20}}
		if n == 3 {
			amounts = append(amounts, quantity.Amount{Name: "a.example.com/device", Value: cpus})
		}
		t := model.InstanceType{Name: fmt.Sprintf("t%d-%d", n, cpus), Capacity: amounts, Allocatable: amounts,
			Requirements: []label.Requirement{in(model.LabelType, fmt.Sprintf("t%d-%d", n, cpus)), in("arch", []string{"x", "y"}[cpus%3%2])}}
		for _, zone := range []string{"a", "b"} {
			t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: "spot", Price: cpus * 10_000_000, Available: zone == "a" || n == 1})
		}
		c.Types = append(c.Types, t)
	}
	return c
}

func (h *history) name(kind string, n int) string { return fmt.Sprintf("%s-%d", kind, h.IntN(n)) }

// event changes one object.
func (h *history) event() {
	switch h.IntN(13) {
	case 0, 1, 2, 3:
		h.pod()
	case 4:
		name := h.name("pod", 40)
		delete(h.pods, name)
		h.builder.DeletePod(name)
	case 5, 6, 7:
		h.node()
	case 8:
		name := h.name("node", 8)
		delete(h.nodes, name)
		h.builder.DeleteNode(name)
	case 9:
		h.pool()
	case 10:
		name := h.name("pool", 3)
		delete(h.pools, name)
		h.builder.DeletePool(name)
	case 11:
		h.daemon()
	case 12:
		h.crowd()
	}
}

// crowd adds or removes a pod that names so many labels and resources that those which no node has share a number.
func (h *history) crowd() {
	p := namer("crowd", 80, 20)
	p.Rejected = &model.Rejection{Reason: "is odd"}
	if _, has := h.pods[p.UID]; has {
		delete(h.pods, p.UID)
		h.builder.DeletePod(p.UID)
		return
	}
	h.pods[p.UID] = p
	h.builder.UpsertPod(p)
}

func (h *history) requirements() []label.Requirement {
	all := []label.Requirement{in("arch", "x"), in("arch", "x", "y"), in(model.LabelZone, "b"), in("team", "red"),
		{Key: "rack", Operator: label.Gt, Values: []string{fmt.Sprint(h.IntN(9))}},
		{Key: "team", Operator: label.NotIn, Values: []string{h.name("team", 5)}},
		in("rare", "x"), {Key: "rare", Operator: label.DoesNotExist}}
	return []label.Requirement{all[h.IntN(len(all))]}
}

func (h *history) pod() {
	uid := h.name("pod", 40)
	p := model.PodSpec{UID: uid, Name: uid, Namespace: "default", Created: epoch.Add(time.Duration(h.IntN(50)) * time.Second), Reschedulable: h.IntN(4) > 0,
		Requests: []quantity.Amount{{Name: "cpu", Value: int64(1+h.IntN(4)) * 500}, {Name: "pods", Value: 1}}}
	if h.IntN(3) == 0 {
		p.Alternatives = [][]label.Requirement{h.requirements()}
	}
	if h.IntN(12) == 0 {
		p.Requests = append(p.Requests, quantity.Amount{Name: []string{"z.example.com/device", "b.example.com/device"}[h.IntN(2)], Value: 1})
	}
	if h.IntN(8) == 0 {
		p.Volumes = []model.Volume{{Driver: "v.example.com"}, {Driver: "w.example.com", Claim: "c", Shared: h.IntN(2) == 0 && !h.settled}}
	}
	switch h.IntN(4) {
	case 0, 1:
		p.State, p.Node = model.Bound, h.name("node", 8)
		if h.IntN(3) == 0 {
			p.Controller, p.Daemon, p.Reschedulable = model.Owner{Kind: "DaemonSet", UID: h.name("daemon", 3)}, true, false
		}
	}
	for h.IntN(3) == 0 {
		p.Tolerations = append(p.Tolerations, model.Toleration{Key: h.name("taint", 6), Exists: true})
	}
	if !p.Daemon && h.IntN(6) == 0 {
		p.Rejected = &model.Rejection{Reason: "is odd"}
	}
	h.pods[uid] = p
	h.builder.UpsertPod(p)
}

func (h *history) node() {
	name := h.name("node", 8)
	t := h.catalogs[h.IntN(3)].Types[h.IntN(4)]
	n := model.NodeSpec{Name: name, UID: name, Stage: model.Stage(h.IntN(4)), Created: epoch, Deleting: h.IntN(6) == 0}
	if h.IntN(5) > 0 {
		n.Claim, n.ClaimUID, n.Pool = "claim-"+name, "claim-uid-"+name, h.name("pool", 3)
	}
	if n.Stage == model.Launching {
		n.Requirements = append(h.requirements(), in(model.LabelType, t.Name, h.catalogs[0].Types[0].Name))
		n.Requests = []quantity.Amount{{Name: "cpu", Value: 1500}, {Name: "pods", Value: 2}}
	} else {
		n.Capacity, n.Allocatable = t.Capacity, t.Allocatable
		n.Labels = map[string]string{model.LabelType: t.Name, model.LabelZone: "a", model.LabelCapacityType: "spot", "arch": "x"}
		if h.IntN(3) > 0 {
			n.Labels["team"] = h.name("team", 3)
		}
		if h.IntN(10) == 0 && !h.settled {
			n.Allocatable = append(slices.Clone(n.Allocatable), quantity.Amount{Name: model.VolumeResource("v.example.com"), Value: 2})
		}
		if h.IntN(6) == 0 && !h.settled {
			n.Allocatable = append(slices.Clone(n.Allocatable), quantity.Amount{Name: "b.example.com/device", Value: 2})
			n.Labels["rare"] = "x"
		}
	}
	if !h.settled {
		n.Taints = h.taints()
	}
	h.nodes[name] = n
	h.builder.UpsertNode(n)
}

func (h *history) taints() []model.Taint {
	if h.IntN(3) > 0 {
		return nil
	}
	return []model.Taint{{Key: h.name("taint", 4), Value: h.name("of", 2), Effect: model.NoSchedule}}
}

func (h *history) pool() {
	name := h.name("pool", 3)
	p := model.PoolSpec{Name: name, UID: name, Weight: int32(h.IntN(3)), Catalog: h.catalogs[h.IntN(3)], Requirements: append(h.requirements(), in(model.LabelPool, name))}
	if h.IntN(3) == 0 {
		p.Limits = []quantity.Amount{{Name: "cpu", Value: int64(h.IntN(64)) * 1000}, {Name: model.ResourceNodes, Value: int64(h.IntN(9))}}
	}
	if h.IntN(8) == 0 {
		p.Catalog = nil
	}
	p.Taints = h.taints()
	h.pools[name] = p
	h.builder.UpsertPool(p)
}

func (h *history) daemon() {
	uid := h.name("daemon", 3)
	if h.IntN(2) == 0 {
		delete(h.daemons, uid)
		h.builder.DeleteDaemon(uid)
		return
	}
	d := model.DaemonSpec{UID: uid, Name: uid, Namespace: "kube-system", Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "pods", Value: 1}}}
	if h.IntN(8) == 0 {
		d.Requests = append(d.Requests, quantity.Amount{Name: "b.example.com/device", Value: 1})
	}
	if h.IntN(2) == 0 {
		d.Alternatives = [][]label.Requirement{h.requirements()}
	}
	h.daemons[uid] = d
	h.builder.UpsertDaemon(d)
}

// cold returns a new builder with the current objects.
func (h *history) cold() *model.Builder {
	b := model.NewBuilder()
	for _, uid := range slices.Sorted(maps.Keys(h.pods)) {
		b.UpsertPod(h.pods[uid])
	}
	for _, name := range slices.Sorted(maps.Keys(h.nodes)) {
		b.UpsertNode(h.nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(h.pools)) {
		b.UpsertPool(h.pools[name])
	}
	for _, uid := range slices.Sorted(maps.Keys(h.daemons)) {
		b.UpsertDaemon(h.daemons[uid])
	}
	return b
}

// description is a snapshot in names, without ids, for comparing two builders.
type description struct {
	Pools, Nodes, Groups, Rejected, Daemons, Relations []string
	Answer                                             explain.Answer
}

func describe(s *model.Snapshot) description {
	var d description
	for _, p := range s.Pools {
		d.Pools = append(d.Pools, describePool(s, p))
	}
	for _, n := range s.Nodes {
		d.Nodes = append(d.Nodes, fmt.Sprintf("%s %s pool %s used %s reserved %s usable %s total %s pods %v price %d least %d of %q types %v found %t %t", n.Name, n.Stage, n.Pool,
			amounts(s, n.Used), amounts(s, n.Reserved), amounts(s, n.Usable), amounts(s, n.Total), uids(n.Pods), n.Price, n.LeastPrice(), n.LeastType(), n.Types, s.Node(n.Name) == n,
			n.Claim == "" || s.Claim(n.Claim) == n))
	}
	for _, g := range s.Groups {
		d.Groups = append(d.Groups, fmt.Sprintf("%q %v %s rows %d pods %v", g.Signature, g.Tolerations, amounts(s, g.Requests),
			len(g.Rows), uids(g.Pods)))
		for _, n := range s.Nodes {
			contains := slices.ContainsFunc(g.Rows, func(r label.Row) bool { return s.Space.Contains(r, n.Row) })
			d.Relations = append(d.Relations, fmt.Sprintf("%v on %s: %t", g.Alternatives, n.Name, contains))
		}
		for _, p := range s.Pools {
			compatible := slices.ContainsFunc(g.Rows, func(r label.Row) bool { return s.Space.Compatible(r, p.Start) })
			d.Relations = append(d.Relations, fmt.Sprintf("%v in %s: %t", g.Alternatives, p.Name, compatible))
		}
	}
	d.Rejected = uids(s.Rejected)
	for _, x := range s.Daemons {
		d.Daemons = append(d.Daemons, x.Name+" "+amounts(s, x.Requests))
	}
	d.Answer = explain.AnswerOf(s, placement.Schedule(s, placement.Options{}))
	return d
}

func describePool(s *model.Snapshot, p *model.Pool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s weight %d valid %t", p.Name, p.Weight, p.Valid)
	own := s.Ledger.Own(p.Name)
	for _, line := range append(s.Ledger.Lines(own...), s.Ledger.Nodes(own[0])) {
		fmt.Fprintf(&b, " %s %d of %d", line.Name, line.Used, line.Limit)
	}
	if p.Types == nil {
		return b.String()
	}
	for t := range p.Eligible.All() {
		rooms := p.Rooms.Possible(p.Start)
		least, most := rooms.Daemons(t)
		fmt.Fprintf(&b, " %s %s daemons %s to %s", p.Catalog.Types[t].Name, amounts(s, rooms.Least(t)), amounts(s, least), amounts(s, most))
	}
	return b.String()
}

// amounts returns the amounts without those of unlimited volumes: a driver that was named before may have a number.
func amounts(s *model.Snapshot, v quantity.Vector) string {
	var parts []string
	for r, n := range v {
		if n != 0 && (n < 1<<40 || !model.IsVolumeResource(s.Resources[r])) {
			parts = append(parts, fmt.Sprintf("%s=%d", s.Resources[r], n))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func uids(pods []*model.Pod) []string {
	list := []string{}
	for _, p := range pods {
		list = append(list, p.UID)
	}
	return list
}

// TestIncrementalIsCold checks that a builder that received all changes and one that received only the resulting
// objects agree.
func TestIncrementalIsCold(t *testing.T) {
	for seed := range uint64(150) {
		h := newHistory(seed)
		for step := range 60 {
			h.event()
			if h.IntN(4) > 0 {
				continue
			}
			warm := describe(h.builder.Snapshot(epoch))
			if diff := cmp.Diff(describe(h.cold().Snapshot(epoch)), warm); diff != "" {
				t.Fatalf("seed %d, step %d: -cold +incremental\n%s", seed, step, diff)
			}
		}
	}
}

// TestSnapshotsNeverChange checks that later changes do not modify a returned snapshot.
func TestSnapshotsNeverChange(t *testing.T) {
	for seed := range uint64(40) {
		h := newHistory(seed)
		var snaps []*model.Snapshot
		var then []description
		for range 80 {
			h.event()
			if h.IntN(5) == 0 {
				snap := h.builder.Snapshot(epoch)
				snaps, then = append(snaps, snap), append(then, describe(snap))
			}
		}
		for i, snap := range snaps {
			if diff := cmp.Diff(then[i], describe(snap)); diff != "" {
				t.Fatalf("seed %d: snapshot %d changed, -then +now\n%s", seed, i, diff)
			}
		}
	}
}

// TestSnapshotSharesWhatDidNotChange checks that a change replaces only the affected objects and the lists that
// contain them.
func TestSnapshotSharesWhatDidNotChange(t *testing.T) {
	h := newHistory(1)
	for range 200 {
		h.event()
	}
	first := h.builder.Snapshot(epoch)
	second := h.builder.Snapshot(epoch.Add(time.Second))
	switch {
	case first.Version != second.Version:
		t.Errorf("the version is %d after %d, and nothing has changed", second.Version, first.Version)
	case len(first.Nodes) == 0:
		t.Error("the snapshot has no nodes")
	case &first.Nodes[0] != &second.Nodes[0]:
		t.Error("the list of nodes was created anew without a change")
	case &first.Pools[0] != &second.Pools[0]:
		t.Error("the list of pools was created anew without a change")
	case &first.Groups[0] != &second.Groups[0]:
		t.Error("the list of groups was created anew without a change")
	}
	if !second.Now.Equal(epoch.Add(time.Second)) {
		t.Errorf("now is %v", second.Now)
	}
	target := first.Nodes[0].Name
	h.builder.UpsertPod(model.PodSpec{UID: "new", Name: "new", State: model.Bound, Node: target, Requests: []quantity.Amount{{Name: "cpu", Value: 1}}})
	third := h.builder.Snapshot(epoch)
	for i, n := range third.Nodes {
		if shared := n == first.Nodes[i]; shared != (n.Name != target) {
			t.Errorf("node %s: shared is %t", n.Name, shared)
		}
	}
	if third.Version == first.Version {
		t.Error("a change did not change the version")
	}
}

// TestWithout checks that a what-if equals the snapshot without the nodes, with their pods pending.
func TestWithout(t *testing.T) {
	for seed := range uint64(120) {
		h := newHistory(seed)
		h.settled = true // a what-if keeps the numbers of the snapshot
		for range 70 {
			h.event()
		}
		snap := h.builder.Snapshot(epoch)
		before := describe(snap)
		var gone []string
		for _, n := range snap.Nodes {
			if h.IntN(2) == 0 {
				gone = append(gone, n.Name)
			}
		}
		got := describe(snap.Without(gone...))
		if diff := cmp.Diff(before, describe(snap)); diff != "" {
			t.Fatalf("seed %d: the snapshot changed:\n%s", seed, diff)
		}
		for uid, p := range h.pods {
			if p.State != model.Bound || !slices.Contains(gone, p.Node) {
				continue
			}
			delete(h.pods, uid)
			if p.Reschedulable {
				p.State = model.Pending
				h.pods[uid] = p
			}
		}
		for _, name := range gone {
			delete(h.nodes, name)
		}
		if diff := cmp.Diff(describe(h.cold().Snapshot(epoch)), got); diff != "" {
			t.Fatalf("seed %d: without %v, -cold +overlay\n%s", seed, gone, diff)
		}
	}
}
