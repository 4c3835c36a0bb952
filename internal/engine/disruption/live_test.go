package disruption_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// live simulates a cluster in which kube-scheduler places the pods. Commands are processed by guard.Step and Judge as
// in production, pods are evicted from all draining nodes at once, their successors have other names and are placed
// by a simulated kube-scheduler (livekube_test.go) at once, and provisioning launches nodes for pods without room. It
// measures the effect of a plan that is carried out.
type live struct {
	opts    disruption.Options
	seed    uint64
	builder *model.Builder
	now     time.Time

	pools map[string]*model.PoolSpec
	hosts map[string]*host
	pods  map[string]*model.PodSpec
	// waiting holds the pods without a node, in order of creation; ready is the time at which the machine of a claim
	// is ready.
	waiting []*model.PodSpec
	ready   map[string]time.Time
	// known holds the commands in progress, decided the snapshot version of the last decision, next the time of the
	// next decision without a new version.
	known   []plan.Command
	decided uint64
	next    time.Time
	made    int
	// last is the latest provisioning plan; the next one keeps its assignments.
	last *plan.Provision
	// orders holds the IDs of commands by node, cause the command that moved a pod, by the pod's UID, worth the
	// promised and the actual effect, by command.
	orders, cause map[string]string
	worth         map[string]*promise
	tally         tally
}

// promise is the planned saving of a command and the amount that provisioning spent on its pods, nano-USD per hour.
type promise struct{ saving, spent int64 }

// tally counts events.
type tally struct {
	rounds, commands, moved, replaced, bought, abandoned int
	spent                                                int64
}

const (
	machineTime  = 30 * time.Second
	promisedTime = 20 * time.Second
)

func newLive(seed uint64, opts disruption.Options, f *fleet) *live {
	l := &live{opts: opts, seed: seed, builder: model.NewBuilder(), now: noon, pools: map[string]*model.PoolSpec{}, hosts: map[string]*host{},
		pods: map[string]*model.PodSpec{}, ready: map[string]time.Time{}, orders: map[string]string{}, cause: map[string]string{}, worth: map[string]*promise{}}
	for i := range f.pools {
		l.pools[f.pools[i].Name] = &f.pools[i]
		l.builder.UpsertPool(f.pools[i])
	}
	for i := range f.nodes {
		n := f.nodes[i]
		l.hosts[n.Name] = newHost(&n)
		l.builder.UpsertNode(n)
	}
	for i := range f.pods {
		p := f.pods[i]
		l.pods[p.UID] = &p
		l.builder.UpsertPod(p)
		if p.Node != "" {
			l.hosts[p.Node].add(&p)
		} else {
			l.waiting = append(l.waiting, &p)
		}
	}
	return l
}

func (l *live) snapshot() *model.Snapshot { return l.builder.Snapshot(l.now) }

// run advances the time until no command is in progress and none is proposed, at most for the given time.
func (l *live) run(t testing.TB, most time.Duration) {
	for end := l.now.Add(most); l.now.Before(end); {
		busy := l.disrupt()
		busy = l.drain() || busy
		busy = l.provision() || busy
		busy = l.join() || busy
		l.schedule()
		if busy {
			l.now = l.now.Add(time.Second)
			continue
		}
		next, any := l.soon()
		if !any {
			return
		}
		l.now = next
	}
	t.Errorf("seed %d: not stable after %s: %d commands, %d pods pending", l.seed, most, len(l.known), len(l.waiting))
}

