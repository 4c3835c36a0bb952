package removal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// report sets the metrics, and reports the pauses that make removals wait: an event on each NodePool, and a log line when
// that begins and ends. The state is read again if it could not be written.
func (l *Limiter) report(ctx context.Context, f *fleet, unwritten bool) error {
	if unwritten {
		var err error
		if f, err = l.fleet(ctx); err != nil {
			return err
		}
	}
	waiting := l.waiting(f)
	l.measure(f, waiting)
	if l.paused == nil {
		l.paused = map[string]time.Time{}
	}
	for _, name := range slices.Sorted(maps.Keys(f.pools)) {
		pool, p := f.pools[name], f.pauseOf(name)
		causes := maps.Clone(waiting[name])
		if strays := waiting[""]; len(strays) > 0 && f.pauses[pause.Fleet].Active(f.now) {
			causes = with(causes, strays)
		}
		ended, known := l.paused[name]
		switch {
		case p.Active(f.now) && len(causes) > 0:
			l.paused[name] = p.Until
			l.Recorder.Emit(telemetry.RemovalsPaused(pool, f.text(pool, p, causes), keyOf(p, causes)))
			if !known {
				ctrl.LoggerFrom(ctx).Info("involuntary removals are paused", "nodePool", name, "reason", p.String())
			}
		case known && !p.Active(f.now):
			delete(l.paused, name)
			l.Recorder.Emit(telemetry.RemovalsResumed(pool, ended.Format(time.RFC3339)))
			ctrl.LoggerFrom(ctx).Info("involuntary removals resume", "nodePool", name)
		}
	}
	return nil
}

// pauseOf returns the pause that removals of the NodePool's machines wait for: its own, or that of the fleet.
func (f *fleet) pauseOf(pool string) pause.Pause {
	switch own := f.pauses[pool]; {
	case f.allowed(pool):
		return pause.Pause{}
	case own.Active(f.now):
		return own
	}
	return f.pauses[pause.Fleet]
}

// waiting returns how many machines of each NodePool are not removed, by cause: those whose removal waits, and those in
// dispute.
func (l *Limiter) waiting(f *fleet) map[string]map[Cause]int {
	waiting := map[string]map[Cause]int{}
	for _, a := range l.recent {
		if !a.may {
			pool := f.known(a.Pool)
			waiting[pool] = with(waiting[pool], map[Cause]int{a.Cause: 1})
		}
	}
	for _, c := range l.disputed {
		pool := f.known(c.Pool)
		waiting[pool] = with(waiting[pool], map[Cause]int{c.Cause: 1})
	}
	return waiting
}

// with adds the numbers of b to a.
func with(a, b map[Cause]int) map[Cause]int {
	if a == nil {
		a = map[Cause]int{}
	}
	for cause, n := range b {
		a[cause] += n
	}
	return a
}

// measure sets the metrics: machines whose removal waits for a pause, and machines in dispute.
func (l *Limiter) measure(f *fleet, waiting map[string]map[Cause]int) {
	l.Metrics.NodeClaimsRemovalsPaused.Reset()
	l.Metrics.NodeClaimsDisputed.Reset()
	for _, pool := range append(slices.Collect(maps.Keys(f.pools)), "") {
		held := 0
		for _, n := range waiting[pool] {
			held += n
		}
		if !f.pauseOf(pool).Active(f.now) {
			held = 0
		}
		l.Metrics.NodeClaimsRemovalsPaused.WithLabelValues(pool).Set(float64(held))
		l.Metrics.NodeClaimsDisputed.WithLabelValues(pool).Set(float64(waiting[pool][CauseMachineGone]))
	}
}

// keyOf returns the key of the event about a pause: a second pause is reported however soon it begins, and so is another
// cause.
func keyOf(p pause.Pause, causes map[Cause]int) string {
	key := p.Until.Format(time.RFC3339)
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		key += " " + string(cause)
	}
	return key
}

// text describes the pause, which machines wait for it, and what an operator can do about each cause.
func (f *fleet) text(pool *karpv1.NodePool, p pause.Pause, causes map[Cause]int) string {
	var items []string
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		items = append(items, fmt.Sprintf("%s: %d", cause, causes[cause]))
	}
	return p.String() + ". Machines that wait: " + strings.Join(items, ", ") + f.noPermission(pool) + f.remedies(pool, causes)
}

// noPermission describes why the operator's annotation does not allow removals, if it exists and is not in the past.
func (f *fleet) noPermission(pool *karpv1.NodePool) string {
	given := pool.Annotations[karpv1.AnnotationRemovalsAllowedUntil]
	if given == "" {
		return ""
	}
	until, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return fmt.Sprintf("; the annotation %s=%q is not a time", karpv1.AnnotationRemovalsAllowedUntil, given)
	}
	if ahead := until.Sub(f.now); ahead > longestAllowed {
		return fmt.Sprintf("; the annotation %s=%s is %s ahead: more than %s has no effect", karpv1.AnnotationRemovalsAllowedUntil, given,
			ahead.Truncate(time.Hour), longestAllowed)
	}
	return ""
}

// remedies describes what an operator can do about each cause. The annotation of one NodePool applies neither to
// machines in dispute, which are kept in any case, nor to machines without a NodeClaim.
func (f *fleet) remedies(pool *karpv1.NodePool, causes map[Cause]int) string {
	allow := fmt.Sprintf("--overwrite %s=%s", karpv1.AnnotationRemovalsAllowedUntil,
		f.now.Add(time.Hour).UTC().Truncate(time.Hour).Add(time.Hour).Format(time.RFC3339))
	text, known := "", 0
	if causes[CauseMachineGone] > 0 {
		known++
		text += ". MachineGone: the cloud does not show the machine, and its node reports; the NodeClaim is kept until both agree. " +
			"If the machine is really gone: kubectl delete nodeclaim NAME (the event MachineDisputed names it)"
	}
	if causes[CauseStray] > 0 {
		known++
		text += ". Stray: no NodeClaim shows the machine. To remove these at once: kubectl annotate nodepools --all " + allow
	}
	if causes[CauseNodeGone] > 0 {
		known++
		text += fmt.Sprintf(". NodeGone: the Node object is gone, and the cloud shows the machine. "+
			"If its kubelet runs, it creates the Node again when it restarts. "+
			"To remove these machines at once: kubectl annotate nodepool %s %s", pool.Name, allow)
	}
	if len(causes) > known {
		text += fmt.Sprintf(". To remove unhealthy machines of the NodePool at once: kubectl annotate nodepool %s %s", pool.Name, allow)
	}
	return text
}
