package provisioner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/legacy/provisioner"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// patience is how long a test waits for an expected state.
const patience = time.Minute

// world runs the controller on a real API server, on which nothing else runs.
type world struct {
	client.Client
	t      *testing.T
	config *rest.Config
	scheme *runtime.Scheme
	sink   *events.FakeRecorder
	log    controllerLog
	// between is called before the controller reads an object by its name. Nil means no call.
	between func(context.Context, client.Reader, client.Object) error
}

// reading is a client that calls a function before it reads.
type reading struct {
	client.Client
	first func(context.Context, client.Reader, client.Object) error
}

func (r reading) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := r.first(ctx, r.Client, into); err != nil {
		return err
	}
	return r.Client.Get(ctx, key, into, options...)
}

// start runs the controller for AWS until the test ends, or until the returned function is called.
func (w *world) start() (stop func()) {
	return w.startWith(v1alpha5.Settings{ClusterName: "test", DefaultInstanceProfile: "nodes"})
}

func (w *world) startWith(settings v1alpha5.Settings) (stop func()) {
	w.t.Helper()
	stop, r := w.startUnserved(settings)
	for _, kind := range r.Kinds() {
		w.must(r.Serve(kind))
	}
	return stop
}

// startUnserved runs the controller, without a call of Serve for the older kinds.
func (w *world) startUnserved(settings v1alpha5.Settings) (stop func(), r *provisioner.Reconciler) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme: w.scheme, Logger: funcr.New(w.log.add, funcr.Options{LogTimestamp: true, Verbosity: 1}), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.must(err)
	timers := controller.Production()
	timers.Retry, timers.RetryMax = 20*time.Millisecond, 200*time.Millisecond
	c := mgr.GetClient()
	if w.between != nil {
		c = reading{c, w.between}
	}
	r = &provisioner.Reconciler{
		Client: c, Live: mgr.GetAPIReader(), Recorder: telemetry.NewRecorder(w.sink, clock.RealClock{}), Timers: timers,
		Settings: func(context.Context) v1alpha5.Settings { return settings }, Simulated: settings.Kwok,
	}
	w.must(r.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("running the manager: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop, r
}

// controllerLog is the log of a controller, for the case that the test fails.
type controllerLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *controllerLog) add(prefix, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, prefix+" "+line)
}

func (l *controllerLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// apply writes manifests as kubectl apply --server-side does.
func (w *world) apply(text string) {
	w.t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(document), &object.Object))
		data, err := object.MarshalJSON()
		w.must(err)
		w.must(w.Patch(context.WithoutCancel(w.t.Context()), object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("kubectl"), client.ForceOwnership))
	}
}

// until waits until right returns true.
func (w *world) until(what string, right func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) { return right(), nil })
	if err != nil {
		w.t.Fatalf("not reached: %s; the controller's log:\n%s", what, w.log.text())
	}
}

// read reads an object by its name. It returns false if the object does not exist.
func (w *world) read(name string, into client.Object) bool {
	w.t.Helper()
	err := w.Get(w.t.Context(), client.ObjectKey{Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

// pool waits for a pool for which right returns true.
func (w *world) pool(name, what string, right func(*karpv1.NodePool) bool) *karpv1.NodePool {
	w.t.Helper()
	var pool *karpv1.NodePool
	w.until("NodePool "+name+" "+what, func() bool {
		pool = &karpv1.NodePool{}
		return w.read(name, pool) && right(pool)
	})
	return pool
}

func (w *world) class(name, what string, right func(*awsv1.EC2NodeClass) bool) *awsv1.EC2NodeClass {
	w.t.Helper()
	var class *awsv1.EC2NodeClass
	w.until("EC2NodeClass "+name+" "+what, func() bool {
		class = &awsv1.EC2NodeClass{}
		return w.read(name, class) && right(class)
	})
	return class
}

// provisioner waits for a Provisioner with a condition.
func (w *world) provisioner(name, condition, status, reason string) *karpv1alpha5.Provisioner {
	w.t.Helper()
	var p *karpv1alpha5.Provisioner
	w.until("Provisioner "+name+" has "+condition+"="+status+" "+reason, func() bool {
		p = &karpv1alpha5.Provisioner{}
		if !w.read(name, p) {
			return false
		}
		for _, c := range p.Status.Conditions {
			if c.Type == condition {
				return string(c.Status) == status && (reason == "" || c.Reason == reason)
			}
		}
		return false
	})
	return p
}

func there[T any](T) bool { return true }

// clear removes all objects. Neither garbage collection nor the controller runs any more.
func (w *world) clear() {
	ctx := context.WithoutCancel(w.t.Context())
	for _, list := range []client.ObjectList{&karpv1alpha5.ProvisionerList{}, &awsv1alpha1.AWSNodeTemplateList{}} {
		if err := w.List(ctx, list); err != nil {
			w.t.Error(err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			return w.Patch(ctx, item.(client.Object), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		})
	}
	for _, kind := range []client.Object{&karpv1alpha5.Provisioner{}, &awsv1alpha1.AWSNodeTemplate{}, &karpv1.NodePool{}, &awsv1.EC2NodeClass{}, &kwokv1alpha1.KWOKNodeClass{}} {
		if err := w.DeleteAllOf(ctx, kind); err != nil {
			w.t.Error(err)
		}
	}
}

// event waits for an event with the reason.
func (w *world) event(reason string) {
	w.t.Helper()
	w.until("an event "+reason, func() bool {
		select {
		case text := <-w.sink.Events:
			return strings.Contains(text, reason)
		default:
			return false
		}
	})
}
