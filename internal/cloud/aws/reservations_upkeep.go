package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
)

// reservationsEvery is the interval at which the machines in reservations are examined.
const reservationsEvery = time.Minute

// reasonReservationLost is the reason of an event that upstream does not have.
const reasonReservationLost = "ReservationLost"

// lostFor is how long EC2 must say that a machine is not in its reservation: its answers may be old.
const lostFor = reservationsEvery / 2

// reservedUpkeep examines machines in reservations.
type reservedUpkeep struct {
	*Provider
	// lost holds since when claims are seen without their reservation.
	lost map[types.UID]time.Time
}

// rounds returns the loop that examines the machines in reservations.
func (p *reservedUpkeep) rounds(log logr.Logger) *upkeep.Rounds {
	return &upkeep.Rounds{List: []upkeep.Round{{Name: "capacity reservations", Period: reservationsEvery, Do: p.examineReserved}},
		Clock: p.opts.Clock, Failed: logChanges(log, "examining machines in capacity reservations; it is tried again",
			"machines in capacity reservations are examined again")}
}

// logChanges returns a function for the failures of a round that logs one until another one or a success follows.
func logChanges(log logr.Logger, failing, again string) func(string, error) {
	failure := ""
	return func(_ string, err error) {
		switch now := "code " + call.CodeOf(err); {
		case err == nil:
			failure = ""
			log.Info(again)
		case failure != now:
			failure = now
			log.Error(err, failing)
		}
	}
}

// examineReserved drains machines of capacity blocks that expire, and makes machines on-demand whose reservation has
// ended.
func (p *reservedUpkeep) examineReserved(ctx context.Context) error {
	var all karpv1.NodeClaimList
	if err := p.opts.Client.List(ctx, &all, client.MatchingLabels{karpv1.LabelCapacityType: karpv1.CapacityTypeReserved}); err != nil {
		return fmt.Errorf("listing the claims in reservations: %w", err)
	}
	var blocks []string
	claims := all.Items[:0]
	for _, claim := range all.Items {
		if _, ours := instanceOf(claim.Status.ProviderID); !ours || claim.DeletionTimestamp != nil || !p.opts.Selection.Admits(claim.Labels) {
			continue
		}
		claims = append(claims, claim)
		if claim.Labels[awsv1.LabelCapacityReservationType] == awsv1.ReservationTypeCapacityBlock {
			blocks = append(blocks, claim.Labels[awsv1.LabelCapacityReservationID])
		}
	}
	if len(claims) == 0 {
		p.lost = nil
		return nil
	}
	return errors.Join(p.leaveBlocks(ctx, claims, blocks), p.demoteLost(ctx, claims))
}

// demoteLost makes the claims on-demand whose machines have been without a reservation for a while.
func (p *reservedUpkeep) demoteLost(ctx context.Context, claims []karpv1.NodeClaim) error {
	machines, err := p.launcher.Machines(ctx)
	if err != nil {
		return err
	}
	left := map[string]bool{} // by provider ID
	for i := range machines {
		left[machines[i].ProviderID] = machines[i].Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeOnDemand && !machines[i].Terminating
	}
	var failed []error
	now, lost := p.opts.Clock.Now(), map[types.UID]time.Time{}
	for i := range claims {
		claim := &claims[i]
		if !left[claim.Status.ProviderID] {
			continue
		}
		since, known := p.lost[claim.UID]
		if !known {
			since = now
		}
		lost[claim.UID] = since
		if now.Sub(since) >= lostFor {
			failed = append(failed, p.demote(ctx, claim))
		}
	}
	p.lost = lost
	return errors.Join(failed...)
}

