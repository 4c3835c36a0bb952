package webhook

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/crds"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// TestOnAnAPIServer runs all scenarios on one server, which has the definitions as they are released.
func TestOnAnAPIServer(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		run  func(*world)
	}{
		{"AsShipped", testAsShipped},
		{"ThereAndBack", testThereAndBack},
		{"APortOfTheService", testServicePort},
		{"Claims", testClaims},
		{"ServerSideApply", testServerSideApply},
		{"Down", testDown},
		{"SwitchedOff", testSwitchedOff},
		{"AppliedAgain", testAppliedAgain},
		{"AppliedServerSide", testAppliedServerSide},
		{"Replicas", testReplicas},
		{"Rotated", testRotated},
		{"StoredVersions", testStoredVersions},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&world{api, t}) })
	}
}

// testAsShipped verifies that before any controller has run, v1 works and v1beta1 is refused.
func testAsShipped(w *world) {
	object := w.create(pool, "general")
	w.mustIn("v1", object)
	if _, err := w.in("v1beta1", object); err == nil || !strings.Contains(err.Error(), "conversion webhook") {
		w.t.Errorf("reading v1beta1: got error %v, want one of the webhook", err)
	}
	if err := w.Create(w.t.Context(), w.read(betaPool)); err == nil || !strings.Contains(err.Error(), "conversion webhook") {
		w.t.Errorf("writing v1beta1: got error %v, want one of the webhook", err)
	}
}

// testThereAndBack runs in an arbitrary namespace and under an arbitrary name.
func testThereAndBack(w *world) {
	w.start(w.server("autoscaling", "release-7-karpenter"))
	object := w.create(betaPool, "general")
	w.wantSpec(`
spec:
  template:
    spec:
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: 24h
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: 10%}]}
  limits: {cpu: 1000}
`, w.mustIn("v1", object))
	w.wantSpec(`
spec:
  template:
    spec:
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}
      kubelet: {maxPods: 20}
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 24h, budgets: [{nodes: 10%}]}
  limits: {cpu: 1000}
`, w.mustIn("v1beta1", object))
	class := w.create(betaClass, "default")
	w.wantSpec(`
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: KarpenterNodeRole-a
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: a}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: a}}]
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}
`, w.mustIn("v1", class))
	w.wantSpec(`
spec:
  amiFamily: AL2023
  role: KarpenterNodeRole-a
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: a}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: a}}]
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}
`, w.mustIn("v1beta1", class))
	w.keepsWhatV1Says(object)
}

// testServicePort uses a Service with another port than the replica behind it.
func testServicePort(w *world) {
	s := w.server("kube-system", "behind")
	s.ServicePort, s.Port = s.Port, 1 // the open listener connects the two
	w.start(s)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	w.must(w.Get(w.t.Context(), client.ObjectKey{Name: Definitions()[0]}, definition))
	if got := definition.Spec.Conversion.Webhook.ClientConfig.Service.Port; got == nil || *got != int32(s.ServicePort) {
		w.t.Errorf("the definition names port %v, want %d", got, s.ServicePort)
	}
}

