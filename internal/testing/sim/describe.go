package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// facts holds the specs that describe a view, in a fixed order: the result of cluster/convert in the controller.
type facts struct {
	now     time.Time
	pods    []model.PodSpec
	nodes   []model.NodeSpec
	pools   []*model.PoolSpec
	daemons []model.DaemonSpec
	pdbs    []model.PDBSpec
}

// factsOf returns the specs of pods, nodes and claims.
func factsOf(s *setting, now time.Time, objects func(kind) []object, nominated map[string]time.Time) facts {
	f := facts{now: now, pools: s.pools, daemons: s.daemonsOn(list[*pod](objects(podKind)))}
	for _, p := range list[*pod](objects(podKind)) {
		if spec, relevant := podSpec(p); relevant {
			f.pods = append(f.pods, spec)
		}
	}
	f.pods = append(f.pods, s.virtual()...)
	for _, b := range list[*pdb](objects(pdbKind)) {
		f.pdbs = append(f.pdbs, pdbSpec(b))
	}
	byProvider := map[string]*node{}
	for _, n := range list[*node](objects(nodeKind)) {
		byProvider[n.provider] = n
	}
	for _, c := range list[*claim](objects(claimKind)) {
		var n *node
		if c.provider != "" {
			n = byProvider[c.provider]
		}
		spec := nodeSpec(c, n)
		spec.NominatedUntil = nominated[spec.Name]
		if until := nominated[c.name]; until.After(spec.NominatedUntil) {
			spec.NominatedUntil = until
		}
		f.nodes = append(f.nodes, spec)
	}
	return f
}

func podSpec(p *pod) (model.PodSpec, bool) {
	spec := model.PodSpec{UID: p.uid, Namespace: "default", Name: p.name, Created: p.created, Node: p.node, Priority: p.priority,
		Requests: p.requests, Alternatives: p.alternatives, Tolerations: p.tolerations, Daemon: p.daemon, EvictionCost: p.cost,
		ProtectedUntil: p.protected, Ready: p.ready, Terminating: !p.deleting.IsZero()}
	switch {
	case p.daemon:
		spec.Controller = model.Owner{Kind: "DaemonSet", Name: p.app, UID: p.app}
	case p.app != "":
		spec.Labels = map[string]string{labelApp: p.app}
		spec.Controller = p.replicaSet()
	}
	p.relate(&spec)
	if p.node != "" {
		spec.State = model.Bound
		spec.Reschedulable = !p.daemon && (p.deleting.IsZero() || spec.Controller.Kind == "StatefulSet")
		return spec, true
	}
	spec.Nominated = p.nominated
	return spec, p.deleting.IsZero() && p.unschedulable && p.making == ""
}

