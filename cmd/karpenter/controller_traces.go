package main

import (
	"context"
	"time"

	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// tracesEnd is how long the end of the process waits for the last traces to be sent.
const tracesEnd = 3 * time.Second

// addTraces sends traces if the environment says where to. What is left at the end is sent before the process ends.
func (w *wiring) addTraces(ctx context.Context) (err error) {
	if w.metrics.Traces, err = telemetry.NewTraces(ctx, release, w.mgr.GetLogger().WithName("traces")); w.metrics.Traces == nil {
		return err
	}
	return w.mgr.Add(everywhere(func(ctx context.Context) error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesEnd)
		defer cancel()
		return w.metrics.Traces.Shutdown(ending)
	}))
}
