package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/fakeapi"
)

// live simulates the daily changes of a cluster for a duration: ten pods a second are replaced by others on the same
// node, as in rollouts, and every node reports its state within five minutes.
func (l *loaded) live(lasts time.Duration) {
	l.t.Helper()
	const reports = 5 * time.Minute
	var all sync.WaitGroup
	var errs [2]error
	var replaced, reported int
	all.Go(func() {
		replaced, errs[0] = paced(l.t.Context(), lasts, time.Second/10, l.replace)
	})
	all.Go(func() {
		reported, errs[1] = paced(l.t.Context(), lasts, reports/time.Duration(l.nodes), func(ctx context.Context, i int) error {
			return l.report(ctx, i%l.nodes)
		})
	})
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		l.t.Fatal(err)
	}
	l.t.Logf("%d pods were replaced, %d nodes reported", replaced, reported)
}

// paced calls do at intervals for a duration, several calls at once if they take longer, and returns their number.
// The first error ends it.
func paced(ctx context.Context, lasts, every time.Duration, do func(ctx context.Context, i int) error) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ticker, end := time.NewTicker(every), time.NewTimer(lasts)
	defer ticker.Stop()
	defer end.Stop()
	var all sync.WaitGroup
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
			all.Go(func() {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			})
			continue
		case <-end.C:
		case <-ctx.Done():
		}
		all.Wait()
		return i, context.Cause(ctx)
	}
}

// pod returns a pod of the blocks by number; consecutive numbers belong to different blocks.
func (l *loaded) pod(i int) types.NamespacedName {
	number := l.nodes / blockNodes
	return types.NamespacedName{Namespace: fmt.Sprintf(fakeapi.Namespace, i%number), Name: l.sample.Pods[i/number%len(l.sample.Pods)]}
}

// replace ends a pod as the kubelet does, and creates another one in its place.
func (l *loaded) replace(ctx context.Context, i int) error {
	pod := &corev1.Pod{}
	if err := persist(ctx, func() error { return l.Get(ctx, l.pod(i), pod) }); err != nil {
		return err
	}
	next := another(pod, pod.Name+"-next")
	for _, step := range []func() error{
		func() error { return l.Delete(ctx, pod.DeepCopy()) }, // which sets its deletion timestamp
		func() error {
			return client.IgnoreNotFound(l.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0)))
		},
		func() error { return client.IgnoreAlreadyExists(l.Create(ctx, next.DeepCopy())) },
		func() error { return l.Get(ctx, client.ObjectKeyFromObject(next), next) },
		func() error { next.Status = pod.Status; return l.Status().Update(ctx, next) },
	} {
		if err := persist(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// persist retries while the API server is too busy to respond: other work on the machine must not fail the test.
func persist(ctx context.Context, ask func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(context.Context) (bool, error) {
		last = ask()
		busy := apierrors.IsTimeout(last) || apierrors.IsServerTimeout(last) || apierrors.IsTooManyRequests(last) || utilnet.IsTimeout(last)
		if busy {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// another returns a pod like the given one.
func another(pod *corev1.Pod, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: name, Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences,
		},
		Spec: *pod.Spec.DeepCopy(),
	}
}

// report writes the status that a kubelet reports for an unchanged node.
func (l *loaded) report(ctx context.Context, i int) error {
	now := time.Now().UTC().Format(time.RFC3339)
	var conditions []string
	for _, condition := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		conditions = append(conditions, fmt.Sprintf(`{"type":%q,"lastHeartbeatTime":%q}`, condition, now))
	}
	names := l.sample.Names(i / blockNodes)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names.Replace(l.sample.Nodes[i%blockNodes])}}
	text := `{"status":{"conditions":[` + strings.Join(conditions, ",") + `]}}`
	return persist(ctx, func() error {
		return l.Status().Patch(ctx, node.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(text)))
	})
}

// patchStatus changes a node's status.
func (s *stage) patchStatus(node, merge string) {
	s.t.Helper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := s.Status().Patch(s.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		s.t.Fatalf("changing the status of node %s: %v", node, err)
	}
}

// grow creates pods for which no node has room, and waits until their claims are written and their machines are
// launched. It returns the time from the last pod to the last claim.
func (l *loaded) grow(pods int) time.Duration {
	l.t.Helper()
	like := &corev1.Pod{}
	last := l.nodes/blockNodes*len(l.sample.Pods) - 1 // which has not been replaced
	if err := l.Get(l.t.Context(), l.pod(last), like); err != nil {
		l.t.Fatal(err)
	}
	if err := l.pend(like, pods); err != nil {
		l.t.Fatalf("adding pending pods: %v", err)
	}
	begun := time.Now()
	// The pods are spread over the zones, each of which may have a node that is not full.
	const zones = 4
	want := l.nodes + (pods+applications-1)/applications
	arrived := func(kind string) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := l.number(ctx, kind)
			if err == nil && got < want {
				err = fmt.Errorf("there are %d objects of kind %s, want %d", got, kind, want)
			}
			return err
		}
	}
	await(l.t, 10*time.Minute, "the claims for pending pods", arrived("NodeClaim"))
	elapsed := time.Since(begun)
	await(l.t, 10*time.Minute, "their machines", arrived("Node"))
	idle(10 * time.Second) // until surplus launches have finished
	l.stay(want, want+zones)
	return elapsed
}

// pend creates pods that are marked unschedulable.
func (l *loaded) pend(like *corev1.Pod, pods int) error {
	ctx, cancel := context.WithCancelCause(l.t.Context())
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(pods); i = next.Add(1) {
				pod := another(like, fmt.Sprintf("pending-%d", i))
				pod.Spec.NodeName = ""
				if err := l.ask(ctx, pod); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// ask creates a pod that is marked unschedulable.
func (l *loaded) ask(ctx context.Context, pod *corev1.Pod) error {
	if err := persist(ctx, func() error { return client.IgnoreAlreadyExists(l.Create(ctx, pod.DeepCopy())) }); err != nil {
		return err
	}
	return persist(ctx, func() error {
		if err := l.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/1 nodes are available: insufficient cpu.", LastTransitionTime: metav1.Now(),
		}}
		return l.Status().Update(ctx, pod)
	})
}

// number counts the objects of a kind without reading them.
func (l *loaded) number(ctx context.Context, kind string) (int, error) {
	versions := map[string]schema.GroupVersion{"Node": corev1.SchemeGroupVersion, "Pod": corev1.SchemeGroupVersion, "NodeClaim": karpv1.GroupVersion}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(versions[kind].WithKind(kind + "List"))
	if err := l.List(ctx, list, client.Limit(1)); err != nil {
		return 0, err
	}
	number := len(list.Items)
	if list.RemainingItemCount != nil {
		number += int(*list.RemainingItemCount)
	}
	return number, nil
}