func nodeSpec(c *claim, n *node) model.NodeSpec {
	spec := model.NodeSpec{Name: c.name, UID: c.uid, ProviderID: c.provider, Claim: c.name, ClaimUID: c.uid, Pool: c.pool,
		Created: c.created, LastPodEvent: c.lastPodEvent, Labels: c.labels, Taints: c.taints, Requests: c.requests,
		Command: c.command, DisruptionReason: c.reason != "", Terminating: !c.terminating.IsZero(), Deleting: !c.deleting.IsZero() || !c.terminating.IsZero()}
	spec.LaunchedFor, spec.Replacement, spec.Renewal = c.launchedFor, c.replacement, c.renewal
	spec.ConsolidatedAt, spec.PodsSentAt = c.consolidated, c.expecting
	spec.DrainBounded = c.grace > 0
	if c.grace > 0 && !c.deleting.IsZero() {
		spec.DrainEnds = c.deleting.Add(c.grace)
	}
	if c.expireAfter > 0 {
		spec.ExpiresAt = c.created.Add(c.expireAfter)
	}
	if !c.drifted.IsZero() {
		spec.Drifted, spec.DriftedSince = "NodePoolDrifted", c.drifted
	}
	switch {
	case n == nil && c.launched.IsZero():
		spec.Requirements = slices.Concat(c.requirements, exactly(c.labels))
		return spec
	case n == nil:
		spec.Stage = model.Launched
		spec.Capacity, spec.Allocatable = c.capacity, c.allocatable
		spec.Deleting = spec.Deleting || !c.registered.IsZero()
		return spec
	}
	spec.Name, spec.UID, spec.Ready = n.name, n.uid, n.ready
	spec.Capacity, spec.Allocatable = n.capacity, n.allocatable
	spec.Disrupted = n.tainted(disruptedTaint)
	spec.Deleting = spec.Deleting || !n.deleting.IsZero()
	switch {
	case n.initialized || !c.initialized.IsZero():
		spec.Stage, spec.InitializedAt = model.Initialized, c.initialized
		if spec.InitializedAt.IsZero() {
			spec.InitializedAt = n.created
		}
	case n.registered || !c.registered.IsZero():
		spec.Stage = model.Registered
	default:
		spec.Stage = model.Launched
		return spec
	}
	spec.Labels, spec.Taints = n.labels, n.taints
	if spec.Stage != model.Initialized { // these taints are removed automatically
		spec.Taints = slices.DeleteFunc(slices.Clone(n.taints), func(t model.Taint) bool { return t == notReadyTaint || t == unreachableTaint })
	}
	return spec
}

func exactly(labels map[string]string) []label.Requirement {
	var reqs []label.Requirement
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		reqs = append(reqs, label.Requirement{Key: k, Operator: label.In, Values: []string{labels[k]}})
	}
	return reqs
}

// fresh builds a snapshot from scratch, in the order of the generator (nil: as listed).
func (f facts) fresh(shuffle *rand.Rand) *model.Snapshot {
	b := model.NewBuilder()
	var tell []func()
	for i := range f.pods {
		tell = append(tell, func() { b.UpsertPod(f.pods[i]) })
	}
	for i := range f.nodes {
		tell = append(tell, func() { b.UpsertNode(f.nodes[i]) })
	}
	for _, p := range f.pools {
		tell = append(tell, func() { b.UpsertPool(*p) })
	}
	for i := range f.daemons {
		tell = append(tell, func() { b.UpsertDaemon(f.daemons[i]) })
	}
	for i := range f.pdbs {
		tell = append(tell, func() { b.UpsertPDB(f.pdbs[i]) })
	}
	if shuffle != nil {
		shuffle.Shuffle(len(tell), func(i, j int) { tell[i], tell[j] = tell[j], tell[i] })
	}
	for _, t := range tell {
		t()
	}
	return b.Snapshot(f.now)
}

// store updates a builder from a view, with the changes only.
type store struct {
	builder *model.Builder
	pods    map[string]*pod
	nodes   map[string]toldNode
	pools   map[string]*model.PoolSpec
	pdbs    map[string]*pdb
	daemons map[string][]quantity.Amount
	// virtual says that the builder has the virtual pods.
	virtual bool
}

type toldNode struct {
	claim, node int
	until       time.Time
}

func newStore(s *setting) *store {
	st := &store{builder: model.NewBuilder(), pods: map[string]*pod{}, nodes: map[string]toldNode{}, pools: map[string]*model.PoolSpec{},
		pdbs: map[string]*pdb{}, daemons: map[string][]quantity.Amount{}}
	for _, d := range s.daemons {
		st.builder.UpsertDaemon(d)
	}
	return st
}

// snapshot updates the builder and freezes it.
func (st *store) snapshot(s *setting, now time.Time, v *view, nominated map[string]time.Time) *model.Snapshot {
	for _, p := range s.pools {
		if st.pools[p.Name] != p {
			st.pools[p.Name] = p
			st.builder.UpsertPool(*p)
		}
	}
	st.tellDaemons(s, list[*pod](v.sorted(podKind)))
	st.tellPods(list[*pod](v.sorted(podKind)))
	if !st.virtual {
		st.virtual = true
		for _, spec := range s.virtual() {
			st.builder.UpsertPod(spec)
		}
	}
	st.tellPDBs(list[*pdb](v.sorted(pdbKind)))
	st.tellNodes(list[*node](v.sorted(nodeKind)), list[*claim](v.sorted(claimKind)), nominated)
	return st.builder.Snapshot(now)
}

