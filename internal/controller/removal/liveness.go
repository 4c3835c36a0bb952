package removal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// NodeLiveness returns what a node reports about its machine.
func (b *Brake) NodeLiveness(ctx context.Context, node *corev1.Node) (Liveness, error) {
	facts, err := b.nodeFacts(ctx, node)
	if err != nil {
		return Unknown, err
	}
	return facts.Liveness(b.serverTime()), nil
}

// nodeFacts gathers the facts about a node. It reads the Lease only if the node's condition is not conclusive.
func (b *Brake) nodeFacts(ctx context.Context, node *corev1.Node) (NodeFacts, error) {
	facts := NodeFacts{Exists: true}
	if ready := karpv1.ReadyCondition(node); ready != nil {
		facts.Ready = ready.Status
	}
	if facts.Liveness(b.serverTime()) == Alive {
		return facts, nil
	}
	return facts, b.readLease(ctx, node.Name, &facts)
}

// serverTime returns the time on the API server's clock.
func (b *Brake) serverTime() time.Time {
	if b.Ahead == nil {
		return b.Clock.Now()
	}
	return b.Clock.Now().Add(-b.Ahead())
}

// MachineLiveness returns what the nodes of a machine report about it: Alive if one reports.
func (b *Brake) MachineLiveness(ctx context.Context, providerID string) (Liveness, error) {
	nodes, err := b.nodesOf(ctx, providerID)
	if err != nil {
		return Unknown, err
	}
	for i := range nodes {
		said, err := b.NodeLiveness(ctx, &nodes[i])
		if err != nil || said == Alive {
			return said, err
		}
	}
	return Gone, nil
}

func (b *Brake) nodesOf(ctx context.Context, providerID string) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	if err := b.Client.List(ctx, &nodes, client.MatchingFields{controller.FieldNodeProviderID: providerID}); err != nil {
		return nil, fmt.Errorf("listing the nodes of machine %s: %w", providerID, err)
	}
	return nodes.Items, nil
}

// Reports returns whether a node reports.
func (b *Brake) Reports(ctx context.Context, node *corev1.Node) (bool, error) {
	said, err := b.NodeLiveness(ctx, node)
	return said == Alive, err
}

// mostLooks is the number of machines that are examined concurrently.
const mostLooks = 50

// AskFor returns, for each removal, whether it is allowed. It serves a provider that requests the deletion of claims
// because of the state in its cloud (cloud.Remover). All removals are decided together, the first ones take
// precedence. A machine that cannot be examined is kept, and the error contains the reason.
func (b *Brake) AskFor(ctx context.Context, removals []cloud.Removal) ([]bool, error) {
	cases, errs := make([]*Case, len(removals)), make([]error, len(removals))
	slots := make(chan struct{}, mostLooks)
	var looks sync.WaitGroup
	for i := range removals {
		slots <- struct{}{}
		looks.Go(func() {
			defer func() { <-slots }()
			cases[i], errs[i] = b.look(ctx, removals[i])
		})
	}
	looks.Wait()
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
	verdicts, err := b.Ask(ctx, asked...)
	for k, verdict := range verdicts {
		may[places[k]] = verdict == Remove
	}
	return may, errors.Join(append(errs, err)...)
}

// look converts a removal to a case, with a direct query of the machine.
func (b *Brake) look(ctx context.Context, r cloud.Removal) (*Case, error) {
	id := r.Claim.Status.ProviderID
	c := &Case{Machine: id, Pool: r.Claim.Labels[karpv1.LabelNodePool], Cause: Cause(r.Cause), Cloud: Failing}
	machine, err := b.Provider.Machine(ctx, id)
	switch {
	case errors.Is(err, cloud.ErrNotFound) || err == nil && machine.Terminating:
		c.Cloud = Gone
		c.Node, err = b.MachineLiveness(ctx, id)
	case err != nil:
		return nil, fmt.Errorf("asking for machine %s: %w", id, err)
	default:
		c.Node, err = b.failingLiveness(ctx, r.Claim)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// failingLiveness returns what the nodes of a machine that fails the cloud's checks report: Gone if none of them reports.
// A kubelet that reports its node as not ready shows a machine that exists, as the cloud does. A machine whose node has
// not joined yet has no such witness.
func (b *Brake) failingLiveness(ctx context.Context, claim *karpv1.NodeClaim) (Liveness, error) {
	if claim.Status.NodeName == "" {
		return Unknown, nil
	}
	nodes, err := b.nodesOf(ctx, claim.Status.ProviderID)
	if err != nil {
		return Unknown, err
	}
	for i := range nodes {
		silent, err := b.silent(ctx, &nodes[i])
		if err != nil {
			return Unknown, err
		}
		if !silent {
			return Alive, nil
		}
	}
	return Gone, nil
}

// silent reports whether a node does not report. Before it returns true, it reads the node from the API server, so that
// a stale cache does not cause the removal of a node that reports again.
func (b *Brake) silent(ctx context.Context, cached *corev1.Node) (bool, error) {
	if reports, err := b.Reports(ctx, cached); err != nil || reports {
		return false, err
	}
	node := &corev1.Node{}
	if err := b.Live.Get(ctx, client.ObjectKeyFromObject(cached), node); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("reading node %s again: %w", cached.Name, err)
	}
	reports, err := b.Reports(ctx, node)
	return err == nil && !reports, err
}
