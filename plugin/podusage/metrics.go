// Package podusage is what pods use, as the API metrics.k8s.io says (https://kubernetes.io/docs/reference/external-api/metrics.v1beta1),
// and the requests that fit it.
//
//	PodMetrics (a cluster or files) --> Usage --+--> CPU and memory of a pod, beside its requests
//	                                            +--> RightSize: pods with the requests of their workload's usage
//
// The API says what pods used in the last seconds, and nothing of the time before: what follows from it holds for that
// moment.
//
// The package must not know prices, plans, or how the objects are read.
package podusage

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the metrics API.
var GroupVersion = schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}

// Resource is the resource that lists PodMetrics: its name is not the plural of the kind.
var Resource = GroupVersion.WithResource("pods")

// PodMetrics is what the containers of a pod use.
type PodMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Timestamp is the end of the Window over which CPU was measured.
	Timestamp  metav1.Time        `json:"timestamp"`
	Window     metav1.Duration    `json:"window"`
	Containers []ContainerMetrics `json:"containers"`
}

// ContainerMetrics is what a container uses: CPU on average over the window, memory at its end.
type ContainerMetrics struct {
	Name  string              `json:"name"`
	Usage corev1.ResourceList `json:"usage"`
}

// PodMetricsList is a list of PodMetrics.
type PodMetricsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodMetrics `json:"items"`
}

// AddToScheme registers the kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &PodMetrics{}, &PodMetricsList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// DeepCopyObject implements runtime.Object.
func (m *PodMetrics) DeepCopyObject() runtime.Object {
	c := m.copied()
	return &c
}

func (m *PodMetrics) copied() PodMetrics {
	c := *m
	c.ObjectMeta = *m.ObjectMeta.DeepCopy()
	c.Containers = make([]ContainerMetrics, len(m.Containers))
	for i, of := range m.Containers {
		c.Containers[i] = ContainerMetrics{of.Name, of.Usage.DeepCopy()}
	}
	return c
}

// DeepCopyObject implements runtime.Object.
func (l *PodMetricsList) DeepCopyObject() runtime.Object {
	c := *l
	c.ListMeta = *l.ListMeta.DeepCopy()
	c.Items = make([]PodMetrics, len(l.Items))
	for i := range l.Items {
		c.Items[i] = l.Items[i].copied()
	}
	return &c
}
