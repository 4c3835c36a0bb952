package provisioner

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// Controllers of two providers may run in the same cluster, and a Provisioner need not name its provider. One of the
// controllers manages it, and releases it in the end:
//
//	its NodePool --none, or not made from it--> its status --empty--> the first controller that writes it
//	     | kind of the node class                    | kind of the node class
//	     v                                           v
//	that kind's provider                       that kind's provider
//
// The kind of a pool's node class is immutable, and a status is only written with an optimistic lock. An
// AWSNodeTemplate belongs to AWS.

// keeper returns the kind of node class to which a source is converted or will be, or an empty string if that is not
// decided.
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

// claim writes the result kind into the status of a Provisioner, before anything is created from it. If another
// controller does so at the same time, the write of one of them fails as stale.
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
