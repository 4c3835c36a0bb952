package execute_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// written records what the executor passed to the store.
type written struct {
	mu   sync.Mutex
	keys []string
}

func (w *written) Wrote(o client.Object)   { w.add("wrote " + o.GetName()) }
func (w *written) Deleted(o client.Object) { w.add("deleted " + o.GetName()) }

func (w *written) add(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys = append(w.keys, key)
}

func (w *written) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := w.keys
	w.keys = nil
	return keys
}

// bench is an executor on a real API server.
type bench struct {
	*execute.Executor
	t      *testing.T
	client client.WithWatch
	store  *written
}

func newBench(t *testing.T) *bench {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), karpv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, client: c, store: &written{}}
	b.Executor = b.with(interceptor.Funcs{})
	return b
}

// with returns an executor whose cached client is intercepted.
func (b *bench) with(funcs interceptor.Funcs) *execute.Executor {
	return &execute.Executor{
		Client: interceptor.NewClient(b.client, funcs), Live: b.client, Store: b.store,
		Metrics:   telemetry.New(prometheus.NewRegistry()),
		WellKnown: map[string]bool{model.LabelType: true, model.LabelCapacityType: true, model.LabelZone: true, "kubernetes.io/arch": true},
	}
}

func (b *bench) do(x *execute.Executor, actions ...plan.Action) {
	b.t.Helper()
	for _, o := range x.Do(b.t.Context(), actions) {
		if o.Err != nil {
			b.t.Errorf("unexpected: %v", o.Err)
		}
	}
}

func (b *bench) create(o client.Object) {
	b.t.Helper()
	if err := b.client.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(o client.Object) {
	b.t.Helper()
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) pool(name string) *karpv1.NodePool {
	pool := &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{karpv1.AnnotationKubelet: `{"maxPods":7}`}},
		Spec: karpv1.NodePoolSpec{Template: karpv1.NodeClaimTemplate{
			ObjectMeta: karpv1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "n"}},
			Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef:           karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
				Taints:                 []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}},
				StartupTaints:          []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoExecute}},
				TerminationGracePeriod: &metav1.Duration{Duration: time.Hour},
				ExpireAfter:            karpv1.NillableDuration{},
				Requirements:           []karpv1.Requirement{},
			},
		}},
	}
	b.create(pool)
	return pool
}

func (b *bench) claim(name string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.LabelNodePool: "p", karpv1.LabelCapacityType: "spot"},
			Finalizers: []string{karpv1.FinalizerTermination}},
		Spec: karpv1.NodeClaimSpec{Requirements: []karpv1.Requirement{},
			NodeClassRef: karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}},
	}
	b.create(claim)
	return claim
}

func (b *bench) node(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}}}
	b.create(node)
	return node
}

func (b *bench) pod(name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	b.create(pod)
	return pod
}

func TestExecutor(t *testing.T) {
	b := newBench(t)
	for name, test := range map[string]func(*testing.T, *bench){
		"create a claim":             testCreate,
		"create what is there":       testCreateAgain,
		"create a relaxed claim":     testCreateRelaxed,
		"create for a changed pool":  testCreateForChangedPool,
		"taint and untaint":          testTaint,
		"conflict":                   testConflict,
		"command and reason":         testCommand,
		"pause of a pool":            testPause,
		"notes of one pass":          testPauses,
		"delete":                     testDelete,
		"nominate":                   testNominate,
		"what is gone is left alone": testGone,
		"one failure stops no other": testFailure,
		"provision and advance":      testLoops,
	} {
		t.Run(name, func(t *testing.T) {
			sub := *b
			sub.t = t
			test(t, &sub)
		})
	}
}

func planned(name string, pool *karpv1.NodePool) plan.NewClaim {
	return plan.NewClaim{
		Name: name, Pool: pool.Name, PoolUID: string(pool.UID),
		Requirements: []label.Requirement{
			{Key: model.LabelType, Operator: label.In, Values: []string{"b", "a"}, MinValues: 2},
			{Key: model.LabelCapacityType, Operator: label.In, Values: []string{"spot"}},
			{Key: "kubernetes.io/arch", Operator: label.Exists},
			{Key: "disk", Operator: label.In, Values: []string{"ssd", "nvme"}},
			{Key: model.LabelHostname, Operator: label.In, Values: []string{"h"}},
		},
		Labels: map[string]string{"rack": "7"},
		Requests: []quantity.Amount{{Name: "cpu", Value: 1500}, {Name: "memory", Value: 3 << 30}, {Name: "pods", Value: 4},
			{Name: "gpu.io/gpu", Value: 1}},
	}
}

