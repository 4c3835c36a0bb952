package cluster

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/record"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// setOf returns the i-th ReplicaSet of a namespace, as an API server stores one, about 3 kB.
func setOf(namespace string, i int, replicas int32) *appsv1.ReplicaSet {
	hash, uid, yes := fmt.Sprintf("%08x", i), "8c9d0f52-4d0b-4b53-9a3e-1c2b3a495867", true
	labels := map[string]string{"app.kubernetes.io/name": "storefront", "pod-template-hash": hash}
	container := corev1.Container{Name: "main", Image: "registry.example.org/storefront:1.2.3"}
	for n := range 30 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: "a value of usual length"})
	}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "storefront-" + hash, UID: types.UID(uid[:28] + hash), ResourceVersion: fmt.Sprint(1000000 + i),
			Generation: 3, Labels: labels, Annotations: map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(i)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "storefront", UID: types.UID(uid),
				Controller: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{}}}`)}},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 3},
	}
}

// TestIdleReplicaSets: an informer holds the old ReplicaSets of Deployments as records of a few hundred bytes with its
// indexes, and the store nothing. It follows one that is scaled up and down again, and one that is deleted.
func TestIdleReplicaSets(t *testing.T) {
	const namespaces, sets, most = 100, 110, 400
	config := state.Config{Replicas: true}
	options := CacheOptions(config.Foresight(), func(error) {})
	later := watch.NewFake()
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			list := &appsv1.ReplicaSetList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			for n := range namespaces {
				for i := range sets {
					list.Items = append(list.Items, *setOf(fmt.Sprintf("team-%d", n), i, 0))
				}
			}
			return list, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, fmt.Errorf("no streamed lists")
			}
			return later, nil
		},
	}
	informer := options.NewInformer(lw, &appsv1.ReplicaSet{}, 0,
		toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := informer.SetTransform(options.DefaultTransform); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, Config{State: config})
	if _, err := informer.AddEventHandler(s.handler(state.ReplicaSets)); err != nil {
		t.Fatal(err)
	}
	before := heap()
	go informer.RunWithContext(t.Context())
	if !toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	each := (heap() - before) / (namespaces * sets)
	if t.Logf("%d bytes for each", each); each > most {
		t.Errorf("%d bytes for each idle ReplicaSet, want at most %d", each, most)
	}
	asked := func(want int) {
		t.Helper()
		at := state.Ref{Kind: state.ReplicaSets, Key: client.ObjectKeyFromObject(setOf("team-1", 1, 0))}
		eventually(t, fmt.Sprintf("the store knows %d ReplicaSets", want), func() bool {
			return len(s.Objects()) == want && (s.Object(at) != nil) == (want > 0)
		})
	}
	asked(0)
	later.Modify(setOf("team-1", 1, 3))
	asked(1)
	later.Modify(setOf("team-1", 1, 0))
	asked(0)
	later.Modify(setOf("team-1", 1, 3))
	asked(1)
	later.Delete(setOf("team-1", 1, 3))
	asked(0)
	later.Delete(setOf("team-1", 2, 0))
	eventually(t, "two are deleted", func() bool { return len(informer.GetStore().ListKeys()) == namespaces*sets-2 })
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // of this size
}

// TestIdle: which workloads are held as records.
func TestIdle(t *testing.T) {
	none, some, yes := int32(0), int32(3), true
	complete := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}}
	set := func(replicas *int32) client.Object {
		return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: replicas}}
	}
	spread := state.Config{Replicas: true, DefaultSpread: []corev1.TopologySpreadConstraint{{}}}
	for name, c := range map[string]struct {
		config state.Config
		object client.Object
		want   bool
	}{
		"an old ReplicaSet":           {state.Config{Replicas: true}, setOf("a", 1, 0), true},
		"a ReplicaSet":                {state.Config{Replicas: true}, setOf("a", 1, 1), false},
		"its selector is needed":      {spread, setOf("a", 1, 0), false},
		"a StatefulSet":               {state.Config{Replicas: true}, set(&some), false},
		"a StatefulSet without pods":  {state.Config{Replicas: true}, set(&none), true},
		"a Job":                       {spread, &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &some}}, false},
		"a Job that is suspended":     {spread, &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &some, Suspend: &yes}}, true},
		"a Job that has ended":        {spread, &batchv1.Job{Status: complete}, true},
		"a pod":                       {state.Config{Replicas: true}, &corev1.Pod{}, false},
		"a DaemonSet":                 {state.Config{Replicas: true}, &appsv1.DaemonSet{}, false},
		"an old ReplicaSet unwatched": {state.Config{}, setOf("a", 1, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			transformed, err := CacheOptions(c.config.Foresight(), func(error) {}).DefaultTransform(c.object)
			if err != nil {
				t.Fatal(err)
			}
			if idle, got := transformed.(*record.Idle); got != c.want || got && idle.GetName() != c.object.GetName() {
				t.Errorf("the cache holds %T, want a record: %t", transformed, c.want)
			}
		})
	}
}
