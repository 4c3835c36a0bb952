package provision

import (
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// provisioner is the value of the label controller of scheduling metrics.
const provisioner = "provisioner"

// Reporter reports what the loop decides and does: in metrics, in events on pods and pools, in the log, and to the
// controller of CapacityBuffers. It decides nothing. Set the exported fields before the loop starts.
type Reporter struct {
	// Refusal describes in words why pods are unschedulable.
	Refusal func(*model.Snapshot, plan.Refusal) string
	// NoTypes returns the requirement of a pool that excludes all instance types, or "" if there is none.
	NoTypes func(*model.Snapshot, *model.Pool) string
	// Reasons returns the same as Refusal as data for the log. It may be nil: then the log does not contain it.
	Reasons func(*model.Snapshot, plan.Refusal) any
	// Room receives the room of all CapacityBuffers, by UID, and when it was decided. It must not block. It may be nil.
	Room     func(rooms map[string]*room.Room, at time.Time)
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	Log      logr.Logger

	// logged holds the refusals of the last tick as they were logged.
	logged map[string]bool
	// zones counts the pods of the last tick by required zone.
	zones map[string]int
}

// begin exports the duration of the decision in progress. Call the returned function when it ends.
func (r *Reporter) begin(by clock.PassiveClock) (end func()) {
	return r.Metrics.Passes.Begin(provisioner, by)
}

// decided reports a plan before it is executed.
func (r *Reporter) decided(t *pass) {
	for _, o := range execute.Failures(t.pauses) {
		r.Log.Error(o.Err, "recording the outcome of launches on their NodePool")
	}
	r.measure(t)
	if r.Metrics.Traces != nil {
		r.Metrics.Traces.Planned(t.id, t.decided, names(t.plan.AllClaims())...)
	}
	telemetry.LogSlow(r.log(t), t.decided.Sub(t.began))
}

// executed reports the results of a pass.
func (r *Reporter) executed(t *pass) {
	r.undone(t)
	r.pods(t)
	r.created(t)
	r.trace(t)
	r.room(t)
}

// room reports the room of CapacityBuffers.
func (r *Reporter) room(t *pass) {
	if r.Room != nil {
		why := func(snap *model.Snapshot, refusal plan.Refusal) string {
			return telemetry.Truncate(r.Refusal(snap, refusal))
		}
		r.Room(room.Rooms(t.snap, t.plan.Virtual, why), t.snap.Now)
	}
}

// log returns the log with the ID of the pass.
func (r *Reporter) log(t *pass) logr.Logger { return r.Log.WithValues(telemetry.PlanID, t.id) }

func (r *Reporter) measure(t *pass) {
	telemetry.ObserveExample(r.Metrics.SchedulingDuration.WithLabelValues(provisioner), t.decided.Sub(t.began).Seconds(), telemetry.ExemplarPlan, t.id)
	r.Metrics.ClusterStateNodes.Set(float64(len(t.snap.Nodes)))
	r.Metrics.SchedulerIgnoredPods.Set(float64(len(t.snap.Rejected)))
	refused := 0
	for _, refusal := range t.plan.Refused {
		// Pods of other refusals with a rejection are counted as ignored.
		if v := refusal.Verdict; v.Rejection == nil || v.Code == plan.PoolBlocked || v.Code == plan.Paused {
			refused += len(plan.Waiting(refusal.Pods))
		}
	}
	r.Metrics.SchedulerUnschedulablePods.WithLabelValues(provisioner).Set(float64(refused))
	// A pod was first seen when its batch began, which is at most the length of the window too early.
	waited := t.decided.Sub(t.since).Seconds()
	for range t.unseen {
		r.Metrics.PodsSchedulingDecision.Observe(waited)
	}
	queued := 0
	for _, g := range t.snap.Groups {
		queued += len(g.Pods)
	}
	r.Metrics.SchedulerQueueDepth.WithLabelValues(provisioner).Set(float64(queued))
	r.measureZones(pendingByZone(t.snap))
	r.measureWaits(t)
}

// measureZones sets the series of zones in which pods must be placed now, and deletes those of other zones. At no
// moment do series disappear that exist both before and after.
func (r *Reporter) measureZones(counts map[string]int) {
	for zone, n := range counts {
		r.Metrics.SchedulerPendingByZone.WithLabelValues(provisioner, zone).Set(float64(n))
	}
	for zone := range r.zones {
		if _, still := counts[zone]; !still {
			r.Metrics.SchedulerPendingByZone.DeleteLabelValues(provisioner, zone)
		}
	}
	r.zones = counts
}

// measureWaits records since when pods are planned, and drops pods that no longer exist: pods of the plan may be gone
// since its snapshot.
func (r *Reporter) measureWaits(t *pass) {
	for _, pod := range plan.Waiting(t.plan.Order) {
		r.Metrics.Waits.Planned(pod.UID, t.decided)
	}
	r.Metrics.Waits.Keep(func(yield func(string) bool) {
		each := func(pods []*model.Pod) bool {
			return !slices.ContainsFunc(pods, func(pod *model.Pod) bool { return !yield(pod.UID) })
		}
		for _, g := range t.newest.Groups {
			if !each(g.Pods) {
				return
			}
		}
		for _, n := range t.newest.Nodes {
			if !each(n.Pods) {
				return
			}
		}
	})
}

// undone logs the parts of a plan that were not executed.
func (r *Reporter) undone(t *pass) {
	log := r.log(t)
	for _, o := range t.failures() {
		var notNow *execute.NotNowError
		if errors.As(o.Err, &notNow) {
			log.Info("the plan is delayed", "reason", o.Err.Error())
			continue
		}
		log.Error(o.Err, "executing the plan")
	}
	for _, d := range t.done.Dropped {
		log.Info("claim of the plan is no longer valid", "nodeClaim", d.Claim, "nodePool", d.Pool, "code", d.Verdict.Code)
	}
}

// pods emits the events about pods: the target of pods that need no new node, and the reason why others are
// unschedulable. It also emits events about pools from which no node can be launched for any pod.
func (r *Reporter) pods(t *pass) {
	if len(t.done.Plan.Refused) > 0 {
		r.withoutTypes(t.snap)
	}
	for _, placed := range t.done.Plan.Placed {
		claim, node := "", placed.Node
		if n := t.snap.Node(placed.Node); n != nil {
			claim = n.Claim
			if n.Stage < model.Registered {
				node = ""
			}
		}
		for _, pod := range plan.Waiting(placed.Pods) {
			r.Recorder.Emit(telemetry.Nominated(podObject(pod), claim, node))
		}
	}
	r.refused(t)
}

func podObject(pod *model.Pod) *corev1.Pod {
	return telemetry.PodObject(pod.Namespace, pod.Name, pod.UID)
}

// withoutTypes reports pools whose requirements exclude all instance types.
func (r *Reporter) withoutTypes(snap *model.Snapshot) {
	for _, pool := range snap.Pools {
		if why := r.NoTypes(snap, pool); why != "" {
			r.Recorder.Emit(telemetry.NoCompatibleInstanceTypes(telemetry.PoolObject(pool.Name, pool.UID), why))
		}
	}
}

// refused reports why pods are unschedulable: in an event for each pod, and in the log once for all pods with the same
// reason, and not again while it is unchanged.
func (r *Reporter) refused(t *pass) {
	var whys []string
	same := map[string]plan.Refusal{} // its pods are all pods with the reason
	for _, refusal := range t.done.Plan.Refused {
		if refusal.Pods = plan.Waiting(refusal.Pods); len(refusal.Pods) == 0 {
			continue
		}
		why := r.Refusal(t.snap, refusal)
		for _, pod := range refusal.Pods {
			r.Recorder.Emit(telemetry.FailedScheduling(podObject(pod), why))
		}
		if first, known := same[why]; known {
			refusal.Pods = slices.Concat(first.Pods, refusal.Pods)
		} else {
			whys = append(whys, why)
		}
		same[why] = refusal
	}
	before := r.logged
	r.logged = map[string]bool{}
	for _, why := range whys {
		refusal := same[why]
		id := refusal.Pods[0].UID + " " + why
		if r.logged[id] = true; r.Reasons != nil && !before[id] {
			r.log(t).Info("unschedulable pods", "pods", len(refusal.Pods), "pod", refusal.Pods[0].Key(), "reasons", r.Reasons(t.snap, refusal))
		}
	}
}

// created logs each claim that a pass created, and once the durations of the pass, in seconds. The pods are those for
// which the claims were created.
func (r *Reporter) created(t *pass) {
	claims := created(t.done)
	if len(claims) == 0 {
		return
	}
	pods, virtual := 0, 0
	for i := range claims {
		p, v := claims[i].PodCounts()
		pods, virtual = pods+p, virtual+v
	}
	execute.LogCreated(r.log(t), t.done.Outcomes, execute.PodsOf)
	r.log(t).Info("created nodeclaims", "nodeclaims", len(claims), "pods", pods, "virtualPods", virtual,
		"decidedAt", t.decided.UTC().Format(time.RFC3339Nano),
		"batchSeconds", t.began.Sub(t.since).Seconds(), "scheduleSeconds", t.decided.Sub(t.began).Seconds(),
		"createSeconds", t.executed.Sub(t.decided).Seconds())
}