func testCreate(t *testing.T, b *bench) {
	pool := b.pool("create")
	x := b.with(interceptor.Funcs{})
	b.do(x, plan.CreateClaim{NewClaim: planned("create-1", pool), Reason: "provisioned"})
	got := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "create-1"}}
	b.get(got)
	want := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "create-1",
			Labels: map[string]string{"team": "a", "rack": "7", "disk": "nvme", karpv1.LabelNodePool: "create",
				"karpenter.kwok.sh/kwoknodeclass": "default"},
			Annotations: map[string]string{"note": "n", karpv1.AnnotationNodePoolHash: pool.Hash(), karpv1.AnnotationKubelet: `{"maxPods":7}`,
				karpv1.AnnotationNodePoolHashVersion: karpv1.HashVersion, karpv1.AnnotationMinValuesRelaxed: "false",
				karpv1.AnnotationBoughtBy: "provisioned"},
			Finalizers: []string{karpv1.FinalizerTermination},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "create", UID: pool.UID,
				BlockOwnerDeletion: new(true)}},
		},
		Spec: karpv1.NodeClaimSpec{
			Taints:        pool.Spec.Template.Spec.Taints,
			StartupTaints: pool.Spec.Template.Spec.StartupTaints,
			Requirements: []karpv1.Requirement{
				{Key: model.LabelType, Operator: "In", Values: []string{"b", "a"}, MinValues: new(2)},
				{Key: model.LabelCapacityType, Operator: "In", Values: []string{"spot"}},
				{Key: "kubernetes.io/arch", Operator: "Exists"},
				{Key: "disk", Operator: "In", Values: []string{"ssd", "nvme"}},
			},
			Resources: karpv1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"),
				"memory": resource.MustParse("3Gi"),
				"pods":   resource.MustParse("4"), "gpu.io/gpu": resource.MustParse("1")}},
			NodeClassRef:           pool.Spec.Template.Spec.NodeClassRef,
			TerminationGracePeriod: &metav1.Duration{Duration: time.Hour},
			ExpireAfter:            karpv1.NillableDuration{},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "Generation",
		"CreationTimestamp", "ManagedFields"),
		cmpopts.IgnoreFields(karpv1.NillableDuration{}, "Raw"), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	if n := testutil.ToFloat64(x.Metrics.NodeClaimsCreated.WithLabelValues("provisioned", "create", "false")); n != 1 {
		t.Errorf("counted %v claims", n)
	}
	if diff := cmp.Diff([]string{"wrote create-1"}, b.store.take()); diff != "" {
		t.Errorf("passed to the store (-want +got):\n%s", diff)
	}
}

// testCreateRelaxed verifies that a claim reports, in an annotation and in the metric, that it has fewer instance
// types than the pool requires. A claim for a reservation names it.
func testCreateRelaxed(t *testing.T, b *bench) {
	pool := b.pool("relaxed")
	x := b.with(interceptor.Funcs{})
	claim := planned("relaxed-1", pool)
	claim.MinValuesRelaxed = true
	claim.Requirements = []label.Requirement{
		{Key: model.LabelType, Operator: label.In, Values: []string{"a"}, MinValues: 1},
		{Key: "kubernetes.io/arch", Operator: label.Exists, MinValues: 1},
		{Key: model.LabelCapacityType, Operator: label.In, Values: []string{"reserved"}},
		{Key: "example.com/reservation", Operator: label.In, Values: []string{"r-1"}},
	}
	b.do(x, plan.CreateClaim{NewClaim: claim, Reason: "provisioned"})
	got := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "relaxed-1"}}
	b.get(got)
	if text := got.Annotations[karpv1.AnnotationMinValuesRelaxed]; text != "true" {
		t.Errorf("the annotation is %q, want true", text)
	}
	want := []karpv1.Requirement{
		{Key: model.LabelType, Operator: "In", Values: []string{"a"}, MinValues: new(1)},
		{Key: "kubernetes.io/arch", Operator: "Exists", MinValues: new(1)},
		{Key: model.LabelCapacityType, Operator: "In", Values: []string{"reserved"}},
		{Key: "example.com/reservation", Operator: "In", Values: []string{"r-1"}},
	}
	if diff := cmp.Diff(want, got.Spec.Requirements); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
	if n := testutil.ToFloat64(x.Metrics.NodeClaimsCreated.WithLabelValues("provisioned", "relaxed", "true")); n != 1 {
		t.Errorf("counted %v claims", n)
	}
	b.store.take()
}