func (st *store) tellPods(pods []*pod) {
	there := map[string]bool{}
	for _, p := range pods {
		there[p.uid] = true
		if st.pods[p.uid] == p {
			continue
		}
		st.pods[p.uid] = p
		if spec, relevant := podSpec(p); relevant {
			st.builder.UpsertPod(spec)
		} else {
			st.builder.DeletePod(p.uid)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(st.pods)) {
		if !there[uid] {
			delete(st.pods, uid)
			st.builder.DeletePod(uid)
		}
	}
}

// tellPDBs relies on PodDisruptionBudgets never being deleted.
func (st *store) tellPDBs(pdbs []*pdb) {
	for _, b := range pdbs {
		if st.pdbs[b.name] != b {
			st.pdbs[b.name] = b
			st.builder.UpsertPDB(pdbSpec(b))
		}
	}
}

func (st *store) tellNodes(nodes []*node, claims []*claim, nominated map[string]time.Time) {
	byProvider := map[string]*node{}
	for _, n := range nodes {
		byProvider[n.provider] = n
	}
	there := map[string]bool{}
	for _, c := range claims {
		var n *node
		if c.provider != "" {
			n = byProvider[c.provider]
		}
		told := toldNode{claim: c.version}
		name := c.name
		if n != nil {
			told.node, name = n.version, n.name
		}
		told.until = nominated[name]
		if nominated[c.name].After(told.until) {
			told.until = nominated[c.name]
		}
		there[name] = true
		if st.nodes[name] == told {
			continue
		}
		st.nodes[name] = told
		spec := nodeSpec(c, n)
		spec.NominatedUntil = told.until
		st.builder.UpsertNode(spec)
	}
	for _, name := range slices.Sorted(maps.Keys(st.nodes)) {
		if !there[name] {
			delete(st.nodes, name)
			st.builder.DeleteNode(name)
		}
	}
}

// claimOf returns the claim that a plan creates (execute.claimOf).
func claimOf(s *setting, planned *plan.NewClaim) *claim {
	pool, t := s.pool(planned.Pool), s.templates[planned.Pool]
	c := &claim{meta: meta{name: planned.Name}, pool: pool.Name, taints: pool.Taints, requests: planned.Requests, labels: map[string]string{},
		generation: t.generation, expireAfter: t.expireAfter, grace: t.grace}
	for _, r := range planned.Requirements {
		if r.Key != model.LabelHostname {
			c.requirements = append(c.requirements, r)
		}
		if r.Operator == label.In && len(r.Values) > 0 && !s.known[r.Key] && r.Key != model.LabelHostname {
			c.labels[r.Key] = slices.Min(r.Values)
		}
	}
	maps.Copy(c.labels, planned.Labels)
	c.labels[model.LabelPool] = pool.Name
	c.launchedFor = planned.PodRefs()
	return c
}

func names(pods []*model.Pod) string {
	all := make([]string, len(pods))
	for i, p := range pods {
		all[i] = p.Name
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// with returns the facts after the nominations are written.
func (f facts) with(actions []plan.Action) facts {
	f.pods = slices.Clone(f.pods)
	nominate := func(uid, node string) {
		for i := range f.pods {
			if f.pods[i].UID == uid {
				f.pods[i].Nominated = node
			}
		}
	}
	for _, action := range actions {
		switch a := action.(type) {
		case plan.NominatePod:
			nominate(a.UID, a.Node)
		case plan.ClearNomination:
			nominate(a.UID, "")
		}
	}
	return f
}
