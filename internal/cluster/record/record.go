package record

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is a bound pod. It is an object of the API, so that informers can hold it.
type Pod struct {
	*common
	labels  *labels
	volumes *volumes
	name    string
	uid     types.UID
	version string
	node    string
	// created, started and scheduled are times in Unix seconds, never for none.
	created, started, scheduled int64
}

// common is what pods of one template share: a pod without what Pod, labels and volumes hold.
type common struct{ corev1.Pod }

// labels and volumes are apart, because those of pods of a StatefulSet name the pod.
type labels struct{ all map[string]string }

type volumes struct{ all []corev1.Volume }

// never is the time of what has not happened.
const never = math.MinInt64

// mostConditions is the number of conditions that a trimmed pod has at most.
const mostConditions = 3

// GetName implements metav1.Object.
func (p *Pod) GetName() string { return p.name }

// GetUID implements metav1.Object.
func (p *Pod) GetUID() types.UID { return p.uid }

// GetResourceVersion implements metav1.Object.
func (p *Pod) GetResourceVersion() string { return p.version }

// GetCreationTimestamp implements metav1.Object.
func (p *Pod) GetCreationTimestamp() metav1.Time { return timeOf(p.created) }

// GetLabels implements metav1.Object.
func (p *Pod) GetLabels() map[string]string {
	if p.labels == nil {
		return nil
	}
	return p.labels.all
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (p *Pod) GetObjectMeta() metav1.Object { return p }

// Node returns the name of the node that the pod is bound to.
func (p *Pod) Node() string { return p.node }

// DeepCopyObject implements runtime.Object.
func (p *Pod) DeepCopyObject() runtime.Object {
	c := *p
	c.common = &common{*p.common.Pod.DeepCopy()}
	if p.labels != nil {
		c.labels = &labels{(&metav1.ObjectMeta{Labels: p.labels.all}).DeepCopy().Labels}
	}
	if p.volumes != nil {
		c.volumes = &volumes{(&corev1.PodSpec{Volumes: p.volumes.all}).DeepCopy().Volumes}
	}
	return &c
}

// Whole returns the pod. It shares maps and lists with other pods of its template.
func (p *Pod) Whole() *corev1.Pod { return p.in(&Place{}) }

// Place is where one pod after another can be a whole. The zero value is empty.
type Place struct {
	pod        corev1.Pod
	started    metav1.Time
	conditions [mostConditions]corev1.PodCondition
}

// Whole is Whole for an object that is a pod or a record, valid until the next call.
func (at *Place) Whole(obj any) *corev1.Pod {
	if p, ok := obj.(*Pod); ok && p != nil {
		return p.in(at)
	}
	return Whole(obj)
}

func (p *Pod) in(own *Place) *corev1.Pod {
	own.pod = p.common.Pod
	pod := &own.pod
	pod.Name, pod.UID, pod.ResourceVersion, pod.Spec.NodeName = p.name, p.uid, p.version, p.node
	pod.CreationTimestamp, pod.Labels = timeOf(p.created), p.GetLabels()
	if p.volumes != nil {
		pod.Spec.Volumes = p.volumes.all
	}
	if p.started != never {
		own.started = timeOf(p.started)
		pod.Status.StartTime = &own.started
	}
	if p.scheduled != never {
		pod.Status.Conditions = append(own.conditions[:0], pod.Status.Conditions...)
		scheduled(pod).LastTransitionTime = timeOf(p.scheduled)
	}
	return pod
}

// scheduled returns the condition that says whether the pod is scheduled, nil if there is none.
func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c
		}
	}
	return nil
}

func timeOf(seconds int64) metav1.Time {
	if seconds == never {
		return metav1.Time{}
	}
	return metav1.Unix(seconds, 0)
}

// secondsOf returns a time in seconds, false if it is finer.
func secondsOf(t time.Time) (int64, bool) {
	if t.IsZero() {
		return never, true
	}
	return t.Unix(), t.Nanosecond() == 0
}

// Whole returns the pod behind an object that is a pod or a record of one, nil for any other object.
func Whole(obj any) *corev1.Pod {
	switch o := obj.(type) {
	case *corev1.Pod:
		return o
	case *Pod:
		if o != nil {
			return o.Whole()
		}
	}
	return nil
}
