package kwok

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Launch implements cloud.Provider. The machine exists as soon as its record does. A missing class results in a
// *cloud.NodeClassNotReadyError.
func (p *Provider) Launch(ctx context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	ref := classRef(claim.Spec.NodeClassRef)
	class, err := p.class(ctx, ref)
	if errors.Is(err, cloud.ErrNotFound) {
		err = &cloud.NodeClassNotReadyError{Class: ref, Reason: karpv1.ReasonNodeClassNotFound, Message: "it does not exist"}
	}
	var choice cloud.Choice
	need := cloud.NeedOf(claim)
	var used map[string]int
	if p.reservation != "" && err == nil {
		p.reserving.Lock() // what is left must hold until the record is written
		defer p.reserving.Unlock()
		used, err = p.usedReservations(ctx)
	}
	if err == nil {
		choice, err = p.choose(need, p.typesOf(claim), used)
	}
	if err != nil {
		return p.launchedBefore(ctx, claim, err)
	}
	machine, err := p.start(ctx, p.newRecord(claim, need.MachineLabels(choice), choice, class))
	if err != nil {
		return nil, fmt.Errorf("launching a machine for claim %q: %w", claim.Name, err)
	}
	return machine, nil
}

// launchedBefore returns the claim's machine if an earlier launch created one, otherwise the refusal.
func (p *Provider) launchedBefore(ctx context.Context, claim *karpv1.NodeClaim, refusal error) (*cloud.Machine, error) {
	existing, err := p.record(ctx, machineName(claim.Name, claim.UID))
	switch {
	case apierrors.IsNotFound(err):
		return nil, refusal
	case err != nil:
		return nil, fmt.Errorf("launching a machine for claim %q: %w (after: %w)", claim.Name, err, refusal)
	}
	return existing.of(claim.UID)
}

// typesOf returns the types that the claim may become, with the prices and the capacity that it was planned with.
func (p *Provider) typesOf(claim *karpv1.NodeClaim) []cloud.InstanceType {
	if p.overlay == nil {
		return p.types
	}
	return p.overlay(claim.Labels[karpv1.LabelNodePool], p.types)
}

// choose returns the cheapest offering. used is the number of machines of each reservation.
func (p *Provider) choose(need cloud.Need, types []cloud.InstanceType, used map[string]int) (cloud.Choice, error) {
	for _, c := range need.Choices(types) {
		if o := left(*c.Offering, used, p.opts.Clock.Now()); o.Available && (o.ReservationID == "" || o.ReservationCount > 0) {
			return c, nil
		}
	}
	return cloud.Choice{}, &cloud.InsufficientCapacityError{
		Message: fmt.Sprintf("no offering of the %d instance types meets the claim's requirements and requests", len(p.types)),
	}
}

func (p *Provider) newRecord(claim *karpv1.NodeClaim, labels map[string]string, c cloud.Choice, class *kwokv1alpha1.KWOKNodeClass) *record {
	now := p.opts.Clock.Now().UTC()
	name := machineName(claim.Name, claim.UID)
	hostname := claim.Name
	if len(validation.IsValidLabelValue(hostname)) > 0 {
		hostname = name
	}
	nodeLabels := maps.Clone(claim.Labels)
	if nodeLabels == nil {
		nodeLabels = map[string]string{}
	}
	maps.Copy(nodeLabels, map[string]string{
		corev1.LabelHostname:             hostname,
		fakeNode:                         "fake",
		"kwok-partition":                 "a",
		"eks-node-viewer/instance-price": strconv.FormatFloat(c.Offering.Price, 'f', -1, 64),
	})
	registerAt := now
	if delay := class.Spec.NodeRegistrationDelay; delay != nil {
		registerAt = now.Add(delay.Duration)
	}
	return &record{
		Name: name, Claim: claim.Name, ClaimUID: claim.UID, Launched: now,
		RegisterAt: registerAt,
		Labels:     labels, NodeLabels: nodeLabels,
		Capacity: c.Type.Capacity, Allocatable: c.Type.Allocatable(),
	}
}

// start creates the machine by writing its record, or returns the machine that the claim already has.
func (p *Provider) start(ctx context.Context, r *record) (*cloud.Machine, error) {
	object, err := p.configMap(r)
	if err != nil {
		return nil, err
	}
	err = p.call(ctx, "creating the record of machine "+r.Name, func(ctx context.Context) error {
		return p.opts.Client.Create(ctx, object.DeepCopy())
	})
	if apierrors.IsAlreadyExists(err) {
		existing, err := p.record(ctx, r.Name)
		if err != nil {
			return nil, err
		}
		p.wake(&existing.record)
		return existing.of(r.ClaimUID)
	}
	if err != nil {
		return nil, err
	}
	p.wake(r)
	return r.machine(), nil
}

// wake queues the machine for the time when its Node is due.
func (p *Provider) wake(r *record) {
	if r.Registered {
		return
	}
	p.queue.AddAfter(r.Name, durationUntil(r.RegisterAt, p.opts.Clock.Now()))
}

// of checks that the machine was launched for the claim.
func (s *stored) of(claim types.UID) (*cloud.Machine, error) {
	if s.ClaimUID != claim {
		return nil, fmt.Errorf("machine %s belongs to claim %q with UID %s, want UID %s", s.Name, s.Claim, s.ClaimUID, claim)
	}
	return s.machine(), nil
}

// durationUntil returns the time from now until due, and zero if due has passed.
func durationUntil(due, now time.Time) time.Duration { return max(0, due.Sub(now)) }
