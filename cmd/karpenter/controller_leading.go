package main

import (
	"context"
	"time"

	"github.com/aws/smithy-go/middleware"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-go/karpenter/internal/transport"
)

// guardLease creates the guard that rejects writes once the Lease has expired. If another process holds the Lease,
// this process stops leading at once, before the leader election gives up.
func (w *wiring) guardLease() {
	w.leading = &transport.Guard{
		Duration: w.o.electionLease,
		Clocks:   transport.Clocks(),
		Lost: func(holder string) {
			w.mgr.GetLogger().Info("another process leads; nothing is written", "holder", holder)
			w.process.endLead()
		},
	}
}

// guardSDK rejects calls to AWS once the Lease has expired. It rejects reads as well: only a leader uses the
// responses, and in EC2's query protocol the HTTP method does not distinguish reads from writes.
func guardSDK(guard *transport.Guard) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("KarpenterLease",
			func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
				if err := guard.Check(); err != nil {
					return middleware.DeserializeOutput{}, middleware.Metadata{}, err
				}
				return next.HandleDeserialize(ctx, in)
			}), middleware.After)
	}
}

// clockDiffers reports that the clock of this machine differs by another amount than before.
func (w *wiring) clockDiffers(ahead time.Duration) {
	if w.metrics != nil {
		w.metrics.ClockAhead.Set(ahead.Seconds())
	}
	ctrl.Log.WithName("clock").Info("the clock differs from the API server's; drains, repairs and leases go by the API server's", "ahead", ahead.String())
}
