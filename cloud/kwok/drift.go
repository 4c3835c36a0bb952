package kwok

import (
	"context"
	"fmt"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Drifted implements cloud.DriftDetector. A machine has drifted if the pool names another class than the claim. The
// check is cheap for any number of claims: the class is read from a cache, and the machine is not read. For a class that
// is missing or not ready it returns an error, because drift cannot be determined.
func (p *Provider) Drifted(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (reason string, err error) {
	if claim.Spec.NodeClassRef != pool.Spec.Template.Spec.NodeClassRef {
		return karpv1.ReasonNodePoolDrifted, nil
	}
	if _, err := p.class(ctx, classRef(claim.Spec.NodeClassRef)); err != nil {
		return "", fmt.Errorf("checking whether the machine of claim %q has drifted: %w", claim.Name, err)
	}
	return "", nil
}
