package kwok

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// LabelReservation is the label of nodes for the ID of the capacity reservation that they use.
const LabelReservation = kwokv1alpha1.Group + "/reservation-id"

// ReservationKey returns LabelReservation if any of the types has a reservation, "" if none has.
func ReservationKey(types []cloud.InstanceType) string {
	if slices.ContainsFunc(types, func(t cloud.InstanceType) bool {
		return slices.ContainsFunc(t.Offerings, func(o cloud.Offering) bool { return o.ReservationID != "" })
	}) {
		return LabelReservation
	}
	return ""
}

// usedReservations returns how many machines use each reservation; nil if the types have none.
func (p *Provider) usedReservations(ctx context.Context) (map[string]int, error) {
	if p.reservation == "" {
		return nil, nil
	}
	machines, err := p.Machines(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]int{}
	for _, m := range machines {
		if id := m.Labels[LabelReservation]; id != "" {
			used[id]++
		}
	}
	return used, nil
}

// left returns the offering as it is at that time: with the machines that its reservation still has room for.
func left(o cloud.Offering, used map[string]int, now time.Time) cloud.Offering {
	if o.ReservationID == "" {
		return o
	}
	o.ReservationCount = max(0, o.ReservationCount-used[o.ReservationID])
	if !o.ReservationEnd.IsZero() && !now.Before(o.ReservationEnd) {
		o.ReservationCount, o.Available = 0, false
	}
	return o
}

// WithUse returns the types with what is left of their reservations, of which machines use so many.
func WithUse(types []cloud.InstanceType, used map[string]int, now time.Time) []cloud.InstanceType {
	types = slices.Clone(types)
	for i := range types {
		t := &types[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			t.Offerings[j] = left(t.Offerings[j], used, now)
		}
	}
	return types
}

// endCheck is the pause between two checks whether a reservation has ended.
const endCheck = 30 * time.Second

// followReservations makes machines on-demand when their reservations end, until the context ends.
func (p *Provider) followReservations(ctx context.Context) {
	for p.pause(ctx, endCheck) == nil {
		if err := p.endReservations(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "making the machines of a reservation that has ended on-demand; it is tried again")
		}
	}
}

// endReservations makes the machines of reservations that have ended on-demand.
func (p *Provider) endReservations(ctx context.Context) error {
	ended := map[string]bool{}
	for _, t := range p.types {
		for _, o := range t.Offerings {
			if o.ReservationID != "" && !o.ReservationEnd.IsZero() && !p.opts.Clock.Now().Before(o.ReservationEnd) {
				ended[o.ReservationID] = true
			}
		}
	}
	if len(ended) == 0 {
		return nil
	}
	objects, err := p.recordObjects(ctx)
	errs := []error{err}
	for i := range objects {
		if s, err := parse(&objects[i]); err == nil && ended[s.Labels[LabelReservation]] {
			errs = append(errs, p.makeOnDemand(ctx, s))
		}
	}
	return errors.Join(errs...)
}

// makeOnDemand changes the labels of the claim, of the Node and of the record: the record last, so that it is repeated after
// a crash.
func (p *Provider) makeOnDemand(ctx context.Context, s *stored) error {
	unlock, err := p.lock(ctx, s.Name)
	if err != nil {
		return err
	}
	defer unlock()
	claim, node := &karpv1.NodeClaim{}, &corev1.Node{}
	claim.Name, node.Name = s.Claim, s.Name
	for _, object := range []client.Object{claim, node} {
		err := p.call(ctx, "relabeling "+object.GetName(), func(ctx context.Context) error {
			if err := p.opts.Reader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			before := object.DeepCopyObject().(client.Object)
			labels := object.GetLabels()
			if labels[LabelReservation] == "" || object == claim && claim.UID != s.ClaimUID {
				return nil
			}
			onDemand(labels)
			return p.opts.Client.Patch(ctx, object, client.MergeFrom(before))
		})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	onDemand(s.Labels)
	if s.NodeLabels[LabelReservation] != "" {
		onDemand(s.NodeLabels)
	}
	return p.save(ctx, s)
}

func onDemand(labels map[string]string) {
	labels[karpv1.LabelCapacityType] = karpv1.CapacityTypeOnDemand
	delete(labels, LabelReservation)
}
