package cluster

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// TestAgainstTheAPI follows one pod from pending to bound, and its machine, through a real API server. It checks that
// the snapshot contains what was written.
func TestAgainstTheAPI(t *testing.T) {
	w := newWorld(t)
	w.create(poolFor("pool"))
	w.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}}, Spec: small("agent")},
		},
	})
	eventually(t, "the pool and the daemon are there", func() bool {
		snap := w.store.Snapshot(start)
		return snap.Pool("pool") != nil && snap.Pool("pool").Catalog != nil && len(snap.Daemons) == 1
	})

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: small("web")}
	w.create(pod)
	w.status(pod, func() {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	})
	eventually(t, "the pod is pending", func() bool { return len(w.store.Snapshot(start).Groups) == 1 })

	claim := claimFor("pool-1")
	w.create(claim)
	w.store.Wrote(claim)
	if n := w.store.Snapshot(start).Claim("pool-1"); n == nil || n.UID != string(claim.UID) {
		t.Fatalf("the claim that was just created is not in the next snapshot: %v", n)
	}

	w.nominate(pod, "node-1")
	eventually(t, "the pod that we nominated stays pending", func() bool {
		snap := w.store.Snapshot(start)
		return len(snap.Groups) == 1 && snap.Groups[0].Pods[0].Nominated == "node-1"
	})

	w.status(claim, func() {
		claim.Status.ProviderID = "shop://1"
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		claim.Status.Allocatable = claim.Status.Capacity
	})
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{karpv1.LabelNodePool: "pool", karpv1.LabelRegistered: "true"}},
		Spec:       corev1.NodeSpec{ProviderID: "shop://1"},
	}
	w.create(node)
	eventually(t, "the claim is its node", func() bool { return nodesOf(w.store) == "node-1(pool-1)registered" })

	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}}
	if err := w.client.SubResource("binding").Create(t.Context(), pod, binding); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is on the node", func() bool {
		snap := w.store.Snapshot(start)
		return len(snap.Groups) == 0 && len(snap.Node("node-1").Pods) == 1
	})

	w.delete(pod, client.GracePeriodSeconds(0))
	w.delete(node)
	w.delete(claim)
	eventually(t, "all is gone", func() bool {
		return nodesOf(w.store) == "" && w.store.Pod(client.ObjectKeyFromObject(pod)) == nil
	})
	eventually(t, "nothing of our own is left to wait for", func() bool {
		return inside(w.store, func() bool { return len(w.store.writes) == 0 })
	})
}

// TestVolumesAgainstTheAPI checks that a pod that was rejected because of its volume may be placed as soon as its
// storage class exists.
func TestVolumesAgainstTheAPI(t *testing.T) {
	w := newWorld(t)
	class := "fast"
	w.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default"}, Spec: small("db")}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	w.create(pod)
	w.status(pod, func() {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	})
	eventually(t, "the pod is refused", func() bool {
		list := w.store.Snapshot(start).Rejected
		return len(list) == 1 && list[0].Rejected.Reason == `storage class "fast" of claim "data" does not exist`
	})
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	w.create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "csi.example", VolumeBindingMode: &mode})
	eventually(t, "the pod may be placed", func() bool { return len(w.store.Snapshot(start).Groups) == 1 })
}

// TestGhostAgainstTheAPI covers a claim that this process creates and another client deletes, while the store has no
// watch. The claim is in the snapshots until a live read.
func TestGhostAgainstTheAPI(t *testing.T) {
	w := newWorld(t)
	w.create(poolFor("pool"))
	unwatched, err := NewStore(Config{
		Provider: &shop{}, Scheme: w.client.Scheme(), Live: w.client, Options: Options{WriteVisible: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim := claimFor("pool-1")
	w.create(claim)
	unwatched.Wrote(claim)
	current := func() (version string, checked time.Time) {
		unwatched.mutex.Lock()
		defer unwatched.mutex.Unlock()
		e := unwatched.writes[state.Ref{Kind: state.Claims, Key: types.NamespacedName{Name: "pool-1"}}]
		return e.now().GetResourceVersion(), e.own.checked
	}
	_, written := current()
	run(t, unwatched)
	eventually(t, "a claim that exists is asked about and stays", func() bool {
		version, checked := current()
		return version == claim.ResourceVersion && checked.After(written)
	})
	if got := nodesOf(unwatched); got != "pool-1(pool-1)launching" {
		t.Fatalf("nodes: %q", got)
	}
	w.delete(claim)
	eventually(t, "the ghost goes", func() bool { return nodesOf(unwatched) == "" })
}

// world is an API server and a store that watches it.
type world struct {
	*testing.T
	client client.Client
	store  *Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	c, err := client.New(config, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, Config{Live: c, Provider: &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1)}}, Options: Options{WriteVisible: time.Second}})
	options := CacheOptions(nil, func(error) { s.Recheck() })
	options.Scheme = c.Scheme()
	if err := CutPods(&options, config); err != nil {
		t.Fatal(err)
	}
	informers, err := cache.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	if err := s.Watch(ctx, informers); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- informers.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	run(t, s)
	if !s.WaitForSync(ctx) {
		t.Fatal("the store does not sync")
	}
	return &world{T: t, client: c, store: s}
}

func (w *world) create(obj client.Object) {
	w.Helper()
	if err := w.client.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) delete(obj client.Object, options ...client.DeleteOption) {
	w.Helper()
	if err := w.client.Delete(w.Context(), obj, options...); err != nil {
		w.Fatal(err)
	}
	w.store.Deleted(obj)
}

func (w *world) status(obj client.Object, change func()) {
	w.Helper()
	base := obj.DeepCopyObject().(client.Object)
	change()
	if err := w.client.Status().Patch(w.Context(), obj, client.MergeFrom(base)); err != nil {
		w.Fatal(err)
	}
}

// nominate writes a nomination like the executor.
func (w *world) nominate(pod *corev1.Pod, node string) {
	w.Helper()
	base := pod.DeepCopy()
	pod.Status.NominatedNodeName = node
	if err := w.client.Status().Patch(w.Context(), pod, client.MergeFrom(base), client.FieldOwner(convert.NominationManager)); err != nil {
		w.Fatal(err)
	}
	if !convert.NominatedByUs(pod) {
		w.Fatalf("the managed fields do not show the nomination of this controller: %v", pod.ManagedFields)
	}
	w.store.Wrote(pod)
}

func small(name string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: name, Image: name,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
	}}}
}

func claimFor(name string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.LabelNodePool: "pool"}},
		Spec: karpv1.NodeClaimSpec{
			Requirements: []karpv1.Requirement{},
			NodeClassRef: karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		},
	}
}

func poolFor(name string) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{}
	pool.Spec.Template.Spec.NodeClassRef = claimFor(name).Spec.NodeClassRef
	return pool
}
