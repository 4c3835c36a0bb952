package aws

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
)

// markUnavailable marks an offering as unavailable when EC2 reclaims machines of it.
func (p *Provider) markUnavailable(ctx context.Context, o interruption.Offering) {
	if o.ReservationID != "" {
		p.reserved.SoldOut(o.ReservationID)
		p.refused()
		return
	}
	period := p.interrupted.Count(o.Type, o.Zone, func() bool { return leavesOthers(ctx, p, o) })
	p.unavailable.MarkFor(instance.Offer{CapacityType: o.CapacityType, Type: o.Type, Zone: o.Zone}, period)
	if count := p.interrupted.Avoided(o.Type, o.Zone); count > 0 {
		ctrl.LoggerFrom(ctx).Info("a spot offering is avoided because of repeated interruptions", "instanceType", o.Type, "zone", o.Zone,
			"interruptions", count, "until", p.opts.Clock.Now().Add(period).UTC().Format(time.RFC3339))
	}
	p.refused()
}

// leavesOthers reports whether all pools that use the offering have another one in the zone. So pods that are bound to a
// zone do not wait for longer than after one interruption.
func leavesOthers(ctx context.Context, p *Provider, o interruption.Offering) bool {
	var pools karpv1.NodePoolList
	if err := p.opts.Client.List(ctx, &pools); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "pools cannot be read: an interrupted spot offering is avoided as after one interruption")
		return false
	}
	for i := range pools.Items {
		types, err := p.Catalog(ctx, &pools.Items[i])
		if err != nil {
			continue // nothing is launched for the pool now
		}
		uses, others := false, false
		for _, c := range needOf(&pools.Items[i]).Choices(types) {
			switch {
			case c.Offering.Zone != o.Zone:
			case c.Type.Name == o.Type && c.Offering.CapacityType == o.CapacityType:
				uses = true
			case c.Offering.Available:
				others = true
			}
		}
		if uses && !others {
			return false
		}
	}
	return true
}

// needOf returns what all claims of the pool require.
func needOf(pool *karpv1.NodePool) cloud.Need {
	need := cloud.NeedOf(&karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: pool.Spec.Template.Spec.Requirements}})
	for key, value := range pool.Spec.Template.ObjectMeta.Labels {
		values, restricted := need.Labels[key]
		if !restricted {
			values = cloud.AnyValue()
		}
		need.Labels[key] = values.Narrow("In", []string{value})
	}
	return need
}
