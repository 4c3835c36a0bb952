package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// decide computes a plan on the current snapshot, in which the nodes that are being removed are gone and pods keep
// the places of the previous plan. It stores the places of the new plan. Only one plan is computed at a time, so that
// an older one never replaces a newer one. snap is the current snapshot, which was complete at that time.
func (p *Loop) decide() (snap *model.Snapshot, at time.Time, decided *plan.Provision) {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	snap, at = p.Snapshot(), p.Clock.Now()
	decided = p.Schedule(reserve.Ahead(snap, p.last.Load()))
	decided.Stamp(snap)
	p.last.Store(decided)
	targets := nominate.TargetsOf(decided)
	p.targets.Store(&targets)
	destinations := map[types.UID]string{}
	addDestinations(destinations, targets)
	if decided.Virtual != nil {
		addDestinations(destinations, nominate.TargetsOf(decided.Virtual))
	}
	p.destinations.Store(&destinations)
	return snap, at, decided
}

// addDestinations adds the targets by pod, for virtual pods and those that still run on a node that is being removed.
func addDestinations(to map[types.UID]string, targets nominate.Targets) {
	for target, pods := range targets {
		for _, pod := range pods {
			if pod.Node != "" || pod.Virtual != "" {
				to[types.UID(pod.UID)] = target
			}
		}
	}
}

// Last returns the latest plan, nil before the first. Callers must not change it.
func (p *Loop) Last() *plan.Provision { return p.last.Load() }

// Destination returns the claim or node that the latest plan assigns to a virtual pod, or to a pod which still runs on a
// node that is being removed. It returns an empty string if there is none or there is no plan yet.
func (p *Loop) Destination(pod types.UID) string {
	destinations := p.destinations.Load()
	if destinations == nil {
		return ""
	}
	return (*destinations)[pod]
}

// planned returns the placements of the latest plan. Before the first plan, as after a restart, one is computed: with
// its claims in flight, the result is the same plan as before. Concurrent callers share the computation.
func (p *Loop) planned() nominate.Targets {
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

// NominateFor nominates the pods that were planned onto the claim to its node. Call it when the node has registered
// and its taint still keeps pods off. It returns when the nominations are written, or with an error when some could
// not be written: the caller retries a limited number of times.
func (p *Loop) NominateFor(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	if !p.Nominate {
		return nil
	}
	if p.WaitForSync != nil && !p.WaitForSync(ctx) {
		return fmt.Errorf("waiting for the mirror of the cluster: %w", context.Cause(ctx))
	}
	var errs []error
	for _, o := range execute.Failures(p.Writer.Do(ctx, p.planned().Nominate(p.Snapshot(), claim.Name, node.Name))) {
		errs = append(errs, o.Err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("reserving node %s for %d of its pods: %w", node.Name, len(errs), errors.Join(errs[:min(len(errs), 3)]...))
	}
	return ctx.Err()
}
