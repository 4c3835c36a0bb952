package main

import (
	"context"
	"time"

	"github.com/aws/smithy-go/middleware"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-go/karpenter/internal/leading"
)

// guardLease makes the guard that refuses writes once the Lease has run out. When another process holds the Lease, this one
// stops leading at once, without waiting for the election to give up.
func (w *wiring) guardLease() {
	w.leading = &leading.Guard{
		Duration: w.o.electionLease,
		Clocks:   leading.Clocks(),
		Lost: func(holder string) {
			w.mgr.GetLogger().Info("another process leads; nothing is written any more", "holder", holder)
			w.o.lost()
		},
	}
}

// guardSDK refuses calls to AWS once the Lease has run out. It refuses reads as well: the answers serve only a leader, and
// EC2's query protocol does not tell the two apart by the HTTP method.
func guardSDK(guard *leading.Guard) func(*middleware.Stack) error {
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

// clockDiffers tells that this machine's clock is off by another amount than before.
func (w *wiring) clockDiffers(ahead time.Duration) {
	if w.metrics != nil {
		w.metrics.ClockAhead.Set(ahead.Seconds())
	}
	ctrl.Log.WithName("clock").Info("the clock differs from the API server's; drains, repairs and leases go by the API server's", "ahead", ahead.String())
}
