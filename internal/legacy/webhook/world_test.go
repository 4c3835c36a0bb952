package webhook

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/api/crds"
)

// world is a real API server with the state of a test.
type world struct {
	client.WithWatch
	t *testing.T
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// until polls. Its time limit is generous, because the speed of the machine is not tested.
func (w *world) until(what string, holds func() error) {
	w.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			w.t.Fatalf("waiting until %s: %v", what, err)
		case <-again.C:
		}
	}
}

// server returns a webhook behind a service that leads to this machine, as a service leads to the pod in a cluster.
func (w *world) server(namespace, name string) *Server {
	w.t.Helper()
	w.must(client.IgnoreAlreadyExists(w.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	w.must(client.IgnoreAlreadyExists(w.Create(w.t.Context(), service)))
	listener, err := net.Listen("tcp", ":0")
	w.must(err)
	return &Server{Namespace: namespace, Service: name, Port: listener.Addr().(*net.TCPAddr).Port, Listener: listener}
}

// start runs a webhook. It returns when v1beta1 can be written, with a function that stops the webhook.
func (w *world) start(s *Server) (stop func()) {
	w.t.Helper()
	s.Client, s.Clock, s.Look = w, clock.RealClock{}, 200*time.Millisecond
	s.SecretNamespace = "default"
	if s.Log.GetSink() == nil {
		s.Log = logr.Discard()
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the webhook ended: %v", err)
		}
	})
	w.t.Cleanup(stop)
	if s.Port != 0 {
		w.until("v1beta1 is served", func() error {
			return w.conversionsWork()
		})
	}
	return stop
}

// conversionsWork tries one object of each kind.
func (w *world) conversionsWork() error {
	for _, text := range []string{betaPool, betaClass, betaClaim} {
		object := w.read(strings.ReplaceAll(text, "NAME", "probe"))
		if err := w.Create(w.t.Context(), object); err != nil {
			return err
		}
		w.remove(object)
	}
	return nil
}

func (w *world) read(text string) *unstructured.Unstructured {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NAME", "name")))
	w.must(err)
	object := &unstructured.Unstructured{}
	w.must(utiljson.Unmarshal(data, &object.Object))
	return object
}

// create creates an object that exists until the end of the test.
func (w *world) create(text, name string) *unstructured.Unstructured {
	w.t.Helper()
	object := w.read(strings.ReplaceAll(text, "NAME", name))
	w.must(w.Create(w.t.Context(), object))
	w.t.Cleanup(func() { w.remove(object) })
	return object
}

// remove deletes an object in v1, which no webhook can prevent.
func (w *world) remove(object *unstructured.Unstructured) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind().GroupKind().WithVersion("v1"))
	now.SetName(object.GetName())
	if err := w.Delete(context.WithoutCancel(w.t.Context()), now); client.IgnoreNotFound(err) != nil {
		w.t.Errorf("deleting %s: %v", object.GetName(), err)
	}
}

// in returns the object in a version.
func (w *world) in(version string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind().GroupKind().WithVersion(version))
	return found, w.Get(w.t.Context(), client.ObjectKeyFromObject(object), found)
}

func (w *world) mustIn(version string, object *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	found, err := w.in(version, object)
	w.must(err)
	return found
}

func (w *world) wantSpec(want string, got *unstructured.Unstructured) {
	w.t.Helper()
	if diff := cmp.Diff(w.read(want).Object, map[string]any{"spec": got.Object["spec"]}); diff != "" {
		w.t.Errorf("%s of %s (-want +got):\n%s", got.GetKind(), got.GetAPIVersion(), diff)
	}
}

func (w *world) apply(text, name, manager string) error {
	object := w.read(strings.ReplaceAll(text, "NAME", name))
	return w.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)
}

// storage runs until no field manager uses an older version.
func (w *world) storage() *Storage {
	s := &Storage{Client: w, Classes: true, Clock: clock.RealClock{}, Log: logr.Discard(), Look: 100 * time.Millisecond, Settled: time.Millisecond}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the migration ended: %v", err)
		}
	})
	return s
}

func older(object *unstructured.Unstructured) error {
	for _, entry := range object.GetManagedFields() {
		if strings.HasSuffix(entry.APIVersion, "v1beta1") {
			return fmt.Errorf("%s manages fields in %s", entry.Manager, entry.APIVersion)
		}
	}
	return nil
}

// versioned returns the definitions with several versions, as they are released.
func (w *world) versioned() []*apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	definitions, err := crds.Definitions()
	w.must(err)
	return slices.DeleteFunc(definitions, func(d *apiextensionsv1.CustomResourceDefinition) bool { return !slices.Contains(Definitions(), d.Name) })
}

// storing makes the API server store objects in a version.
func (w *world) storing(version string) {
	w.t.Helper()
	for _, d := range w.versioned() {
		found := &apiextensionsv1.CustomResourceDefinition{}
		w.until("the definition is changed", func() error {
			if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(d), found); err != nil {
				return err
			}
			found.Spec = *d.Spec.DeepCopy()
			for i := range found.Spec.Versions {
				found.Spec.Versions[i].Storage = found.Spec.Versions[i].Name == version
			}
			return w.Update(w.t.Context(), found)
		})
	}
}

const betaPool = `
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: NAME}
spec:
  template:
    spec:
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}
      kubelet: {maxPods: 20}
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 24h}
  limits: {cpu: 1000}
`

const betaClass = `
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: NAME}
spec:
  amiFamily: AL2023
  role: KarpenterNodeRole-a
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: a}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: a}}]
`

const betaClaim = `
apiVersion: karpenter.sh/v1beta1
kind: NodeClaim
metadata: {name: NAME, labels: {karpenter.sh/nodepool: general}}
spec:
  requirements: []
  nodeClassRef: {name: default}
`

const pool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}
`

// lockedLines records a log for a failure's message.
type lockedLines struct {
	lock  sync.Mutex
	lines []string
}

func (l *lockedLines) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.lock.Lock()
		defer l.lock.Unlock()
		l.lines = append(l.lines, prefix+" "+args)
	}, funcr.Options{})
}

func (l *lockedLines) text() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return strings.Join(l.lines, "\n")
}
