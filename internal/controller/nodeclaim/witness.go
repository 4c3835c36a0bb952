package nodeclaim

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// removeMachineless deletes the claims that both witnesses report as gone, and keeps those whose node reports. A
// failure about one claim does not affect the others.
func (c *Collector) removeMachineless(ctx context.Context, missing []*karpv1.NodeClaim) error {
	var errs []error
	var gone []*karpv1.NodeClaim
	var disputes []removal.Case
	var unchecked []string
	kept := map[string]*karpv1.NodeClaim{}
	for _, claim := range missing {
		found, err := c.check(ctx, claim)
		switch {
		case err != nil:
			unchecked = append(unchecked, found.Machine)
			errs = append(errs, err)
		case found.Cloud != removal.Gone:
		case found.Node == removal.Gone:
			gone = append(gone, claim)
		default:
			disputes = append(disputes, found)
			kept[found.Machine] = claim
		}
	}
	c.Brake.Disputes(disputes, unchecked...)
	if err := c.Brake.Refresh(ctx); err != nil {
		errs = append(errs, err)
	}
	for machine, claim := range kept {
		if c.Brake.Disputed(machine) {
			c.Recorder.Emit(telemetry.MachineDisputed(claim))
		}
	}
	for _, claim := range gone {
		errs = append(errs, c.remove(ctx, claim))
	}
	return errors.Join(errs...)
}

// check returns the case of a claim whose machine is not in the list. It queries both witnesses: the cloud about that
// one machine, which may have been launched after the list, and the node.
func (c *Collector) check(ctx context.Context, claim *karpv1.NodeClaim) (removal.Case, error) {
	found := removal.Case{
		Machine: claim.Status.ProviderID, Pool: claim.Labels[karpv1.LabelNodePool], Cause: removal.CauseMachineGone, Cloud: removal.Alive,
	}
	machine, err := c.Provider.Machine(ctx, found.Machine)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return found, fmt.Errorf("asking for machine %s: %w", found.Machine, err)
	}
	if err == nil && !machine.Terminating {
		return found, nil
	}
	found.Cloud = removal.Gone
	found.Node, err = c.Brake.MachineLiveness(ctx, found.Machine)
	return found, err
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
		cases = append(cases, removal.Case{Machine: m.ProviderID, Pool: pool, Cause: removal.CauseStray, Cloud: removal.Alive})
	}
	if len(cases) == 0 {
		return errors.Join(errs...)
	}
	verdicts, err := c.Brake.Ask(ctx, cases...)
	errs = append(errs, err)
	held := 0
	for i, verdict := range verdicts {
		if verdict != removal.Remove {
			held++
			continue
		}
		errs = append(errs, c.terminate(ctx, there[i]))
	}
	if held > 0 {
		ctrl.LoggerFrom(ctx).Info("kept machines that belong to no claim: involuntary removals are paused", "machines", held)
	}
	return errors.Join(errs...)
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
	if err := c.Provider.Terminate(ctx, m.ProviderID); err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return fmt.Errorf("terminating leaked machine %s: %w", m.ProviderID, err)
	}
	ctrl.LoggerFrom(ctx).Info("terminated a machine that belongs to no claim", "providerID", m.ProviderID, "nodeClaim",
		m.Claim, "created", m.Created)
	c.Metrics.CloudLeakedMachines.WithLabelValues(c.Provider.Name()).Inc()
	return nil
}
