package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage/names"
)

var errFault = errors.New("the server is told to fail")

// create stores a new object, or calls the subresource.
func (q request) create(body []byte) (ref, error) {
	switch q.sub {
	case "eviction":
		return q.evict(body)
	case "binding":
		return q.bind(body)
	}
	content, err := q.read(body)
	if err != nil {
		return ref{}, err
	}
	if content.GetName() == "" && content.GetGenerateName() != "" {
		content.SetName(names.SimpleNameGenerator.GenerateName(content.GetGenerateName()))
	}
	q.name = content.GetName()
	if q.shelf.get(q.key()).object != nil {
		return ref{}, apierrors.NewAlreadyExists(q.shelf.kind.groupResource(), q.name)
	}
	q.begin(content)
	return q.store(content), nil
}

// begin sets what the API server sets in a new object.
func (q request) begin(content *unstructured.Unstructured) {
	k := q.shelf.kind
	content.SetUID(uuid.NewUUID())
	content.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	content.SetDeletionTimestamp(nil)
	content.SetDeletionGracePeriodSeconds(nil)
	content.SetManagedFields(nil)
	if k.namespaced {
		content.SetNamespace(q.namespace)
	}
	if k.counted {
		content.SetGeneration(1)
	}
	if k.status && !k.kept {
		delete(content.Object, "status")
	}
	// Admission adds it: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#taintnodesbycondition
	if k.Kind == "Node" {
		taints, _, _ := unstructured.NestedSlice(content.Object, "spec", "taints")
		taints = append(taints, map[string]any{"key": corev1.TaintNodeNotReady, "effect": string(corev1.TaintEffectNoSchedule)})
		_ = unstructured.SetNestedSlice(content.Object, taints, "spec", "taints") // fails only without a spec
	}
	if k.Kind == "Pod" && k.Group == "" {
		content.Object["status"] = map[string]any{"phase": "Pending", "qosClass": qos(content)}
	}
}

// qos computes status.qosClass of a pod: the requests decide here, because the limits of a sample's pods exceed them.
func qos(content *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(content.Object, "spec", "containers")
	for _, container := range containers {
		if c, ok := container.(map[string]any); ok && c["resources"] != nil && len(c["resources"].(map[string]any)) > 0 {
			return string(corev1.PodQOSBurstable)
		}
	}
	return string(corev1.PodQOSBestEffort)
}

// read decodes the object of a request.
func (q request) read(body []byte) (*unstructured.Unstructured, error) {
	content, err := decode(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	content.SetGroupVersionKind(q.shelf.kind.GroupVersionKind)
	return content, nil
}

// update replaces an object, or its status.
func (q request) update(body []byte) (ref, error) {
	content, err := q.read(body)
	if err != nil {
		return ref{}, err
	}
	return q.replace(content)
}

// patch changes an object, or its status.
func (q request) patch(body []byte) (ref, error) {
	r, err := q.found()
	if err != nil {
		return r, err
	}
	before, err := r.whole()
	if err != nil {
		return r, err
	}
	text, err := before.MarshalJSON()
	if err != nil {
		return r, err
	}
	media, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if text, err = q.merged(types.PatchType(media), text, body); err != nil {
		return r, err
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(text); err != nil {
		return r, apierrors.NewBadRequest(err.Error())
	}
	q.owns(after, body)
	return q.replace(after)
}

// merged applies a patch.
func (q request) merged(by types.PatchType, text, body []byte) ([]byte, error) {
	var err error
	switch by {
	case types.MergePatchType:
		text, err = jsonpatch.MergePatch(text, body)
	case types.JSONPatchType:
		var steps jsonpatch.Patch
		if steps, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = steps.Apply(text)
		}
	case types.StrategicMergePatchType:
		if like, problem := scheme.New(q.shelf.kind.GroupVersionKind); problem == nil && !q.shelf.kind.custom {
			text, err = strategicpatch.StrategicMergePatch(text, body, like)
			break
		}
		fallthrough
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 415,
			Reason: metav1.StatusReasonUnsupportedMediaType, Message: fmt.Sprintf("patches of type %s are not supported", by)}}
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return text, nil
}

