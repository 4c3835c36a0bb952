package fleetsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// Fleet is the state at the start. Pods without a node are pending.
type Fleet struct {
	Pools []model.PoolSpec
	Nodes []model.NodeSpec
	Pods  []model.PodSpec
}

// Cluster is a cluster on a virtual clock.
type Cluster struct {
	// Now is the virtual time.
	Now time.Time
	// Poll is the time between two passes of the disruption loop while there is work; 0 for a second.
	Poll time.Duration
	// MachineTime is the time from a claim to a node that takes pods; New sets 30 seconds.
	MachineTime time.Duration
	// Tally counts events since the start.
	Tally Tally
	// Meter sums what the time has cost.
	Meter Meter

	opts    disruption.Options
	seed    uint64
	builder *model.Builder

	pools map[string]*model.PoolSpec
	hosts map[string]*host
	pods  map[string]*model.PodSpec
	// owned holds the pods by the UID of their controller, then by their own.
	owned map[string]map[string]*model.PodSpec
	// waiting holds the pods without a node, in order of creation; ready is the time at which the machine of a claim
	// is ready.
	waiting []*model.PodSpec
	ready   map[string]time.Time
	// known holds the commands in progress, decided the snapshot version of the last decision, next the time of the
	// next decision without a new version, passed the time of the last pass.
	known        []plan.Command
	decided      uint64
	next, passed time.Time
	made         int
	// last is the latest provisioning plan; the next one keeps its assignments.
	last *plan.Provision
	// orders holds the IDs of commands by node, cause the command that moved a pod, by the pod's UID, worth the
	// promised and the actual effect, by command.
	orders, cause map[string]string
	worth         map[string]*promise
	failure       error
}

// promise is the planned saving of a command and the amount that provisioning spent on its pods, nano-USD per hour.
type promise struct{ saving, spent int64 }

// Tally counts events.
type Tally struct {
	// Rounds are decisions that proposed commands, Commands the removals of nodes to save cost.
	Rounds, Commands int
	// Moved are the pods evicted for commands, Interrupted those evicted from interrupted nodes.
	Moved, Interrupted int
	// Bought are nodes launched for pending pods, Spent their cost, nano-USD per hour. Abandoned counts commands.
	Bought, Abandoned int
	// Pauses are the failures that were counted (package pause).
	Pauses int
	Spent  int64
}

const promisedTime = 20 * time.Second

// New returns a cluster at a time. The seed breaks the ties of kube-scheduler.
func New(seed uint64, opts disruption.Options, now time.Time, f Fleet) *Cluster {
	l := &Cluster{opts: opts, seed: seed, builder: model.NewBuilder(), Now: now, MachineTime: 30 * time.Second,
		pools: map[string]*model.PoolSpec{}, hosts: map[string]*host{}, pods: map[string]*model.PodSpec{},
		owned: map[string]map[string]*model.PodSpec{}, ready: map[string]time.Time{},
		orders: map[string]string{}, cause: map[string]string{}, worth: map[string]*promise{}}
	for i := range f.Pools {
		l.pools[f.Pools[i].Name] = &f.Pools[i]
		l.builder.UpsertPool(f.Pools[i])
	}
	for i := range f.Nodes {
		n := f.Nodes[i]
		l.hosts[n.Name] = newHost(&n)
		l.builder.UpsertNode(n)
	}
	for i := range f.Pods {
		p := f.Pods[i]
		l.add(&p)
		l.builder.UpsertPod(p)
		if p.Node != "" {
			l.hosts[p.Node].add(&p)
		} else {
			l.waiting = append(l.waiting, &p)
		}
	}
	for _, n := range l.Snapshot().Nodes {
		l.hosts[n.Name].price = n.Price
	}
	return l
}

// Snapshot returns the state as the engine sees it.
func (l *Cluster) Snapshot() *model.Snapshot { return l.builder.Snapshot(l.Now) }

