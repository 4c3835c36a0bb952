package record

import (
	"runtime"
	"slices"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Table holds what records, nodes and claims share. Its methods are safe for concurrent use. The zero value is empty.
type Table struct {
	commons shelf[common]
	labels  shelf[labels]
	volumes shelf[volumes]

	texts            shared[string]
	lists            shared[corev1.ResourceList]
	requirementLists shared[[]karpv1.Requirement]
}

// Pack returns the record of a trimmed pod, nil if the pod has to stay whole. The caller must not use the pod any more if
// there is a record.
func (t *Table) Pack(pod *corev1.Pod) *Pod {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || pod.TypeMeta != (metav1.TypeMeta{}) ||
		len(pod.Status.Conditions) > mostConditions {
		return nil
	}
	p, exact := ownOf(pod)
	if !exact {
		return nil
	}
	if all := pod.Labels; len(all) > 0 {
		p.labels = t.labels.find(&metav1.ObjectMeta{Labels: all}, func() *labels { return &labels{all} })
	}
	if all := pod.Spec.Volumes; len(all) > 0 {
		p.volumes = t.volumes.find(&corev1.PodSpec{Volumes: all}, func() *volumes { return &volumes{all} })
	}
	strip(pod)
	p.common = t.commons.find(pod, func() *common { return &common{*pod} })
	return p
}

// ownOf returns what a pod has for itself, and false if a time of it is finer than seconds.
func ownOf(pod *corev1.Pod) (*Pod, bool) {
	p := &Pod{name: pod.Name, uid: pod.UID, version: pod.ResourceVersion, node: pod.Spec.NodeName, started: never, scheduled: never}
	var exact, fine bool
	p.created, exact = secondsOf(pod.CreationTimestamp.Time)
	if at := pod.Status.StartTime; at != nil {
		p.started, fine = secondsOf(at.Time)
		exact = exact && fine && p.started != never
	}
	if c := scheduled(pod); c != nil {
		p.scheduled, fine = secondsOf(c.LastTransitionTime.Time)
		exact = exact && fine
	}
	return p, exact
}

// strip removes from a pod what its record holds.
func strip(pod *corev1.Pod) {
	pod.Name, pod.UID, pod.ResourceVersion, pod.CreationTimestamp, pod.Labels = "", "", "", metav1.Time{}, nil
	pod.Spec.NodeName, pod.Spec.Volumes, pod.Status.StartTime = "", nil, nil
	if c := scheduled(pod); c != nil {
		c.LastTransitionTime = metav1.Time{}
	}
}

// shelf holds values of one type by their content, for as long as they are referred to from elsewhere.
type shelf[T any] struct {
	mutex sync.Mutex
	all   map[string]weak.Pointer[T]
	key   []byte
}

// content is a value that has a canonical encoding, without regard to the order of maps.
type content interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
}

// find returns the value with the content, a new one if there is none.
func (s *shelf[T]) find(of content, fresh func() *T) *T {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	size := of.Size()
	s.key = slices.Grow(s.key[:0], size)[:size]
	if _, err := of.MarshalToSizedBuffer(s.key); err != nil {
		return fresh() // no two are the same then
	}
	if known := s.all[string(s.key)].Value(); known != nil {
		return known
	}
	value, key := fresh(), string(s.key)
	if s.all == nil {
		s.all = map[string]weak.Pointer[T]{}
	}
	s.all[key] = weak.Make(value)
	runtime.AddCleanup(value, s.drop, key)
	return value
}

// drop removes a value that nothing refers to, unless there is another one with its content.
func (s *shelf[T]) drop(key string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, has := s.all[key]; has && known.Value() == nil {
		delete(s.all, key)
	}
}

// len returns the number of values.
func (s *shelf[T]) len() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.all)
}
