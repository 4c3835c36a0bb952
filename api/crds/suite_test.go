package crds_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
	"github.com/karpenter-go/karpenter/plugin/admission"
)

// A server is a real kube-apiserver with the definitions of this package installed.
type server struct {
	client.Client
	config *rest.Config
	twin   *admission.Server // must reject exactly what the server rejects
}

func start(t *testing.T) *server {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, kwokv1alpha1.AddToScheme, awsv1.AddToScheme,
		karpv1alpha1.AddToScheme, autoscalingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	twin, err := admission.New()
	if err != nil {
		t.Fatal(err)
	}
	return &server{api, config, twin}
}

// All tests share one server, because its start takes longer than all tests.
func TestDefinitions(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"NodePoolSchema", testNodePoolSchema},
		{"NodePoolImmutability", testNodePoolImmutability},
		{"NodePoolDefaults", testNodePoolDefaults},
		{"NodePoolRoundTrip", testNodePoolRoundTrip},
		{"NodePoolScale", testNodePoolScale},
		{"NodePoolStatus", testNodePoolStatus},
		{"NodeClaimSchema", testNodeClaimSchema},
		{"NodeClaimImmutability", testNodeClaimImmutability},
		{"NodeClaimDefaults", testNodeClaimDefaults},
		{"NodeClaimFromGo", testNodeClaimFromGo},
		{"NodeClaimConditions", testNodeClaimConditions},
		{"KWOKNodeClassSchema", testKWOKNodeClassSchema},
		{"KWOKNodeClassIsReadyFromTheStart", testKWOKNodeClassIsReadyFromTheStart},
		{"NodeOverlaySchema", testNodeOverlaySchema},
		{"CapacityBufferSchema", testCapacityBufferSchema},
		{"AutoscalerVersions", testAutoscalerVersions},
		{"CapacityBufferScale", testCapacityBufferScale},
		{"EC2NodeClassSchema", testEC2NodeClassSchema},
		{"EC2NodeClassDefaults", testEC2NodeClassDefaults},
		{"EC2NodeClassRoundTrip", testEC2NodeClassRoundTrip},
		{"EC2NodeClassStatus", testEC2NodeClassStatus},
		{"Admission", testAdmission},
		{"Migrated", testMigrated},
		{"OlderManifestsAreKeptWhole", testOlderManifestsAreKeptWhole},
		{"OlderManifestsAreApplied", testOlderManifestsAreApplied},
		{"OlderPrinterColumns", testOlderPrinterColumns},
		{"TranslationsAreAccepted", testTranslationsAreAccepted},
		{"Discovery", testDiscovery},
		{"PrinterColumns", testPrinterColumns},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// A schemaRule is one rule of a definition, with a change to a valid object that satisfies the rule and one
// that violates it.
type schemaRule struct {
	name string
	pass string // YAML merged into the valid object
	fail string
	want string // part of the server's message for fail
}

// check creates both objects in dry-run mode.
func (r schemaRule) check(t *testing.T, s *server, good string) {
	t.Helper()
	if err := s.Create(t.Context(), merged(t, good, r.pass), client.DryRunAll); err != nil {
		t.Errorf("object that satisfies the rule: %v", err)
	}
	err := s.Create(t.Context(), merged(t, good, r.fail), client.DryRunAll)
	wantInvalid(t, err, r.want)
	for change, want := range map[string]bool{r.pass: true, r.fail: false} {
		refusals, err := s.twin.Create(merged(t, good, change).Object)
		if err != nil {
			t.Fatal(err)
		}
		if (len(refusals) == 0) != want {
			t.Errorf("package admission rejects %s: %q", change, refusals)
		}
	}
}

// An updateRule is a rule about updates. The object first is stored and then changed in both ways.
type updateRule struct {
	name  string
	first string
	pass  string
	fail  string
	want  string
}

func (r updateRule) check(t *testing.T, s *server, good string) {
	t.Helper()
	stored := s.create(t, good, r.first)
	if err := s.Update(t.Context(), overlaid(t, stored, r.pass), client.DryRunAll); err != nil {
		t.Errorf("change that satisfies the rule: %v", err)
	}
	err := s.Update(t.Context(), overlaid(t, stored, r.fail), client.DryRunAll)
	wantInvalid(t, err, r.want)
}

func wantInvalid(t *testing.T, err error, want string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Errorf("object that violates the rule: got error %v, want one of kind Invalid", err)
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("object that violates the rule: got error %q, want it to mention %q", err, want)
	}
}

// create stores the object, deletes it at the end of the test, and returns the stored object.
func (s *server) create(t *testing.T, good, change string) *unstructured.Unstructured {
	t.Helper()
	object := merged(t, good, change)
	if err := s.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %s: %v", object.GetName(), err)
	}
	t.Cleanup(func() {
		// The context of the test is already canceled at this point.
		if err := s.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
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

// overlaid returns a copy of the object with the change applied as a JSON merge patch: null removes a field,
// and lists are replaced.
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

// patchStatus merges a change into the status of the stored object.
func (s *server) patchStatus(t *testing.T, stored *unstructured.Unstructured, status string, opts ...client.SubResourcePatchOption) error {
	t.Helper()
	patch, err := yaml.YAMLToJSON([]byte("status: " + status))
	if err != nil {
		t.Fatalf("fixture is not YAML: %v\n%s", err, status)
	}
	return s.Status().Patch(t.Context(), stored.DeepCopy(), client.RawPatch(types.MergePatchType, patch), opts...)
}
