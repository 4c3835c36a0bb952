package census

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// listing is the longest duration of one read of the cache.
const listing = 5 * time.Second

// Census is a prometheus.Collector. Fill all fields.
type Census struct {
	Objects *telemetry.Objects
	Waits   *telemetry.Waits
	// Snapshot returns the current snapshot.
	Snapshot func() *model.Snapshot
	// Pods yields the pods of the mirror, each valid until the next one.
	Pods iter.Seq[*corev1.Pod]
	// Synced reports whether the mirror is complete.
	Synced func() bool
	// Cache lists the objects of the informers.
	Cache client.Reader
	// Others holds the kinds of node class and those of feature gates, by their names in metrics.
	Others map[string]Kind
	// CostLabel is the key of the label of pods by which the cost is shared too; empty for none.
	CostLabel string
	Clock     clock.PassiveClock
	Log       logr.Logger

	mutex sync.Mutex
	// since is when the mirror was first seen incomplete.
	since time.Time
}

// Describe implements prometheus.Collector.
func (c *Census) Describe(to chan<- *prometheus.Desc) { c.Objects.Describe(to) }

// Collect implements prometheus.Collector.
func (c *Census) Collect(to chan<- prometheus.Metric) {
	s := sending{to: to, now: c.Clock.Now(), Objects: c.Objects}
	synced := c.Synced()
	s.send(c.Objects.UnsyncedTime, c.unsynced(synced, s.now).Seconds())
	if !synced {
		return
	}
	snap := c.Snapshot()
	s.fleet(snap)
	s.bill(snap, c.CostLabel)
	ctx, cancel := context.WithTimeout(context.Background(), listing)
	defer cancel()
	c.conditions(ctx, s)
	c.drains(ctx, s, snap)
	s.nodes(snap)
	s.oldestUnbound(c.Pods)
	if !c.Objects.Detail {
		s.podCounts(snap, c.Pods)
		return
	}
	s.offerings(snap)
	s.nodeDetail(snap, limitsOf(c.Pods))
	s.pods(snap, c.Pods, c.Waits)
}

// unsynced returns how long the mirror has been incomplete.
func (c *Census) unsynced(synced bool, now time.Time) time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case synced:
		c.since = time.Time{}
		return 0
	case c.since.IsZero():
		c.since = now
	}
	return now.Sub(c.since)
}

// Begin starts the measurement of how long the mirror is incomplete. Call it when the process starts.
func (c *Census) Begin() { c.unsynced(false, c.Clock.Now()) }

// conditions sends the conditions of the objects of all kinds.
func (c *Census) conditions(ctx context.Context, s sending) {
	for _, kind := range c.Objects.Kinds() {
		list := c.listOf(kind.Name)
		if list == nil {
			continue
		}
		err := c.Cache.List(ctx, list, client.UnsafeDisableDeepCopy)
		if meta.IsNoMatchError(err) { // the definition of a gated kind may be missing
			continue
		}
		if err != nil {
			c.Log.Error(err, "listing objects for metrics", "kind", kind.Name)
			continue
		}
		s.kind(kind, list)
	}
}

// drains sends for each pool how long its oldest drain has been waiting, also for a pool that does not exist any more. The
// condition of the claim says since when: it is stored, so that it survives a restart, and it is true once the drain has
// ended.
func (c *Census) drains(ctx context.Context, s sending, snap *model.Snapshot) {
	var claims karpv1.NodeClaimList
	if err := c.Cache.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		c.Log.Error(err, "listing claims for metrics")
		return
	}
	oldest := map[string]time.Duration{}
	for _, pool := range snap.Pools {
		oldest[pool.Name] = 0
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if drained := claim.Condition(karpv1.ConditionDrained); drained != nil && !drained.IsTrue() && claim.DeletionTimestamp != nil {
			pool := claim.Labels[karpv1.LabelNodePool]
			oldest[pool] = max(oldest[pool], s.now.Sub(drained.LastTransitionTime.Time))
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(oldest)) {
		s.send(c.Objects.PoolOldestDrain, oldest[pool].Seconds(), pool)
	}
}

// listOf returns an empty list of a kind, or nil for an unknown kind.
func (c *Census) listOf(kind string) client.ObjectList {
	switch kind {
	case kindClaim:
		return &karpv1.NodeClaimList{}
	case kindPool:
		return &karpv1.NodePoolList{}
	case kindNode:
		return &corev1.NodeList{}
	}
	if other, ok := c.Others[kind]; ok {
		return other.List.DeepCopyObject().(client.ObjectList)
	}
	return nil
}

// Kind is an empty object of a kind, and an empty list of them.
type Kind struct {
	Object client.Object
	List   client.ObjectList
}

// sending is one collection.
type sending struct {
	*telemetry.Objects
	to  chan<- prometheus.Metric
	now time.Time
}

func (s sending) send(d *prometheus.Desc, value float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}
