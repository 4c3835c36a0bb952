package crds_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// The real kube-apiserver that all tests of this package share, with our definitions
// installed.
var (
	config *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	code, err := withServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServer(run func() int) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, fmt.Errorf("these tests need kube-apiserver and etcd: set KUBEBUILDER_ASSETS to their directory, as \"make test\" does")
	}
	definitions, err := crds.Definitions()
	if err != nil {
		return 1, err
	}
	environment := &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{CRDs: definitions}}
	config, err = environment.Start()
	if err != nil {
		return 1, fmt.Errorf("starting kube-apiserver: %w", err)
	}
	defer func() {
		if stopErr := environment.Stop(); err == nil && stopErr != nil {
			err = fmt.Errorf("stopping kube-apiserver: %w", stopErr)
		}
	}()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 1, err
		}
	}
	api, err = client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return 1, err
	}
	return run(), nil
}

// A schemaRule is one rule of a definition, with a change to a good object that keeps
// it and one that breaks it.
type schemaRule struct {
	name string
	pass string // YAML merged over the good object
	fail string
	want string // part of the server's message for fail
}

// check creates both objects without keeping them.
func (r schemaRule) check(t *testing.T, good string) {
	t.Helper()
	if err := api.Create(t.Context(), merged(t, good, r.pass), client.DryRunAll); err != nil {
		t.Errorf("object that keeps the rule: %v", err)
	}
	err := api.Create(t.Context(), merged(t, good, r.fail), client.DryRunAll)
	wantInvalid(t, err, r.want)
}

// An updateRule is a rule about changes: first is stored, then changed in both ways.
type updateRule struct {
	name  string
	first string
	pass  string
	fail  string
	want  string
}

func (r updateRule) check(t *testing.T, good string) {
	t.Helper()
	stored := create(t, good, r.first)
	if err := api.Update(t.Context(), overlaid(t, stored, r.pass), client.DryRunAll); err != nil {
		t.Errorf("change that keeps the rule: %v", err)
	}
	err := api.Update(t.Context(), overlaid(t, stored, r.fail), client.DryRunAll)
	wantInvalid(t, err, r.want)
}

func wantInvalid(t *testing.T, err error, want string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Errorf("object that breaks the rule: got error %v, want one of kind Invalid", err)
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("object that breaks the rule: got error %q, want it to mention %q", err, want)
	}
}

// create stores the object, takes it away at the end of the test, and returns it as
// the server has it.
func create(t *testing.T, good, change string) *unstructured.Unstructured {
	t.Helper()
	object := merged(t, good, change)
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %s: %v", object.GetName(), err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := api.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting %s: %v", object.GetName(), err)
		}
	})
	return object
}

func merged(t *testing.T, good, change string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: parse(t, good)}
	return overlaid(t, object, change)
}

// overlaid is a copy of the object with the change merged as a JSON merge patch does:
// null removes, lists are replaced.
func overlaid(t *testing.T, object *unstructured.Unstructured, change string) *unstructured.Unstructured {
	t.Helper()
	copied := object.DeepCopy()
	overlay(copied.Object, parse(t, change))
	return copied
}

func overlay(into, change map[string]any) {
	for key, value := range change {
		nested, isMap := value.(map[string]any)
		existing, hasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hasMap:
			overlay(existing, nested)
		default:
			into[key] = value
		}
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatalf("fixture is not YAML: %v\n%s", err, text)
	}
	return fields
}

// patchStatus merges a change into the stored object's status.
func patchStatus(t *testing.T, stored *unstructured.Unstructured, status string, opts ...client.SubResourcePatchOption) error {
	t.Helper()
	patch, err := yaml.YAMLToJSON([]byte("status: " + status))
	if err != nil {
		t.Fatalf("fixture is not YAML: %v\n%s", err, status)
	}
	return api.Status().Patch(t.Context(), stored.DeepCopy(), client.RawPatch(types.MergePatchType, patch), opts...)
}
