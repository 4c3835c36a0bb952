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

// These are the values of the annotation karpenter-go.github.io/removals-paused: whether the count of the NodePool or
// that of all NodePools holds the Brake.
const (
	scopePool  = "nodepool"
	scopeFleet = "fleet"
)

// publish publishes the state of the Brake: metrics, an annotation and an event on each NodePool that it holds, and
// log lines when a pause begins and ends.
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
		}
		b.tell(pool, ruling, scope != "")
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
			ctrl.LoggerFrom(ctx).Info("involuntary removals resume", "nodePool", name)
			continue
		}
		ctrl.LoggerFrom(ctx).Info("involuntary removals are paused", "nodePool", name, "reason", b.why(pool, ruling))
	}
	return errors.Join(errs...)
}

// tell emits the events about a pause. The start of the pause and its causes are part of their keys: a second pause
// is reported however soon it begins, and so is another cause.
func (b *Brake) tell(pool *karpv1.NodePool, ruling Ruling, held bool) {
	began, known := b.paused[pool.Name]
	if !known && !held {
		return
	}
	if !known {
		began = b.Clock.Now().Format(time.RFC3339Nano)
		b.paused[pool.Name] = began
	}
	if !held {
		delete(b.paused, pool.Name)
		b.Recorder.Emit(telemetry.RemovalsResumed(pool, began))
		return
	}
	key := began
	for _, cause := range slices.Sorted(maps.Keys(b.waiting(pool.Name, ruling))) {
		key += " " + string(cause)
	}
	b.Recorder.Emit(telemetry.RemovalsPaused(pool, b.why(pool, ruling), key))
}

// measure sets the metrics: held machines, those in dispute among them, and machines in dispute.
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
		if ruling.Holds(s.Pool) {
			held[s.Pool]++
		}
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

// why describes why the removals of a NodePool are paused, and what ends the pause for each of its causes.
func (b *Brake) why(pool *karpv1.NodePool, ruling Ruling) string {
	count, of, records := ruling.Fleet, "of the fleet", slices.Collect(maps.Values(b.records))
	if own, is := ruling.Pools[pool.Name]; is {
		count, of, records = own, "of the NodePool", []Record{b.records[pool.Name]}
	}
	counts := b.causes(pool.Name, ruling)
	items := []string{fmt.Sprintf("removed: %d", b.removals(records))}
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		items = append(items, fmt.Sprintf("%s: %d", cause, counts[cause]))
	}
	// Strays and removed machines are counted and have no claim.
	text := fmt.Sprintf("Involuntary removals are paused: %d machines %s were removed, are to be removed, or are in dispute, within %s (%s). "+
		"The limit is %d; NodeClaims show %d machines now", count.Wanted, of, b.Timers.RemovalWindow, strings.Join(items, ", "), count.Limit, count.Machines)
	text += b.noPermission(pool)
	if ruling.paces(pool.Name) {
		text += fmt.Sprintf("; of those that fail the cloud's checks %d are replaced every %s", step(count.Machines), b.Timers.RemovalWindow)
	}
	if n, longest := b.unchecked(); n > 0 {
		text += fmt.Sprintf("; %d machines in dispute could not be checked again, for %s at most", n, longest.Truncate(time.Minute))
	}
	return text + b.remedies(pool, b.waiting(pool.Name, ruling))
}

// noPermission describes why the operator's annotation does not allow removals, if it exists and is not in the past.
func (b *Brake) noPermission(pool *karpv1.NodePool) string {
	given := pool.Annotations[karpv1.AnnotationRemovalsAllowedUntil]
	if given == "" {
		return ""
	}
	until, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return fmt.Sprintf("; the annotation %s=%q is not a time", karpv1.AnnotationRemovalsAllowedUntil, given)
	}
	if ahead := until.Sub(b.serverTime()); ahead > longestAllowed {
		return fmt.Sprintf("; the annotation %s=%s is %s ahead: more than %s has no effect", karpv1.AnnotationRemovalsAllowedUntil, given,
			ahead.Truncate(time.Hour), longestAllowed)
	}
	return ""
}

// remedies describes what an operator can do about each cause. The annotation of one NodePool applies neither to
// machines in dispute, which are kept in any case, nor to machines without a NodeClaim.
func (b *Brake) remedies(pool *karpv1.NodePool, counts map[Cause]int) string {
	allow := fmt.Sprintf("--overwrite %s=%s", karpv1.AnnotationRemovalsAllowedUntil,
		b.serverTime().Add(time.Hour).UTC().Truncate(time.Hour).Add(time.Hour).Format(time.RFC3339))
	text := ""
	if counts[CauseMachineGone] > 0 {
		text += ". MachineGone: the cloud does not find the machine, and its node reports; the NodeClaim is kept until both agree. " +
			"If the machine is really gone: kubectl delete nodeclaim NAME (the event MachineDisputed names it)"
	}
	if counts[CauseStray] > 0 {
		text += ". Stray: no NodeClaim shows the machine. To remove these: kubectl annotate nodepools --all " + allow
	}
	if counts[CauseNodeGone] > 0 {
		text += fmt.Sprintf(". NodeGone: the Node object is gone, and the cloud shows the machine. "+
			"If its kubelet runs, it creates the Node again when it restarts. "+
			"To remove these machines: kubectl annotate nodepool %s %s", pool.Name, allow)
	}
	if counts[CauseUnhealthy] > 0 || text == "" {
		text += fmt.Sprintf(". To remove unhealthy machines of the NodePool all the same: kubectl annotate nodepool %s %s", pool.Name, allow)
	}
	return text
}

// causes returns why machines are to be removed, with counts: those of the NodePool if its own count holds the Brake,
// otherwise those of all NodePools.
func (b *Brake) causes(pool string, ruling Ruling) map[Cause]int {
	_, own := ruling.Pools[pool]
	counts := map[Cause]int{}
	for _, cases := range []map[string]sighting{b.wanted, b.disputes} {
		for _, s := range cases {
			if !own || s.Pool == pool {
				counts[s.Cause]++
			}
		}
	}
	return counts
}

// waiting returns the causes of the held removals: those of the NodePool, and strays while the count of all NodePools
// holds them too.
func (b *Brake) waiting(pool string, ruling Ruling) map[Cause]int {
	counts := b.causes(pool, ruling)
	for _, s := range b.wanted {
		if _, known := counts[CauseStray]; !known && s.Cause == CauseStray && ruling.Holds(s.Pool) {
			counts[CauseStray] = 1
		}
	}
	return counts
}

// removals returns the number of removals within the window.
func (b *Brake) removals(records []Record) int {
	total := 0
	for _, record := range records {
		total += record.within(b.serverTime(), b.Timers.RemovalWindow)
	}
	return total
}

// unchecked returns how many machines in dispute have not been checked for a window, because a witness could not be
// queried, and the longest time since a check.
func (b *Brake) unchecked() (n int, longest time.Duration) {
	now := b.Clock.Now()
	for _, s := range b.disputes {
		if age := now.Sub(s.last); age >= b.Timers.RemovalWindow {
			n, longest = n+1, max(longest, age)
		}
	}
	return n, longest
}
