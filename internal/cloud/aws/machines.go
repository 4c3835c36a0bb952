package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// mostChanges is how often a launch is restarted because another client wrote the claim at the same time.
const mostChanges = 5

// Launch implements cloud.Provider.
func (p *Provider) Launch(ctx context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	// 1. Collect the inputs.
	class, err := p.launchable(ctx, claim)
	if err != nil {
		return nil, err
	}
	if class, err = userdata.WithKubelet(class, claim.Annotations); err != nil {
		return nil, &cloud.CreateError{Reason: awsv1.ReasonInvalidKubeletConfiguration, Message: err.Error(), Err: err}
	}
	offered, err := p.typesOf(ctx, class)
	if err != nil {
		return nil, &cloud.CreateError{Reason: "InstanceTypeResolutionFailed", Message: err.Error(), Err: err}
	}
	facts, err := p.sources.Cluster.Facts(ctx)
	if err != nil && facts.Name == "" { // otherwise the last known facts are sufficient
		return nil, err
	}
	// 2. Launch.
	order := p.order(claim, class, offered, facts)
	order.Partition = func(among []int) int {
		return p.partitions.emptiest(context.WithoutCancel(ctx), p.opts.Client, order, among)
	}
	machine, err := p.launchOrder(ctx, order)
	p.refused()
	if err != nil {
		p.launchFailed(claim, class, err)
		return nil, err
	}
	return machine, nil
}

// order returns the launch order for a claim.
func (p *Provider) order(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, offered classTypes, facts discovery.Facts) *launch.Order {
	types := offered.types
	if p.overlay != nil {
		types = p.overlay(claim.Labels[karpv1.LabelNodePool], types)
	}
	return &launch.Order{Claim: claim, Class: class, Types: types, Image: offered.typeSet.Image, Resolved: offered.typeSet.Resolved,
		Cluster:          clusterData(facts),
		Placement:        offered.typeSet.Placement(),
		PodsElsewhere:    facts.CNI.CustomNetworking || facts.CNI.Absent,
		OpenReservations: p.opts.OpenReservations || class.OpenReservations()}
}

// orders returns the launch orders of the pools of a class, one per pool. The class need not be ready: the orders are
// used for dry runs that determine its readiness. Pools with invalid settings are skipped.
func (p *Provider) orders(ctx context.Context, class *awsv1.EC2NodeClass) ([]*launch.Order, error) {
	var pools karpv1.NodePoolList
	if err := p.opts.Client.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing the pools of EC2NodeClass %q: %w", class.Name, err)
	}
	facts, err := p.sources.Cluster.Facts(ctx)
	if err != nil && facts.Name == "" {
		return nil, err
	}
	var orders []*launch.Order
	for i := range pools.Items {
		pool := &pools.Items[i]
		if ref := pool.Spec.Template.Spec.NodeClassRef; ref.Group != awsv1.Group || ref.Kind != awsv1.Kind || ref.Name != class.Name {
			continue
		}
		own, err := userdata.WithKubelet(class, pool.Annotations)
		if err != nil {
			continue // planning for the pool reports the error
		}
		offered, err := p.typesOf(ctx, own)
		if err != nil {
			return nil, err
		}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: pool.Name, Labels: maps.Clone(pool.Spec.Template.ObjectMeta.Labels)},
			Spec: karpv1.NodeClaimSpec{Requirements: pool.Spec.Template.Spec.Requirements, Taints: pool.Spec.Template.Spec.Taints,
				StartupTaints: pool.Spec.Template.Spec.StartupTaints}}
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		claim.Labels[karpv1.LabelNodePool] = pool.Name
		for key, value := range pool.Spec.Template.ObjectMeta.Labels {
			claim.Spec.Requirements = append(slices.Clip(claim.Spec.Requirements),
				karpv1.Requirement{Key: key, Operator: "In", Values: []string{value}})
		}
		orders = append(orders, p.order(claim, own, offered, facts))
	}
	return orders, nil
}

