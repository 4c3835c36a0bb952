package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

const (
	// expiryFor is how long a list of pools is used.
	expiryFor = 10 * time.Second
	// expiryPause is the minimum time between two lists of pools, for any number of requests.
	expiryPause = time.Second
)

// errPools means that the pools, which have the expiration of claims, cannot be read.
var errPools = errors.New("reading when claims expire")

// expiries holds the expireAfter of the claims of each pool. It lists all pools at once, so that requests with any
// number of pool names, existing or not, cost the API server at most one list per second.
type expiries struct {
	client client.Reader
	now    func() time.Time
	wait   func(context.Context, time.Duration)

	reading sync.Mutex // held while the pools are listed

	lock sync.Mutex
	ages map[string]string // by pool, from the last list
	at   time.Time         // when the last list began
}

// known returns the expireAfter of a pool if the last list is fresh and contains the pool.
func (e *expiries) known(pool string) (string, bool) {
	e.lock.Lock()
	defer e.lock.Unlock()
	age, ok := e.ages[pool]
	return age, ok && e.now().Sub(e.at) < expiryFor
}

// of returns the expireAfter of a pool, or an empty string for a pool that does not exist. A pool that the last list
// does not contain may be newer than the list, so the result comes from a list that began after the call.
func (e *expiries) of(ctx context.Context, pool string) (string, error) {
	asked := e.now()
	if age, ok := e.known(pool); ok {
		return age, nil
	}
	e.reading.Lock()
	defer e.reading.Unlock()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%w: %w", errPools, ctx.Err())
	}
	e.lock.Lock()
	at := e.at
	e.lock.Unlock()
	if at.Before(asked) {
		if pause := expiryPause - asked.Sub(at); pause > 0 {
			e.wait(ctx, pause)
		}
		if err := e.list(ctx); err != nil {
			return "", err
		}
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.ages[pool], nil
}

func (e *expiries) list(ctx context.Context) error {
	at := e.now()
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(karpv1.GroupVersion.WithKind("NodePoolList"))
	if err := e.client.List(ctx, found); err != nil {
		return fmt.Errorf("%w: %w", errPools, err)
	}
	ages := make(map[string]string, len(found.Items))
	for i := range found.Items {
		ages[found.Items[i].GetName()], _, _ = unstructured.NestedString(found.Items[i].Object, "spec", "template", "spec", "expireAfter")
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	e.ages, e.at = ages, at
	return nil
}

// pauseFor waits for d or for the end of the context.
func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
