package fakeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// TestLikeReal makes the same requests to the fake server and to kube-apiserver: their answers, and the objects and events that
// informers see, are the same but for UIDs, versions, times and managed fields.
func TestLikeReal(t *testing.T) {
	log.SetLogger(logr.Discard())
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		definition.Spec.Conversion = nil
	}
	_, fake := connect(t, Options{})
	want := transcript(t, sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions}))
	got := transcript(t, fake)
	if len(want) < 40 {
		t.Errorf("kube-apiserver's transcript has %d lines: the script does nothing", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kube-apiserver and the fake differ (-want +got):\n%s", diff)
	}
}

// witness records what a script of requests shows.
type witness struct {
	t     *testing.T
	c     client.Client
	lines []string
	seen  map[string]chan string // events of informers by kind
}

// transcript runs the script and returns answers and events.
func transcript(t *testing.T, config *rest.Config) []string {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{t: t, c: c, seen: map[string]chan string{}}
	w.must(client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})))
	w.must(client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "like"}})))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "like", Name: "default"}}
	w.must(client.IgnoreAlreadyExists(c.Create(t.Context(), account)))
	w.inform(config)
	w.claims()
	w.nodes()
	w.pods()
	w.leases()
	return w.lines
}

func (w *witness) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// inform records the events of informers.
func (w *witness) inform(config *rest.Config) {
	w.t.Helper()
	informers, err := cache.New(config, cache.Options{Scheme: scheme})
	w.must(err)
	for name, kind := range map[string]client.Object{"claims": &karpv1.NodeClaim{}, "nodes": &corev1.Node{}, "pods": &corev1.Pod{}} {
		informer, err := informers.GetInformer(w.t.Context(), kind, cache.BlockUntilSynced(false))
		w.must(err)
		events := make(chan string, 1000)
		w.seen[name] = events
		say := func(what string) func(any) {
			return func(o any) { events <- what + " " + normal(o) }
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: say("added"), DeleteFunc: say("deleted"),
			UpdateFunc: func(_, o any) { say("updated")(o) }})
		w.must(err)
	}
	go func() { _ = informers.Start(w.t.Context()) }()
	if !informers.WaitForCacheSync(w.t.Context()) {
		w.t.Fatal("the informers do not sync")
	}
}

// events waits for a number of events of a kind and records them.
func (w *witness) events(kind string, number int) {
	w.t.Helper()
	deadline := time.After(time.Minute)
	for range number {
		select {
		case line := <-w.seen[kind]:
			w.lines = append(w.lines, kind+" "+line)
		case <-deadline:
			w.t.Fatalf("too few events of %s; so far:\n%s", kind, strings.Join(w.lines, "\n"))
		}
	}
}

// note records the answer to a request.
func (w *witness) note(what string, o client.Object, err error) {
	w.t.Helper()
	line := what + ": "
	if err != nil {
		line += string(apierrors.ReasonForError(err))
	} else if o != nil {
		line += normal(o)
	}
	w.lines = append(w.lines, line)
}

var (
	stamps  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	removed = []string{"managedFields", "resourceVersion", "uid"}
)

// normal returns an object as JSON without what differs between any two servers.
func normal(o any) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.(client.Object))
	if err != nil {
		return err.Error()
	}
	delete(content, "kind")
	delete(content, "apiVersion")
	meta := content["metadata"].(map[string]any)
	managers := map[string]bool{}
	for _, entry := range o.(client.Object).GetManagedFields() {
		if entry.Manager == "nominator" {
			managers[entry.Subresource+" "+entry.FieldsV1.GetRawString()] = true
		}
	}
	for _, field := range removed {
		delete(meta, field)
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	line := stamps.ReplaceAllString(uidPattern.ReplaceAllString(string(text), "UID"), "TIME")
	if len(managers) > 0 {
		line += fmt.Sprint(slices.Sorted(maps.Keys(managers)))
	}
	return line
}

