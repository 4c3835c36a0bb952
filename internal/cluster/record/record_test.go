package record

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// bound returns the pod with a number, of a template with a number.
func bound(template, i int) *corev1.Pod {
	at := metav1.Unix(1_790_000_000+int64(i), 0)
	app, yes := fmt.Sprintf("app-%d", template), true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-7d9f8c6b5-%05d", app, i), GenerateName: app + "-7d9f8c6b5-", Namespace: "shop",
			UID: types.UID(fmt.Sprintf("c1f2a3b4-0000-4000-8000-%012d", i)), ResourceVersion: fmt.Sprint(1000 + i), CreationTimestamp: at,
			Labels:          map[string]string{"app": app, "pod-template-hash": "7d9f8c6b5"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "r", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i/10),
			Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
			}}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at},
		}},
	}
	return pod
}

// alike compares pods without regard to how absent values are written, which their encoding does not keep.
var alike = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(metav1.FieldsV1{}),
	cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })}

// TestPack covers which pods become records, and that a record is its pod.
func TestPack(t *testing.T) {
	var table Table
	for _, test := range []struct {
		name   string
		change func(*corev1.Pod)
		whole  bool
	}{
		{"a bound pod", func(*corev1.Pod) {}, false},
		{"another one of the template", func(pod *corev1.Pod) { pod.Name, pod.Spec.NodeName = "other", "other" }, false},
		{"no label, no start", func(pod *corev1.Pod) { pod.Labels, pod.Status = nil, corev1.PodStatus{} }, false},
		{"no time of creation", func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.Time{} }, false},
		{"a volume", func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "data"}} }, false},
		{"not ready", func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		{"ended", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, false},
		{"pending", func(pod *corev1.Pod) { pod.Spec.NodeName = "" }, true},
		{"terminating", func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		{"fine creation", func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.Unix(1, 1) }, true},
		{"fine start", func(pod *corev1.Pod) { pod.Status.StartTime = &metav1.Time{Time: time.Unix(1, 1)} }, true},
		{"start at no time", func(pod *corev1.Pod) { pod.Status.StartTime = &metav1.Time{} }, true},
		{"fine binding", func(pod *corev1.Pod) { pod.Status.Conditions[1].LastTransitionTime = metav1.Unix(1, 1) }, true},
		{"many conditions", func(pod *corev1.Pod) { pod.Status.Conditions = make([]corev1.PodCondition, 4) }, true},
		{"of a file", func(pod *corev1.Pod) { pod.Kind = "Pod" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := bound(1, 1)
			test.change(pod)
			want := pod.DeepCopy()
			r := table.Pack(pod)
			if r == nil != test.whole {
				t.Fatalf("a record: %v, want %v", r != nil, !test.whole)
			}
			got := pod
			if r != nil {
				got = r.Whole()
				sameMeta(t, r, want)
			}
			if diff := cmp.Diff(want, got, alike); diff != "" {
				t.Errorf("the pod (-want +got):\n%s", diff)
			}
		})
	}
}

// sameMeta checks that a record is the same object as its pod.
func sameMeta(t *testing.T, r *Pod, want *corev1.Pod) {
	t.Helper()
	key := func(o metav1.Object) string {
		return fmt.Sprint(o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion(), o.GetLabels(), o.GetAnnotations(),
			metav1.GetControllerOf(o).Name, o.GetDeletionTimestamp(), o.GetCreationTimestamp().Unix(), o.GetFinalizers(), o.GetGenerateName())
	}
	object, err := meta.Accessor(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := key(object); got != key(want) {
		t.Errorf("the record is %s, want %s", got, key(want))
	}
	if r.Node() != want.Spec.NodeName {
		t.Errorf("on node %q, want %q", r.Node(), want.Spec.NodeName)
	}
	if diff := cmp.Diff(r.Whole(), r.DeepCopyObject().(*Pod).Whole(), alike); diff != "" {
		t.Errorf("a copy differs (-want +got):\n%s", diff)
	}
}

// TestRandomPods packs pods with randomly filled fields.
func TestRandomPods(t *testing.T) {
	var table Table
	records := 0
	for seed := range int64(300) {
		pod := &corev1.Pod{}
		randfill.NewWithSeed(seed).NilChance(0.6).NumElements(0, 2).MaxDepth(9).Funcs(
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewMilliQuantity(int64(c.Intn(5000)), resource.DecimalSI)
			},
			func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Uint32()), 0) },
		).Fill(pod)
		pod.TypeMeta, pod.DeletionTimestamp = metav1.TypeMeta{}, nil
		pod.Status.Conditions = pod.Status.Conditions[:min(len(pod.Status.Conditions), mostConditions)]
		want := pod.DeepCopy()
		r := table.Pack(pod)
		if r == nil {
			continue
		}
		records++
		if diff := cmp.Diff(want, r.Whole(), alike); diff != "" {
			t.Fatalf("seed %d: the pod (-want +got):\n%s", seed, diff)
		}
	}
	if records < 100 {
		t.Errorf("%d records of 300 pods are too few", records)
	}
}

