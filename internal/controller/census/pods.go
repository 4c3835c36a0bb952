package census

import (
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// limited holds the limits of a node's pods, by resource, in cores, bytes or units.
type limited struct{ all, daemons map[string]float64 }

// limitsOf returns the sums of the limits of pods by node. Init containers count if they run as sidecars. Amounts are
// approximate and only used for metrics.
func limitsOf(pods iter.Seq[*corev1.Pod]) map[string]limited {
	sums := map[string]limited{}
	for pod := range pods {
		if pod.Spec.NodeName == "" || karpv1.EndedPod(pod) {
			continue
		}
		sum, known := sums[pod.Spec.NodeName]
		if !known {
			sum = limited{map[string]float64{}, map[string]float64{}}
			sums[pod.Spec.NodeName] = sum
		}
		daemon := karpv1.DaemonPod(pod)
		add := func(c *corev1.Container) {
			for name, q := range c.Resources.Limits {
				sum.all[string(name)] += q.AsApproximateFloat64()
				if daemon {
					sum.daemons[string(name)] += q.AsApproximateFloat64()
				}
			}
		}
		for c := range pod.Spec.Containers {
			add(&pod.Spec.Containers[c])
		}
		for c := range pod.Spec.InitContainers {
			if p := pod.Spec.InitContainers[c].RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
				add(&pod.Spec.InitContainers[c])
			}
		}
	}
	return sums
}

// pods sends the state of each pod.
func (s sending) pods(snap *model.Snapshot, pods iter.Seq[*corev1.Pod], waits *telemetry.Waits) {
	for pod := range pods {
		state := stateOf(pod, snap.Node(pod.Spec.NodeName))
		s.send(s.PodState, 1, state[:]...)
		if karpv1.EndedPod(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		bound, started := pod.Spec.NodeName != "", pod.Status.Phase == corev1.PodRunning
		planned, isPlanned := waits.Since(string(pod.UID))
		for _, wait := range []struct {
			over  bool
			since time.Time
			known bool
			desc  *prometheus.Desc
		}{
			{bound, pod.CreationTimestamp.Time, true, s.PodUnbound},
			{started, pod.CreationTimestamp.Time, true, s.PodUnstarted},
			{bound, planned, isPlanned, s.PodProvisioningUnbound},
			{started, planned, isPlanned, s.PodProvisioningUnstarted},
		} {
			if !wait.over && wait.known {
				s.send(wait.desc, s.now.Sub(wait.since).Seconds(), pod.Name, pod.Namespace)
			}
		}
	}
}

// oldestUnbound sends for how long the oldest pod without a node has existed. A pod with a scheduling gate is not meant to
// have a node yet.
func (s sending) oldestUnbound(pods iter.Seq[*corev1.Pod]) {
	var oldest time.Duration
	for pod := range pods {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && !karpv1.EndedPod(pod) {
			oldest = max(oldest, s.now.Sub(pod.CreationTimestamp.Time))
		}
	}
	s.send(s.PodOldestUnbound, oldest.Seconds())
}

// podCounts sends the numbers of pods in the same state. What names one pod or node is empty: those numbers would be as
// many as there are pods.
func (s sending) podCounts(snap *model.Snapshot, pods iter.Seq[*corev1.Pod]) {
	counts := map[podState]int{}
	for pod := range pods {
		state := stateOf(pod, snap.Node(pod.Spec.NodeName))
		state[0], state[2], state[3] = "", "", "" // name, owner, node
		counts[state]++
	}
	for state, n := range counts {
		s.send(s.PodState, float64(n), state[:]...)
	}
}

// podState holds the values of telemetry.PodStateLabels.
type podState [len(telemetry.PodStateLabels)]string

// stateOf returns the state of a pod, with the properties of its node, if it has one.
func stateOf(pod *corev1.Pod, node *model.Node) podState {
	var labels map[string]string
	managed := false
	if node != nil {
		labels, managed = node.Labels, node.Ours()
	}
	return podState{pod.Name, pod.Namespace, ownerOf(pod), pod.Spec.NodeName, strconv.FormatBool(pod.Spec.NodeName != ""),
		labels[karpv1.LabelNodePool], labels[corev1.LabelTopologyZone], labels[corev1.LabelArchStable], labels[karpv1.LabelCapacityType],
		labels[corev1.LabelInstanceTypeStable], string(pod.Status.Phase), strconv.FormatBool(ready(pod)), strconv.FormatBool(managed)}
}

// ownerOf returns the API path of the pod's controller.
func ownerOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return ""
	}
	return "/apis/" + owner.APIVersion + "/namespaces/" + pod.Namespace + "/" + strings.ToLower(owner.Kind) + "s/" + owner.Name
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
