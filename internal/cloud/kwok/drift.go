package kwok

import (
	"context"
	"fmt"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// ImageDrift is the reason of a machine that runs another image than its class names.
const ImageDrift = "ImageDrift"

// Drifted implements cloud.DriftDetector: the pool names another class than the claim, or the claim's status.imageID is not
// the image that the class names in AnnotationImage. Upstream's machines never drift; neither do these unless somebody
// sets or changes the annotation. Any number of claims may be asked about: the class is read from a cache, and the machine
// not at all. A class that is missing, or not ready, is an error, because nobody can tell.
func (p *Provider) Drifted(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (reason string, err error) {
	if claim.Spec.NodeClassRef != pool.Spec.Template.Spec.NodeClassRef {
		return karpv1.ReasonNodePoolDrifted, nil
	}
	b, err := p.class(ctx, classRef(claim.Spec.NodeClassRef))
	if err != nil {
		return "", fmt.Errorf("asking whether the machine of claim %q has drifted: %w", claim.Name, err)
	}
	if claim.Status.ImageID != b.image {
		return ImageDrift, nil
	}
	return "", nil
}
