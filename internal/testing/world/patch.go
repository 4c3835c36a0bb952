package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// patched returns the object with a patch of its status, or of the rest.
func patched(live client.Object, by types.PatchType, data []byte, status bool) (client.Object, error) {
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	text, err := apply(before, by, data)
	if err != nil {
		return nil, invalid(live, "", err.Error())
	}
	after := reflect.New(kindOf(live)).Interface().(client.Object)
	if err := json.Unmarshal(text, after); err != nil {
		return nil, err
	}
	if after.GetUID() != live.GetUID() {
		return nil, invalid(live, "metadata.uid", "field is immutable")
	}
	if after.GetResourceVersion() != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(resourceOf(kindOf(live)), live.GetName(), errors.New("the object has been modified"))
	}
	rest := live.DeepCopyObject().(client.Object)
	from, to := reflect.ValueOf(rest).Elem(), reflect.ValueOf(after).Elem()
	if status {
		from, to = to, from
		after = rest
	}
	if of := from.FieldByName("Status"); of.IsValid() {
		to.FieldByName("Status").Set(of)
	}
	return after, nil
}

func apply(before []byte, by types.PatchType, data []byte) ([]byte, error) {
	switch by {
	case types.MergePatchType:
		return jsonpatch.MergePatch(before, data)
	case types.JSONPatchType:
		steps, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, err
		}
		return steps.Apply(before)
	}
	return nil, fmt.Errorf("a patch of type %s", by)
}

// invalid returns the error of the API server for an invalid field.
func invalid(o client.Object, path, why string) error {
	problems := field.ErrorList{field.Invalid(field.NewPath(path), nil, why)}
	return apierrors.NewInvalid(o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetName(), problems)
}

// noteManager records that the field manager owns the nomination of the pod.
func noteManager(pod *corev1.Pod, manager string) {
	pod.ManagedFields = nil
	if pod.Status.NominatedNodeName != "" && manager == convert.NominationManager {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:nominatedNodeName":{}}}`)}}
	}
}
