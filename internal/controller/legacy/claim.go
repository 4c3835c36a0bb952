package legacy

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// Controllers of two providers may run side by side, and a Provisioner need not say which of them it is for. One of them keeps
// it, and lets go of it in the end:
//
//	its NodePool --none, or not made from it--> its status --says nothing--> whoever writes it first
//	     | kind of the node class                    | kind of the node class
//	     v                                           v
//	that kind's provider                       that kind's provider
//
// The kind of a pool's node class cannot be changed, and a status is written only as it was read. An AWSNodeTemplate is AWS's.

// keeper is the kind of node class that a source has become, or is about to; empty if that is not decided.
func (v *view) keeper(s *source) string {
	provisioner, isProvisioner := s.Object.(*karpv1alpha5.Provisioner)
	if !isProvisioner {
		return awsv1.Kind
	}
	for i := range v.pools {
		if pool := &v.pools[i]; pool.Name == s.GetName() && s.made(pool) {
			return pool.Spec.Template.Spec.NodeClassRef.Kind
		}
	}
	kind, _, _ := strings.Cut(provisioner.Status.NodeClass, "/")
	return kind
}

// claim writes into the status of a Provisioner what it becomes, before anything is made of it: if another controller does so
// at the same time, one of them is told that what it read is out of date.
func (r *Reconciler) claim(ctx context.Context, s *source) error {
	p, isProvisioner := s.Object.(*karpv1alpha5.Provisioner)
	if !isProvisioner || strings.HasPrefix(p.Status.NodeClass, r.class()+"/") {
		return nil
	}
	base := p.DeepCopy()
	name(p, s.result)
	if err := r.Client.Status().Patch(ctx, p, controller.Locked(base), client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("claiming %s: %w", s.name(), err)
	}
	return nil
}
