package kwok

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-go/karpenter/api/crds"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/cloudtest"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// TestProvider starts one control plane for all tests that need a real API server.
func TestProvider(t *testing.T) {
	cluster := startCluster(t)
	t.Run("conformance", func(t *testing.T) {
		cloudtest.Run(t, func(t *testing.T) cloudtest.World {
			w := newWorld(t, cluster)
			w.notReadyClass(t)
			return w.conformance()
		})
	})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"node of a machine", testNode},
		{"node appears when it is due", testRegistrationDelay},
		{"restart resumes registration", testResume},
		{"crash between node and record", testCrashAtRegistration},
		{"crash between the two deletions", testCrashAtTermination},
		{"finalizers are left alone", testFinalizer},
		{"foreign nodes are left alone", testForeignNodes},
		{"another class", testDrifted},
		{"busy API server", testBusyServer},
		{"refused requests are not repeated", testForbidden},
		{"busy machine", testBusyMachine},
		{"spoilt record", testSpoiltRecord},
		{"record of another claim", testForeignRecord},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newWorld(t, cluster)) })
	}
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(kwokv1alpha1.AddToScheme(s))
	return s
}

func startCluster(t *testing.T) client.WithWatch {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions, ControlPlane: true})
	config.QPS, config.Burst = -1, 0
	cluster, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// world is a namespace of records with its own classes in the shared cluster, and the faults between the cluster and
// the world's providers.
type world struct {
	cluster   client.WithWatch
	namespace string
	faults    *faults
}

var worlds atomic.Int64

func newWorld(t *testing.T, cluster client.WithWatch) *world {
	t.Helper()
	w := &world{cluster: cluster, namespace: fmt.Sprintf("cloud-%d", worlds.Add(1)), faults: &faults{}}
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(t, &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	return w
}

func (w *world) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.cluster.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// options returns the options for a provider in this world.
func (w *world) options() Options {
	faulty := interceptor.NewClient(w.cluster, w.faults.functions())
	return Options{Client: faulty, Reader: faulty, Namespace: w.namespace, RetryBackoff: time.Millisecond}
}

// provider returns a provider that is not started.
func (w *world) provider(t *testing.T, change ...func(*Options)) *Provider {
	t.Helper()
	opts := w.options()
	for _, c := range change {
		c(&opts)
	}
	p, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.queue.ShutDown)
	return p
}

// start runs the provider until the test ends or stop is called.
func start(t *testing.T, p *Provider) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func (w *world) class(name string) cloud.ClassRef {
	return cloud.ClassRef{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: name}
}

func (w *world) conformance() cloudtest.World {
	return cloudtest.World{
		Provider: func(t *testing.T) cloud.Provider {
			p := w.provider(t)
			start(t, p)
			return p
		},
		Class:       w.class(w.namespace),
		NotReady:    w.class(w.namespace + "-not-ready"),
		Missing:     w.class(w.namespace + "-missing"),
		LoseAnswers: func(*testing.T) func() { return w.faults.set(loseAnswers) },
		Hang:        func(*testing.T) func() { return w.faults.set(hang) },
	}
}

// notReadyClass creates a class that is not ready.
func (w *world) notReadyClass(t *testing.T) {
	t.Helper()
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-not-ready"}}
	w.create(t, class)
	class.Status.Conditions = []status.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Broken", Message: "made so by a test", LastTransitionTime: metav1.Now(),
	}}
	if err := w.cluster.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
}

// fault intercepts a request. It calls send to execute the request.
type fault func(ctx context.Context, verb string, object runtime.Object, send func() error) error

// faults intercept the requests of a provider to the API server.
type faults struct {
	mu    sync.Mutex
	fault fault
	sent  []string // verb and type of every request, as "create *v1.Node"
}

// set activates a fault for every request until restore is called.
func (f *faults) set(fault fault) (restore func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.sent = fault, nil
	return func() { f.set(nil) }
}

func (f *faults) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.sent...)
}

func (f *faults) do(ctx context.Context, verb string, object runtime.Object, send func() error) error {
	f.mu.Lock()
	f.sent = append(f.sent, fmt.Sprintf("%s %T", verb, object))
	fault := f.fault
	f.mu.Unlock()
	if fault == nil {
		return send()
	}
	return fault(ctx, verb, object, send)
}

func (f *faults) functions() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return f.do(ctx, "get", o, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			return f.do(ctx, "list", o, func() error { return c.List(ctx, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return f.do(ctx, "create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return f.do(ctx, "update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return f.do(ctx, "delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
	}
}

var errLost = errors.New("the connection broke before the answer came")

func loseAnswers(_ context.Context, verb string, _ runtime.Object, send func() error) error {
	err := send()
	if err == nil && verb == "create" {
		return errLost
	}
	return err
}

func hang(ctx context.Context, _ string, _ runtime.Object, _ func() error) error {
	<-ctx.Done()
	return ctx.Err()
}