// clusterData returns the cluster facts that user data contains.
func clusterData(facts discovery.Facts) userdata.Cluster {
	return userdata.Cluster{Name: facts.Name, Endpoint: facts.Endpoint, CABundle: facts.CABundle,
		ServiceCIDR: facts.ServiceCIDR, DNS: facts.DNS, IPv6: facts.IPv6}
}

// launchOrder launches a machine for the order. If another client wrote the claim at the same time, possibly another
// process that launches for it too, the claim is read again.
func (p *Provider) launchOrder(ctx context.Context, order *launch.Order) (*cloud.Machine, error) {
	for try := 1; ; try++ {
		machine, err := p.launcher.Launch(ctx, order)
		if try == mostChanges || ctx.Err() != nil || !errors.Is(err, launch.ErrChanged) && !apierrors.IsConflict(err) {
			return machine, err
		}
		ctrl.LoggerFrom(ctx).V(1).Info("launching again: the claim was changed", "nodeClaim", order.Claim.Name, "cause", err.Error())
	}
}

// launchFailed forgets what EC2 has refused because it does not exist, and reports what an operator has to resolve.
func (p *Provider) launchFailed(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, err error) {
	warn := func(reason, message string) {
		p.opts.Observer.Event(claim, interruption.Event{Reason: reason, Warning: true, Message: message})
	}
	var create *cloud.CreateError
	switch {
	case launch.SpreadGroupFull(err):
		warn(awsv1.ReasonSpreadGroupFull, err.Error())
	case !errors.As(err, &create):
	case create.Reason == "InstanceProfileNameInvalid":
		p.sources.Profiles.Forget(class)
	case create.Reason == awsv1.ReasonPlacementGroupNotFound:
		p.sources.Placements.Forget(class)
	case create.Reason == launch.ReasonSpotRole:
		warn(create.Reason, create.Message)
	}
}

// providerID matches the spec.providerID of nodes on EC2. Machines with other provider IDs are not of this provider.
var providerID = regexp.MustCompile(`^aws:///[^/]+/(i-[0-9a-f]+)$`)

// instanceOf returns the instance ID, such as i-0123456789abcdef0, from a provider ID.
func instanceOf(id string) (string, bool) {
	parts := providerID.FindStringSubmatch(id)
	if parts == nil {
		return "", false
	}
	return parts[1], true
}

func notFound(id string) error { return fmt.Errorf("machine %q: %w", id, cloud.ErrNotFound) }

// Terminate implements cloud.Provider.
func (p *Provider) Terminate(ctx context.Context, id string) error {
	if _, ours := instanceOf(id); !ours {
		return notFound(id)
	}
	err := p.launcher.Terminate(ctx, id)
	if errors.Is(err, cloud.ErrNotFound) {
		p.refused() // its reservation has room again
	}
	return err
}

// Machine implements cloud.Provider.
func (p *Provider) Machine(ctx context.Context, id string) (*cloud.Machine, error) {
	if _, ours := instanceOf(id); !ours {
		return nil, notFound(id)
	}
	machine, err := p.launcher.Machine(ctx, id)
	if err != nil {
		return nil, err
	}
	return machine, p.describe(ctx, machine)
}

// Machines implements cloud.Provider. The capacity is omitted if the class or type of a machine is no longer known; the
// machine is listed anyway.
func (p *Provider) Machines(ctx context.Context) ([]cloud.Machine, error) {
	machines, err := p.launcher.Machines(ctx)
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if err := p.describe(ctx, &machines[i]); err != nil {
			return nil, err
		}
	}
	return machines, nil
}

// describe adds labels and capacity from the machine's type. It returns only errors of the context.
func (p *Provider) describe(ctx context.Context, m *cloud.Machine) error {
	class, err := p.class(ctx, cloud.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind, Name: m.Labels[awsv1.LabelNodeClass]})
	if err != nil {
		return ctx.Err()
	}
	offered, err := p.typesOf(ctx, class)
	if err != nil {
		return ctx.Err()
	}
	for i := range offered.types {
		t := &offered.types[i]
		if t.Name != m.Labels[corev1.LabelInstanceTypeStable] {
			continue
		}
		addLabels(m.Labels, t.Requirements)
		m.Capacity, m.Allocatable = t.Capacity, t.Allocatable()
	}
	return nil
}
