package upkeep

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Profiles deletes unused instance profiles that were created for classes.
type Profiles struct {
	// Client reads classes and claims from the API server, never from a cache: the profile of a claim that was just
	// written must not be deleted.
	Client client.Reader
	// Unused deletes the cluster's profiles that have been unused for long enough, and returns their names
	// (discovery.Profiles.Collect).
	Unused func(ctx context.Context, inUse map[string]bool) ([]string, error)
	// Deleted receives their names. It may be nil.
	Deleted func(names []string)
}

// Collect runs one round. A profile is in use while it is in the status of a class or on a claim that was launched with
// it.
func (p *Profiles) Collect(ctx context.Context) error {
	var classes awsv1.EC2NodeClassList
	if err := p.Client.List(ctx, &classes); err != nil {
		return fmt.Errorf("listing EC2NodeClasses for the instance profiles in use: %w", err)
	}
	var claims karpv1.NodeClaimList
	if err := p.Client.List(ctx, &claims); err != nil {
		return fmt.Errorf("listing NodeClaims for the instance profiles in use: %w", err)
	}
	inUse := map[string]bool{}
	for i := range classes.Items {
		inUse[classes.Items[i].Status.InstanceProfile] = true
	}
	for i := range claims.Items {
		inUse[claims.Items[i].Annotations[awsv1.AnnotationInstanceProfile]] = true
	}
	deleted, err := p.Unused(ctx, inUse)
	if len(deleted) > 0 && p.Deleted != nil {
		p.Deleted(deleted)
	}
	return err
}
