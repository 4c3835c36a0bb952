package census

import (
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
func limitsOf(pods []corev1.Pod) map[string]limited {
	sums := map[string]limited{}
	for i := range pods {
		pod := &pods[i]
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
func (s sending) pods(snap *model.Snapshot, pods []corev1.Pod, waits *telemetry.Waits) {
	for i := range pods {
		pod := &pods[i]
		s.podState(pod, snap.Node(pod.Spec.NodeName))
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

// podState sends a pod with the properties of its node, if it has one.
func (s sending) podState(pod *corev1.Pod, node *model.Node) {
	var labels map[string]string
	managed := false
	if node != nil {
		labels, managed = node.Labels, node.Ours()
	}
	s.send(s.PodState, 1, pod.Name, pod.Namespace, ownerOf(pod), pod.Spec.NodeName, strconv.FormatBool(pod.Spec.NodeName != ""),
		labels[karpv1.LabelNodePool], labels[corev1.LabelTopologyZone], labels[corev1.LabelArchStable], labels[karpv1.LabelCapacityType],
		labels[corev1.LabelInstanceTypeStable], string(pod.Status.Phase), strconv.FormatBool(ready(pod)), strconv.FormatBool(managed))
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
