package nodelabel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/names"
)

// keys holds the old labels that are in use. The zero value is empty. It is safe for concurrent use.
type keys struct {
	mutex sync.RWMutex
	// all only grows. The value reports whether existing nodes have been checked for the label. Nodes that register
	// later need no check.
	all map[string]bool
	// counted is set once all pods have been examined, by one caller at a time.
	counted  bool
	counting sync.Mutex
}

// add records uses and reports whether existing nodes have not been checked yet for one of them. The caller then
// checks them.
func (k *keys) add(uses []use) (news bool) {
	return k.note(uses, true)
}

func (k *keys) note(uses []use, look bool) (news bool) {
	if len(uses) == 0 {
		return false
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.all == nil {
		k.all = map[string]bool{}
	}
	for _, u := range uses {
		if _, label := names.Label(u.old); label && !k.all[u.old] {
			k.all[u.old], news = look, true
		}
	}
	return news
}

func (k *keys) list() []string {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	return slices.Sorted(maps.Keys(k.all))
}

func (k *keys) complete() bool {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	return k.counted
}

// count examines all pods and DaemonSets, unless that was done. It can be ahead of the corresponding events. Existing
// nodes are checked when those events arrive.
func (k *keys) count(ctx context.Context, all Pods, reader client.Reader) error {
	if k.complete() {
		return nil
	}
	k.counting.Lock()
	defer k.counting.Unlock()
	if k.complete() {
		return nil
	}
	pods, err := all(ctx)
	if err != nil {
		return fmt.Errorf("finding labels of older versions: listing pods: %w", err)
	}
	for pod := range pods {
		k.note(usesOf(&pod.Spec), false)
	}
	var sets appsv1.DaemonSetList
	if err := reader.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("finding labels of older versions: listing DaemonSets: %w", err)
	}
	for i := range sets.Items {
		k.note(usesOf(&sets.Items[i].Spec.Template.Spec), false)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.counted = true
	return nil
}

// missing returns the old labels that a node with these labels should have and does not have.
func (k *keys) missing(labels map[string]string) map[string]string {
	var more map[string]string
	for _, old := range k.list() {
		today, _ := names.Label(old)
		value, has := labels[today]
		if _, there := labels[old]; there || !has {
			continue
		}
		if more == nil {
			more = map[string]string{}
		}
		more[old] = value
	}
	return more
}
