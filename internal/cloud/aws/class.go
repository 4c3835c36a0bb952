package aws

import (
	"context"
	"errors"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// Ready implements cloud.Provider. A class is ready if it exists, is not being deleted, and has Ready=True for its
// current generation.
func (p *Provider) Ready(ctx context.Context, ref cloud.ClassRef) error {
	class, err := p.class(ctx, ref)
	if err != nil {
		return err
	}
	if found := readiness(class); found != nil {
		return found
	}
	return nil
}

// ExamineClass examines a class, which may be nil, without AWS and the cluster. It returns why no machine can be launched
// with the class, in the words of its conditions.
func ExamineClass(of *awsv1.EC2NodeClass) string {
	if of == nil {
		return ""
	}
	return class.Unlaunchable(of)
}

// class reads a node class. Errors: cloud.ErrNotFound, *cloud.NodeClassNotReadyError for a class of another kind, or an
// API error.
func (p *Provider) class(ctx context.Context, ref cloud.ClassRef) (*awsv1.EC2NodeClass, error) {
	if ref.Group != awsv1.Group || ref.Kind != awsv1.Kind {
		return nil, &cloud.NodeClassNotReadyError{Class: ref, Reason: "NodeClassNotSupported",
			Message: fmt.Sprintf("it is a %s.%s, want a %s.%s", ref.Kind, ref.Group, awsv1.Kind, awsv1.Group)}
	}
	class := &awsv1.EC2NodeClass{}
	err := p.opts.Client.Get(ctx, types.NamespacedName{Name: ref.Name}, class)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("EC2NodeClass %q: %w", ref.Name, cloud.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading EC2NodeClass %q: %w", ref.Name, err)
	}
	return class, nil
}

// refOf returns the reference to the node class of a claim or of a pool's template.
func refOf(ref karpv1.NodeClassReference) cloud.ClassRef {
	return cloud.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
}

// readiness returns why nothing can be launched with the class, or nil if it is ready.
func readiness(class *awsv1.EC2NodeClass) *cloud.NodeClassNotReadyError {
	found := &cloud.NodeClassNotReadyError{Class: cloud.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind, Name: class.Name}}
	ready := class.Condition(status.ConditionReady)
	switch {
	case class.DeletionTimestamp != nil:
		found.Reason, found.Message = karpv1.ReasonNodeClassTerminating, "it is being deleted"
	case ready == nil || ready.IsUnknown() || ready.ObservedGeneration != class.Generation:
		found.Reason, found.Message = karpv1.ReasonNodeClassReadinessUnknown, "it has not been checked yet"
		if ready != nil && ready.Message != "" {
			found.Message = "it is not known yet whether it is: " + ready.Message
		}
	case ready.IsFalse():
		found.Reason, found.Message = ready.Reason, "its condition Ready is False: "+ready.Message
	default:
		return nil
	}
	return found
}

// unresolved returns why the instance types of a class without subnets or images in its status are unknown.
func unresolved(class *awsv1.EC2NodeClass) *cloud.NodeClassNotReadyError {
	if found := readiness(class); found != nil {
		return found
	}
	return &cloud.NodeClassNotReadyError{Class: cloud.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind, Name: class.Name},
		Reason: awsv1.ReasonDependenciesNotReady, Message: "none of its subnets or none of its images is known"}
}

// launchable reads the node class of a claim that is to be launched. A class that does not exist is reported as not
// ready, so that the claim is deleted. A class that has not been reconciled yet results in an error that is retried.
func (p *Provider) launchable(ctx context.Context, claim *karpv1.NodeClaim) (*awsv1.EC2NodeClass, error) {
	ref := refOf(claim.Spec.NodeClassRef)
	class, err := p.class(ctx, ref)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, &cloud.NodeClassNotReadyError{Class: ref, Reason: karpv1.ReasonNodeClassNotFound, Message: "it does not exist"}
	}
	if err != nil {
		return nil, err
	}
	found := readiness(class)
	switch {
	case found == nil:
		return class, nil
	case found.Reason == karpv1.ReasonNodeClassReadinessUnknown:
		return nil, &cloud.CreateError{Reason: found.Reason, Message: found.Error(), Err: found}
	}
	return nil, found
}

// typesOf returns the current instance types and offerings of a class. If the subnets or images of the class are
// unknown, it returns a *cloud.NodeClassNotReadyError.
func (p *Provider) typesOf(ctx context.Context, class *awsv1.EC2NodeClass) (classTypes, error) {
	if len(class.Status.Subnets) == 0 || len(class.Status.AMIs) == 0 {
		return classTypes{}, unresolved(class)
	}
	facts, err := p.sources.Cluster.Facts(ctx)
	if err != nil && facts.Name == "" {
		return classTypes{}, err
	}
	group, err := p.placementOf(ctx, class)
	if err != nil {
		return classTypes{}, err
	}
	p.recount(ctx, class)
	return p.catalogs.typesFor(class, facts.IPv6, group)
}

// evaluate returns why an expression of the class has no valid result for one of its types, and "" if all have.
func (p *Provider) evaluate(ctx context.Context, class *awsv1.EC2NodeClass) (failure string, err error) {
	offered, err := p.typesOf(ctx, class)
	if err != nil {
		return "", err
	}
	return offered.typeSet.Failure(), nil
}

// excludesAll returns a *cloud.NoTypesError if the class has no instance type.
func excludesAll(class string, typeSet *instance.TypeSet) error {
	if why := typeSet.Emptiness(); why != "" {
		return &cloud.NoTypesError{Class: cloud.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind, Name: class}, Message: why}
	}
	return nil
}

// Catalog implements cloud.Provider. The contents of the types are shared and must not be modified.
func (p *Provider) Catalog(ctx context.Context, pool *karpv1.NodePool) ([]cloud.InstanceType, error) {
	class, err := p.class(ctx, refOf(pool.Spec.Template.Spec.NodeClassRef))
	if err != nil {
		return nil, fmt.Errorf("listing the instance types of pool %q: %w", pool.Name, err)
	}
	if class, err = userdata.WithKubelet(class, pool.Annotations); err != nil {
		return nil, fmt.Errorf("listing the instance types of pool %q: %w", pool.Name, err)
	}
	offered, err := p.typesOf(ctx, class)
	if err != nil {
		return nil, fmt.Errorf("listing the instance types of pool %q: %w", pool.Name, err)
	}
	if found := excludesAll(class.Name, offered.typeSet); found != nil {
		return nil, found
	}
	return ForTenancyOf(pool, offered.types), nil
}
