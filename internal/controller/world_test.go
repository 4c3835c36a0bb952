package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/node"
	"github.com/karpenter-go/karpenter/internal/controller/nodeclaim"
	"github.com/karpenter-go/karpenter/internal/controller/nodepool"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

const className = "default"

// apiServer is a real API server with this project's definitions. Only what a test starts runs on it.
type apiServer struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
}

func startServer(t *testing.T) *apiServer {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme,
		kwokv1alpha1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ctrl.SetLogger(logr.Discard()) // of libraries; a manager has the test's logger
	cfg := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	if err := c.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return &apiServer{config: cfg, scheme: scheme, client: c}
}

// quick returns timers for tests: periods are short, and time limits are long.
func quick() controller.Timers {
	t := controller.Production()
	t.Retry, t.RetryMax = 20*time.Millisecond, 200*time.Millisecond
	t.HookRetry = 10 * time.Millisecond
	t.Collection = 100 * time.Millisecond
	t.Drain, t.DrainMin, t.DrainQuiet = 50*time.Millisecond, time.Millisecond, 0
	t.Eviction, t.EvictionMax = 10*time.Millisecond, 50*time.Millisecond
	t.InstancePoll, t.InstancePollMax = 10*time.Millisecond, 100*time.Millisecond
	t.Counting = 20 * time.Millisecond
	return t
}

// world runs the three controllers on the API server and an in-memory cloud.
type world struct {
	*apiServer
	t       *testing.T
	cloud   *memoryCloud
	timers  controller.Timers
	metrics *telemetry.Metrics
	sink    *events.FakeRecorder
	// log, if set, replaces the test's logger in the manager. price is that of every claim.
	log   *logr.Logger
	price float64
	// hook is BeforeReady.
	hook func(*karpv1.NodeClaim, *corev1.Node) error
	// written makes the recorder write events to the API server instead of sink.
	written bool
	// collect also starts garbage collection, drift also starts the controller of Drifted and Consolidatable, and
	// policies also start node repair.
	collect, drift bool
	policies       []cloud.RepairPolicy
	// limiter is that of the last start.
	limiter *removal.Limiter

	mu     sync.Mutex
	hooked []corev1.Node
}

// in returns a world that is not started yet. At its end, all remaining objects are removed from the API server.
func in(t *testing.T, s *apiServer) *world {
	w := &world{apiServer: s, t: t, cloud: newMemoryCloud(), timers: quick(), sink: events.NewFakeRecorder(100_000)}
	w.metrics = telemetry.New(prometheus.NewRegistry())
	w.create(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: className}})
	t.Cleanup(w.clear)
	return w
}

// start runs the controllers until the test ends.
func (w *world) start() {
	w.t.Helper()
	w.run(w.setUp)
}

// run runs a manager with the given set-up until the test ends.
func (w *world) run(setUp func(ctrl.Manager) error) {
	w.t.Helper()
	log := testr.NewWithOptions(w.t, testr.Options{Verbosity: -1})
	if w.log != nil {
		log = *w.log
	}
	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme:     w.scheme,
		Logger:     log,
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.must(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.must(controller.Index(ctx, mgr))
	w.must(setUp(mgr))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Errorf("running the manager: %v", err)
		}
	})
}

