package loop

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// decide makes a plan on a snapshot of now, with what is leaving gone, in which pods keep the seats that the plan before
// gave them; and keeps where it puts its pods. Only one plan is made at a time, so that an older one never replaces a
// newer. The first snapshot is of now, the second what the plan was made from.
func (p *Provision) decide() (snap, from *model.Snapshot, decided *plan.Provision) {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	snap = p.Snapshot()
	from = plan.Reseated(plan.Ahead(snap), p.last)
	decided = p.Schedule(from)
	decided.Stamp(snap)
	p.last = decided
	targets := decided.Targets()
	p.targets.Store(&targets)
	p.seats.Store(new(running(targets)))
	return snap, from, decided
}

// running are the targets by pod, of pods that still run on a node that leaves.
func running(targets plan.Targets) map[types.UID]string {
	seats := map[types.UID]string{}
	for target, pods := range targets {
		for _, pod := range pods {
			if pod.Node != "" {
				seats[types.UID(pod.UID)] = target
			}
		}
	}
	return seats
}

// Seat names the claim or node that the latest plan has for a pod which still runs on a node that leaves, empty if it has
// none or there is no plan yet.
func (p *Provision) Seat(pod types.UID) string {
	seats := p.seats.Load()
	if seats == nil {
		return ""
	}
	return (*seats)[pod]
}

// planned returns where the latest plan puts its pods. Before the first, as after a restart, one is made: with its
// claims in flight, the same plan comes out as before. However many ask for it, it is made once.
func (p *Provision) planned() plan.Targets {
	if known := p.targets.Load(); known != nil {
		return *known
	}
	p.first.Do(func() {
		if p.targets.Load() == nil {
			p.decide()
		}
	})
	return *p.targets.Load()
}

// NominateFor promises the node to the pods that were planned onto the claim. Call it when the node has registered and
// pods are still kept off by its taint. It returns when the promises are written, or with an error when some could not
// be: the caller asks again, a few times. A *controller.NotYetError says that other nodes of the plan open before: the
// caller asks again until it is over.
func (p *Provision) NominateFor(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	if !p.Nominate {
		return nil
	}
	if p.WaitForSync != nil && !p.WaitForSync(ctx) {
		return fmt.Errorf("waiting for the mirror of the cluster: %w", context.Cause(ctx))
	}
	return p.opens(ctx, claim, node)
}

// promiseNode writes the nominations that are missing when the node opens.
func (p *Provision) promiseNode(ctx context.Context, node *corev1.Node, promises []plan.Action) error {
	var errs []error
	for _, o := range execute.Failures(p.Writer.Do(ctx, promises)) {
		errs = append(errs, o.Err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("promising node %s to %d of its pods: %w", node.Name, len(errs), errors.Join(errs[:min(len(errs), 3)]...))
	}
	return ctx.Err()
}
