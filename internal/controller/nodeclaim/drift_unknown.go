package nodeclaim

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// driftUnknown is the reason why drift of a claim cannot be evaluated.
type driftUnknown struct {
	// cause is the value of the metric's label.
	cause string
	why   error
}

// These are the causes.
const (
	causePool     = telemetry.UnjudgedPoolMissing
	causeClass    = telemetry.UnjudgedClassMissing
	causeCatalog  = telemetry.UnjudgedCatalog
	causeProvider = telemetry.UnjudgedProvider
	causeHash     = telemetry.UnjudgedHash // ends by itself; the controller that writes the hash reports what prevents it
)

// unknownCause is the common problem of claims that cannot be evaluated.
type unknownCause struct{ pool, cause string }

// unknownClaims holds the claims that cannot be evaluated. Many claims can have the same problem. It is reported once,
// for the first of them.
type unknownClaims struct {
	mutex  sync.Mutex
	claims map[string]unknownCause
	counts map[unknownCause]int
}

// set records the problem of a claim (the zero value means none) and publishes the number of claims with its previous
// and with its new problem. It returns the previous problem and the two numbers.
func (u *unknownClaims) set(claim string, now unknownCause, publish func(unknownCause, int)) (before unknownCause, left, have int) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.claims == nil {
		u.claims, u.counts = map[string]unknownCause{}, map[unknownCause]int{}
	}
	none := unknownCause{}
	before = u.claims[claim]
	if before == now {
		return before, u.counts[before], u.counts[now]
	}
	delete(u.claims, claim)
	if before != none {
		u.counts[before]--
		publish(before, u.counts[before])
	}
	if now != none {
		u.claims[claim] = now
		u.counts[now]++
		publish(now, u.counts[now])
	}
	return before, u.counts[before], u.counts[now]
}

// reportUnknown reports why the claim cannot be evaluated, if that is new. Nil means that it can be evaluated.
func (a *DriftReconciler) reportUnknown(ctx context.Context, claim *karpv1.NodeClaim, d *driftUnknown) {
	var now unknownCause
	if d != nil {
		now = unknownCause{pool: claim.Labels[karpv1.LabelNodePool], cause: d.cause}
	}
	before, left, have := a.unknownClaims.set(claim.Name, now, a.publishUnknown)
	if before == now {
		return
	}
	if before != (unknownCause{}) && before.cause != causeHash && left == 0 {
		ctrl.LoggerFrom(ctx).Info("drift of nodeclaims can be determined again", "nodePool", before.pool, "cause", before.cause)
	}
	if d != nil && d.cause == causeHash {
		ctrl.LoggerFrom(ctx).V(1).Info("drift of the nodeclaim can be determined when its hash is renewed", "nodePool",
			now.pool, "cause", d.why.Error())
		return
	}
	if d != nil && have == 1 {
		ctrl.LoggerFrom(ctx).Error(d.why, "cannot determine whether nodeclaims of the pool have drifted", "nodePool",
			now.pool, "cause", now.cause)
		a.Recorder.Emit(telemetry.DisruptionBlocked(claim, "Cannot determine whether it has drifted: "+telemetry.Truncate(d.why.Error())))
	}
}

func (a *DriftReconciler) publishUnknown(t unknownCause, claims int) {
	if claims == 0 {
		a.Metrics.NodeClaimsUnjudged.DeleteLabelValues(t.pool, t.cause)
		return
	}
	a.Metrics.NodeClaimsUnjudged.WithLabelValues(t.pool, t.cause).Set(float64(claims))
}

// catalogCache caches the catalogs by pool, so that a thousand claims of a pool cause one query.
type catalogCache struct {
	mutex sync.Mutex
	pools map[types.UID]*poolCatalog
}

// poolCatalog is the catalog of one pool. Its lock is held during the query of the provider.
type poolCatalog struct {
	mutex      sync.Mutex
	generation int64
	until      time.Time
	types      []cloud.InstanceType
	err        error
}

// types returns the pool's instance types, at most Timers.Catalog old. An error is cached for
// Timers.CatalogRetry.
func (s *catalogCache) types(pool *karpv1.NodePool, now time.Time, timers controller.Timers,
	read func() ([]cloud.InstanceType, error)) ([]cloud.InstanceType, error) {
	s.mutex.Lock()
	if s.pools == nil {
		s.pools = map[types.UID]*poolCatalog{}
	}
	own := s.pools[pool.UID]
	if own == nil {
		own = &poolCatalog{}
		s.pools[pool.UID] = own
	}
	s.mutex.Unlock()
	own.mutex.Lock()
	defer own.mutex.Unlock()
	if own.generation != pool.Generation || !now.Before(own.until) {
		own.types, own.err = read()
		own.generation, own.until = pool.Generation, now.Add(timers.Catalog)
		if own.err != nil {
			own.until = now.Add(timers.CatalogRetry)
		}
	}
	return own.types, own.err
}
