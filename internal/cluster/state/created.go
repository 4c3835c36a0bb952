package state

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// What the controllers of pods give to new pods, as seen on their newest pod that was not resized: templates are not
// watched, and admission may change what they say. It is known for as long as a controller has pods, and forgotten when
// this process ends: then it is known again when the controller creates the next pod.

// creation is what is known of one controller.
type creation struct {
	pods int
	// newest is when the pod was created that has the requests.
	newest int64
	known  bool
	convert.Created
	// resized are the pods that were resized.
	resized map[types.NamespacedName]bool
}

// noteCreation records the pod of a name for its controller, and sets the requests of its successor in the spec if it
// was resized. It returns the pods to convert again.
func (p *podSet) noteCreation(key types.NamespacedName, before converted, e sight, spec *model.PodSpec) (again []types.NamespacedName) {
	now := &e.converted
	pod := e.pod
	if pod != nil && now.disposition != convert.Ignore && !spec.Daemon {
		now.controller = types.UID(spec.Controller.UID)
	}
	var old *creation
	if before.controller != "" {
		old = p.created[before.controller]
	}
	if old != nil {
		delete(old.resized, key)
	}
	if now.controller != "" {
		c := p.created[now.controller]
		if c == nil {
			c = &creation{}
			p.created[now.controller] = c
		}
		c.pods++
		again = c.note(key, pod, spec)
	}
	if old != nil {
		if old.pods--; old.pods == 0 {
			delete(p.created, before.controller)
		}
	}
	return again
}

// note records a pod of the controller. It returns the resized ones if what is known of new pods has changed.
func (c *creation) note(key types.NamespacedName, pod *corev1.Pod, spec *model.PodSpec) []types.NamespacedName {
	if convert.Resized(pod) {
		if c.resized == nil {
			c.resized = map[types.NamespacedName]bool{}
		}
		c.resized[key] = true
		if c.known {
			convert.Succeed(spec, c.Created)
		}
		return nil
	}
	at, seen := pod.CreationTimestamp.Unix(), convert.CreatedOf(spec)
	if c.known && at < c.newest {
		return nil
	}
	same := c.known && seen == c.Created
	c.newest, c.known, c.Created = at, true, seen
	if same || len(c.resized) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(c.resized), func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
}

// Creates records what a controller gives to new pods, by its template, which only files have. It takes precedence over
// what its pods show, for as long as it has pods.
func (s *State) Creates(controller types.UID, by convert.Created) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pods.created[controller] = &creation{newest: math.MaxInt64, known: true, Created: by}
}
