package aws

import (
	"context"
	"fmt"
	"slices"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
)

// AskBeforeRemoval implements cloud.Remover. It is called before the provider runs.
func (p *Provider) AskBeforeRemoval(ask func(ctx context.Context, removal cloud.Removal) (bool, error)) {
	p.ask = ask
}

// asked are the notices that must pass the brake before a claim is deleted: failed status checks, which have no deadline.
// Interruptions and scheduled changes have one. Instances that stop or end are not asked about: DescribeInstances may show
// them running for a while after EC2 has announced it, and only a drain that begins at once helps their pods.
var asked = map[interruption.Kind]bool{interruption.InstanceStatus: true, interruption.SystemStatus: true}

// held is a decision about a claim that may not be removed for now.
func held(d interruption.Decision) interruption.Decision {
	d.Replace, d.Deadline = false, time.Time{}
	d.Events = slices.DeleteFunc(slices.Clone(d.Events), func(e interruption.Event) bool { return e.Reason == "TerminatingOnInterruption" })
	return d
}

// mayRemove reports whether a claim may be deleted for a notice. A refusal is no error: the statuses are polled again, and a
// machine that is really gone is found by the garbage collection.
func (p *Provider) mayRemove(ctx context.Context, claim *karpv1.NodeClaim, kind interruption.Kind) (bool, error) {
	if p.ask == nil || !asked[kind] {
		return true, nil
	}
	may, err := p.ask(ctx, cloud.Removal{Claim: claim, Cause: string(kind)})
	if err != nil {
		return false, fmt.Errorf("asking whether claim %s may be removed: %w", claim.Name, err)
	}
	return may, nil
}
