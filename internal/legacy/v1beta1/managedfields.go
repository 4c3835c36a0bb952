package v1beta1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// moved is a field with another path in v1. Paths are those of fieldsV1, without the "f:". to is nil for a field that
// v1 does not have.
type moved struct{ from, to []string }

var movedFields = map[string][]moved{
	core + "/NodePool": append([]moved{
		{[]string{"spec", "disruption", "expireAfter"}, []string{"spec", "template", "spec", "expireAfter"}},
		{[]string{"spec", "template", "spec", "resources"}, nil},
	}, movedUnder("spec", "template", "spec")...),
	core + "/NodeClaim": movedUnder("spec"),
}

// movedUnder returns the fields that pools and claims share.
func movedUnder(spec ...string) []moved {
	under := func(names ...string) []string { return append(append([]string{}, spec...), names...) }
	return []moved{
		{under("nodeClassRef", "apiVersion"), under("nodeClassRef", "group")},
		{under("kubelet"), []string{"metadata", "annotations", AnnotationKubelet}},
	}
}

// ManagedInV1 returns the entries of managedFields of an object of v1 with entries of v1beta1 converted to v1, and
// reports whether there were any. The API server converts an object to the version of each entry at every write.
// While one entry is of v1beta1, writes of the object need a working webhook.
func ManagedInV1(object *metav1.PartialObjectMetadata, family bool) ([]metav1.ManagedFieldsEntry, bool) {
	group := object.GroupVersionKind().Group
	entries := make([]metav1.ManagedFieldsEntry, 0, len(object.ManagedFields))
	found := false
	for _, entry := range object.ManagedFields {
		if entry.APIVersion == group+"/"+v1beta1 {
			found = true
			entry.APIVersion = group + "/" + v1
			entry.FieldsV1 = fieldsInV1(group+"/"+object.Kind, entry.FieldsV1, family)
		}
		entries = append(entries, entry)
	}
	return entries, found
}

// fieldsInV1 moves the fields with another path in v1. What cannot be parsed is not changed: the API server reports
// it.
func fieldsInV1(kind string, set *metav1.FieldsV1, family bool) *metav1.FieldsV1 {
	if set == nil {
		return nil
	}
	var tree map[string]any
	if utiljson.Unmarshal(set.GetRawBytes(), &tree) != nil || tree == nil {
		return set
	}
	moves := movedFields[kind]
	if kind == aws+"/"+awsClass && !family { // it has become an alias
		moves = []moved{{[]string{"spec", "amiFamily"}, []string{"spec", "amiSelectorTerms"}}}
	}
	for _, m := range moves {
		owned, ok := cut(tree, m.from)
		if !ok || m.to == nil {
			continue
		}
		if m.to[0] == "metadata" {
			owned = map[string]any{} // an annotation is one value, for any number of fields
		}
		put(tree, m.to, owned)
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return set
	}
	return metav1.NewFieldsV1(string(raw))
}

// cut removes a field, and parents without remaining fields, from a set. It returns the removed value and whether it
// was present.
func cut(tree map[string]any, path []string) (any, bool) {
	name := "f:" + path[0]
	if len(path) == 1 {
		owned, ok := tree[name]
		delete(tree, name)
		return owned, ok
	}
	next, ok := tree[name].(map[string]any)
	if !ok {
		return nil, false
	}
	owned, ok := cut(next, path[1:])
	if ok && len(next) == 0 {
		delete(tree, name)
	}
	return owned, ok
}

func put(tree map[string]any, path []string, owned any) {
	for _, name := range path[:len(path)-1] {
		next, ok := tree["f:"+name].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree["f:"+name] = next
		}
		tree = next
	}
	tree["f:"+path[len(path)-1]] = owned
}