func (w *world) setUp(mgr ctrl.Manager) error {
	recorder := telemetry.NewRecorder(w.sink, clock.RealClock{})
	if w.written {
		recorder = telemetry.NewRecorder(mgr.GetEventRecorder(telemetry.Component), clock.RealClock{})
	}
	classes, err := controller.ClassesOf(w.cloud, mgr.GetScheme())
	if err != nil {
		return err
	}
	limiter := &removal.Limiter{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Provider: w.cloud, Classes: classes, Recorder: recorder, Metrics: w.metrics,
		Timers: w.timers, Clock: clock.RealClock{},
	}
	w.limiter = limiter
	health := nodepool.NewHealth()
	set := []interface{ SetupWithManager(ctrl.Manager) error }{
		&nodepool.Reconciler{Client: mgr.GetClient(), Provider: w.cloud, Timers: w.timers, Clock: clock.RealClock{},
			Health: health, Recorder: recorder, Metrics: w.metrics},
		&nodepool.Counter{Client: mgr.GetClient(), Provider: w.cloud, Metrics: w.metrics, Timers: w.timers},
		&nodeclaim.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Provider: w.cloud, Recorder: recorder, Metrics: w.metrics, Timers: w.timers,
			Clock: clock.RealClock{}, BeforeReady: w.beforeReady, Attempted: health.Record,
			Price: func(*karpv1.NodeClaim) float64 { return w.price },
		},
		&nodeclaim.Protections{Client: mgr.GetClient(), Provider: w.cloud, Recorder: recorder, Timers: w.timers},
		&nodeclaim.Consistency{Client: mgr.GetClient(), Provider: w.cloud, Recorder: recorder, Timers: w.timers},
		&node.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Provider: w.cloud, Recorder: recorder, Metrics: w.metrics,
			Timers: w.timers, Clock: clock.RealClock{},
			Reports: limiter.Reports,
		},
	}
	if w.collect {
		set = append(set, &nodeclaim.Collector{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Provider: w.cloud, Metrics: w.metrics, Timers: w.timers, Clock: clock.RealClock{},
			Recorder: recorder, Limiter: limiter,
		})
	}
	if w.drift {
		set = append(set, &nodeclaim.DriftReconciler{
			Client: mgr.GetClient(), Provider: w.cloud, Recorder: recorder, Metrics: w.metrics, Timers: w.timers, Clock: clock.RealClock{},
		})
	}
	if len(w.policies) > 0 {
		set = append(set, &node.Repair{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Provider: w.cloud, Policies: w.policies, Recorder: recorder, Metrics: w.metrics,
			Timers: w.timers, Clock: clock.RealClock{}, Limiter: limiter,
		})
	}
	for _, c := range set {
		if err := c.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) beforeReady(_ context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooked = append(w.hooked, *node.DeepCopy())
	if w.hook != nil {
		return w.hook(claim, node)
	}
	return nil
}

// hooks returns the nodes for which BeforeReady was called.
func (w *world) hooks() []corev1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]corev1.Node(nil), w.hooked...)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(o client.Object) { w.t.Helper(); w.must(w.client.Create(w.t.Context(), o)) }

func (w *world) remove(o client.Object) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.client.Delete(w.t.Context(), o)))
}

// read reads the object again and reports whether it exists.
func (w *world) read(o client.Object) bool {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
	w.must(client.IgnoreNotFound(err))
	return err == nil
}

// until waits for a condition, which what describes.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 5*time.Millisecond, 60*time.Second, true, func(context.Context) (bool, error) {
		return ok(), nil
	})
	if err != nil {
		w.t.Fatalf("waiting until %s: %v\nevents: %s", what, err, strings.Join(w.said(), "\n        "))
	}
}

func (w *world) gone(o client.Object) {
	w.t.Helper()
	w.until(o.GetName()+" is gone", func() bool { return !w.read(o) })
}

// untilCondition waits until a condition of the claim has a status and reason. The status "" means absence.
func (w *world) untilCondition(claim *karpv1.NodeClaim, condition, status, reason string) {
	w.t.Helper()
	w.until(claim.Name+" has "+condition+"="+status+" "+reason, func() bool {
		if !w.read(claim) {
			return false
		}
		c := claim.Condition(condition)
		return c != nil && string(c.Status) == status && (reason == "" || c.Reason == reason)
	})
}

// said returns and drains the events so far.
func (w *world) said() []string {
	var all []string
	for {
		select {
		case e := <-w.sink.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// untilSaid waits for an event that contains the text.
func (w *world) untilSaid(text string) {
	w.t.Helper()
	w.until("an event says "+text, func() bool {
		for _, e := range w.said() {
			if strings.Contains(e, text) {
				return true
			}
		}
		return false
	})
}

// counted waits until a metric has the value, and fails at once when it is larger: metrics are incremented after the
// operation.
func (w *world) counted(what string, want float64, metric prometheus.Collector) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s: %v counted", what, want), func() bool {
		got := testutil.ToFloat64(metric)
		if got > want {
			w.t.Fatalf("%s: counted %v, want %v", what, got, want)
		}
		return got == want
	})
}

// value returns the current value of a metric.
func (w *world) value(metric prometheus.Collector) float64 { return testutil.ToFloat64(metric) }

