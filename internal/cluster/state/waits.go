package state

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Waits returns what a pod of the state waits for that is neither on a node nor finished and that snapshots do not
// contain, because it needs no node from this controller; nil for all other pods.
func (s *State) Waits(pod *corev1.Pod) *model.Rejection {
	if pod.Spec.NodeName != "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if convert.NeedsNode(pod, s.vocabulary) && len(s.pods.delayed) == 0 {
		return nil
	}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	if e := s.objects[Pods][key]; e == nil || e.converted.disposition != convert.Ignore {
		return nil
	}
	return s.waits(key, pod)
}

func (s *State) waits(key types.NamespacedName, pod *corev1.Pod) *model.Rejection {
	because := func(field, format string, arguments ...any) *model.Rejection {
		return &model.Rejection{Field: field, Reason: fmt.Sprintf(format, arguments...)}
	}
	ofNode := slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" || o.Kind == "DaemonSet" })
	until, delayed := s.pods.delayed[key]
	nominated := pod.Status.NominatedNodeName
	switch by := pod.Spec.SchedulerName; {
	case delayed:
		return because("", "no node is launched for it before %s", until.UTC().Format(time.RFC3339))
	case pod.DeletionTimestamp != nil:
		return because("metadata.deletionTimestamp", "the pod is being deleted")
	case !ofNode && s.vocabulary.Pods.Expendable(pod):
		return because("", "its priority is below %d (--expendable-pods-priority-cutoff): no node is launched for it",
			*s.vocabulary.Pods.PriorityCutoff)
	case len(pod.Spec.SchedulingGates) > 0:
		return because("spec.schedulingGates", "the pod has scheduling gates: %s", pod.Spec.SchedulingGates[0].Name)
	case nominated != "" && !convert.NominatedByUs(pod):
		if claim := s.unbound(pod); claim != "" {
			return because("status.nominatedNodeName",
				"kube-scheduler has chosen node %s for it and waits for PersistentVolumeClaim %s, which is not bound yet", nominated, claim)
		}
		return because("status.nominatedNodeName",
			"kube-scheduler has chosen node %s for it: preempted pods have to terminate there first, or the pod is being bound", nominated)
	case ofNode:
		return because("metadata.ownerReferences", "the pod belongs to a DaemonSet or to a node: no other node can run it")
	case by != "" && by != corev1.DefaultSchedulerName:
		return because("spec.schedulerName", "scheduler %s has not reported it as unschedulable", by)
	}
	return because("status.conditions[PodScheduled]", "kube-scheduler has not reported it as unschedulable")
}

// unbound returns the name of the pod's first claim that is not bound to a volume; "" for none.
func (s *State) unbound(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		default:
			continue
		}
		at := Ref{VolumeClaims, types.NamespacedName{Namespace: pod.Namespace, Name: name}}
		if claim, _ := s.now(at).(*corev1.PersistentVolumeClaim); claim == nil || claim.Status.Phase != corev1.ClaimBound {
			return name
		}
	}
	return ""
}
