package nodelabel

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// onlyKwok is a cloud that owns kwok's classes. None of its other methods are called.
type onlyKwok struct{ cloud.Provider }

func (onlyKwok) NodeClasses() []client.Object { return []client.Object{&kwokv1alpha1.KWOKNodeClass{}} }

func world(t *testing.T, objects ...client.Object) (*Reconciler, *events.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	classes, err := controller.ClassesOf(onlyKwok{}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	sink := events.NewFakeRecorder(100)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &Reconciler{
		Client: c, Provider: onlyKwok{},
		Pods: func(ctx context.Context) (iter.Seq[*corev1.Pod], error) {
			var pods corev1.PodList
			err := c.List(ctx, &pods)
			return func(yield func(*corev1.Pod) bool) {
				for i := range pods.Items {
					if !yield(&pods.Items[i]) {
						return
					}
				}
			}, err
		},
		Recorder: telemetry.NewRecorder(sink, clock.RealClock{}), Timers: controller.Production(), classes: classes,
	}, sink
}

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// everywhere has an old name in each field where a pod can have one.
const everywhere = `
metadata: {name: p, namespace: n, uid: p, annotations: {karpenter.sh/do-not-evict: "true"}}
spec:
  nodeSelector: {karpenter.sh/provisioner-name: general, karpenter.sh/capacity-type: spot, node.k8s.aws/subnet-name: a}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
        {matchExpressions: [{key: karpenter.k8s.aws/instance.family, operator: In, values: [c5]}]},
        {matchExpressions: [{key: karpenter.k8s.aws/instance.family, operator: In, values: [c6]}]}]}
      preferredDuringSchedulingIgnoredDuringExecution: [
        {weight: 1, preference: {matchExpressions: [{key: karpenter.k8s.aws/instance.size, operator: Exists}]}}]
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: karpenter.k8s.aws/instance.cpu}]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: karpenter.k8s.aws/instance.memory}}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: node.k8s.aws/capacity-type, whenUnsatisfiable: DoNotSchedule}]
`

func TestUses(t *testing.T) {
	pod := read[corev1.Pod](t, everywhere)
	var got []string
	for _, u := range annotated(usesOf(&pod.Spec), pod.Annotations) {
		got = append(got, u.field+" "+u.old+" "+u.today)
	}
	want := []string{
		"spec.affinity.nodeAffinity karpenter.k8s.aws/instance.family karpenter.k8s.aws/instance-family",
		"spec.affinity.nodeAffinity karpenter.k8s.aws/instance.size karpenter.k8s.aws/instance-size",
		"spec.affinity.podAffinity karpenter.k8s.aws/instance.cpu karpenter.k8s.aws/instance-cpu",
		"spec.affinity.podAntiAffinity karpenter.k8s.aws/instance.memory karpenter.k8s.aws/instance-memory",
		"spec.nodeSelector karpenter.sh/provisioner-name karpenter.sh/nodepool",
		"spec.nodeSelector node.k8s.aws/subnet-name ",
		"spec.topologySpreadConstraints node.k8s.aws/capacity-type karpenter.sh/capacity-type",
		"metadata.annotations karpenter.sh/do-not-evict karpenter.sh/do-not-disrupt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// modern has all of the fields and no old name.
var modern = strings.NewReplacer("provisioner-name", "nodepool", "node.k8s.aws/subnet-name: a", "a: b", "instance.", "instance-",
	"node.k8s.aws", "karpenter.sh", "do-not-evict", "do-not-disrupt").Replace(everywhere)

// TestModernPodsCostNothing verifies that the check of a pod without old names is cheap: each pod that changes is
// checked.
func TestModernPodsCostNothing(t *testing.T) {
	pod := read[corev1.Pod](t, modern)
	var uses []use
	if allocations := testing.AllocsPerRun(100, func() { uses = annotated(usesOf(&pod.Spec), pod.Annotations) }); allocations > 0 || len(uses) > 0 {
		t.Errorf("%v allocations, uses: %+v", allocations, uses)
	}
}

func BenchmarkModernPod(b *testing.B) {
	pod := new(corev1.Pod)
	if err := yaml.Unmarshal([]byte(modern), pod); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(usesOf(&pod.Spec)) > 0 {
			b.Fatal("there are old names")
		}
	}
}

const ours = `
metadata:
  name: ours
  labels: {karpenter.kwok.sh/kwoknodeclass: default, karpenter.sh/nodepool: general, karpenter.sh/capacity-type: spot}
`

// requests returns the requests that the creation and a change of a pod cause.
func requests(r *Reconciler, user client.Object) []string {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	r.users().Create(context.Background(), event.CreateEvent{Object: user}, q)
	var names []string
	for q.Len() > 0 {
		request, _ := q.Get()
		names = append(names, request.Name)
	}
	r.users().Update(context.Background(), event.UpdateEvent{ObjectOld: user, ObjectNew: user}, q)
	if q.Len() > 0 {
		names = append(names, "again")
	}
	return names
}

// TestNodesGetTheLabelsInUse verifies that a pod that uses an old label causes managed nodes to get it, with the
// value of the current one. Other nodes do not get it. A second pod with the same names changes nothing.
func TestNodesGetTheLabelsInUse(t *testing.T) {
	others := `metadata: {name: others, labels: {karpenter.sh/nodepool: general, karpenter.sh/capacity-type: spot}}`
	r, _ := world(t, read[corev1.Node](t, ours), read[corev1.Node](t, others))
	reconcileAll := func() {
		t.Helper()
		for _, name := range []string{"ours", "others", "gone"} {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	labels := func(name string) map[string]string {
		node := &corev1.Node{}
		if err := r.Client.Get(t.Context(), types.NamespacedName{Name: name}, node); err != nil {
			t.Fatal(err)
		}
		return node.Labels
	}
	reconcileAll()
	if len(labels("ours")) != 3 {
		t.Errorf("no pod uses an old name, and the node has %v", labels("ours"))
	}
	pod := read[corev1.Pod](t, "metadata: {name: p, namespace: n, uid: p}\nspec: {nodeSelector: {karpenter.sh/provisioner-name: other, karpenter.k8s.aws/instance.cpu: '4'}}")
	if diff := cmp.Diff([]string{"ours"}, requests(r, pod)); diff != "" {
		t.Errorf("examined: %s", diff)
	}
	if names := requests(r, pod); len(names) > 0 {
		t.Errorf("no new name is in use, and %v are examined", names)
	}
	reconcileAll()
	want := map[string]string{
		"karpenter.kwok.sh/kwoknodeclass": "default", "karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "spot",
		"karpenter.sh/provisioner-name": "general", // and no instance.cpu: the node does not have the current label
	}
	if diff := cmp.Diff(want, labels("ours")); diff != "" {
		t.Error(diff)
	}
	if len(labels("others")) != 2 {
		t.Errorf("an unmanaged node has %v", labels("others"))
	}
}

// TestLabelsOfOthersStay verifies that existing labels are not changed.
func TestLabelsOfOthersStay(t *testing.T) {
	node := read[corev1.Node](t, ours)
	node.Labels["karpenter.sh/provisioner-name"] = "of-old"
	r, _ := world(t, node)
	r.keys.add([]use{{old: "karpenter.sh/provisioner-name"}})
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "ours"}}); err != nil {
		t.Fatal(err)
	}
	after := &corev1.Node{}
	if err := r.Client.Get(t.Context(), types.NamespacedName{Name: "ours"}, after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(node.Labels, after.Labels); diff != "" {
		t.Error(diff)
	}
}

// TestComplete verifies that a node gets its old labels before it accepts pods, also in a new process and when only a
// DaemonSet uses them.
func TestComplete(t *testing.T) {
	set := read[appsv1.DaemonSet](t, `
metadata: {name: agent, namespace: n}
spec: {selector: {}, template: {metadata: {}, spec: {containers: [], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: karpenter.sh/provisioner-name, operator: DoesNotExist}]}]}}}}}}
`)
	pod := read[corev1.Pod](t, "metadata: {name: p, namespace: n}\nspec: {containers: [], nodeSelector: {node.k8s.aws/capacity-type: spot}}")
	r, _ := world(t, set, pod)
	node := read[corev1.Node](t, ours)
	if err := r.Complete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	want := read[corev1.Node](t, ours).Labels
	want["karpenter.sh/provisioner-name"], want["node.k8s.aws/capacity-type"] = "general", "spot"
	if diff := cmp.Diff(want, node.Labels); diff != "" {
		t.Error(diff)
	}
}

// TestCountedIsNotLookedAt verifies that a node that registers before the events of the first pods does not prevent
// the check of existing nodes.
func TestCountedIsNotLookedAt(t *testing.T) {
	pod := read[corev1.Pod](t, "metadata: {name: p, namespace: n, uid: p}\nspec: {containers: [], nodeSelector: {karpenter.sh/provisioner-name: other}}")
	r, _ := world(t, read[corev1.Node](t, ours), pod)
	opening := read[corev1.Node](t, ours)
	opening.Name = "opening"
	if err := r.Complete(t.Context(), opening); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ours"}, requests(r, pod)); diff != "" {
		t.Errorf("examined: %s", diff)
	}
}

// TestEvents verifies that an owner gets one event with the current name. A name that cannot be honored is a warning.
func TestEvents(t *testing.T) {
	r, sink := world(t)
	pod := func(name, owner, text string) *corev1.Pod {
		pod := read[corev1.Pod](t, text)
		pod.Name, pod.UID = name, types.UID(name)
		if owner != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: types.UID(owner), Controller: new(true)}}
		}
		return pod
	}
	const selects, gone = "spec: {nodeSelector: {karpenter.sh/provisioner-name: a}}", "spec: {nodeSelector: {node.k8s.aws/subnet-name: a}}"
	for _, p := range []*corev1.Pod{
		pod("a-1", "a", selects), pod("a-2", "a", selects), pod("b-1", "b", selects), pod("c", "", gone), pod("d", "", "spec: {}"),
		pod("e", "", "metadata: {annotations: {karpenter.sh/do-not-evict: 'true'}}"),
	} {
		requests(r, p)
	}
	var got []string
	for len(sink.Events) > 0 {
		got = append(got, <-sink.Events)
	}
	const honored = "Normal OldName Old names are honored, use the new ones: "
	want := []string{
		honored + "spec.nodeSelector uses karpenter.sh/provisioner-name, which is now karpenter.sh/nodepool",
		honored + "spec.nodeSelector uses karpenter.sh/provisioner-name, which is now karpenter.sh/nodepool",
		"Warning OldName Names from before v1: spec.nodeSelector uses node.k8s.aws/subnet-name, which nodes no longer have: use spec.subnetSelectorTerms of an EC2NodeClass",
		honored + "metadata.annotations uses karpenter.sh/do-not-evict, which is now karpenter.sh/do-not-disrupt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