// soon returns the time of the next event that belongs to work in progress.
func (l *live) soon() (time.Time, bool) {
	var first time.Time
	consider := func(at time.Time) {
		if at.After(l.now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, at := range l.ready {
		consider(at)
	}
	for _, c := range l.known {
		consider(c.Created.Add(guard.Validation))
		consider(l.now.Add(time.Second))
	}
	if len(l.waiting) > 0 {
		consider(l.now.Add(10 * time.Second))
	}
	if l.next.Sub(l.now) < 10*time.Minute {
		consider(l.next)
	}
	return first, !first.IsZero()
}

// disrupt is a tick of the disruption loop. It reports whether it wrote anything.
func (l *live) disrupt() bool {
	snap := l.snapshot()
	commands := guard.Resume(snap, l.known...)
	if snap.Version != l.decided || !l.next.IsZero() && !l.now.Before(l.next) {
		p := disruption.Propose(snap, l.opts)
		l.decided, l.next = snap.Version, p.Next
		for _, c := range p.Commands {
			l.worth[c.ID] = &promise{saving: c.Worth.Saving}
		}
		if len(p.Commands) > 0 {
			l.tally.rounds++
		}
		commands = append(commands, p.Commands...)
	}
	l.known = nil
	wrote := false
	for step := 0; step < 8 && len(commands) > 0; step++ {
		snap := l.snapshot()
		g := guard.New(snap)
		g.Judge = disruption.Judge(snap, l.opts)
		var again []plan.Command
		var actions []plan.Action
		for _, c := range commands {
			next, more := g.Step(c)
			if next.Phase == plan.Abandoned && c.Phase != plan.Abandoned {
				l.tally.abandoned++
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
		for _, a := range actions {
			l.do(a)
		}
		wrote = wrote || len(actions) > 0
		commands = again
	}
	l.known = append(l.known, commands...)
	return wrote
}

func (l *live) edit(claim string, edit func(*model.NodeSpec)) {
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

func (l *live) do(action plan.Action) {
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
			l.tally.commands++
		}
		l.edit(a.Claim, func(n *model.NodeSpec) { n.Deleting, n.Disrupted = true, true })
	case plan.CreateClaim:
		l.tally.replaced++
		l.launch(&a.NewClaim, a.Reason)
	case plan.NominatePod:
		l.nominate(a.UID, a.Node)
	case plan.ClearNomination:
		l.nominate(a.UID, "")
	default:
		panic(fmt.Sprintf("no such action: %T", action))
	}
}

func (l *live) nominate(uid, node string) {
	if p := l.pods[uid]; p != nil && p.Node == "" {
		p.Nominated = node
		l.builder.UpsertPod(*p)
	}
}

// launch creates a claim. It will be of the cheapest of its types.
func (l *live) launch(c *plan.NewClaim, reason string) {
	pool := l.pools[c.Pool]
	n := &model.NodeSpec{Name: c.Name, UID: "uid-" + c.Name, Claim: c.Name, ClaimUID: "uid-" + c.Name, Pool: c.Pool, Created: l.now, Labels: maps.Clone(c.Labels),
		Taints: pool.Taints, Requests: c.Requests, Replacement: reason == "underutilized"}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[model.LabelPool] = c.Pool
	n.Requirements = slices.DeleteFunc(slices.Clone(c.Requirements), func(r label.Requirement) bool { return r.Key == model.LabelHostname })
	n.LaunchedFor = c.PodRefs()
	l.hosts[n.Name] = newHost(n)
	l.builder.UpsertNode(*n)
	l.ready[n.Name] = l.now.Add(machineTime)
}

// join turns claims with ready machines into nodes.
func (l *live) join() bool {
	joined := false
	for _, name := range slices.Sorted(maps.Keys(l.ready)) {
		if l.ready[name].After(l.now) {
			continue
		}
		joined = true
		delete(l.ready, name)
		spec := *l.hosts[name].NodeSpec
		t, o := l.machine(&spec)
		spec.Stage, spec.Ready, spec.InitializedAt = model.Initialized, true, l.now
		spec.Capacity, spec.Allocatable, spec.Requirements = t.Capacity, t.Allocatable, nil
		spec.Labels = maps.Clone(spec.Labels)
		for _, r := range t.Requirements {
			if r.Operator == label.In && len(r.Values) == 1 {
				spec.Labels[r.Key] = r.Values[0]
			}
		}
		spec.Labels[model.LabelZone], spec.Labels[model.LabelCapacityType], spec.Labels[model.LabelHostname] = o.Zone, o.CapacityType, name
		l.hosts[name] = newHost(&spec)
		l.builder.UpsertNode(spec)
	}
	return joined
}

// machine returns the cheapest type and offering that the claim allows.
func (l *live) machine(n *model.NodeSpec) (*model.InstanceType, *model.Offering) {
	var kind *model.InstanceType
	var best *model.Offering
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
	if best == nil {
		panic("nothing is for sale for claim " + n.Name)
	}
	return kind, best
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
func (l *live) drain() bool {
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

func (l *live) evict(p *model.PodSpec) {
	from := l.hosts[p.Node]
	from.remove(p)
	l.noteEvent(from)
	delete(l.pods, p.UID)
	l.builder.DeletePod(p.UID)
	if !p.Reschedulable {
		return
	}
	l.tally.moved++
	l.made++
	fresh := *p
	fresh.UID, fresh.Name = fmt.Sprintf("%s-%d", p.Controller.UID, l.made), fmt.Sprintf("%s-%d", p.Controller.Name, l.made)
	fresh.Created, fresh.Node, fresh.Nominated, fresh.State = l.now, "", "", model.Pending
	l.cause[fresh.UID] = l.orders[from.Name]
	l.pods[fresh.UID] = &fresh
	if !l.place(&fresh) {
		l.waiting = append(l.waiting, &fresh)
		l.builder.UpsertPod(fresh)
	}
}

// place simulates kube-scheduler for one pod.
func (l *live) place(p *model.PodSpec) bool {
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

func (l *live) noteEvent(h *host) {
	if h.LastPodEvent.Equal(l.now) {
		return
	}
	spec := *h.NodeSpec
	spec.LastPodEvent = l.now
	h.NodeSpec = &spec
	l.builder.UpsertNode(spec)
}

func (l *live) sorted() []*host {
	return slices.SortedFunc(maps.Values(l.hosts), func(a, b *host) int { return strings.Compare(a.Name, b.Name) })
}

// schedule simulates kube-scheduler for the pending pods, nominated pods first.
func (l *live) schedule() {
	slices.SortStableFunc(l.waiting, func(a, b *model.PodSpec) int { return cmp.Compare(b.Nominated, a.Nominated) })
	l.waiting = slices.DeleteFunc(slices.Clone(l.waiting), l.place)
}

// provision is a tick of the provisioning loop.
func (l *live) provision() bool {
	going := slices.ContainsFunc(l.sorted(), func(h *host) bool { return h.Deleting && len(h.pods) > 0 })
	if len(l.waiting) == 0 && !going {
		return false
	}
	snap := l.snapshot()
	p := placement.Schedule(reserve.Ahead(snap, l.last), l.opts.Placement)
	l.last = p
	kept, _ := guard.CheckProvision(snap, p)
	for i := range kept.Claims {
		c := &kept.Claims[i]
		l.launch(c, "provisioned")
		l.charge(c)
	}
	nominations, _ := nominate.Nominations(l.snapshot(), kept)
	for _, a := range nominations {
		l.do(a)
	}
	for _, placed := range kept.Placed {
		l.edit(l.hosts[placed.Node].Claim, func(n *model.NodeSpec) { n.NominatedUntil = l.now.Add(promisedTime) })
	}
	return len(kept.Claims) > 0
}

// charge adds the cost of the claim to the commands that moved its pods.
func (l *live) charge(c *plan.NewClaim) {
	l.tally.bought++
	cost := c.Price() + l.opts.Placement.NodePriceOf(l.pools[c.Pool])
	l.tally.spent += cost
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

// losses returns the number of commands that cost more than they saved.
func (l *live) losses() int {
	n := 0
	for _, w := range l.worth {
		if w.spent > w.saving {
			n++
		}
	}
	return n
}
