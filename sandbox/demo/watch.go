package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// stage is an event that happens once in the life of a pod, a claim or a node.
type stage string

const (
	podCreated       stage = "pods created"
	podPending       stage = "pods pending"
	podBound         stage = "pods bound"
	podRunning       stage = "pods running"
	podGone          stage = "pods removed"
	claimCreated     stage = "claims created"
	claimLaunched    stage = "claims launched"
	claimRegistered  stage = "claims registered"
	claimInitialized stage = "claims initialized"
	claimDeleting    stage = "claims deleted"
	claimGone        stage = "claims removed"
	nodeCordoned     stage = "nodes cordoned"
	nodeGone         stage = "nodes removed"
)

// history records when each stage of each object was first seen. Kubernetes' own timestamps have a resolution of
// whole seconds. The arrival of a watch event has microseconds, and is delayed by the API server's delivery, about a
// millisecond.
type history struct {
	mu        sync.Mutex
	seen      map[stage]map[types.UID]time.Time
	pods      map[types.UID]*corev1.Pod
	nominated map[types.UID]string // by pod: the node it was last nominated to; the API clears it when the pod is bound
	claims    map[types.UID]*karpv1.NodeClaim
	nodes     map[types.UID]*corev1.Node
	peaks     map[string]peak // by pool, while they are watched
	changed   chan struct{}   // has a value if a change was seen since the last receive
}

// span is when the first and the last object reached a stage, and the number of such objects.
type span struct {
	first, last time.Time
	count       int
}

func newHistory() *history {
	return &history{
		seen: map[stage]map[types.UID]time.Time{}, pods: map[types.UID]*corev1.Pod{}, nominated: map[types.UID]string{},
		claims: map[types.UID]*karpv1.NodeClaim{}, nodes: map[types.UID]*corev1.Node{}, changed: make(chan struct{}, 1),
	}
}

// watchHistory follows pods, claims and nodes until the context ends. It returns once the existing objects are known.
func watchHistory(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*history, error) {
	h := newHistory()
	watched, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Namespaces: map[string]cache.Config{demoNamespace: {}}},
	}})
	if err != nil {
		return nil, fmt.Errorf("preparing the watches: %w", err)
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &karpv1.NodeClaim{}, &corev1.Node{}} {
		informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching the cluster: %w", err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { h.record(object, false) },
			UpdateFunc: func(_, object any) { h.record(object, false) },
			DeleteFunc: func(object any) { h.record(object, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("watching the cluster: %w", err)
		}
	}
	go func() { _ = watched.Start(ctx) }()
	if !watched.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watching the cluster: %w", context.Cause(ctx))
	}
	return h, nil
}

func (h *history) record(object any, gone bool) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch object := object.(type) {
	case *corev1.Pod:
		h.mark(object.UID, now, podStages(object, gone))
		keep(h.pods, object.UID, object, gone)
		if node := object.Status.NominatedNodeName; node != "" {
			h.nominated[object.UID] = node
		}
	case *karpv1.NodeClaim:
		h.mark(object.UID, now, claimStages(object, gone))
		keep(h.claims, object.UID, object, gone)
	case *corev1.Node:
		h.mark(object.UID, now, nodeStages(object, gone))
		keep(h.nodes, object.UID, object, gone)
	}
	h.lookAtPeaks()
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

func keep[T any](objects map[types.UID]T, uid types.UID, object T, gone bool) {
	if gone {
		delete(objects, uid)
		return
	}
	objects[uid] = object
}

func (h *history) mark(uid types.UID, now time.Time, reached []stage) {
	for _, s := range reached {
		if h.seen[s] == nil {
			h.seen[s] = map[types.UID]time.Time{}
		}
		if _, before := h.seen[s][uid]; !before {
			h.seen[s][uid] = now
		}
	}
}

func podStages(pod *corev1.Pod, gone bool) []stage {
	if gone {
		return []stage{podGone}
	}
	reached := []stage{podCreated}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			reached = append(reached, podPending)
		}
	}
	if pod.Spec.NodeName != "" {
		reached = append(reached, podBound)
	}
	if pod.Status.Phase == corev1.PodRunning {
		reached = append(reached, podRunning)
	}
	return reached
}

func claimStages(claim *karpv1.NodeClaim, gone bool) []stage {
	if gone {
		return []stage{claimDeleting, claimGone}
	}
	reached := []stage{claimCreated}
	conditions := claim.StatusConditions()
	for condition, s := range map[string]stage{
		karpv1.ConditionLaunched: claimLaunched, karpv1.ConditionRegistered: claimRegistered, karpv1.ConditionInitialized: claimInitialized,
	} {
		if conditions.IsTrue(condition) {
			reached = append(reached, s)
		}
	}
	if claim.DeletionTimestamp != nil {
		reached = append(reached, claimDeleting)
	}
	return reached
}

func nodeStages(node *corev1.Node, gone bool) []stage {
	if gone {
		return []stage{nodeGone}
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.TaintKeyDisrupted }) {
		return []stage{nodeCordoned}
	}
	return nil
}

// span returns when objects reached the stage.
func (h *history) span(s stage) span { return h.since(s, time.Time{}) }

// count returns the number of objects that have reached the stage.
func (h *history) count(s stage) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seen[s])
}

// present returns the objects that exist now.
func (h *history) present() (pods []*corev1.Pod, claims []*karpv1.NodeClaim, nodes []*corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, pod := range h.pods {
		pods = append(pods, pod)
	}
	for _, claim := range h.claims {
		claims = append(claims, claim)
	}
	for _, node := range h.nodes {
		nodes = append(nodes, node)
	}
	return pods, claims, nodes
}

// nominations returns the number of existing pods that were nominated to a node (made), and of those that run on it
// (kept).
func (h *history) nominations() (kept, made int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid, pod := range h.pods {
		node, nominated := h.nominated[uid]
		if !nominated {
			continue
		}
		made++
		if pod.Spec.NodeName == node {
			kept++
		}
	}
	return kept, made
}