func newClaim(name string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{karpv1.LabelNodePool: "general", "team": "a",
				karpv1.NodeClassLabel(kwokv1alpha1.Group, "KWOKNodeClass"): className},
			Annotations: map[string]string{"note": "kept", karpv1.AnnotationCommand: "not for nodes"},
		},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass", Name: className},
			Requirements: []karpv1.Requirement{},
			Resources:    karpv1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Taints:       []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
}

// launched waits until the claim is launched.
func (w *world) launched(claim *karpv1.NodeClaim) {
	w.t.Helper()
	w.untilCondition(claim, karpv1.ConditionLaunched, "True", "")
}

// boot makes the claim's machine join the cluster, as its kubelet would.
func (w *world) boot(claim *karpv1.NodeClaim) *corev1.Node {
	w.t.Helper()
	w.launched(claim)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + claim.Name, Labels: map[string]string{"boot": "strap"}},
		Spec:       corev1.NodeSpec{ProviderID: claim.Status.ProviderID, Taints: []corev1.Taint{karpv1.UnregisteredTaint()}},
	}
	w.create(node)
	return node
}

// report sets the Ready condition of the node, and removes the taints that the node lifecycle controller would
// remove.
func (w *world) report(node *corev1.Node, ready corev1.ConditionStatus) {
	w.t.Helper()
	w.until(node.Name+" reports", func() bool {
		if !w.read(node) {
			return false
		}
		node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"),
			"pods": resource.MustParse("64")}
		node.Status.Allocatable = node.Status.Capacity
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test"}}
		if err := w.client.Status().Update(w.t.Context(), node); err != nil {
			return false
		}
		var kept []corev1.Taint
		for _, taint := range node.Spec.Taints {
			if taint.Key != corev1.TaintNodeNotReady {
				kept = append(kept, taint)
			}
		}
		node.Spec.Taints = kept
		return w.client.Update(w.t.Context(), node) == nil
	})
}

// running creates a claim with an initialized node.
func (w *world) running(name string) (*karpv1.NodeClaim, *corev1.Node) {
	w.t.Helper()
	claim := newClaim(name)
	w.create(claim)
	node := w.boot(claim)
	w.report(node, corev1.ConditionTrue)
	w.untilCondition(claim, karpv1.ConditionInitialized, "True", "")
	w.read(node)
	return claim, node
}

// pod creates a pod that is bound to the node and ends immediately on deletion.
func (w *world) pod(name string, node *corev1.Node, change func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node.Name, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	if change != nil {
		change(pod)
	}
	w.create(pod)
	pod.Status.Phase = corev1.PodRunning
	w.must(w.client.Status().Update(w.t.Context(), pod))
	return pod
}

// budget forbids evictions of the pods of an app: no disruption controller runs here that would allow them.
func (w *world) budget(app string) *policyv1.PodDisruptionBudget {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
	w.create(budget)
	budget.Status.ObservedGeneration = budget.Generation
	w.must(w.client.Status().Update(w.t.Context(), budget))
	return budget
}

// clear removes all objects, once the controllers have stopped.
func (w *world) clear() {
	ctx := context.WithoutCancel(w.t.Context())
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PersistentVolumeClaimList{},
		&storagev1.VolumeAttachmentList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{},
		&karpv1.NodePoolList{}, &kwokv1alpha1.KWOKNodeClassList{},
	} {
		if err := w.client.List(ctx, list); err != nil {
			w.t.Errorf("removing objects: %v", err)
		}
		var wiping errgroup.Group
		wiping.SetLimit(50)
		err := meta.EachListItem(list, func(o runtime.Object) error {
			wiping.Go(func() error { return w.wipe(ctx, o.(client.Object)) })
			return nil
		})
		if err := errors.Join(err, wiping.Wait()); err != nil {
			w.t.Errorf("removing objects: %v", err)
		}
	}
}

func (w *world) wipe(ctx context.Context, o client.Object) error {
	if len(o.GetFinalizers()) > 0 {
		base := o.DeepCopyObject().(client.Object)
		o.SetFinalizers(nil)
		if err := w.client.Patch(ctx, o, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return client.IgnoreNotFound(w.client.Delete(ctx, o, client.GracePeriodSeconds(0)))
}