// testCreateForChangedPool verifies that a claim that was planned for an older specification of its pool is not
// created. Its taints, labels and hash would follow one specification and its requirements another.
func testCreateForChangedPool(t *testing.T, b *bench) {
	pool := b.pool("changed")
	claim := planned("changed-1", pool)
	claim.PoolGeneration = pool.Generation
	pool.Spec.Template.Spec.Taints = nil
	if err := b.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	outcome := b.Do(t.Context(), []plan.Action{plan.CreateClaim{NewClaim: claim, Reason: "provisioned"}})[0]
	var notNow *execute.NotNowError
	if !errors.As(outcome.Err, &notNow) || notNow.Verdict.Code != plan.PoolBlocked {
		t.Errorf("outcome %v, want that the pool has changed", outcome.Err)
	}
	claim.PoolGeneration = pool.Generation
	b.do(b.Executor, plan.CreateClaim{NewClaim: claim, Reason: "provisioned"})
	b.store.take()
}

func testCreateAgain(t *testing.T, b *bench) {
	pool, other := b.pool("again"), b.pool("again-other")
	x := b.with(interceptor.Funcs{})
	create := plan.CreateClaim{NewClaim: planned("again-1", pool), Reason: "provisioned"}
	b.do(x, create)
	b.do(x, create) // as after a crash: the same claim, and success
	if n := testutil.ToFloat64(x.Metrics.NodeClaimsCreated.WithLabelValues("provisioned", "again", "false")); n != 1 {
		t.Errorf("counted %v claims, want 1", n)
	}
	var all karpv1.NodeClaimList
	if err := b.client.List(t.Context(), &all, client.MatchingLabels{karpv1.LabelNodePool: "again"}); err != nil || len(all.Items) != 1 {
		t.Errorf("%d claims (%v), want 1", len(all.Items), err)
	}

	b.wantNotNow(x, plan.CreateClaim{NewClaim: planned("again-1", other)}, plan.NodeTaken)
	renamed := planned("again-2", pool)
	renamed.PoolUID = "other"
	b.wantNotNow(x, plan.CreateClaim{NewClaim: renamed}, plan.PoolGone)
	renamed.Pool = "nowhere"
	b.wantNotNow(x, plan.CreateClaim{NewClaim: renamed}, plan.PoolGone)
	if err := b.client.Delete(t.Context(), &all.Items[0]); err != nil { // remains because of its finalizer
		t.Fatal(err)
	}
	b.wantNotNow(x, create, plan.NodeLeaving)
	b.store.take()
}

func (b *bench) wantNotNow(x *execute.Executor, action plan.Action, code plan.Code) {
	b.t.Helper()
	err := x.Do(b.t.Context(), []plan.Action{action})[0].Err
	var notNow *execute.NotNowError
	if !errors.As(err, &notNow) || notNow.Verdict.Code != code {
		b.t.Errorf("%s: error %v, want not now because %d", action, err, code)
	}
}

func testTaint(t *testing.T, b *bench) {
	node := b.node("taint")
	taint, untaint := plan.TaintNode{Node: "taint", UID: string(node.UID)}, plan.UntaintNode{Node: "taint", UID: string(node.UID)}
	b.do(b.Executor, untaint)
	b.do(b.Executor, taint)
	b.do(b.Executor, taint)
	if diff := cmp.Diff([]string{"wrote taint"}, b.store.take()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	before := node.Spec.Taints
	b.get(node)
	if diff := cmp.Diff(append(before, karpv1.DisruptedTaint()), node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	b.do(b.Executor, untaint)
	b.get(node)
	if diff := cmp.Diff(before, node.Spec.Taints); diff != "" {
		t.Errorf("taints after untainting (-want +got):\n%s", diff)
	}
	b.store.take()
}

// testConflict verifies that a stale cache does not overwrite a taint of another writer.
func testConflict(t *testing.T, b *bench) {
	stale := b.node("conflict")
	fresh := stale.DeepCopy()
	fresh.Spec.Taints = append(fresh.Spec.Taints, corev1.Taint{Key: "foreign", Effect: corev1.TaintEffectNoExecute})
	if err := b.client.Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	reads := 0
	x := b.with(interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object,
		_ ...client.GetOption) error {
		reads++
		stale.DeepCopyInto(o.(*corev1.Node))
		return nil
	}})
	b.do(x, plan.TaintNode{Node: "conflict", UID: string(stale.UID)})
	want := append(fresh.Spec.Taints, karpv1.DisruptedTaint())
	b.get(fresh)
	if diff := cmp.Diff(want, fresh.Spec.Taints); diff != "" || reads != 1 {
		t.Errorf("after %d cached reads, want 1; taints (-want +got):\n%s", reads, diff)
	}
	b.store.take()
}

