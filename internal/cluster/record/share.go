package record

import (
	"slices"
	"strconv"
	"sync"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// mostShared bounds the number of values of one kind that nodes and claims share. When there are more, all are forgotten:
// objects that are read later share with each other again.
const mostShared = 4096

// mostShort is the length of the longest value of an annotation that is shared, in bytes. Longer ones name objects.
const mostShort = 24

// Share replaces what nodes and claims repeat by one copy of it: keys and values of labels, short values of annotations,
// texts of conditions, amounts and requirements. Their names and IDs are their own. The object keeps its meaning.
func (t *Table) Share(obj metav1.Object) {
	switch o := obj.(type) {
	case *corev1.Node:
		t.shareMeta(&o.ObjectMeta)
		o.Status.Capacity, o.Status.Allocatable = t.amounts(o.Status.Capacity), t.amounts(o.Status.Allocatable)
		for i := range o.Status.Conditions {
			c := &o.Status.Conditions[i]
			c.Type, c.Status = corev1.NodeConditionType(t.text(string(c.Type))), corev1.ConditionStatus(t.text(string(c.Status)))
			c.Reason, c.Message = t.text(c.Reason), t.text(c.Message)
		}
	case *karpv1.NodeClaim:
		t.shareMeta(&o.ObjectMeta)
		o.Status.Capacity, o.Status.Allocatable = t.amounts(o.Status.Capacity), t.amounts(o.Status.Allocatable)
		o.Spec.Resources.Requests, o.Spec.Requirements = t.amounts(o.Spec.Resources.Requests), t.requirements(o.Spec.Requirements)
		ref := &o.Spec.NodeClassRef
		ref.Group, ref.Kind, ref.Name = t.text(ref.Group), t.text(ref.Kind), t.text(ref.Name)
		for i := range o.Status.Conditions {
			t.shareCondition(&o.Status.Conditions[i])
		}
	}
}

func (t *Table) shareCondition(c *status.Condition) {
	c.Type, c.Status = t.text(c.Type), metav1.ConditionStatus(t.text(string(c.Status)))
	c.Reason, c.Message = t.text(c.Reason), t.text(c.Message)
}

func (t *Table) shareMeta(o *metav1.ObjectMeta) {
	for key, value := range o.Labels {
		if key != corev1.LabelHostname {
			value = t.text(value)
		}
		o.Labels[t.text(key)] = value // this replaces the key, too
	}
	for key, value := range o.Annotations {
		if len(value) <= mostShort {
			value = t.text(value)
		}
		o.Annotations[t.text(key)] = value
	}
}

func (t *Table) text(s string) string {
	if s == "" {
		return ""
	}
	return t.texts.one(s, s)
}

func (t *Table) amounts(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	of := corev1.ResourceRequirements{Requests: list}
	key, err := of.Marshal()
	if err != nil {
		return list
	}
	return t.lists.one(string(key), list)
}

func (t *Table) requirements(list []karpv1.Requirement) []karpv1.Requirement {
	if len(list) == 0 {
		return list
	}
	var key []byte
	for i := range list {
		r := &list[i]
		key = strconv.AppendQuote(strconv.AppendQuote(key, r.Key), string(r.Operator))
		for _, value := range r.Values {
			key = strconv.AppendQuote(key, value)
		}
		if r.MinValues != nil {
			key = strconv.AppendInt(key, int64(*r.MinValues), 10)
		}
		key = append(key, ';')
	}
	return t.requirementLists.one(string(key), slices.Clip(list))
}

// shared holds one copy of each value. The zero value is empty.
type shared[T any] struct {
	mutex sync.Mutex
	all   map[string]T
}

// one returns the first value that came with the key.
func (s *shared[T]) one(key string, value T) T {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, has := s.all[key]; has {
		return known
	}
	if s.all == nil || len(s.all) >= mostShared {
		s.all = map[string]T{}
	}
	s.all[key] = value
	return value
}
