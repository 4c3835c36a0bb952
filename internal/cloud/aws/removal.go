package aws

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
)

// AskBeforeRemoval implements cloud.Remover. It must be called before the provider runs.
func (p *Provider) AskBeforeRemoval(ask func(ctx context.Context, removals []cloud.Removal) ([]bool, error)) {
	p.ask = ask
}

// mayReplace returns, by instance, which of the claims whose machines fail status checks may be replaced now. Claims
// without an entry could not be decided. Claims with a scheduled event without a time are also subject to this limit.
// No others are: interruptions and other scheduled events have a deadline. Instances that stop or terminate are exempt
// as well: DescribeInstances may show them as running for a while after EC2 has announced it, and only an immediate
// drain helps their pods. A refusal is not an error: the statuses are polled again, and the garbage collection finds a
// machine that is really gone.
func (p *Provider) mayReplace(ctx context.Context, failing []interruption.Decision) (map[string]bool, error) {
	may := map[string]bool{}
	var errs []error
	var removals []cloud.Removal
	var instances []string
	for _, d := range failing {
		claim := &karpv1.NodeClaim{}
		err := p.opts.Client.Get(ctx, client.ObjectKey{Name: d.Claim.Name}, claim)
		if apierrors.IsNotFound(err) || err == nil && string(claim.UID) != d.Claim.UID {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading claim %s: %w", d.Claim.Name, err))
			continue
		}
		may[d.Instance] = p.ask == nil
		removals, instances = append(removals, cloud.Removal{Claim: claim, Cause: string(d.Kind)}), append(instances, d.Instance)
	}
	if p.ask == nil || len(removals) == 0 {
		return may, errors.Join(errs...)
	}
	answers, err := p.ask(ctx, removals)
	for i, answer := range answers {
		may[instances[i]] = answer
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("checking whether claims of failing instances may be removed: %w", err))
	}
	return may, errors.Join(errs...)
}