// testPause verifies that a pause is written to its pool, and removed.
func testPause(t *testing.T, b *bench) {
	pool := b.pool("pause")
	uid := string(pool.UID)
	at := time.Date(2026, 5, 1, 12, 0, 0, 5, time.UTC)
	paused := pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: "uid"}, Name: "launches for ReplicaSet default/web", Failures: 4,
		At: at, Until: at.Truncate(time.Second), Why: "gone"}
	b.do(b.Executor, plan.SetPause{Pool: pool.Name, UID: uid, Pause: paused},
		plan.SetPause{Pool: pool.Name, UID: "other", Pause: pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: "other"}, Failures: 1, At: at}})
	b.get(pool)
	if diff := cmp.Diff(pause.List{paused}, pause.Parse(pool.Annotations[karpv1.AnnotationPauses])); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	for range 2 {
		b.do(b.Executor, plan.EndPause{Pool: pool.Name, UID: uid, Key: paused.Key})
	}
	if b.get(pool); pool.Annotations[karpv1.AnnotationPauses] != "" {
		t.Errorf("remaining: %s", pool.Annotations[karpv1.AnnotationPauses])
	}
	b.store.take()
}

func testCommand(t *testing.T, b *bench) {
	claim := b.claim("command")
	uid := string(claim.UID)
	cmd := plan.NewCommand(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), plan.Empty, "empty",
		[]plan.Candidate{{Claim: "command", ClaimUID: uid}})
	b.do(b.Executor, plan.WriteCommand{Claim: "command", UID: uid, Command: cmd},
		plan.SetDisruptionReason{Claim: "command", UID: uid, Reason: plan.Empty})
	b.get(claim)
	if got, err := plan.DecodeCommand(claim.Annotations[karpv1.AnnotationCommand]); err != nil || got.ID != cmd.ID {
		t.Errorf("command on the claim: %q (%v)", claim.Annotations[karpv1.AnnotationCommand], err)
	}
	if c := claim.Condition(karpv1.ConditionDisruptionReason); !c.IsTrue() || c.Reason != "Empty" {
		t.Errorf("condition %+v", c)
	}
	undo := []plan.Action{plan.ClearCommand{Claim: "command", UID: uid}, plan.ClearDisruptionReason{Claim: "command", UID: uid}}
	b.do(b.Executor, undo...)
	b.do(b.Executor, undo...)
	b.get(claim)
	if claim.Annotations[karpv1.AnnotationCommand] != "" || claim.Condition(karpv1.ConditionDisruptionReason) != nil {
		t.Errorf("remaining: %v, %v", claim.Annotations, claim.Status.Conditions)
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 5, time.UTC)
	b.do(b.Executor, plan.MarkConsolidated{Claim: "command", UID: "other", At: at.Add(time.Hour)},
		plan.MarkConsolidated{Claim: "command", UID: uid, At: at})
	if b.get(claim); claim.Annotations[karpv1.AnnotationConsolidated] != "2026-05-01T12:00:00Z" {
		t.Errorf("annotations %v", claim.Annotations)
	}
	b.do(b.Executor, plan.MarkPodsSent{Claim: "command", UID: "other", At: at.Add(time.Hour)},
		plan.MarkPodsSent{Claim: "command", UID: uid, At: at})
	if b.get(claim); claim.Annotations[karpv1.AnnotationExpecting] != "2026-05-01T12:00:00Z" {
		t.Errorf("annotations %v", claim.Annotations)
	}
	b.store.take()
}