// Begun returns the number of commands that have been begun and not abandoned.
func (l *Cluster) Begun() int { return len(l.worth) }

// Run advances the time until no command is in progress and none is proposed, at most for the given time.
func (l *Cluster) Run(most time.Duration) error {
	for end := l.Now.Add(most); l.Now.Before(end); {
		if l.tick() {
			l.pass(l.Now.Add(time.Second))
			continue
		}
		next := l.soon()
		if next.IsZero() || l.idle() && next.Sub(l.Now) >= 10*time.Minute {
			return l.failure
		}
		l.pass(next)
	}
	return fmt.Errorf("not stable after %s: %d commands, %d pods pending", most, len(l.known), len(l.waiting))
}

// Advance advances the time, and carries out what the engine decides until then. It returns the first failure.
func (l *Cluster) Advance(until time.Time) error {
	for l.Now.Before(until) && l.failure == nil {
		next := l.Now.Add(time.Second)
		if !l.tick() {
			if next = l.soon(); next.IsZero() {
				next = until
			}
		}
		if next.After(until) {
			next = until
		}
		l.pass(next)
	}
	return l.failure
}

// tick lets each part of the cluster act once. It reports whether more may happen within a second.
func (l *Cluster) tick() bool {
	busy := l.disrupt()
	busy = l.drain() || busy
	busy = l.provision() || busy
	busy = l.join() || busy
	l.schedule()
	return busy
}

// pass advances the time.
func (l *Cluster) pass(to time.Time) {
	l.meter(to.Sub(l.Now))
	l.Now = to
}

// idle reports whether no work is in progress.
func (l *Cluster) idle() bool { return len(l.ready)+len(l.known)+len(l.waiting) == 0 }

