package call

import (
	"context"
	"fmt"
	"iter"
)

// MostPages is the maximum number of pages of a result: a hundred times more than the largest has. A list without an
// end results in an error instead of an endless loop.
const MostPages = 1000

// Paginator is the SDK's interface for calls with paginated results.
type Paginator[Out, Options any] interface {
	HasMorePages() bool
	NextPage(context.Context, ...func(*Options)) (Out, error)
}

// Pages makes a call for each page. It ends at the first error. Errors: *Error.
func Pages[Out, Options any](ctx context.Context, c *Caller, service, operation string, pages Paginator[Out, Options],
	options ...func(*Options)) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		for n := 0; pages.HasMorePages(); n++ {
			if n == MostPages {
				var none Out
				yield(none, Endless(service, operation))
				return
			}
			page, err := Do(ctx, c, service, operation, func(ctx context.Context) (Out, error) { return pages.NextPage(ctx, options...) })
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// Endless returns the error for a result with more than MostPages pages.
func Endless(service, operation string) error {
	return &Error{Service: service, Operation: operation, Kind: Transient,
		Err: fmt.Errorf("the response has more than %d pages", MostPages)}
}