func testDelete(t *testing.T, b *bench) {
	b.pool("p")
	claim := b.claim("delete")
	x := b.with(interceptor.Funcs{})
	b.do(x, plan.DeleteClaim{Claim: "delete", UID: "other", Reason: plan.Empty})
	if b.get(claim); !claim.DeletionTimestamp.IsZero() {
		t.Fatal("a claim with another UID was deleted")
	}
	b.do(x, plan.DeleteClaim{Claim: "delete", UID: string(claim.UID), Reason: plan.Empty})
	b.do(x, plan.DeleteClaim{Claim: "delete", UID: string(claim.UID), Reason: plan.Empty})
	if b.get(claim); claim.DeletionTimestamp.IsZero() {
		t.Error("the claim is not being deleted")
	}
	if n := testutil.ToFloat64(x.Metrics.NodeClaimsDisrupted.WithLabelValues("empty", "p", "spot",
		"when_empty_or_underutilized", "graceful")); n != 1 {
		t.Errorf("counted %v deletions, want 1", n)
	}
	if diff := cmp.Diff([]string{"deleted delete"}, b.store.take()); diff != "" {
		t.Errorf("passed to the store (-want +got):\n%s", diff)
	}
}

func testNominate(t *testing.T, b *bench) {
	pod := b.pod("nominate", "")
	nominate := plan.NominatePod{Namespace: "default", Name: "nominate", UID: string(pod.UID), Node: "some-node"}
	b.do(b.Executor, nominate, nominate)
	if b.get(pod); pod.Status.NominatedNodeName != "some-node" || !convert.NominatedByUs(pod) {
		t.Errorf("nominated to %q, by the executor: %v", pod.Status.NominatedNodeName, convert.NominatedByUs(pod))
	}
	b.do(b.Executor, plan.ClearNomination{Namespace: "default", Name: "nominate", UID: "other", From: "some-node"},
		plan.ClearNomination{Namespace: "default", Name: "nominate", UID: string(pod.UID), From: "where-it-was-before"})
	if b.get(pod); pod.Status.NominatedNodeName == "" {
		t.Error("the nomination of a pod with another UID, or to another node, was cleared")
	}
	clear := plan.ClearNomination{Namespace: "default", Name: "nominate", UID: string(pod.UID), From: "some-node"}
	b.do(b.Executor, clear, clear)
	if b.get(pod); pod.Status.NominatedNodeName != "" {
		t.Errorf("still nominated to %q", pod.Status.NominatedNodeName)
	}
	bound := b.pod("nominate-bound", "some-node")
	b.do(b.Executor, plan.NominatePod{Namespace: "default", Name: bound.Name, UID: string(bound.UID), Node: "some-node"})
	b.store.take()
}

// testGone verifies that objects that are gone, or were replaced by others of the same name, are not changed, and
// that this counts as success.
func testGone(t *testing.T, b *bench) {
	b.node("gone-node")
	b.claim("gone-claim")
	cmd := plan.NewCommand(time.Unix(0, 0), plan.Empty, "empty", []plan.Candidate{{}})
	for _, claim := range []string{"gone-claim", "nothing"} {
		b.do(b.Executor,
			plan.WriteCommand{Claim: claim, UID: "old", Command: cmd}, plan.ClearCommand{Claim: claim, UID: "old"},
			plan.SetDisruptionReason{Claim: claim, UID: "old", Reason: plan.Empty}, plan.ClearDisruptionReason{Claim: claim, UID: "old"},
			plan.DeleteClaim{Claim: claim, UID: "old", Reason: plan.Empty})
	}
	for _, node := range []string{"gone-node", "nothing"} {
		b.do(b.Executor, plan.TaintNode{Node: node, UID: "old"}, plan.UntaintNode{Node: node, UID: "old"})
	}
	b.do(b.Executor, plan.NominatePod{Namespace: "default", Name: "nothing", UID: "old", Node: "n"})
	if wrote := b.store.take(); wrote != nil {
		t.Errorf("wrote %v", wrote)
	}
}

func testFailure(t *testing.T, b *bench) {
	pool := b.pool("failure")
	x := b.with(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetName() == "failure-1" {
			return apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
		}
		return c.Create(ctx, o, opts...)
	}})
	outcomes := x.Do(t.Context(), []plan.Action{
		plan.CreateClaim{NewClaim: planned("failure-0", pool)}, plan.CreateClaim{NewClaim: planned("failure-1", pool)},
		plan.CreateClaim{NewClaim: planned("failure-2", pool)},
	})
	failed := execute.Failures(outcomes)
	switch {
	case len(outcomes) != 3:
		t.Errorf("outcomes: len(outcomes) is %v, want 3, %+v", len(outcomes), outcomes)
	case len(failed) != 1:
		t.Errorf("outcomes: len(failed) is %v, want 1", len(failed))
	case outcomes[1].Err == nil:
		t.Errorf("outcomes: outcomes[1].Err is nil, %+v", outcomes)
	case !strings.Contains(outcomes[1].Err.Error(), "create claim failure-1: "):
		t.Errorf(`outcomes: outcomes[1].Err.Error() lacks "create claim failure-1: ", %+v`, outcomes)
	}
	var status apierrors.APIStatus
	if !errors.As(outcomes[1].Err, &status) || status.Status().Code != http.StatusInternalServerError {
		t.Errorf("the cause is lost in %v", outcomes[1].Err)
	}
	b.get(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "failure-2"}})
	b.store.take()
}

