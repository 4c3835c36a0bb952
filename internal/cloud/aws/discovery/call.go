package discovery

import (
	"context"
	"iter"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// Aliases for the types of package call.
type (
	Kind      = call.Kind
	CallError = call.Error
	Call      = call.Call
	Caller    = call.Caller
)

// The kinds of errors.
const (
	Throttled = call.Throttled
	Transient = call.Transient
	NotFound  = call.NotFound
	Denied    = call.Denied
	Rejected  = call.Rejected
)

// KindOf is call.KindOf.
func KindOf(err error) Kind { return call.KindOf(err) }

// Pages is call.Pages.
func Pages[Out, Options any](ctx context.Context, c *Caller, service, operation string,
	pages call.Paginator[Out, Options]) iter.Seq2[Out, error] {
	return call.Pages(ctx, c, service, operation, pages)
}

// Do is call.Do.
func Do[Out any](ctx context.Context, c *Caller, service, operation string, send func(context.Context) (Out, error)) (Out, error) {
	return call.Do(ctx, c, service, operation, send)
}
