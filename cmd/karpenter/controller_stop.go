package main

import (
	"context"
	"errors"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/transport"
)

// stopping is a log sink that writes errors caused by the end of the context as plain lines: calls that it canceled,
// and the Lease that is released. It does the same for writes that are rejected because the Lease has expired, which
// end with the process.
type stopping struct {
	logr.LogSink
	ctx context.Context
}

// leaseGivenBack is the text of controller-runtime's error (pkg/manager/internal.go).
const leaseGivenBack = "leader election lost"

// calmStop returns a log that reports no errors for being stopped.
func calmStop(ctx context.Context, log logr.Logger) logr.Logger {
	return log.WithSink(stopping{log.GetSink(), ctx})
}

// Error implements logr.LogSink.
func (s stopping) Error(err error, message string, pairs ...any) {
	var expired *transport.ExpiredError
	pairs = pairs[:len(pairs):len(pairs)]
	switch stopped := s.ctx.Err() != nil && err != nil; {
	case stopped && err.Error() == leaseGivenBack:
		s.Info(0, "the Lease is released, because the controller stops", pairs...)
	case stopped && errors.Is(err, context.Canceled):
		s.Info(0, "interrupted, because the controller stops", append(pairs, "during", message, "cause", err.Error())...)
	case errors.As(err, &expired):
		s.Info(0, message, append(pairs, "cause", err.Error())...)
	default:
		s.LogSink.Error(err, message, pairs...)
	}
}

// WithValues implements logr.LogSink.
func (s stopping) WithValues(pairs ...any) logr.LogSink {
	return stopping{s.LogSink.WithValues(pairs...), s.ctx}
}

// WithName implements logr.LogSink.
func (s stopping) WithName(name string) logr.LogSink {
	return stopping{s.LogSink.WithName(name), s.ctx}
}