// claims is the life of a claim: finalizer, status, conflict, deletion.
func (w *witness) claims() {
	ctx := w.t.Context()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{karpv1.LabelNodePool: "pool"}},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "class"},
			Requirements: []karpv1.Requirement{}}}
	err := w.c.Create(ctx, claim)
	w.note("create", claim, err)
	w.note("create again", nil, w.c.Create(ctx, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: claim.Spec}))
	w.events("claims", 1)
	stale := claim.DeepCopy()
	base := claim.DeepCopy()
	claim.Finalizers = []string{"karpenter.sh/termination"}
	w.note("finalizer", claim, w.c.Patch(ctx, claim, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
	w.events("claims", 1)
	other := stale.DeepCopy()
	other.Labels["a"] = "b"
	w.note("stale", nil, w.c.Patch(ctx, other, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{})))
	base = claim.DeepCopy()
	claim.Status.ProviderID, claim.Status.NodeName = "kwok://one", "one"
	w.note("status", claim, w.c.Status().Patch(ctx, claim, client.MergeFrom(base)))
	w.events("claims", 1)
	base = claim.DeepCopy()
	claim.Status.ProviderID, claim.Annotations = "", map[string]string{"x": "y"}
	w.note("status by the main resource", claim, w.c.Patch(ctx, claim, client.MergeFrom(base)))
	w.events("claims", 1)
	w.note("nothing", claim, w.c.Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`))))
	w.note("wrong UID", nil, w.c.Delete(ctx, claim, client.Preconditions{UID: new(types.UID("1-2-3"))}))
	w.note("delete", nil, w.c.Delete(ctx, claim))
	w.events("claims", 1)
	w.note("delete again", nil, w.c.Delete(ctx, claim))
	w.must(w.c.Get(ctx, client.ObjectKeyFromObject(claim), claim))
	base = claim.DeepCopy()
	claim.Finalizers = nil
	w.note("finish", nil, w.c.Patch(ctx, claim, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
	w.events("claims", 1)
	w.note("gone", nil, w.c.Get(ctx, client.ObjectKeyFromObject(claim), claim))
}

// nodes is the life of a node: created with a status, reports of a kubelet, taints, removed.
func (w *witness) nodes() {
	ctx := w.t.Context()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.NodeSpec{ProviderID: "kwok://one"}}
	w.note("create", node, w.c.Create(ctx, node))
	w.events("nodes", 1)
	report := `{"status":{"conditions":[{"type":"Ready","status":"%s","reason":"KubeletReady","message":"",` +
		`"lastHeartbeatTime":"2026-11-28T12:00:00Z","lastTransitionTime":"2026-11-28T12:00:00Z"}]}}`
	for _, ready := range []string{"True", "False"} {
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(fmt.Sprintf(report, ready)))
		w.note("report", node, w.c.Status().Patch(ctx, node, patch))
		w.events("nodes", 1)
	}
	base := node.DeepCopy()
	node.Spec.Taints = []corev1.Taint{karpv1.DisruptedTaint()}
	w.note("taint", node, w.c.Patch(ctx, node, client.StrategicMergeFrom(base)))
	w.events("nodes", 1)
	w.note("delete", nil, w.c.Delete(ctx, node))
	w.events("nodes", 1)
}

func (w *witness) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "like", Name: name, Labels: map[string]string{"app": "app"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "app", ImagePullPolicy: corev1.PullAlways,
				TerminationMessagePath:   "/dev/termination-log",
				TerminationMessagePolicy: corev1.TerminationMessageReadFile}},
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: corev1.DNSClusterFirst,
			SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: "default-scheduler", AutomountServiceAccountToken: new(false),
			ServiceAccountName: "default", DeprecatedServiceAccount: "default", EnableServiceLinks: new(true), Priority: new(int32(0)),
			PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300))}},
		}}
}

// pods is the life of pods: nominated, bound, evicted, deleted by a kubelet.
func (w *witness) pods() {
	ctx := w.t.Context()
	pod := w.pod("one")
	w.note("create", pod, w.c.Create(ctx, pod))
	w.events("pods", 1)
	base := pod.DeepCopy()
	pod.Status.NominatedNodeName = "node"
	w.note("nominate", pod, w.c.Status().Patch(ctx, pod, client.MergeFrom(base), client.FieldOwner("nominator")))
	w.events("pods", 1)
	w.note("bind", nil, w.bind(ctx, pod))
	w.events("pods", 1)
	w.note("bind again", nil, w.bind(ctx, pod))
	w.must(w.c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "like", Name: "app"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}}}
	w.note("budget", budget, w.c.Create(ctx, budget))
	running := pod.DeepCopy()
	running.Status.Phase = corev1.PodRunning
	running.Status.Conditions = append(running.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	w.must(w.c.Status().Update(ctx, running))
	w.events("pods", 1)
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, CurrentHealthy: 1, DesiredHealthy: 1,
		ExpectedPods: 2}
	w.must(w.c.Status().Update(ctx, budget))
	w.note("evict", nil, w.c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}))
	budget.Status.DisruptionsAllowed, budget.Status.CurrentHealthy = 1, 2
	w.must(w.c.Status().Update(ctx, budget))
	w.note("evict", nil, w.c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}))
	w.events("pods", 2)
	w.must(w.c.Get(ctx, client.ObjectKeyFromObject(budget), budget))
	w.lines = append(w.lines, fmt.Sprint("allowed: ", budget.Status.DisruptionsAllowed))
	w.note("delete at once", nil, w.c.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	w.events("pods", 2)
	loose := w.pod("two")
	w.must(w.c.Create(ctx, loose))
	w.note("delete a pod without a node", nil, w.c.Delete(ctx, loose))
	w.events("pods", 3)
}

func (w *witness) bind(ctx context.Context, pod *corev1.Pod) error {
	return w.c.SubResource("binding").Create(ctx, pod, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Target: corev1.ObjectReference{Kind: "Node", Name: "node"}})
}

// leases are what leader election writes.
func (w *witness) leases() {
	ctx := w.t.Context()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "like", Name: "leader"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("me")}}
	w.note("create", lease, w.c.Create(ctx, lease))
	stale := lease.DeepCopy()
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(1800000000, 123456000)}
	w.note("renew", lease, w.c.Update(ctx, lease))
	w.note("stale", nil, w.c.Update(ctx, stale))
	w.note("none", nil, w.c.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "like", Name: "other"}}))
}
