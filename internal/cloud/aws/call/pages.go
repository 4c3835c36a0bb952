package call

import (
	"context"
	"fmt"
	"iter"
)

// MostPages is how many pages an answer may have: a hundred times more than the largest has, so that an answer without end is
// an error and not a loop without end.
const MostPages = 1000

// Paginator is what the SDK has for calls whose answers come in pages.
type Paginator[Out, Options any] interface {
	HasMorePages() bool
	NextPage(context.Context, ...func(*Options)) (Out, error)
}

// Pages makes a call for each page. An error ends it. Errors: *Error.
func Pages[Out, Options any](ctx context.Context, c *Caller, service, operation string, pages Paginator[Out, Options], options ...func(*Options)) iter.Seq2[Out, error] {
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

// Endless is the error for an answer that has more than MostPages.
func Endless(service, operation string) error {
	return &Error{Service: service, Operation: operation, Kind: Transient, Err: fmt.Errorf("the answer has more than %d pages, and no end", MostPages)}
}
