package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// ledger records what the watches show, including deleted objects. Machines are the ConfigMaps in which the kwok
// provider stores what it has launched.
type ledger struct {
	mu        sync.Mutex
	claims    map[types.UID]*entry[*karpv1.NodeClaim]
	nodes     map[types.UID]*entry[*corev1.Node]
	machines  map[types.UID]*entry[*corev1.ConfigMap]
	pods      map[types.UID]*entry[*corev1.Pod]
	nominated map[types.UID]map[string]bool // by pod: the nodes it was ever nominated to
	said      map[types.UID][]string        // by object: the controller's events, "Reason: note"
	peaks     map[string]int                // by case: the maximum number of its claims that were leaving at the same time
	most      map[string]int                // by case: the maximum number of its claims that existed at the same time
}

// entry is the last observed state of an object.
type entry[T any] struct {
	object T
	gone   bool
	// seen and left are when it was observed first, and when its deletion was; of claims only.
	seen, left time.Time
}

func openLedger(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*ledger, error) {
	l := &ledger{
		claims: map[types.UID]*entry[*karpv1.NodeClaim]{}, nodes: map[types.UID]*entry[*corev1.Node]{},
		machines: map[types.UID]*entry[*corev1.ConfigMap]{}, pods: map[types.UID]*entry[*corev1.Pod]{},
		nominated: map[types.UID]map[string]bool{}, said: map[types.UID][]string{}, peaks: map[string]int{}, most: map[string]int{},
	}
	watched, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{kwok.LabelRecord: "true"})},
	}})
	if err != nil {
		return nil, err
	}
	for _, kind := range []client.Object{&karpv1.NodeClaim{}, &corev1.Node{}, &corev1.ConfigMap{}, &corev1.Pod{}, &eventsv1.Event{}} {
		informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching the cluster: %w", err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { l.note(object, false) },
			UpdateFunc: func(_, object any) { l.note(object, false) },
			DeleteFunc: func(object any) { l.note(object, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("watching the cluster: %w", err)
		}
	}
	go func() { _ = watched.Start(ctx) }()
	if !watched.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watching the cluster: %w", context.Cause(ctx))
	}
	return l, nil
}

func (l *ledger) note(object any, gone bool) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch object := object.(type) {
	case *karpv1.NodeClaim:
		now := &entry[*karpv1.NodeClaim]{object: object, gone: gone, seen: time.Now()}
		if before := l.claims[object.UID]; before != nil {
			now.seen = before.seen
		}
		if gone {
			now.left = time.Now()
		}
		l.claims[object.UID] = now
		l.look(object.Labels[caseLabel])
	case *corev1.Node:
		l.nodes[object.UID] = &entry[*corev1.Node]{object: object, gone: gone}
		l.look(object.Labels[caseLabel])
	case *corev1.ConfigMap:
		l.machines[object.UID] = &entry[*corev1.ConfigMap]{object: object, gone: gone}
	case *eventsv1.Event:
		if text := object.Reason + ": " + object.Note; object.ReportingController == "karpenter" && !slices.Contains(l.said[object.Regarding.UID], text) {
			l.said[object.Regarding.UID] = append(l.said[object.Regarding.UID], text)
		}
	case *corev1.Pod:
		l.pods[object.UID] = &entry[*corev1.Pod]{object: object, gone: gone}
		if node := object.Status.NominatedNodeName; node != "" {
			if l.nominated[object.UID] == nil {
				l.nominated[object.UID] = map[string]bool{}
			}
			l.nominated[object.UID][node] = true
		}
	}
}

// look counts the claims of a case, and those that are leaving: they are being deleted, or their nodes are marked.
// Claims whose machine is being terminated no longer count for budgets, and are not leaving here.
func (l *ledger) look(name string) {
	marked := map[string]bool{}
	for _, e := range l.nodes {
		if !e.gone && e.object.Labels[caseLabel] == name && tainted(e.object) {
			marked[e.object.Name] = true
		}
	}
	leaving, all := 0, 0
	for _, e := range l.claims {
		if e.gone || e.object.Labels[caseLabel] != name {
			continue
		}
		if all++; e.object.DeletionTimestamp == nil && !marked[e.object.Status.NodeName] {
			continue
		}
		if !e.object.DeepCopy().Condition(karpv1.ConditionInstanceTerminating).IsTrue() {
			leaving++
		}
	}
	l.peaks[name], l.most[name] = max(l.peaks[name], leaving), max(l.most[name], all)
}

// mostOf returns the maximum number of claims of a case that existed at the same time.
func (l *ledger) mostOf(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most[name]
}

// peak returns the maximum number of claims of a case that were leaving at the same time.
func (l *ledger) peak(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peaks[name]
}

// census counts the objects of a case, those that ever existed and those that exist.
type census struct {
	claims, nodes, machines             int
	claimsEver, nodesEver, machinesEver int
}

// count counts the objects of the pools of a case. Machines are identified by the claim from whose name their node's
// name, and so their record's name, is derived.
func (l *ledger) count(name string) census {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c census
	uids := map[types.UID]bool{}
	for uid, e := range l.claims {
		if e.object.Labels[caseLabel] != name {
			continue
		}
		uids[uid] = true
		c.claimsEver++
		c.claims += present(e.gone)
	}
	for _, e := range l.nodes {
		if e.object.Labels[caseLabel] == name {
			c.nodesEver++
			c.nodes += present(e.gone)
		}
	}
	for _, e := range l.machines {
		if uids[claimOf(e.object)] {
			c.machinesEver++
			c.machines += present(e.gone)
		}
	}
	return c
}

func present(gone bool) int {
	if gone {
		return 0
	}
	return 1
}

// claimsOf returns all claims of a case that ever existed, and whether they are deleted, by creation time and name.
func (l *ledger) claimsOf(name string) []entry[*karpv1.NodeClaim] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []entry[*karpv1.NodeClaim]
	for _, e := range l.claims {
		if e.object.Labels[caseLabel] == name {
			out = append(out, *e)
		}
	}
	slices.SortFunc(out, func(a, b entry[*karpv1.NodeClaim]) int {
		if c := a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time); c != 0 {
			return c
		}
		return slices.Compare([]string{a.object.Name}, []string{b.object.Name})
	})
	return out
}

// nodesOf returns the existing nodes of a case.
func (l *ledger) nodesOf(name string) []*corev1.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*corev1.Node
	for _, e := range l.nodes {
		if !e.gone && e.object.Labels[caseLabel] == name {
			out = append(out, e.object)
		}
	}
	return out
}

// podsOf returns the existing pods of a namespace.
func (l *ledger) podsOf(namespace string) []*corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*corev1.Pod
	for _, e := range l.pods {
		if !e.gone && e.object.Namespace == namespace {
			out = append(out, e.object)
		}
	}
	return out
}

// podName returns the name NAMESPACE/NAME of a pod that exists or existed, "" if it is unknown.
func (l *ledger) podName(uid types.UID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.pods[uid]; e != nil {
		return e.object.Namespace + "/" + e.object.Name
	}
	return ""
}

// nominations returns the nodes that the pod was ever nominated to.
func (l *ledger) nominations(pod types.UID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.nominated[pod]))
}

// claimOf returns the UID of the claim that a machine was launched for.
func claimOf(machine *corev1.ConfigMap) types.UID {
	var record struct {
		ClaimUID types.UID `json:"claimUID"`
	}
	if err := json.Unmarshal([]byte(machine.Data["machine"]), &record); err != nil {
		return ""
	}
	return record.ClaimUID
}

// saidOf returns the controller's events about the object.
func (l *ledger) saidOf(object types.UID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.said[object])
}
