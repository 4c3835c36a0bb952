package kwok

import (
	"context"
	"fmt"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Ready implements cloud.Provider. A class is ready if it exists, is not being deleted and has Ready=True.
func (p *Provider) Ready(ctx context.Context, ref cloud.ClassRef) error {
	_, err := p.class(ctx, ref)
	return err
}

// class returns a node class that is ready. Errors: cloud.ErrNotFound, *cloud.NodeClassNotReadyError, or an API
// error.
func (p *Provider) class(ctx context.Context, ref cloud.ClassRef) (*kwokv1alpha1.KWOKNodeClass, error) {
	notReady := func(reason, message string) (*kwokv1alpha1.KWOKNodeClass, error) {
		return nil, &cloud.NodeClassNotReadyError{Class: ref, Reason: reason, Message: message}
	}
	if ref.Group != kwokv1alpha1.Group || ref.Kind != kwokv1alpha1.Kind {
		return notReady("NodeClassNotSupported", fmt.Sprintf("it is a %s.%s, want a %s.%s", ref.Kind, ref.Group,
			kwokv1alpha1.Kind, kwokv1alpha1.Group))
	}
	class := &kwokv1alpha1.KWOKNodeClass{}
	err := p.call(ctx, fmt.Sprintf("reading KWOKNodeClass %q", ref.Name), func(ctx context.Context) error {
		return p.opts.Client.Get(ctx, types.NamespacedName{Name: ref.Name}, class)
	})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("KWOKNodeClass %q: %w", ref.Name, cloud.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if class.DeletionTimestamp != nil {
		return notReady(karpv1.ReasonNodeClassTerminating, "it is being deleted")
	}
	at := slices.IndexFunc(class.Status.Conditions, func(c status.Condition) bool { return c.Type == "Ready" })
	if at < 0 {
		return notReady(karpv1.ReasonNodeClassReadinessUnknown, "it has no condition Ready, want Ready=True")
	}
	if c := class.Status.Conditions[at]; c.Status != metav1.ConditionTrue {
		return notReady(c.Reason, fmt.Sprintf("its condition Ready is %s: %s", c.Status, c.Message))
	}
	return class, nil
}
