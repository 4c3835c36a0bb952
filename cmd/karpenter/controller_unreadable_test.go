package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// loose returns the definitions without the type of a pool's weight.
func loose(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		if d.Spec.Names.Kind != "NodePool" {
			continue
		}
		for i := range d.Spec.Versions {
			spec := d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
			spec.Properties["weight"] = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
			spec.XValidations = nil // one rule is about the weight
			d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		}
	}
	return definitions
}

// TestUnreadableIsNamed checks that a stored object that no client can decode gets an event, and that no other object
// gets one.
func TestUnreadableIsNamed(t *testing.T) {
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: loose(t)})
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]string{"good": `"weight":1`, "heavy": `"weight":"heavy"`} {
		pool := &unstructured.Unstructured{}
		if err := pool.UnmarshalJSON([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"` + name + `"},"spec":{` + spec + `,"template":{"spec":{
			"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"},"requirements":[]}}}}`)); err != nil {
			t.Fatal(err)
		}
		if err := writer.Create(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	broken := newUnreadables()
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	options := cluster.CacheOptions(nil, broken.failed)
	options.Scheme = scheme
	pools, err := cache.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pools.GetInformer(t.Context(), &karpv1.NodePool{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	if err := broken.connect(t.Context(), config, scheme); err != nil {
		t.Fatal(err)
	}
	go func() { _ = pools.Start(t.Context()) }()
	go func() {
		_ = broken.search(t.Context(), reader, scheme, []schema.GroupVersionKind{karpv1.GroupVersion.WithKind("NodePool")})
	}()
	said := map[string]string{}
	eventually(t, "an event on the pool", func() bool {
		var list eventsv1.EventList
		if err := writer.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			said[e.Regarding.Name] = fmt.Sprintf("%s %s: %s", e.Regarding.Kind, e.Reason, e.Note)
		}
		return strings.Contains(said["heavy"], "NodePool SetAside: it cannot be read") && strings.Contains(said["heavy"], "weight")
	})
	if text, is := said["good"]; is {
		t.Errorf("the valid pool has the event %q", text)
	}
}

// TestUndecoded checks that failures of the network and errors of the API server start no search.
func TestUndecoded(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.EOF, false},
		{&unreachableError{}, false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "", nil), false},
		{apierrors.NewResourceExpired("too old"), false},
		{fmt.Errorf("failed to list *v1.NodePool: json: cannot unmarshal string into Go struct field NodePoolSpec.items.spec.weight of type int32"), true},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ClientWatchDecoding"}}}}}, true},
	} {
		if got := undecoded(c.err); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}

// unreachableError is a network failure.
type unreachableError struct{}

func (*unreachableError) Error() string   { return "no route to host" }
func (*unreachableError) Timeout() bool   { return false }
func (*unreachableError) Temporary() bool { return false }
