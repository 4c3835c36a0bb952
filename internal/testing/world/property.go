package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
)

// Properties of a world that nothing disturbs any more.
const (
	// patience is how long it may take to come to rest: ten times the time in which nothing happens for quiet.
	patience = 100 * time.Minute
	quiet    = 8 * time.Minute
	// lastLie is how long the cloud continues to give wrong replies after the last disturbance.
	lastLie = 8 * time.Minute
	// mostBought is how often a pool or an owner buys during that time.
	mostBought = 12
)

// elapse advances the time, and checks what must be true at each moment.
func (p *play) elapse(d time.Duration) error {
	const step = 10 * time.Second
	for ; d > 0 && p.failure == nil; d -= step {
		p.Advance(min(d, step))
		if p.has(Lies) {
			p.removals.measure()
			p.removals.replaced()
		}
		if p.has(Lies) && !p.has(Limits) && !p.has(Quotas) {
			p.removals.provisions()
		}
	}
	return p.Check()
}

// calm checks the properties of the end.
func (p *play) calm() error {
	p.crash, p.flaky = 0, time.Time{}
	p.read.ahead = 0
	p.lastForever()
	p.ledger.buyers = map[string]int{}
	if p.has(Lies) {
		if err := p.elapse(lastLie); err != nil {
			return err
		}
		p.settleDoubts()
		p.removals.overdue = p.removals.overdueNow()
		p.Clock.in(operatorWaits, p.removals.operate)
	}
	if err := p.comesToRest(); err != nil {
		return err
	}
	return cmp.Or(p.Check(), p.nothingLeaked(), p.commandsEnded(), p.allRun(), p.stands(), p.buffersHold(), p.overlooked())
}

// lastForever ends what keeps a world changing, or from coming to rest: nodes no longer expire, and pods allow disruption.
func (p *play) lastForever() {
	for _, app := range p.apps {
		p.protect(app, false)
	}
	for _, pool := range p.nodePools() {
		if pool.Spec.Template.Spec.ExpireAfter.Duration != nil {
			edit(p.api, pool, func(o *karpv1.NodePool) { o.Spec.Template.Spec.ExpireAfter = karpv1.NillableDuration{} })
		}
	}
	for _, c := range p.claims() {
		if c.Spec.ExpireAfter.Duration != nil {
			edit(p.api, c, func(o *karpv1.NodeClaim) { o.Spec.ExpireAfter = karpv1.NillableDuration{} })
		}
	}
}

// comesToRest waits until nothing happens for quiet, and returns an error if that takes longer than patience.
func (p *play) comesToRest() error {
	began, since, version, most := p.Clock.now, p.Clock.now, p.ledger.version, mostBought
	if p.has(Expiry) { // nodes of pools that had an end drift: see lastForever
		most += len(p.claims())
	}
	for p.Clock.now.Sub(since) < quiet {
		if err := p.elapse(10 * time.Second); err != nil {
			return err
		}
		// A command whose pods have no place yet writes nothing until its deadline, which is later than quiet.
		if p.ledger.version != version || p.process == nil || p.removals.paused() || p.commandsEnded() != nil {
			since, version = p.Clock.now, p.ledger.version
		}
		waited := p.Clock.now.Sub(began)
		if waited > patience {
			return fmt.Errorf("comes to rest: not after %v, %d pods are pending", waited, len(p.kube.waiting))
		}
		for _, buyer := range slices.Sorted(maps.Keys(p.ledger.buyers)) {
			if n := p.ledger.buyers[buyer]; n > most && waited > patience/10 {
				return fmt.Errorf("buys without end: %s bought %d nodes in a world that nothing disturbs", buyer, n)
			}
		}
	}
	return nil
}

// nothingLeaked returns an error if a machine has no claim and node, or a claim has no machine.
func (p *play) nothingLeaked() error {
	known := map[string]bool{}
	for _, c := range p.claims() {
		known[c.Status.ProviderID] = true
		if p.provider.machines[c.Status.ProviderID] == nil {
			return fmt.Errorf("nothing leaked: claim %s has no machine", c.Name)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.provider.machines)) {
		if m := p.provider.machines[id]; !known[id] || p.kube.hosts[m.node] == nil {
			return fmt.Errorf("nothing leaked: the machine of claim %s is left", m.Claim)
		}
	}
	return nil
}

// commandsEnded returns an error if a command, its taint or its condition is left, or a deletion has not ended.
func (p *play) commandsEnded() error {
	if p.has(PDBs) && len(p.kube.waiting) > 0 && (p.has(Limits) || p.has(Quotas)) {
		return nil // a PDB may keep a pod on its node for as long as another pod of the app waits
	}
	for _, c := range p.claims() {
		if commandOf(c) != nil || !c.DeletionTimestamp.IsZero() || c.Condition(karpv1.ConditionDisruptionReason).IsTrue() {
			return fmt.Errorf("commands end: claim %s shows one, or is being deleted", c.Name)
		}
	}
	taint := karpv1.DisruptedTaint()
	for _, h := range p.kube.sorted() {
		if slices.ContainsFunc(h.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			return fmt.Errorf("commands end: node %s has the taint", h.Name)
		}
	}
	return nil
}

// allRun returns an error if a pod waits, unless limits or quotas may be the cause.
func (p *play) allRun() error {
	if len(p.kube.waiting) > 0 && !p.has(Limits) && !p.has(Quotas) {
		return fmt.Errorf("no pod stuck: %s waits", p.kube.waiting[0].Name)
	}
	return nil
}

// stands returns an error if a static pool has another number of nodes than it wants, unless limits or quotas may be the
// cause.
func (p *play) stands() error {
	for _, pool := range p.nodePools() {
		if pool.Spec.Replicas == nil {
			continue
		}
		n := int64(0)
		for _, c := range p.claims() {
			n += map[bool]int64{true: 1}[c.Labels[karpv1.LabelNodePool] == pool.Name]
		}
		if n > *pool.Spec.Replicas || n < *pool.Spec.Replicas && !p.has(Limits) && !p.has(Quotas) {
			return fmt.Errorf("static stands: %s has %d nodes, wants %d", pool.Name, n, *pool.Spec.Replicas)
		}
	}
	return nil
}

// overlooked returns an error if a decision from scratch finds a node that can be removed.
func (p *play) overlooked() error {
	if c := disruption.Propose(p.Snapshot(), p.config.Disruption).Commands; len(c) > 0 {
		return fmt.Errorf("overlooked: %s of %s is possible", c[0].Reason, c[0].Candidates[0].Node)
	}
	return nil
}