// owns records the field manager that the request names, as the owner of the fields that its patch sets.
func (q request) owns(content *unstructured.Unstructured, body []byte) {
	manager := q.URL.Query().Get("fieldManager")
	var set map[string]any
	if manager == "" || json.Unmarshal(body, &set) != nil {
		return
	}
	delete(set, "metadata")
	text, err := json.Marshal(owned(set))
	if err != nil {
		return
	}
	kept := []metav1.ManagedFieldsEntry{}
	for _, entry := range content.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != q.sub {
			kept = append(kept, entry)
		}
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	if string(text) != "{}" {
		kept = append(kept, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: q.shelf.kind.GroupVersion().String(), Time: &now,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text)), Subresource: q.sub})
	}
	content.SetManagedFields(kept)
}

// owned returns the fields that a merge patch sets, as managed fields name them.
func owned(set map[string]any) map[string]any {
	fields := map[string]any{}
	for name, value := range set {
		switch value := value.(type) {
		case nil:
		case map[string]any:
			if under := owned(value); len(under) > 0 {
				fields["f:"+name] = under
			}
		default:
			fields["f:"+name] = map[string]any{}
		}
	}
	return fields
}

// replace stores the changed object, if the request's version is that of the stored one.
func (q request) replace(after *unstructured.Unstructured) (ref, error) {
	r, err := q.found()
	if err != nil {
		return r, err
	}
	before, err := r.whole()
	if err != nil {
		return r, err
	}
	resource := q.shelf.kind.groupResource()
	if version := after.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
		return ref{}, apierrors.NewConflict(resource, q.name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := after.GetUID(); uid != "" && uid != before.GetUID() {
		return ref{}, apierrors.NewConflict(resource, q.name,
			fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", uid, before.GetUID()))
	}
	q.keep(before, after)
	if reflect.DeepEqual(before.Object, after.Object) {
		return r, nil // nothing is written, and no watch sees anything
	}
	if q.shelf.kind.counted && !reflect.DeepEqual(specOf(before), specOf(after)) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 && q.shelf.kind.Kind != "Pod" {
		return ref{q.end(before), 0}, nil // watches see the last one that was stored
	}
	return q.store(after), nil
}

// keep takes from the stored object what the request cannot change.
func (q request) keep(before, after *unstructured.Unstructured) {
	if q.sub == "status" {
		status := after.Object["status"]
		managed := after.GetManagedFields()
		after.Object = before.DeepCopy().Object
		after.SetManagedFields(managed)
		after.Object["status"] = status
		if status == nil {
			delete(after.Object, "status")
		}
		return
	}
	if q.shelf.kind.status {
		if status, ok := before.Object["status"]; ok {
			after.Object["status"] = status
		} else {
			delete(after.Object, "status")
		}
	}
	after.SetUID(before.GetUID())
	after.SetGeneration(before.GetGeneration())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	after.SetResourceVersion(before.GetResourceVersion())
}

// specOf returns all that a generation counts: what is neither metadata nor status.
func specOf(content *unstructured.Unstructured) map[string]any {
	rest := map[string]any{}
	for key, value := range content.Object {
		if key != "metadata" && key != "status" {
			rest[key] = value
		}
	}
	return rest
}

// store gives the object the next version.
func (q request) store(content *unstructured.Unstructured) ref {
	q.Server.version++
	o := (&object{kind: q.shelf.kind, content: content}).versioned(q.Server.version)
	q.shelf.put(o.key(), o)
	return ref{o, 0}
}

// end removes the object.
func (q request) end(content *unstructured.Unstructured) *object {
	q.Server.version++
	o := (&object{kind: q.shelf.kind, content: content}).versioned(q.Server.version)
	q.shelf.remove(o.key(), o)
	return o
}
