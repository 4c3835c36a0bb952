package kwok

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxAttempts is how often one request is sent to the API server before the error is returned.
const maxAttempts = 4

// call executes one request with its own timeout, and repeats it after a wait if the server was too busy or could not
// be reached. doing describes the request, for the error. A request that took effect although its response was lost is
// repeated too, so do must be safe to repeat: a create may return AlreadyExists because of its own first attempt.
func (p *Provider) call(ctx context.Context, doing string, do func(context.Context) error) error {
	wait := p.opts.RetryBackoff
	for attempt := 1; ; attempt++ {
		err := p.once(ctx, do)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w (%w)", doing, ctx.Err(), err)
		}
		if attempt == maxAttempts || !worthRepeating(err) {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if err := p.pause(ctx, wait); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		wait *= 2
	}
}

func (p *Provider) once(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.opts.APITimeout)
	defer cancel()
	return do(ctx)
}

// pageSize is the number of objects that are read at a time: as they are stored, those of a large cluster are many bytes.
const pageSize = 500

// pages reads all objects of a list page by page, and calls use for each.
func (p *Provider) pages(ctx context.Context, doing string, page client.ObjectList, use func(), options ...client.ListOption) error {
	for next := ""; ; {
		err := p.call(ctx, doing, func(ctx context.Context) error {
			return p.opts.Reader.List(ctx, page, append(options, client.Limit(pageSize), client.Continue(next))...)
		})
		if err != nil {
			return err
		}
		use()
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

func worthRepeating(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		errors.Is(err, context.DeadlineExceeded)
}

// pause waits for d or until ctx ends, and returns the error of ctx.
func (p *Provider) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := p.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
