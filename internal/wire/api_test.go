package wire

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

const poolText = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","spec":{"template":{"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"},
	"requirements":[{"key":"kubernetes.io/os","operator":"In","values":["linux"]}]}}}}`

// unbounded removes the bounds of quantities and durations from a schema.
func unbounded(s *apiextensionsv1.JSONSchemaProps) {
	if s.XIntOrString {
		s.Pattern, s.MaxLength = "", nil
	}
	for name, child := range s.Properties {
		if name == "terminationGracePeriod" {
			child.XValidations = nil
		}
		unbounded(&child)
		s.Properties[name] = child
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		unbounded(s.AdditionalProperties.Schema)
	}
}

// unboundedDefinitions returns the definitions as they were before they bounded quantities and durations.
func unboundedDefinitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			unbounded(d.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
	}
	return definitions
}

// createPool creates a pool with a changed spec.
func createPool(t *testing.T, writer client.Client, name string, change func(spec map[string]any)) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(poolText)); err != nil {
		t.Fatal(err)
	}
	object.SetName(name)
	change(object.Object["spec"].(map[string]any))
	if err := writer.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// TestInformer verifies that pools that were stored before the definition bounded quantities and durations do not
// block the informer for other pools.
func TestInformer(t *testing.T) {
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: unboundedDefinitions(t)})
	config.WarningHandler = rest.NoWarnings{}
	var lock sync.Mutex
	told := map[string]bool{}
	bounded := rest.CopyConfig(config)
	bounded.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return Transport(next, func(f Fault) {
			lock.Lock()
			defer lock.Unlock()
			told[f.Name+" "+f.Field] = true
		})
	})
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string, change func(spec map[string]any)) { createPool(t, writer, name, change) }
	limit := func(spec map[string]any) { spec["limits"] = map[string]any{"cpu": "1e-1000000000"} }
	create("listed", limit)
	create("long", func(spec map[string]any) {
		spec["template"].(map[string]any)["spec"].(map[string]any)["terminationGracePeriod"] = "99999999999h"
	})
	pools, err := cache.New(bounded, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pools.GetInformer(t.Context(), &karpv1.NodePool{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = pools.Start(t.Context()) }()
	if !pools.WaitForCacheSync(t.Context()) {
		t.Fatal("the informer has no first list")
	}
	var list karpv1.NodePoolList
	if err := pools.List(t.Context(), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("the first list has %d pools, want 2: %v", len(list.Items), err)
	}
	create("watched", limit)
	create("good", func(map[string]any) {})
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for len(list.Items) < 4 {
		select {
		case <-t.Context().Done():
			t.Fatalf("the informer has %d pools", len(list.Items))
		case <-again.C:
		}
		if err := pools.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
	}
	for i := range list.Items {
		pool := &list.Items[i]
		errs := karpv1.Validate(pool, karpv1.LabelRules{}).ToAggregate()
		refused := errs != nil && strings.Contains(errs.Error(), "spec.limits.cpu: Invalid value")
		if want := pool.Name == "listed" || pool.Name == "watched"; refused != want {
			t.Errorf("%s: refused %t, want %t: %v", pool.Name, refused, want, errs)
		}
		lock.Lock()
		if want := pool.Name == "listed" || pool.Name == "watched"; told[pool.Name+" spec.limits.cpu"] != want {
			t.Errorf("%s was reported: %t, want %t", pool.Name, !want, want)
		}
		lock.Unlock()
		if pool.Name == "long" {
			want := &metav1.Duration{Duration: 2562047 * time.Hour}
			if diff := cmp.Diff(want, pool.Spec.Template.Spec.TerminationGracePeriod); diff != "" {
				t.Errorf("a duration that is too long (-want +got):\n%s", diff)
			}
		}
	}
}

// TestDeepClass verifies that classes that are nested too deeply, even for decoders, do not block the informer for other
// classes, whether they are listed or watched.
func TestDeepClass(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := awsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	plain, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(name, kubelet string) { createClass(t, plain, config.Host, name, kubelet) }
	deep := func(n int) string { return `{"x":` + nested(n) + `}` }
	create("listed", deep(300))
	create("very-deep", deep(9_990))
	bounded := rest.CopyConfig(config)
	told := make(chan Fault, 100)
	bounded.Wrap(func(next http.RoundTripper) http.RoundTripper { return Transport(next, func(f Fault) { told <- f }) })
	classes, err := cache.New(bounded, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := classes.GetInformer(t.Context(), &awsv1.EC2NodeClass{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = classes.Start(t.Context()) }()
	if !classes.WaitForCacheSync(t.Context()) {
		t.Fatal("the informer has no first list")
	}
	create("watched", deep(300))
	create("good", `{"maxPods":3}`)
	list := awaitClasses(t, classes, 4)
	for i := range list.Items {
		class := &list.Items[i]
		aside := class.Annotations[karpv1.AnnotationUnreadable] != ""
		if want := class.Name != "good"; aside != want {
			t.Errorf("%s is set aside: %t, want %t", class.Name, aside, want)
		}
		if got := class.Spec.Kubelet == nil; got != aside || class.Spec.Role == "" {
			t.Errorf("%s: spec %+v, want one without kubelet settings only if it is set aside", class.Name, class.Spec)
		}
	}
	names := map[string]bool{}
	for len(told) > 0 {
		names[(<-told).Name] = true
	}
	if diff := cmp.Diff(map[string]bool{"listed": true, "very-deep": true, "watched": true}, names); diff != "" {
		t.Errorf("reported classes (-want +got):\n%s", diff)
	}
}

// createClass creates an EC2NodeClass with kubelet settings in JSON, also such as no Go type can hold.
func createClass(t *testing.T, plain *http.Client, host, name, kubelet string) {
	t.Helper()
	body := `{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{"name":"` + name + `"},"spec":{
		"role":"r","amiSelectorTerms":[{"alias":"al2023@latest"}],"subnetSelectorTerms":[{"id":"subnet-1"}],"securityGroupSelectorTerms":[{"id":"sg-1"}],"kubelet":` + kubelet + `}}`
	const path = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := plain.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusCreated {
		t.Fatalf("creating %s: %s: %.300s", name, response.Status, text)
	}
}

// awaitClasses waits until the informer has n classes.
func awaitClasses(t *testing.T, classes cache.Cache, n int) (list awsv1.EC2NodeClassList) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for len(list.Items) < n {
		select {
		case <-t.Context().Done():
			t.Fatalf("the informer has %d classes", len(list.Items))
		case <-again.C:
		}
		if err := classes.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
