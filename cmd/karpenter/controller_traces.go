package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// tracesEnd is how long the end of the process waits for the last traces to be sent.
const tracesEnd = 3 * time.Second

// addTraces sends traces if the environment says where to. What is left at the end is sent before the process ends.
func (w *wiring) addTraces(ctx context.Context) (err error) {
	log := w.mgr.GetLogger().WithName("traces")
	if w.metrics.Traces, err = telemetry.NewTraces(ctx, release, log, exporter); w.metrics.Traces == nil {
		return err
	}
	return w.mgr.Add(everywhere(func(ctx context.Context) error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesEnd)
		defer cancel()
		return w.metrics.Traces.Shutdown(ending)
	}))
}

func exporter(ctx context.Context, url string) (sdktrace.SpanExporter, error) {
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url))
}
