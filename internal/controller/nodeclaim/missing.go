package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// dispute is a claim whose machine the cloud does not show though its node reports.
type dispute struct {
	since time.Time
	found removal.Case
}

// removeMachineless deletes the claims whose machine the cloud does not show and whose node is silent, and keeps those whose
// node reports. A failure about one claim does not affect the others.
func (c *Collector) removeMachineless(ctx context.Context, missing []*karpv1.NodeClaim) error {
	var errs []error
	var gone []*karpv1.NodeClaim
	now, disputes := c.Clock.Now(), map[string]dispute{}
	for _, claim := range missing {
		machine := claim.Status.ProviderID
		before, known := c.disputes[machine]
		found, reports, err := c.lookup(ctx, claim)
		switch {
		case err != nil:
			errs = append(errs, err)
			if known {
				disputes[machine] = before
			}
		case found:
		case !reports:
			gone = append(gone, claim)
		case !known:
			disputes[machine] = dispute{now, removal.Case{Machine: machine, Pool: claim.Labels[karpv1.LabelNodePool],
				Cause: removal.CauseMachineGone}}
		default:
			disputes[machine] = before
			if now.Sub(before.since) >= c.Timers.SecondLook {
				c.Recorder.Emit(telemetry.MachineDisputed(claim))
			}
		}
	}
	c.disputes = disputes
	var cases []removal.Case
	for _, machine := range slices.Sorted(maps.Keys(disputes)) {
		cases = append(cases, disputes[machine].found)
	}
	errs = append(errs, c.Limiter.Disputed(ctx, cases))
	for _, claim := range gone {
		errs = append(errs, c.remove(ctx, claim))
	}
	return errors.Join(errs...)
}

// lookup reports whether the cloud shows the machine of a claim that is not in the list, and whether its node reports. It
// queries the cloud about that one machine, which may have been launched after the list.
func (c *Collector) lookup(ctx context.Context, claim *karpv1.NodeClaim) (found, reports bool, err error) {
	machine, err := c.Provider.Machine(ctx, claim.Status.ProviderID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return false, false, fmt.Errorf("asking for machine %s: %w", claim.Status.ProviderID, err)
	}
	if err == nil && !machine.Terminating {
		return true, false, nil
	}
	reports, err = c.Limiter.MachineReports(ctx, claim.Status.ProviderID)
	return false, reports, err
}

// remove deletes a claim whose machine is gone.
func (c *Collector) remove(ctx context.Context, claim *karpv1.NodeClaim) error {
	if err := deleteUnchanged(ctx, c.Client, claim); err != nil {
		if controller.Stale(err) {
			return nil // changed since it was read: the next round decides
		}
		return err
	}
	c.collected(ctx, claim, "machine")
	return nil
}

// endStrays terminates machines without a claim, as far as the limit on removals allows. A machine that a direct
// query does not find, or reports as terminating, is not touched.
func (c *Collector) endStrays(ctx context.Context, strays []cloud.Machine) error {
	var errs []error
	var cases []removal.Case
	var there []cloud.Machine
	for _, m := range strays {
		seen, err := c.Provider.Machine(ctx, m.ProviderID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && seen.Terminating {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("asking for machine %s, which no claim shows: %w", m.ProviderID, err))
			continue
		}
		pool, err := c.poolOfNode(ctx, m.ProviderID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		there = append(there, m)
		cases = append(cases, removal.Case{Machine: m.ProviderID, Pool: pool, Cause: removal.CauseStray})
	}
	if len(cases) == 0 {
		return errors.Join(errs...)
	}
	held, err := c.limited(ctx, cases, func(i int) error { return c.terminate(ctx, there[i]) })
	if held > 0 {
		ctrl.LoggerFrom(ctx).Info("kept machines that belong to no claim: involuntary removals are paused", "machines", held)
	}
	return errors.Join(append(errs, err)...)
}

// limited calls do with the index of each case that the Limiter allows, and returns how many it holds.
func (c *Collector) limited(ctx context.Context, cases []removal.Case, do func(int) error) (held int, err error) {
	may, err := c.Limiter.Ask(ctx, cases...)
	errs := []error{err}
	for i := range may {
		if !may[i] {
			held++
			continue
		}
		errs = append(errs, do(i))
	}
	return held, errors.Join(errs...)
}

// poolOfNode returns the NodePool of the node of a machine, or an empty string if it has no node.
func (c *Collector) poolOfNode(ctx context.Context, providerID string) (string, error) {
	nodes, err := nodesOf(ctx, c.Client, providerID)
	if err != nil || len(nodes) == 0 {
		return "", err
	}
	return nodes[0].Labels[karpv1.LabelNodePool], nil
}

func (c *Collector) terminate(ctx context.Context, m cloud.Machine) error {
	err := c.Provider.Terminate(ctx, m.ProviderID)
	if controller.TerminationWaits(err) {
		ctrl.LoggerFrom(ctx).V(1).Info("kept a machine that belongs to no claim", "providerID", m.ProviderID, "cause", err.Error())
		return nil
	}
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return fmt.Errorf("terminating leaked machine %s: %w", m.ProviderID, err)
	}
	ctrl.LoggerFrom(ctx).Info("terminated a machine that belongs to no claim", "providerID", m.ProviderID, "nodeClaim",
		m.Claim, "created", m.Created)
	c.Metrics.CloudLeakedMachines.WithLabelValues(c.Provider.Name()).Inc()
	return nil
}