// soon returns the time of the next event, zero for none.
func (l *Cluster) soon() time.Time {
	var first time.Time
	consider := func(at time.Time) {
		if at.After(l.Now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, at := range l.ready {
		consider(at)
	}
	for _, c := range l.known {
		consider(c.Created.Add(guard.Validation))
		consider(l.Now.Add(max(time.Second, l.passed.Add(l.Poll).Sub(l.Now))))
	}
	if len(l.waiting) > 0 {
		consider(l.Now.Add(10 * time.Second))
	}
	consider(l.next)
	if l.Poll > 0 && l.builder.Snapshot(l.Now).Version != l.decided {
		consider(l.passed.Add(l.Poll))
	}
	return first
}

// disrupt is a pass of the disruption loop. It reports whether it wrote anything.
func (l *Cluster) disrupt() bool {
	if l.Now.Before(l.passed.Add(l.Poll)) {
		return false
	}
	l.passed = l.Now
	snap := l.Snapshot()
	commands := guard.Resume(snap, l.known...)
	if snap.Version != l.decided || !l.next.IsZero() && !l.Now.Before(l.next) {
		p := disruption.Propose(snap, l.opts)
		l.decided, l.next = snap.Version, p.Next
		for _, c := range p.Commands {
			l.worth[c.ID] = &promise{saving: c.Worth.Saving}
		}
		if len(p.Commands) > 0 {
			l.Tally.Rounds++
		}
		commands = append(commands, p.Commands...)
	}
	l.known = nil
	wrote := false
	for step := 0; step < 8 && len(commands) > 0; step++ {
		again, actions := l.step(commands)
		for _, a := range actions {
			l.do(a)
		}
		wrote = wrote || len(actions) > 0
		commands = again
	}
	l.known = append(l.known, commands...)
	for _, a := range guard.Undone(l.Snapshot()) {
		l.do(a)
		wrote = true
	}
	return wrote
}

// step takes one step of each command on the newest snapshot. It returns those that may have another, and the writes.
func (l *Cluster) step(commands []plan.Command) (again []plan.Command, actions []plan.Action) {
	snap := l.Snapshot()
	g := guard.New(snap)
	g.Judge = disruption.Judge(snap, l.opts)
	for _, c := range commands {
		next, more := g.Step(c)
		if next.Phase == plan.Abandoned && c.Phase != plan.Abandoned {
			l.Tally.Abandoned++
			delete(l.worth, c.ID)
		}
		actions = append(actions, more...)
		switch {
		case len(more) > 0:
			again = append(again, next)
		case !next.Phase.Over():
			l.known = append(l.known, next)
		}
	}
	return again, actions
}

func (l *Cluster) edit(claim string, edit func(*model.NodeSpec)) {
	for _, h := range l.hosts {
		if h.Claim == claim {
			spec := *h.NodeSpec
			edit(&spec)
			h.NodeSpec = &spec
			l.builder.UpsertNode(spec)
			return
		}
	}
}

func (l *Cluster) do(action plan.Action) {
	switch a := action.(type) {
	case plan.TaintNode:
		l.edit(l.hosts[a.Node].Claim, func(n *model.NodeSpec) { n.Disrupted = true })
	case plan.UntaintNode:
		l.edit(l.hosts[a.Node].Claim, func(n *model.NodeSpec) { n.Disrupted = false })
	case plan.WriteCommand:
		for _, c := range a.Command.Candidates {
			l.orders[c.Node] = a.Command.ID
		}
		l.edit(a.Claim, func(n *model.NodeSpec) { n.Command = a.Command.Encode() })
	case plan.ClearCommand:
		l.edit(a.Claim, func(n *model.NodeSpec) { n.Command = "" })
	case plan.SetDisruptionReason:
		l.edit(a.Claim, func(n *model.NodeSpec) { n.DisruptionReason = true })
	case plan.ClearDisruptionReason:
		l.edit(a.Claim, func(n *model.NodeSpec) { n.DisruptionReason = false })
	case plan.MarkConsolidated:
		l.edit(a.Claim, func(n *model.NodeSpec) { n.ConsolidatedAt = a.At })
	case plan.MarkPodsSent:
		l.edit(a.Claim, func(n *model.NodeSpec) { n.PodsSentAt = a.At })
	case plan.DeleteClaim:
		if a.Reason == plan.Underutilized {
			l.Tally.Commands++
		}
		l.edit(a.Claim, func(n *model.NodeSpec) { n.Deleting, n.Disrupted = true, true })
	case plan.CreateClaim:
		l.launch(&a.NewClaim, a.Reason)
	case plan.NominatePod:
		l.nominate(a.UID, a.Node)
	case plan.ClearNomination:
		l.nominate(a.UID, "")
	case plan.SetPause:
		l.Tally.Pauses++
		l.pause(a.Pool, func(list pause.List) pause.List { return list.With(a.Pause) })
	case plan.EndPause:
		l.pause(a.Pool, func(list pause.List) pause.List { return list.Without(a.Key) })
	default:
		panic(fmt.Sprintf("no such action: %T", action))
	}
}

func (l *Cluster) pause(pool string, change func(pause.List) pause.List) {
	spec := *l.pools[pool]
	spec.Pauses = change(spec.Pauses)
	l.pools[pool] = &spec
	l.builder.UpsertPool(spec)
}

func (l *Cluster) nominate(uid, node string) {
	if p := l.pods[uid]; p != nil && p.Node == "" {
		p.Nominated = node
		l.builder.UpsertPod(*p)
	}
}

// launch creates a claim. It will be of the cheapest of its types.
func (l *Cluster) launch(c *plan.NewClaim, reason string) {
	pool := l.pools[c.Pool]
	n := &model.NodeSpec{Name: c.Name, UID: "uid-" + c.Name, Claim: c.Name, ClaimUID: "uid-" + c.Name, Pool: c.Pool,
		Created: l.Now, Labels: maps.Clone(c.Labels), Taints: pool.Taints, Requests: c.Requests, Replacement: reason == "underutilized",
		Renewal: reason == "drifted"}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[model.LabelPool] = c.Pool
	n.Requirements = slices.DeleteFunc(slices.Clone(c.Requirements), func(r label.Requirement) bool { return r.Key == model.LabelHostname })
	n.LaunchedFor = c.PodRefs()
	_, o, ok := l.machine(n)
	if !ok {
		l.fail("claim %s allows no offering", n.Name)
		return
	}
	h := newHost(n)
	h.price = o.Price
	l.hosts[n.Name] = h
	l.builder.UpsertNode(*n)
	l.ready[n.Name] = l.Now.Add(l.MachineTime)
}

// join turns claims with ready machines into nodes.
func (l *Cluster) join() bool {
	joined := false
	for _, name := range slices.Sorted(maps.Keys(l.ready)) {
		if l.ready[name].After(l.Now) {
			continue
		}
		joined = true
		delete(l.ready, name)
		spec := *l.hosts[name].NodeSpec
		t, o, ok := l.machine(&spec)
		if !ok {
			continue // launch reported it
		}
		spec.Stage, spec.Ready, spec.InitializedAt = model.Initialized, true, l.Now
		spec.Capacity, spec.Allocatable, spec.Requirements = t.Capacity, t.Allocatable, nil
		spec.Labels = maps.Clone(spec.Labels)
		for _, r := range t.Requirements {
			if r.Operator == label.In && len(r.Values) == 1 {
				spec.Labels[r.Key] = r.Values[0]
			}
		}
		spec.Labels[model.LabelZone], spec.Labels[model.LabelCapacityType], spec.Labels[model.LabelHostname] = o.Zone, o.CapacityType, name
		h := newHost(&spec)
		h.price = o.Price
		l.hosts[name] = h
		l.builder.UpsertNode(spec)
	}
	return joined
}

// machine returns the cheapest type and offering that the claim allows, false if there is none.
func (l *Cluster) machine(n *model.NodeSpec) (kind *model.InstanceType, best *model.Offering, ok bool) {
	catalog := l.pools[n.Pool].Catalog
	for i := range catalog.Types {
		t := &catalog.Types[i]
		if slices.ContainsFunc(n.Requests, func(a quantity.Amount) bool { return amount(t.Allocatable, a.Name) < a.Value }) {
			continue
		}
		for k := range t.Offerings {
			o := &t.Offerings[k]
			if o.Available && (best == nil || o.Price < best.Price) && offers(n.Requirements, t, o) {
				kind, best = t, o
			}
		}
	}
	return kind, best, best != nil
}

func offers(reqs []label.Requirement, t *model.InstanceType, o *model.Offering) bool {
	labels := map[string]string{model.LabelZone: o.Zone, model.LabelCapacityType: o.CapacityType}
	for _, r := range t.Requirements {
		if r.Operator == label.In && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	return !slices.ContainsFunc(reqs, func(r label.Requirement) bool {
		_, spoken := labels[r.Key]
		return spoken && !has(labels, r)
	})
}

// drain evicts half of the pods (at least ten) of each node that is being deleted, one of each in turn, and removes
// empty nodes. The successor of each pod is created and scheduled at once.
func (l *Cluster) drain() bool {
	var queues [][]*model.PodSpec
	busy := false
	for _, name := range slices.Sorted(maps.Keys(l.hosts)) {
		h := l.hosts[name]
		if !h.Deleting {
			continue
		}
		busy = true
		if len(h.pods) == 0 {
			delete(l.hosts, name)
			delete(l.ready, name)
			l.builder.DeleteNode(name)
			continue
		}
		queue := h.inDrainOrder(l.seed)
		queues = append(queues, queue[:max(min(10, len(queue)), len(queue)/2)])
	}
	for turn := 0; len(queues) > 0; turn++ {
		for _, q := range queues {
			l.evict(q[turn])
		}
		queues = slices.DeleteFunc(queues, func(q []*model.PodSpec) bool { return len(q) == turn+1 })
	}
	return busy
}

func (l *Cluster) evict(p *model.PodSpec) {
	from := l.hosts[p.Node]
	from.remove(p)
	l.noteEvent(from)
	l.remove(p)
	if !p.Reschedulable {
		return
	}
	if l.orders[from.Name] != "" {
		l.Tally.Moved++
	} else {
		l.Tally.Interrupted++
	}
	l.made++
	fresh := *p
	fresh.UID, fresh.Name = fmt.Sprintf("%s-%d", p.Controller.UID, l.made), fmt.Sprintf("%s-%d", p.Controller.Name, l.made)
	fresh.Created, fresh.Node, fresh.Nominated, fresh.State = l.Now, "", "", model.Pending
	l.cause[fresh.UID] = l.orders[from.Name]
	l.add(&fresh)
	if !l.place(&fresh) {
		l.waiting = append(l.waiting, &fresh)
		l.builder.UpsertPod(fresh)
	}
}

// place simulates kube-scheduler for one pod.
func (l *Cluster) place(p *model.PodSpec) bool {
	promised := map[string][]*model.PodSpec{}
	for _, other := range l.waiting {
		if other.Nominated != "" {
			promised[other.Nominated] = append(promised[other.Nominated], other)
		}
	}
	h := choose(l.seed, l.sorted(), p, promised)
	if h == nil {
		return false
	}
	p.Node, p.Nominated, p.State = h.Name, "", model.Bound
	h.add(p)
	l.builder.UpsertPod(*p)
	l.noteEvent(h)
	return true
}

func (l *Cluster) noteEvent(h *host) {
	if h.LastPodEvent.Equal(l.Now) {
		return
	}
	spec := *h.NodeSpec
	spec.LastPodEvent = l.Now
	h.NodeSpec = &spec
	l.builder.UpsertNode(spec)
}

func (l *Cluster) sorted() []*host {
	return slices.SortedFunc(maps.Values(l.hosts), func(a, b *host) int { return strings.Compare(a.Name, b.Name) })
}

// schedule simulates kube-scheduler for the pending pods, nominated pods first.
func (l *Cluster) schedule() {
	slices.SortStableFunc(l.waiting, func(a, b *model.PodSpec) int { return cmp.Compare(b.Nominated, a.Nominated) })
	l.waiting = slices.DeleteFunc(slices.Clone(l.waiting), l.place)
}

// provision is a tick of the provisioning loop.
func (l *Cluster) provision() bool {
	going := slices.ContainsFunc(l.sorted(), func(h *host) bool { return h.Deleting && len(h.pods) > 0 })
	if len(l.waiting) == 0 && !going {
		return false
	}
	snap := l.Snapshot()
	p := placement.Schedule(reserve.Ahead(snap, l.last), l.opts.Placement)
	l.last = p
	kept, _ := guard.CheckProvision(snap, p)
	for i := range kept.Claims {
		c := &kept.Claims[i]
		l.launch(c, "provisioned")
		l.charge(c)
	}
	nominations, _ := nominate.Nominations(l.Snapshot(), kept)
	for _, a := range nominations {
		l.do(a)
	}
	for _, placed := range kept.Placed {
		l.edit(l.hosts[placed.Node].Claim, func(n *model.NodeSpec) { n.NominatedUntil = l.Now.Add(promisedTime) })
	}
	return len(kept.Claims) > 0
}

// charge adds the cost of the claim to the commands that moved its pods.
func (l *Cluster) charge(c *plan.NewClaim) {
	l.Tally.Bought++
	cost := c.Price() + l.opts.Placement.NodePriceOf(l.pools[c.Pool])
	l.Tally.Spent += cost
	for _, p := range c.Pods {
		id := l.cause[p.UID]
		if p.Node != "" {
			id = l.orders[p.Node]
		}
		if w := l.worth[id]; w != nil {
			w.spent += cost / int64(len(c.Pods))
		}
	}
}

// Losses returns the number of commands that cost more than they saved.
func (l *Cluster) Losses() int {
	n := 0
	for _, w := range l.worth {
		if w.spent > w.saving {
			n++
		}
	}
	return n
}
