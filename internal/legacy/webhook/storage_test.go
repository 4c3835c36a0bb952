package webhook

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// definitionOfPools returns the definition of NodePools, in a cluster that once stored v1beta1.
func definitionOfPools() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "nodepools." + karpv1.Group}}
	d.Spec.Group, d.Spec.Names = karpv1.Group, apiextensionsv1.CustomResourceDefinitionNames{Kind: "NodePool", Plural: "nodepools"}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v1beta1", Served: true}}
	d.Status.StoredVersions = []string{"v1beta1", "v1"}
	return d
}

// memory returns an API server with these objects.
func memory(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{karpv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&apiextensionsv1.CustomResourceDefinition{}).Build()
}

// TestOneBadObject verifies that an object that the API server rejects is named and does not prevent the rewriting of
// others. The definition waits for it.
func TestOneBadObject(t *testing.T) {
	objects := []client.Object{definitionOfPools()}
	for _, name := range []string{"a", "bad", "c"} {
		objects = append(objects, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
	refuses, written := true, map[string]int{}
	api := interceptor.NewClient(memory(t, objects...), interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if object.GetName() == "bad" && refuses {
				return apierrors.NewInvalid(schema.GroupKind{Group: karpv1.Group, Kind: "NodePool"}, "bad", nil)
			}
			written[object.GetName()]++
			return api.Patch(ctx, object, patch, options...)
		},
	})
	s := &Storage{Client: api, Clock: clock.RealClock{}, Log: logr.Discard()}
	stored := func() []string {
		d := definitionOfPools()
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			t.Fatal(err)
		}
		return d.Status.StoredVersions
	}
	for range 2 {
		if err := s.rewriteAll(t.Context()); err == nil || !strings.Contains(err.Error(), `bad: NodePool.karpenter.sh "bad" is invalid`) {
			t.Errorf("got error %v, want one that names the bad object", err)
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "c": 1}, written) + cmp.Diff([]string{"v1beta1", "v1"}, stored()); diff != "" {
		t.Errorf("with an object that is rejected (-want +got):\n%s", diff)
	}
	refuses = false
	if err := s.rewriteAll(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a", "bad", "c"}, slices.Sorted(maps.Keys(written))) + cmp.Diff([]string{"v1"}, stored()); diff != "" {
		t.Errorf("when nothing is rejected (-want +got):\n%s", diff)
	}
}

// TestBusyClaim verifies that a claim that is written while its managers are being rewritten is checked again.
func TestBusyClaim(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: karpv1.Group + "/v1beta1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)}}
	patched := 0
	api := interceptor.NewClient(memory(t), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if of := list.(*metav1.PartialObjectMetadataList); of.Kind == "NodeClaimList" {
				of.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "busy", ManagedFields: managed}}}
			}
			return nil
		},
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			object.(*unstructured.Unstructured).SetName(key.Name)
			object.SetManagedFields(managed)
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			if patched++; patched == 1 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "nodeclaims"}, "busy", nil)
			}
			return nil
		},
	})
	s := &Storage{Client: api, Clock: clock.RealClock{}, Log: logr.Discard(), Look: time.Hour}
	for try, want := range []struct {
		patched int
		done    bool
	}{{1, false}, {2, true}, {2, true}} {
		if err := s.disownAll(t.Context()); err != nil {
			t.Error(err)
		}
		if patched != want.patched || s.claimsDone != want.done {
			t.Errorf("check %d: %d patches, done: %v; want %d, %v", try+1, patched, s.claimsDone, want.patched, want.done)
		}
	}
}
