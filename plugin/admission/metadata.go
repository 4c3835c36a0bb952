package admission

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readMetadata removes what cannot be read from an object's metadata and returns it as findings. Of the rest it makes
// what the handlers of a server make of a new object's metadata before they validate it.
func readMetadata(object map[string]any, inNamespaces bool) *findings {
	found := &findings{}
	given, there := object["metadata"]
	metadata, ok := given.(map[string]any)
	if there && given != nil && !ok {
		found.add("metadata", "is of type "+typeOf(given)+", want an object")
	}
	nameless := false
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		single, err := json.Marshal(map[string]any{name: metadata[name]})
		if err == nil {
			err = json.Unmarshal(single, &metav1.ObjectMeta{})
		}
		if err != nil {
			found.add("metadata."+name, unreadable(metadata[name], err))
			delete(metadata, name)
			nameless = nameless || name == "name"
		}
	}
	if !inNamespaces {
		delete(metadata, "namespace") // the request has none, and the server clears it
	}
	object["metadata"] = metadata
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil || meta == nil {
		meta = &metav1.ObjectMeta{}
	}
	for _, path := range unknown {
		found.add(path, "unknown field; kubectl apply rejects it, and the API server drops it for other clients")
	}
	switch {
	case nameless: // a finding already reports the name, because its type is wrong
		meta.Name = "name"
	case meta.Name == "" && meta.GenerateName != "":
		meta.Name = GeneratedName(meta.GenerateName, nil)
	}
	meta.Generation, meta.ManagedFields = 0, nil // a server sets its own
	found.meta = meta
	return found
}

// The letters and the lengths of names that a server makes.
const (
	suffixLetters  = "bcdfghjklmnpqrstvwxz2456789"
	lengthOfSuffix = 5
	longestBase    = 63 - lengthOfSuffix
)

// GeneratedName returns a name such as a server makes of metadata.generateName, the same for the same seed.
func GeneratedName(base string, seed []byte) string {
	h := fnv.New64a()
	h.Write(seed)
	name, rest := []byte(base[:min(len(base), longestBase)]), h.Sum64()
	for range lengthOfSuffix {
		name = append(name, suffixLetters[rest%uint64(len(suffixLetters))])
		rest /= uint64(len(suffixLetters))
	}
	return string(name)
}

// unreadable says why a field of metadata cannot be read.
func unreadable(value any, err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return "cannot be read: " + err.Error()
	}
	want := map[reflect.Kind]string{reflect.String: "a text", reflect.Map: "an object", reflect.Struct: "an object", reflect.Slice: "a list", reflect.Bool: "true or false"}[wrong.Type.Kind()]
	switch {
	case want == "":
		want = "an integer"
	case wrong.Type.Kind() == reflect.String && typeOf(value) == "object":
		return "has a value of type " + wrong.Value + ", want strings only: put it in quotes"
	case wrong.Type.Kind() == reflect.String:
		want += ": put it in quotes"
	}
	return "is of type " + typeOf(value) + ", want " + want
}