// leaveBlocks deletes the claims on capacity blocks that expire. Their drain ends when EC2 reclaims the machines. The
// blocks are read by ID, because no class may select them any more.
func (p *reservedUpkeep) leaveBlocks(ctx context.Context, claims []karpv1.NodeClaim, blocks []string) error {
	found, err := p.sources.Reservations.ByID(ctx, blocks)
	failed, rules := []error{err}, interruption.Rules{Now: p.opts.Clock.Now()}
	for i := range found.List {
		block := &found.List[i]
		if block.State != awsv1.ReservationExpiring {
			continue
		}
		notice := interruption.Notice{Kind: interruption.BlockExpiring, At: block.ReclaimedAt()}
		for j := range claims {
			if claims[j].Labels[awsv1.LabelCapacityReservationID] != block.ID {
				continue
			}
			id, _ := instanceOf(claims[j].Status.ProviderID)
			failed = append(failed, p.act(ctx, interruption.Decide(notice, id, noticed(&claims[j]), rules)))
		}
	}
	return errors.Join(failed...)
}

// demote makes a claim and its node on-demand: the claim last, so that it is repeated after a failure.
func (p *reservedUpkeep) demote(ctx context.Context, claim *karpv1.NodeClaim) error {
	id := claim.Labels[awsv1.LabelCapacityReservationID]
	objects := []client.Object{claim}
	if claim.Status.NodeName != "" {
		node := &corev1.Node{}
		err := p.opts.Client.Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the node of claim %q: %w", claim.Name, err)
		}
		if err == nil {
			objects = []client.Object{node, claim} // the claim is what is listed again
		}
	}
	for _, object := range objects {
		base := object.DeepCopyObject().(client.Object)
		labels := object.GetLabels()
		labels[karpv1.LabelCapacityType] = karpv1.CapacityTypeOnDemand
		for _, key := range []string{awsv1.LabelCapacityReservationID, awsv1.LabelCapacityReservationType,
			awsv1.LabelCapacityReservationInterruptible} {
			delete(labels, key)
		}
		if err := p.opts.Client.Patch(ctx, object, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("making %s on-demand: %w", object.GetName(), err)
		}
	}
	p.announce(ctx, claim, []interruption.Event{{Reason: reasonReservationLost, Warning: true,
		Message: "The machine is no longer in capacity reservation " + id + " and is billed on demand"}})
	return nil
}

// reservationDrift applies if the machine is in an active reservation that the class does not select, according to EC2 as
// well. A machine whose reservation has ended runs on and becomes on-demand.
func (p *Provider) reservationDrift(ctx context.Context, class *awsv1.EC2NodeClass, claim *karpv1.NodeClaim) (string, error) {
	id := claim.Labels[awsv1.LabelCapacityReservationID]
	listed := func(r awsv1.CapacityReservation) bool { return r.ID == id }
	if id == "" || p.opts.OpenReservations || claim.Labels[karpv1.LabelCapacityType] != karpv1.CapacityTypeReserved ||
		slices.ContainsFunc(class.Status.CapacityReservations, listed) || readiness(class) != nil {
		return "", nil
	}
	found, err := p.sources.Reservations.Fresh(ctx, class)
	if err != nil {
		return "", fmt.Errorf("reading the reservation of claim %q: %w", claim.Name, err)
	}
	for i := range found.List {
		if found.List[i].ID == id {
			return "", nil
		}
	}
	if active, err := p.isIn(ctx, claim, id); err != nil || !active {
		return "", err
	}
	return awsv1.ReasonCapacityReservationDrift, nil
}

// isIn reports whether the machine of a claim is in the reservation, and the reservation is active.
func (p *Provider) isIn(ctx context.Context, claim *karpv1.NodeClaim, id string) (bool, error) {
	active, err := p.sources.Reservations.ByID(ctx, []string{id})
	if err != nil || len(active.List) == 0 {
		return false, err
	}
	machine, err := p.launcher.Machine(ctx, claim.Status.ProviderID)
	if errors.Is(err, cloud.ErrNotFound) || errors.Is(err, launch.ErrNotShown) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the reservation of claim %q: %w", claim.Name, err)
	}
	return machine.Labels[awsv1.LabelCapacityReservationID] == id, nil
}
