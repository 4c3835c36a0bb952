package removal

import (
	"context"
	"errors"
	"fmt"
	"sync"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// mostExamined is the number of machines that are examined concurrently.
const mostExamined = 50

// AskFor returns, for each removal, whether it is allowed. It serves a provider that requests the deletion of claims
// because of the state in its cloud (cloud.Remover). All removals are decided together, the first ones take
// precedence. A machine that cannot be examined is kept, and the error contains the reason.
func (l *Limiter) AskFor(ctx context.Context, removals []cloud.Removal) ([]bool, error) {
	cases, errs := make([]*Case, len(removals)), make([]error, len(removals))
	slots := make(chan struct{}, mostExamined)
	var examined sync.WaitGroup
	for i := range removals {
		slots <- struct{}{}
		examined.Go(func() {
			defer func() { <-slots }()
			cases[i], errs[i] = l.examine(ctx, removals[i])
		})
	}
	examined.Wait()
	var asked []Case
	var places []int
	for i, c := range cases {
		if c != nil {
			asked, places = append(asked, *c), append(places, i)
		}
	}
	may := make([]bool, len(removals))
	if len(asked) == 0 {
		return may, errors.Join(errs...)
	}
	answers, err := l.Ask(ctx, asked...)
	for k, is := range answers {
		may[places[k]] = is
	}
	return may, errors.Join(append(errs, err)...)
}

// examine converts a removal to a case, with a direct query of the machine. It returns nil for a machine that is kept
// because its node reports and the cloud does not show it.
func (l *Limiter) examine(ctx context.Context, r cloud.Removal) (*Case, error) {
	id := r.Claim.Status.ProviderID
	machine, err := l.Provider.Machine(ctx, id)
	gone := errors.Is(err, cloud.ErrNotFound) || err == nil && machine.Terminating
	if err != nil && !gone {
		return nil, fmt.Errorf("asking for machine %s: %w", id, err)
	}
	c := &Case{Machine: id, Pool: r.Claim.Labels[karpv1.LabelNodePool], Cause: Cause(r.Cause)}
	if !gone && r.Claim.Status.NodeName == "" {
		return c, nil // no node has joined: the cloud alone says that the machine fails
	}
	reports, err := l.MachineReports(ctx, id)
	if err != nil || gone && reports {
		return nil, err
	}
	c.Gone = !reports
	return c, nil
}