// testLoops verifies that Provision checks its plan, and Advance its commands, on the newest snapshot.
func testLoops(t *testing.T, b *bench) {
	pool := b.pool("loops")
	claim, node := b.claim("loops-claim"), b.node("loops-node")
	builder := model.NewBuilder()
	builder.UpsertPool(model.PoolSpec{Name: "loops", UID: string(pool.UID), Limits: []quantity.Amount{{Name: model.ResourceNodes, Value: 2}}})
	builder.UpsertPod(model.PodSpec{UID: "pod", Namespace: "default", Name: "pod", Requests: []quantity.Amount{{Name: "pods", Value: 1}}})
	spec := model.NodeSpec{Name: "loops-node", UID: string(node.UID), Claim: "loops-claim", ClaimUID: string(claim.UID), Pool: "loops",
		Stage: model.Initialized, Ready: true}
	builder.UpsertNode(spec)
	newest := func() *model.Snapshot { return builder.Snapshot(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)) }

	pods := newest().Groups[0].Pods
	first, second := planned("loops-1", pool), planned("loops-2", pool)
	first.Pods, second.Pods = pods, pods
	done := b.Provision(t.Context(), newest, &plan.Provision{Claims: []plan.NewClaim{first, second}})
	switch {
	case len(done.Outcomes) != 1:
		t.Errorf("provisioned: len(done.Outcomes) is %v, want 1, %+v", len(done.Outcomes), done)
	case done.Outcomes[0].Err != nil:
		t.Errorf("provisioned: done.Outcomes[0].Err is %v, want nil", done.Outcomes[0].Err)
	case len(done.Dropped) != 1:
		t.Errorf("provisioned: len(done.Dropped) is %v, want 1, %+v", len(done.Dropped), done)
	case done.Dropped[0].Verdict.Code != plan.NodeLimitReached:
		t.Errorf("provisioned: done.Dropped[0].Verdict.Code is %v, want %v", done.Dropped[0].Verdict.Code, plan.NodeLimitReached)
	}
	b.get(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "loops-1"}})

	command := plan.NewCommand(newest().Now, plan.Empty, "empty", []plan.Candidate{plan.CandidateOf(newest().Node("loops-node"))})
	advanced := b.Advance(t.Context(), newest, []plan.Command{command})
	if b.get(claim); claim.Annotations[karpv1.AnnotationCommand] == "" || len(execute.Failures(advanced[0].Outcomes)) != 0 {
		t.Errorf("after the first step: annotations %v, %+v", claim.Annotations, advanced)
	}
	spec.DoNotDisrupt, spec.Command = true, claim.Annotations[karpv1.AnnotationCommand]
	builder.UpsertNode(spec)
	advanced = b.Advance(t.Context(), newest, []plan.Command{advanced[0].Command})
	fresh := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "loops-claim", UID: types.UID(spec.ClaimUID)}}
	if b.get(fresh); advanced[0].Command.Phase != plan.Abandoned || fresh.Annotations[karpv1.AnnotationCommand] != "" {
		t.Errorf("after protection: phase %s, annotations %v", advanced[0].Command.Phase, fresh.Annotations)
	}
	b.store.take()
}

// TestProvisionChecksPlansWithoutClaims verifies that a plan without new claims is checked too: its target nodes may be
// gone.
func TestProvisionChecksPlansWithoutClaims(t *testing.T) {
	builder := model.NewBuilder()
	builder.UpsertNode(model.NodeSpec{Name: "leaving", Claim: "c", ClaimUID: "u", Deleting: true})
	builder.UpsertPod(model.PodSpec{UID: "p", Namespace: "default", Name: "p"})
	snap := builder.Snapshot(time.Now())
	x := &execute.Executor{}
	done := x.Provision(t.Context(), func() *model.Snapshot { return snap },
		&plan.Provision{Placed: []plan.Placement{{Node: "leaving", Pods: snap.Groups[0].Pods}}})
	if len(done.Plan.Placed) != 0 {
		t.Errorf("placed on a node that is being removed: %v", done.Plan.Placed)
	}
}
