package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// converted is the state of a pod in the builder.
type converted struct {
	uid, version string
	disposition  convert.Disposition
	nominated    bool
	leaving      bool
	// daemon is the shape that the pod is counted in among the pods of its DaemonSet, nil for other pods.
	daemon *convert.DaemonShape
	// workload is that which the pod counts for, "" for none. known says that it needs no virtual pod (replicas.go).
	workload types.UID
	known    bool
	// controller is that whose new pods the pod counts for, "" for none (created.go).
	controller types.UID
	// delayed is set while it is too early to launch a node for the pod.
	delayed delay
}

// delay is the time from which a node may be launched for a pod, and the timer that converts the pod again then.
type delay struct {
	until time.Time
	timer *time.Timer
}

// current reports whether the builder has the current state of the pod. Deletion is compared separately, because this
// controller's own deletion has no version.
func (t *converted) current(pod *corev1.Pod) bool {
	return pod.ResourceVersion != "" && t.version == pod.ResourceVersion && t.uid == string(pod.UID) &&
		t.leaving == (pod.DeletionTimestamp != nil)
}

func (s *Store) applyPod(key types.NamespacedName, e *entry) {
	if pod, _ := e.now().(*corev1.Pod); pod == nil || !e.converted.current(pod) {
		depended := s.syncPod(key, e, false)
		s.reconvertSharers(key, append(depended, s.dependencies.dependsOn[key]...))
	}
}

// syncPod updates a pod in the builder. again says that the pod itself is unchanged, but an object that it depends on
// changed. It returns what the pod depended on before.
func (s *Store) syncPod(key types.NamespacedName, e *entry, again bool) []ref {
	before := e.converted
	e.converted = converted{}
	defer func() {
		e.converted.daemon = s.countDaemonPod(key.Namespace, before.daemon, e)
		s.countReplica(key, before, e)
	}()
	var spec model.PodSpec
	var depends []ref
	if pod, _ := e.now().(*corev1.Pod); pod != nil {
		spec, e.converted.disposition, depends = s.convertPod(pod)
		if e.converted.disposition == convert.Pending {
			e.converted.delayed = s.delay(key, pod, before.delayed)
		}
		if e.converted.delayed.timer != nil {
			e.converted.disposition = convert.Ignore
		}
		e.converted.uid, e.converted.version = string(pod.UID), pod.ResourceVersion
		e.converted.nominated, e.converted.leaving = spec.Nominated != "", pod.DeletionTimestamp != nil
	}
	if t := before.delayed.timer; t != nil && t != e.converted.delayed.timer {
		t.Stop()
	}
	s.reportDeparture(before, e)
	if before.disposition != convert.Ignore && (e.converted.disposition == convert.Ignore || before.uid != e.converted.uid) {
		s.builder.DeletePod(before.uid)
	}
	siblings := s.noteCreation(key, before, e, &spec)
	if e.converted.disposition != convert.Ignore {
		s.builder.UpsertPod(spec)
	}
	s.recordRejection(key, spec.Rejected, e.converted.disposition)
	change := podChange(before, e.converted)
	if again && e.converted.disposition == convert.Pending {
		change |= PodsPending
	}
	s.notify(change)
	depended := s.dependencies.update(key, depends)
	for _, sibling := range siblings {
		s.syncPod(sibling, s.objects[pods][sibling], false)
	}
	return depended
}

// reportDeparture reports a pod that was on a node and has ended, or is being preempted.
func (s *Store) reportDeparture(before converted, e *entry) {
	pod, _ := e.now().(*corev1.Pod)
	if s.departed == nil || pod == nil || before.disposition != convert.Bound || before.uid != string(pod.UID) {
		return
	}
	if d, gone := convert.Departed(pod, time.Now()); gone {
		s.departed(d)
	}
}

// recordRejection records a pending pod that is rejected; a pod that opted out is not recorded.
func (s *Store) recordRejection(key types.NamespacedName, why *model.Rejection, disposition convert.Disposition) {
	if disposition != convert.Pending || why == nil || why.Silent {
		s.rejected.remove(objectKey{pods.String(), key.String()})
		return
	}
	s.rejected.add(RejectedObject{Kind: pods.String(), Name: key.String(), Why: *why})
}

// podChange returns the change that subscribers see when the state of a pod changes.
func podChange(before, after converted) Change {
	same := before.uid == after.uid
	var change Change
	if after.disposition == convert.Pending &&
		(!same || before.disposition != convert.Pending || before.nominated && !after.nominated) {
		change |= PodsPending
	}
	if before.disposition != after.disposition && (before.disposition == convert.Bound || after.disposition == convert.Bound) ||
		after.disposition == convert.Bound && (!same || before.leaving != after.leaving) {
		change |= PodsMoved
	}
	return change
}

// delay returns the delay of a pod for which it is too early to launch a node, else the zero value. A timer that is set for
// the same time is kept.
func (s *Store) delay(key types.NamespacedName, pod *corev1.Pod, before delay) delay {
	until := s.vocabulary.Pods.PlannedFrom(pod)
	wait := time.Until(until)
	switch {
	case until.IsZero() || wait <= 0:
		return delay{}
	case before.timer != nil && before.until.Equal(until):
		return before
	}
	return delay{until, time.AfterFunc(wait, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if e := s.objects[pods][key]; e != nil && e.converted.delayed.until.Equal(until) {
			s.syncPod(key, e, false)
		}
	})}
}