// keepsWhatV1Says verifies that fields that only v1 has are read, written back and kept by a client of v1beta1.
func (w *world) keepsWhatV1Says(object *unstructured.Unstructured) {
	w.t.Helper()
	now := w.mustIn("v1", object)
	w.must(unstructured.SetNestedField(now.Object, "1h", "spec", "template", "spec", "terminationGracePeriod"))
	w.must(w.Update(w.t.Context(), now))
	old := w.mustIn("v1beta1", object)
	w.must(unstructured.SetNestedField(old.Object, int64(7), "spec", "weight"))
	w.must(w.Update(w.t.Context(), old))
	now = w.mustIn("v1", object)
	if grace, _, _ := unstructured.NestedString(now.Object, "spec", "template", "spec", "terminationGracePeriod"); grace != "1h" {
		w.t.Errorf("terminationGracePeriod is %q after an update through v1beta1", grace)
	}
	if weight, _, _ := unstructured.NestedInt64(now.Object, "spec", "weight"); weight != 7 {
		w.t.Errorf("weight is %d in v1", weight)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(old.GroupVersionKind())
	w.must(w.List(w.t.Context(), list))
	if len(list.Items) != 1 {
		w.t.Errorf("%d pools in v1beta1", len(list.Items))
	}
}

// testClaims verifies that a claim of v1beta1 expires according to its pool.
func testClaims(w *world) {
	w.start(w.server("kube-system", "karpenter"))
	lone := w.create(betaClaim, "lone")
	if age, _, _ := unstructured.NestedString(w.mustIn("v1", lone).Object, "spec", "expireAfter"); age != "Never" {
		w.t.Errorf("expireAfter of a claim without a pool is %q, want Never", age)
	}
	w.create(strings.ReplaceAll(betaPool, "24h", "36h"), "owner")
	claim := w.create(strings.ReplaceAll(betaClaim, "general", "owner"), "owned")
	if age, _, _ := unstructured.NestedString(w.mustIn("v1", claim).Object, "spec", "expireAfter"); age != "36h" {
		w.t.Errorf("expireAfter of a claim of the pool is %q, want 36h", age)
	}
	now := w.mustIn("v1", claim)
	now.SetLabels(map[string]string{"karpenter.sh/nodepool": "owner", "a": "b"})
	w.must(w.Update(w.t.Context(), now)) // the spec is immutable: it must be the same each time
}

// testServerSideApply applies v1beta1 repeatedly, as GitOps tools do, while others write v1.
func testServerSideApply(w *world) {
	w.start(w.server("kube-system", "karpenter"))
	w.storage()
	for range 2 {
		w.must(w.apply(betaPool, "applied", "gitops"))
		w.must(w.apply(betaClass, "applied", "gitops"))
	}
	object, class := w.read(strings.ReplaceAll(betaPool, "NAME", "applied")), w.read(strings.ReplaceAll(betaClass, "NAME", "applied"))
	defer w.remove(object)
	defer w.remove(class)
	for _, o := range []*unstructured.Unstructured{object, class} {
		w.until("fields are managed in v1", func() error { return older(w.mustIn("v1", o)) })
	}
	// Fields that the owner omits are removed, also where v1 has them elsewhere. Fields of other owners are kept.
	w.must(w.apply(strings.ReplaceAll(pool, "NAME", "applied")+"  weight: 3\n", "applied", "another-manager"))
	without := strings.ReplaceAll(strings.ReplaceAll(betaPool, "  limits: {cpu: 1000}\n", ""), ", expireAfter: 24h", "")
	w.must(w.apply(without, "applied", "gitops"))
	now := w.mustIn("v1", object)
	if _, there, _ := unstructured.NestedMap(now.Object, "spec", "limits"); there {
		w.t.Error("limits still exist, which their owner has omitted")
	}
	if age, _, _ := unstructured.NestedString(now.Object, "spec", "template", "spec", "expireAfter"); age != "720h" {
		w.t.Errorf("expireAfter is %q, want the default", age)
	}
	if weight, _, _ := unstructured.NestedInt64(now.Object, "spec", "weight"); weight != 3 {
		w.t.Errorf("weight is %d, want that of another owner", weight)
	}
}

// testDown verifies that without the webhook, all operations in v1 work, and that errors in v1beta1 contain the
// reason.
func testDown(w *world) {
	stop := w.start(w.server("kube-system", "karpenter"))
	w.must(w.apply(betaPool, "down", "gitops"))
	object := w.read(strings.ReplaceAll(betaPool, "NAME", "down"))
	defer w.remove(object)
	w.storage()
	w.until("fields are managed in v1", func() error { return older(w.mustIn("v1", object)) })
	stop()
	w.until("v1beta1 is refused", func() error {
		if err := w.Create(w.t.Context(), w.read(betaPool)); err == nil || !strings.Contains(err.Error(), "conversion webhook for karpenter.sh/v1beta1") {
			return fmt.Errorf("writing v1beta1: got error %v", err)
		}
		return nil
	})
	now := w.mustIn("v1", object)
	w.must(unstructured.SetNestedField(now.Object, int64(9), "spec", "weight"))
	w.must(w.Update(w.t.Context(), now))
	if len(w.mustIn("v1", object).GetManagedFields()) < 2 {
		w.t.Error("the managers of the fields are lost")
	}
	w.must(w.apply(pool+"  weight: 3\n", "down", "another-manager"))
	w.must(w.Patch(w.t.Context(), now, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"nodes":1}}`))))
	w.must(w.Delete(w.t.Context(), w.create(pool, "another")))
}

func testSwitchedOff(w *world) {
	object := w.create(pool, "general")
	w.start(&Server{Namespace: "kube-system", Service: "karpenter"})
	w.until("v1beta1 is refused by name", func() error {
		if _, err := w.in("v1beta1", object); err == nil || !strings.Contains(err.Error(), SwitchedOff) {
			return fmt.Errorf("got error %v", err)
		}
		return nil
	})
	w.mustIn("v1", object)
}

// testAppliedAgain applies the definitions as they are released, which name another service and no authority.
func testAppliedAgain(w *world) {
	w.start(w.server("elsewhere", "mine"))
	object := w.create(betaPool, "general")
	definitions, err := crds.Definitions()
	w.must(err)
	for _, definition := range definitions {
		found := &apiextensionsv1.CustomResourceDefinition{}
		w.until("the definition is replaced", func() error {
			if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(definition), found); err != nil {
				return err
			}
			found.Spec = *definition.Spec.DeepCopy()
			return w.Update(w.t.Context(), found)
		})
	}
	w.until("v1beta1 is served again", func() error { _, err := w.in("v1beta1", object); return err })
}

// testAppliedServerSide applies them server-side, as Helm does, without force: there is no conflict, and they are
// corrected.
func testAppliedServerSide(w *world) {
	w.start(w.server("elsewhere", "mine"))
	object := w.create(betaPool, "general")
	definitions, err := crds.Definitions()
	w.must(err)
	for range 2 {
		for _, definition := range definitions {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
			w.must(err)
			delete(fields, "status")
			applied := &unstructured.Unstructured{Object: fields}
			applied.SetAPIVersion("apiextensions.k8s.io/v1")
			applied.SetKind("CustomResourceDefinition")
			w.until("it is applied without a conflict", func() error {
				return w.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("helm"))
			})
		}
		w.until("v1beta1 is served again", func() error { _, err := w.in("v1beta1", object); return err })
	}
}

// testReplicas verifies that replicas that start at the same moment share one certificate.
func testReplicas(w *world) {
	const replicas = 6
	bundles := make([][]byte, replicas)
	keepers := make([]*keeper, replicas)
	var all sync.WaitGroup
	for i := range replicas {
		keepers[i] = &keeper{client: w, namespace: "default", name: "replicas", names: names, now: time.Now}
		all.Go(func() {
			bundle, err := keepers[i].ensure(w.t.Context())
			if err != nil {
				w.t.Error(err)
			}
			bundles[i] = bundle
		})
	}
	all.Wait()
	for i := range replicas {
		if !bytes.Equal(bundles[i], bundles[0]) || !bytes.Equal(keepers[i].last.Load().certificate, keepers[0].last.Load().certificate) {
			t := w.t
			t.Errorf("replica %d has another certificate than the first", i)
		}
	}
	// After a deletion, the Secret is restored with the same content.
	w.must(w.Delete(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "replicas"}}))
	for i := range replicas {
		bundle, err := keepers[i].ensure(w.t.Context())
		w.must(err)
		if !bytes.Equal(bundle, bundles[0]) {
			w.t.Errorf("replica %d has another authority after the Secret was deleted", i)
		}
	}
}

// testRotated verifies that half a year later, all replicas serve a new certificate under the same authority.
func testRotated(w *world) {
	var lock sync.Mutex
	now := time.Now()
	at := func() time.Time { lock.Lock(); defer lock.Unlock(); return now }
	first := &keeper{client: w, namespace: "default", name: "rotated", names: names, now: at}
	second := &keeper{client: w, namespace: "default", name: "rotated", names: names, now: at}
	before, err := first.ensure(w.t.Context())
	w.must(err)
	was := *first.last.Load()
	lock.Lock()
	now = now.Add(80 * 24 * time.Hour)
	lock.Unlock()
	for _, k := range []*keeper{second, first} {
		after, err := k.ensure(w.t.Context())
		w.must(err)
		if !bytes.Equal(before, after) {
			w.t.Error("another authority, long before the first ends")
		}
	}
	shown, err := first.certificate(&tls.ClientHelloInfo{})
	w.must(err)
	if bytes.Equal(first.last.Load().certificate, was.certificate) || shown.Leaf.NotAfter.Before(now.Add(30*24*time.Hour)) {
		w.t.Error("the certificate was not renewed")
	}
	if !bytes.Equal(first.last.Load().certificate, second.last.Load().certificate) {
		w.t.Error("replicas serve different certificates")
	}
}

// testStoredVersions covers an old cluster with objects that are stored in v1beta1. After the upgrade of the
// definitions, all are rewritten.
func testStoredVersions(w *world) {
	w.storing("v1beta1")
	var objects []*unstructured.Unstructured
	for _, text := range []string{betaPool, betaClass, betaClaim} {
		object := w.read(strings.ReplaceAll(text, "NAME", "old"))
		w.until("it is stored", func() error { return client.IgnoreAlreadyExists(w.Create(w.t.Context(), object)) })
		defer w.remove(object)
		objects = append(objects, object)
	}
	w.storing("v1")
	// With the webhook disabled they could not be read. An error reports it, and nothing else is done.
	off := &Server{Client: w, Namespace: "kube-system", Service: "karpenter", Clock: clock.RealClock{}, Log: logr.Discard()}
	if err := off.Start(w.t.Context()); err == nil || !strings.Contains(err.Error(), "nodepools.karpenter.sh") {
		w.t.Errorf("disabled: got error %v, want one that names what is stored", err)
	}
	var lines lockedLines
	on := w.server("kube-system", "karpenter")
	on.Log = lines.logger()
	stop := w.start(on)
	w.storage()
	for _, d := range w.versioned() {
		w.until("all is stored in v1", func() error {
			found := &apiextensionsv1.CustomResourceDefinition{}
			if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(d), found); err != nil {
				return err
			}
			if diff := cmp.Diff([]string{"v1"}, found.Status.StoredVersions); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s%s", d.Name, diff, lines.text())
			}
			return nil
		})
	}
	for _, object := range objects {
		w.until("fields are managed in v1", func() error { return older(w.mustIn("v1", object)) })
	}
	stop()
	w.until("the webhook is down", func() error {
		if _, err := w.in("v1beta1", objects[0]); err == nil {
			return fmt.Errorf("v1beta1 is served")
		}
		return nil
	})
	for _, object := range objects {
		w.mustIn("v1", object)
	}
}