// TestShared checks that the records of a template share it, and that nothing is kept of templates without pods.
func TestShared(t *testing.T) {
	var table Table
	records := make([]*Pod, 0, 2000)
	for i := range 2000 {
		records = append(records, table.Pack(bound(i%20, i)))
	}
	if n := [2]int{table.commons.len(), table.labels.len()}; n != [2]int{20, 20} {
		t.Errorf("%d commons and labels of 20 templates", n)
	}
	records[0].Whole().Status.Conditions[1].Reason = "changed"
	if got := records[20].Whole().Status.Conditions[1].Reason; got != "" {
		t.Errorf("a sibling has the reason %q of another pod", got)
	}
	records = records[:1]
	clear(records[:cap(records)])
	for range 100 { // cleanups run some time after a collection
		runtime.GC()
		if table.commons.len() == 0 && table.labels.len() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d commons and %d labels remain of no pod", table.commons.len(), table.labels.len())
}

// TestBytes bounds the memory of a record: itself and the text that no other pod has.
func TestBytes(t *testing.T) {
	const pods, most = 20_000, 256
	var table Table
	records := make([]*Pod, pods)
	before := inUse()
	for i := range records {
		records[i] = table.Pack(bound(i%100, i))
	}
	each := (inUse() - before) / pods
	t.Logf("%d bytes for each pod", each)
	if each > most {
		t.Errorf("%d bytes for each pod, want %d at most", each, most)
	}
	runtime.KeepAlive(records)
}

func inUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one unmarks is swept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestShare checks that nodes and claims keep their meaning, and share what they repeat.
func TestShare(t *testing.T) {
	var table Table
	var nodes []*corev1.Node
	var claims []*karpv1.NodeClaim
	for i := range 2 {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		labels := map[string]string{strings.Clone("zone"): strings.Clone("a"), corev1.LabelHostname: fmt.Sprint("host-", i)}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i), Labels: labels}}
		node.Status.Allocatable, node.Status.Conditions = list, []corev1.NodeCondition{{Type: "Ready", Status: "True",
			Reason: strings.Clone("Kubelet")}}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("claim-", i),
			Annotations: map[string]string{strings.Clone("key"): fmt.Sprint("of-", i)}}}
		claim.Spec.Requirements = []karpv1.Requirement{{Key: "type", Operator: "In", Values: []string{"a", "b"}, MinValues: new(2)}}
		claim.Status.Capacity, claim.Status.Conditions = list, []status.Condition{{Type: "Ready", Status: "True", Reason: strings.Clone("Ready")}}
		wantNode, wantClaim := node.DeepCopy(), claim.DeepCopy()
		table.Share(node)
		table.Share(claim)
		if diff := cmp.Diff(wantNode, node) + cmp.Diff(wantClaim, claim); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		nodes, claims = append(nodes, node), append(claims, claim)
	}
	same := func(what string, a, b string) {
		if unsafe.StringData(a) != unsafe.StringData(b) {
			t.Errorf("%s: two copies of %q", what, a)
		}
	}
	same("value of a label", nodes[0].Labels["zone"], nodes[1].Labels["zone"])
	same("key of a label", keyOf(nodes[0].Labels, "zone"), keyOf(nodes[1].Labels, "zone"))
	same("key of an annotation", keyOf(claims[0].Annotations, "key"), keyOf(claims[1].Annotations, "key"))
	same("reason", nodes[0].Status.Conditions[0].Reason, nodes[1].Status.Conditions[0].Reason)
	same("reason of a claim", claims[0].Status.Conditions[0].Reason, claims[1].Status.Conditions[0].Reason)
	if &claims[0].Spec.Requirements[0] != &claims[1].Spec.Requirements[0] {
		t.Error("two copies of the requirements")
	}
	lists := reflect.ValueOf(nodes[0].Status.Allocatable).Pointer()
	for _, list := range []corev1.ResourceList{nodes[1].Status.Allocatable, claims[0].Status.Capacity, claims[1].Status.Capacity} {
		if reflect.ValueOf(list).Pointer() != lists {
			t.Error("two copies of amounts")
		}
	}
}

// TestRequirementsApart checks that lists of requirements that differ anywhere are not shared.
func TestRequirementsApart(t *testing.T) {
	var table Table
	lists := [][]karpv1.Requirement{
		{{Key: "a", Operator: "In", Values: []string{"b", "c"}}}, {{Key: "a", Operator: "In", Values: []string{"bc"}}},
		{{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "c", Operator: "Exists"}}, {{Key: "a", Operator: "In", Values: []string{"b"}}},
		{{Key: "a", Operator: "NotIn", Values: []string{"b", "c"}}}, {{Key: "a", Operator: "In", Values: []string{"b", "c"}, MinValues: new(1)}},
		{{Key: "a", Operator: "In", Values: []string{"b\"\"c"}}}, {{Key: "aI", Operator: "n", Values: []string{"b", "c"}}},
		{{Key: "a", Operator: "Exists", MinValues: new(1)}}, {{Key: "a", Operator: "Exists1"}},
		{{Key: "a", Operator: "Exists;"}}, {{Key: "a", Operator: "Exists"}},
	}
	for i, list := range lists {
		want := append([]karpv1.Requirement(nil), list...)
		if diff := cmp.Diff(want, table.requirements(list)); diff != "" {
			t.Errorf("list %d is another (-want +got):\n%s", i, diff)
		}
	}
}

func keyOf(all map[string]string, key string) string {
	for k := range all {
		if k == key {
			return k
		}
	}
	return ""
}

// TestMostShared checks that the values that are shared are bounded.
func TestMostShared(t *testing.T) {
	var table Table
	for i := range 3 * mostShared {
		table.text(fmt.Sprint(i))
	}
	if n := len(table.texts.all); n > mostShared {
		t.Errorf("%d texts are kept, want %d at most", n, mostShared)
	}
}

// TestPlace checks that a place holds one pod after another.
func TestPlace(t *testing.T) {
	var table Table
	var place Place
	plain := bound(3, 3)
	plain.Status.StartTime, plain.Status.Conditions, plain.Spec.Volumes = nil, nil, []corev1.Volume{{Name: "data"}}
	for _, want := range []*corev1.Pod{bound(1, 1), bound(2, 2), plain, bound(1, 4)} {
		if diff := cmp.Diff(want, place.Whole(table.Pack(want.DeepCopy())), alike); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if place.Whole(want) != want {
			t.Error("a whole pod is another one")
		}
	}
}
