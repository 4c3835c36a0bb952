package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// Drifted implements cloud.DriftDetector. It compares the machine with the result of a launch by the class that the
// pool refers to now, with the pool's kubelet settings. The name of the class, and whether a setting is in the pool or
// the class, do not matter. It returns the first reason that applies, in the order of the list below. The status of a
// class that is not ready may be incomplete. Drift cannot be determined then, which is an error, unless a later reason
// applies in any case (such as a type that is no longer offered where the class has its subnets). A class that is being
// deleted causes no drift, because no replacement could be launched.
func (p *Provider) Drifted(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (reason string, err error) {
	class, err := p.class(ctx, refOf(pool.Spec.Template.Spec.NodeClassRef))
	if err != nil {
		return "", fmt.Errorf("checking whether the machine of claim %q has drifted: %w", claim.Name, err)
	}
	if claim.Status.ProviderID == "" || !class.DeletionTimestamp.IsZero() {
		return "", nil
	}
	if class, err = userdata.WithKubelet(class, pool.Annotations); err != nil {
		return "", fmt.Errorf("checking whether the machine of claim %q has drifted from pool %q: %w", claim.Name, pool.Name, err)
	}
	if p.rebalanceDrift(claim, pool) {
		return awsv1.ReasonRebalanceRecommended, nil
	}
	placement := func(ctx context.Context, class *awsv1.EC2NodeClass, claim *karpv1.NodeClaim) (string, error) {
		return placementDrift(ctx, p.sources.Placements, class, claim)
	}
	var unknown []error
	var unstamped error // it has no information beyond the other errors
	for _, check := range []func(context.Context, *awsv1.EC2NodeClass, *karpv1.NodeClaim) (string, error){p.leftBehind,
		p.hashDrift, p.imageDrift, p.networkDrift, p.reservationDrift, placement} {
		reason, err := check(ctx, class, claim)
		if reason != "" {
			return reason, nil
		}
		if errors.Is(err, cloud.ErrUnstamped) {
			unstamped = err
			continue
		}
		unknown = append(unknown, err)
	}
	if err := errors.Join(unknown...); err != nil {
		return "", err
	}
	return "", unstamped
}

// leftBehind applies if the claim's own class is being deleted and waits for the claim, and the pool refers to another
// class.
func (p *Provider) leftBehind(ctx context.Context, class *awsv1.EC2NodeClass, claim *karpv1.NodeClaim) (string, error) {
	if claim.Spec.NodeClassRef.Name == class.Name {
		return "", nil
	}
	own, err := p.class(ctx, refOf(claim.Spec.NodeClassRef))
	if errors.Is(err, cloud.ErrNotFound) || err == nil && !own.DeletionTimestamp.IsZero() {
		return awsv1.ReasonNodeClassDrift, nil
	}
	return "", err
}

// hashDrift applies if the class or the pool's kubelet settings have changed since the launch. A hash that was computed
// by another version cannot be compared. Until package class has updated the claim's hash, the claim's Drifted
// condition is used if there is one, and drift is unknown otherwise. The hash on the class object does not matter,
// because the class's hash is computed here.
func (p *Provider) hashDrift(_ context.Context, class *awsv1.EC2NodeClass, claim *karpv1.NodeClaim) (string, error) {
	hash, version := claim.Annotations[awsv1.AnnotationNodeClassHash], claim.Annotations[awsv1.AnnotationNodeClassHashVersion]
	comparable := hash != "" && version == awsv1.HashVersion
	known := claim.Condition(karpv1.ConditionDrifted)
	switch {
	case comparable && hash != class.Hash(), !comparable && known.IsTrue() && known.Reason == awsv1.ReasonNodeClassDrift:
		return awsv1.ReasonNodeClassDrift, nil
	case !comparable:
		return "", fmt.Errorf("comparing the class's hash of claim %q, of version %q: %w", claim.Name, version, cloud.ErrUnstamped)
	}
	return "", nil
}

// imageDrift applies if a launch of the same type would use another image now.
func (p *Provider) imageDrift(ctx context.Context, class *awsv1.EC2NodeClass, claim *karpv1.NodeClaim) (string, error) {
	offered, err := p.typesOf(ctx, class)
	if err != nil {
		return "", fmt.Errorf("finding the image that claim %q would get: %w", claim.Name, err)
	}
	name := claim.Labels[corev1.LabelInstanceTypeStable]
	image := offered.typeSet.Image(name)
	if image == "" {
		why := offered.typeSet.Excluded()[name]
		if why == "" {
			why = "is not known"
		}
		return "", fmt.Errorf("finding the image that claim %q would get: its type %q %s", claim.Name, name, why)
	}
	if claim.Status.ImageID != "" && claim.Status.ImageID != image {
		return awsv1.ReasonAMIDrift, nil
	}
	return "", nil
}

// networkDrift applies if the instance has other security groups, or is in a subnet that the class does not have. A
// machine that is gone has not drifted; the garbage collection handles its claim. An instance that EC2 does not show
// yet was just launched according to the class.
func (p *Provider) networkDrift(ctx context.Context, class *awsv1.EC2NodeClass, claim *karpv1.NodeClaim) (string, error) {
	if _, ours := instanceOf(claim.Status.ProviderID); !ours {
		return "", nil
	}
	placement, err := p.launcher.Placement(ctx, claim.Status.ProviderID)
	if errors.Is(err, cloud.ErrNotFound) || errors.Is(err, launch.ErrNotShown) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the network of claim %q: %w", claim.Name, err)
	}
	return misplaced(&class.Status, placement), nil
}

// misplaced returns what differs between an instance's network placement and the class, as a drift reason.
func misplaced(found *awsv1.EC2NodeClassStatus, placement launch.Placement) string {
	var groups []string
	for _, group := range found.SecurityGroups {
		groups = append(groups, group.ID)
	}
	slices.Sort(groups)
	if len(groups) > 0 && !slices.Equal(slices.Compact(groups), slices.Compact(slices.Clone(placement.Groups))) {
		return awsv1.ReasonSecurityGroupDrift
	}
	in := func(subnet awsv1.Subnet) bool { return subnet.ID == placement.Subnet }
	if len(found.Subnets) > 0 && placement.Subnet != "" && !slices.ContainsFunc(found.Subnets, in) {
		return awsv1.ReasonSubnetDrift
	}
	return ""
}
