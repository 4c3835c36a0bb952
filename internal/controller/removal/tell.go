package removal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Values of the annotation karpenter-go.github.io/removals-paused: what the brake holds for, the count of the NodePool or
// that of the fleet.
const (
	scopePool  = "nodepool"
	scopeFleet = "fleet"
)

// publish shows the state of the brake: metrics, an annotation and an event on each NodePool that it holds, and log lines
// when it begins and ends to hold.
func (b *Brake) publish(ctx context.Context, pools *fleet, ruling Ruling) error {
	b.measure(pools, ruling)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(pools.byName)) {
		pool, scope := pools.byName[name], ""
		if ruling.Holds(name) {
			scope = scopeFleet
			if _, own := ruling.Pools[name]; own {
				scope = scopePool
			}
			b.Recorder.Emit(telemetry.RemovalsPaused(pool, b.why(pool, ruling)))
		}
		if b.shown[name] == scope && pool.Annotations[karpv1.AnnotationRemovalsPaused] == scope {
			continue
		}
		if err := client.IgnoreNotFound(b.annotate(ctx, pool, karpv1.AnnotationRemovalsPaused, scope)); err != nil {
			errs = append(errs, err)
			continue
		}
		if b.shown[name] == scope {
			continue // the NodePool was edited, or the cache is older than the last write
		}
		b.shown[name] = scope
		if scope == "" {
			ctrl.LoggerFrom(ctx).Info("involuntary removals go on", "nodePool", name)
			b.Recorder.Emit(telemetry.RemovalsResumed(pool))
			continue
		}
		ctrl.LoggerFrom(ctx).Info("involuntary removals are paused", "nodePool", name, "reason", b.why(pool, ruling))
	}
	return errors.Join(errs...)
}

// measure sets the metrics: machines that are held, and machines in dispute.
func (b *Brake) measure(pools *fleet, ruling Ruling) {
	held, disputed := map[string]int{"": 0}, map[string]int{}
	for name := range pools.byName {
		held[name], disputed[name] = 0, 0
	}
	for _, s := range b.wanted {
		if ruling.Holds(s.Pool) {
			held[s.Pool]++
		}
	}
	for _, s := range b.disputes {
		disputed[s.Pool]++
	}
	b.Metrics.NodeClaimsRemovalsPaused.Reset()
	b.Metrics.NodeClaimsDisputed.Reset()
	for name, n := range held {
		b.Metrics.NodeClaimsRemovalsPaused.WithLabelValues(name).Set(float64(n))
	}
	for name, n := range disputed {
		b.Metrics.NodeClaimsDisputed.WithLabelValues(name).Set(float64(n))
	}
}

// why says why the removals of a NodePool are paused, and how to allow them.
func (b *Brake) why(pool *karpv1.NodePool, ruling Ruling) string {
	count, of := ruling.Fleet, "of the fleet"
	if own, is := ruling.Pools[pool.Name]; is {
		count, of = own, "of the NodePool"
	}
	// Strays, and machines that have been removed, are among those that are wanted and have no claim.
	text := fmt.Sprintf("%d machines %s were to be removed within %s without being asked for (%s), and NodeClaims show %d now; "+
		"more than %d are not removed while their nodes or the cloud call them alive",
		count.Wanted, of, b.Timers.RemovalWindow, b.causes(), count.Machines, count.Limit)
	if given := pool.Annotations[karpv1.AnnotationRemovalsAllowedUntil]; given != "" && allowedUntil(pool).IsZero() {
		text += fmt.Sprintf("; the annotation %s=%q is no time", karpv1.AnnotationRemovalsAllowedUntil, given)
	}
	if ruling.paces(pool.Name) {
		text += fmt.Sprintf("; of those that fail the cloud's checks %d are replaced every %s", step(count.Machines), b.Timers.RemovalWindow)
	}
	if n, longest := b.unchecked(); n > 0 {
		text += fmt.Sprintf("; %d machines in dispute could not be checked again, for %s at most", n, longest.Truncate(time.Minute))
	}
	return text + fmt.Sprintf(". To remove them all the same: kubectl annotate nodepool %s --overwrite %s=%s",
		pool.Name, karpv1.AnnotationRemovalsAllowedUntil, b.serverTime().Add(time.Hour).UTC().Truncate(time.Hour).Add(time.Hour).Format(time.RFC3339))
}

// causes lists why machines were to be removed, with numbers.
func (b *Brake) causes() string {
	counts := map[Cause]int{}
	for _, s := range b.wanted {
		counts[s.Cause]++
	}
	for _, s := range b.disputes {
		counts[s.Cause]++
	}
	items := []string{fmt.Sprintf("removed: %d", b.removals())}
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		items = append(items, fmt.Sprintf("%s: %d", cause, counts[cause]))
	}
	return strings.Join(items, ", ")
}

// removals is the number of removals within the window.
func (b *Brake) removals() int {
	total := 0
	for _, record := range b.records {
		total += record.within(b.serverTime(), b.Timers.RemovalWindow)
	}
	return total
}

// unchecked is how many machines in dispute have not been checked for a window, because a witness could not be asked, and the
// longest time for which that is so.
func (b *Brake) unchecked() (n int, longest time.Duration) {
	now := b.Clock.Now()
	for _, s := range b.disputes {
		if age := now.Sub(s.last); age >= b.Timers.RemovalWindow {
			n, longest = n+1, max(longest, age)
		}
	}
	return n, longest
}
