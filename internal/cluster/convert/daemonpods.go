package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Labels that the DaemonSet controller sets on pods. A pod belongs to the current template if it has the generation
// in the DaemonSet's annotation, or the same revision as a pod with that generation. Source:
// pkg/controller/daemon/util/daemonset_util.go (IsPodUpdated).
const (
	labelTemplateGeneration = "pod-template-generation"
	labelRevision           = appsv1.ControllerRevisionHashLabelKey
)

// DaemonPods holds the requests of the pods of DaemonSets. Pods with the same DaemonSet, revision and requests are
// counted together, so that the size does not depend on the number of nodes. The requests of the last pods of a
// DaemonSet are kept for a while after the pods are gone (Expire): otherwise they would be unknown when the fleet is
// empty. The zero value is empty.
type DaemonPods struct {
	shapes map[types.UID]map[string]*DaemonShape
}

// daemonMemory is how long the requests of the last pods of a DaemonSet count after the pods are gone. A webhook or
// an autoscaler that made them may have changed meanwhile, and if no type has room for them, no new pod can show
// that.
const daemonMemory = time.Hour

// DaemonShape represents equal pods of a DaemonSet. It belongs to the DaemonPods that returned it.
type DaemonShape struct {
	// Owner is the name of the DaemonSet.
	Owner string
	// Set is the UID of the DaemonSet.
	Set                  types.UID
	id                   string
	generation, revision string
	newest               int64
	requests             []quantity.Amount
	count                int
	// gone is when Expire first found that no pod has the shape; zero while one has.
	gone time.Time
}

// Alone reports whether at most one pod has the shape: it was just added, or the last one was removed.
func (s *DaemonShape) Alone() bool { return s != nil && s.count <= 1 }

// Add counts a pod. It returns nil for pods of no DaemonSet and for pods that have ended.
func (d *DaemonPods) Add(pod *corev1.Pod) *DaemonShape {
	i := slices.IndexFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" && strings.HasPrefix(o.APIVersion, "apps/")
	})
	if i < 0 || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	requests, refused := podRequests(pod)
	if refused != nil {
		return nil
	}
	owner, generation, revision := &pod.OwnerReferences[i], pod.Labels[labelTemplateGeneration], pod.Labels[labelRevision]
	id := fmt.Sprintf("%s %s %v", generation, revision, requests)
	if d.shapes == nil {
		d.shapes = map[types.UID]map[string]*DaemonShape{}
	}
	shape := d.shapes[owner.UID][id]
	if shape == nil {
		d.Forget(owner.UID)
		if d.shapes[owner.UID] == nil {
			d.shapes[owner.UID] = map[string]*DaemonShape{}
		}
		shape = &DaemonShape{Owner: owner.Name, Set: owner.UID, id: id, generation: generation, revision: revision, requests: requests}
		d.shapes[owner.UID][id] = shape
	}
	shape.count++
	shape.gone = time.Time{}
	shape.newest = max(shape.newest, pod.CreationTimestamp.Unix())
	return shape
}

// Remove reverts Add; it ignores nil. The last shape of a DaemonSet is kept until another replaces it, or it expires.
func (d *DaemonPods) Remove(shape *DaemonShape) {
	if shape == nil {
		return
	}
	if shape.count--; shape.count > 0 {
		return
	}
	if len(d.shapes[shape.Set]) > 1 {
		delete(d.shapes[shape.Set], shape.id)
	}
}

// Expire drops the requests of the last pods of DaemonSets that have been gone for daemonMemory, and returns the UIDs
// of these DaemonSets. The time starts with the first call that finds the pods gone.
func (d *DaemonPods) Expire(now time.Time) []types.UID {
	var expired []types.UID
	for set, shapes := range d.shapes {
		for _, s := range shapes {
			switch {
			case s.count > 0:
			case s.gone.IsZero():
				s.gone = now
			case now.Sub(s.gone) >= daemonMemory:
				delete(shapes, s.id)
				expired = append(expired, set)
			}
		}
		if len(shapes) == 0 {
			delete(d.shapes, set)
		}
	}
	return expired
}

// Forget drops the requests of a DaemonSet's pods that no longer exist.
func (d *DaemonPods) Forget(set types.UID) {
	maps.DeleteFunc(d.shapes[set], func(_ string, s *DaemonShape) bool { return s.count == 0 })
	if len(d.shapes[set]) == 0 {
		delete(d.shapes, set)
	}
}

// of returns the requests of the pods of the DaemonSet's current template.
func (d *DaemonPods) of(set *appsv1.DaemonSet) [][]quantity.Amount {
	if d == nil {
		return nil
	}
	shapes := d.shapes[set.UID]
	generation, annotated := set.Annotations[appsv1.DeprecatedTemplateGeneration]
	revisions := map[string]bool{}
	if annotated {
		for _, s := range shapes {
			if s.generation == generation {
				revisions[s.revision] = true
			}
		}
	} else if newest := newestShape(shapes); newest != nil { // a file may lack the annotation
		generation, revisions[newest.revision] = newest.generation, true
	}
	var requests [][]quantity.Amount
	for _, s := range shapes {
		if generation != "" && s.generation == generation || s.revision != "" && revisions[s.revision] {
			requests = append(requests, s.requests)
		}
	}
	return requests
}

func newestShape(shapes map[string]*DaemonShape) *DaemonShape {
	var newest *DaemonShape
	for _, s := range shapes {
		if newest == nil || s.newest > newest.newest || s.newest == newest.newest && s.id < newest.id {
			newest = s
		}
	}
	return newest
}

// largest returns the maximum of each resource over the lists, sorted by name.
func largest(list []quantity.Amount, others ...[]quantity.Amount) []quantity.Amount {
	for _, other := range others {
		for _, a := range other {
			i, there := slices.BinarySearchFunc(list, a, compareAmounts)
			switch {
			case !there:
				list = slices.Insert(list, i, a)
			case list[i].Value < a.Value:
				list[i] = a
			}
		}
	}
	return list
}
