package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// told is the state of a pod in the builder.
type told struct {
	uid, version string
	disposition  convert.Disposition
	nominated    bool
	leaving      bool
	// daemon is the shape that the pod is counted in among the pods of its DaemonSet, nil for other pods.
	daemon *convert.DaemonShape
}

// knows reports whether the builder has the current state of the pod. Deletion is compared separately, because this
// controller's own deletion has no version.
func (t *told) knows(pod *corev1.Pod) bool {
	return pod.ResourceVersion != "" && t.version == pod.ResourceVersion && t.uid == string(pod.UID) &&
		t.leaving == (pod.DeletionTimestamp != nil)
}

func (s *Store) applyPod(key types.NamespacedName, e *entry) {
	if pod, _ := e.now().(*corev1.Pod); pod == nil || !e.told.knows(pod) {
		depended := s.tellPod(key, e, false)
		s.others(key, append(depended, s.around.by[key]...))
	}
}

// tellPod updates a pod in the builder. again says that the pod itself is unchanged, but an object that it depends on
// changed. It returns what the pod depended on before.
func (s *Store) tellPod(key types.NamespacedName, e *entry, again bool) []ref {
	before := e.told
	e.told = told{}
	defer func() { e.told.daemon = s.countDaemonPod(key.Namespace, before.daemon, e) }()
	var spec model.PodSpec
	var depends []ref
	if pod, _ := e.now().(*corev1.Pod); pod != nil {
		spec, e.told.disposition, depends = s.convertPod(pod)
		e.told.uid, e.told.version = string(pod.UID), pod.ResourceVersion
		e.told.nominated, e.told.leaving = spec.Nominated != "", pod.DeletionTimestamp != nil
	}
	s.tellDeparture(before, e)
	if before.disposition != convert.Ignore && (e.told.disposition == convert.Ignore || before.uid != e.told.uid) {
		s.builder.DeletePod(before.uid)
	}
	if e.told.disposition != convert.Ignore {
		s.builder.UpsertPod(spec)
	}
	s.podAside(key, spec.Rejected, e.told.disposition)
	change := podChange(before, e.told)
	if again && e.told.disposition == convert.Pending {
		change |= PodsPending
	}
	s.wake(change)
	return s.around.depend(key, depends)
}

// tellDeparture reports a pod that was on a node and has ended, or is being preempted.
func (s *Store) tellDeparture(before told, e *entry) {
	pod, _ := e.now().(*corev1.Pod)
	if s.departed == nil || pod == nil || before.disposition != convert.Bound || before.uid != string(pod.UID) {
		return
	}
	if d, gone := convert.Departed(pod, time.Now()); gone {
		s.departed(d)
	}
}

// podAside records a pending pod that is rejected; a pod that opted out is not recorded.
func (s *Store) podAside(key types.NamespacedName, why *model.Rejection, disposition convert.Disposition) {
	if disposition != convert.Pending || why == nil || why.Silent {
		s.aside.take(asideKey{pods.String(), key.String()})
		return
	}
	s.aside.put(SetAside{Kind: pods.String(), Name: key.String(), Why: *why})
}

// podChange returns the change that subscribers see when the state of a pod changes.
func podChange(before, after told) Change {
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
