package beta

import (
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// child is the object at a path, nil if there is none. It is part of its parent: changes are seen there.
func child(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := object[name].(map[string]any)
		if !ok {
			return nil
		}
		object = next
	}
	return object
}

// text is a field that is a string, else empty.
func text(object map[string]any, name string) string {
	s, _ := object[name].(string)
	return s
}

func annotationsOf(object map[string]any) map[string]any {
	return child(object, "metadata", "annotations")
}

func annotation(object map[string]any, key string) (string, bool) {
	s, ok := annotationsOf(object)[key].(string)
	return s, ok
}

// annotate sets an annotation. Metadata of a strange form is replaced: the API server lets none pass.
func annotate(object map[string]any, key, value string) {
	metadata := child(object, "metadata")
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	annotations := child(metadata, "annotations")
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[key] = value
}

func unannotate(object map[string]any, key string) {
	if annotations := annotationsOf(object); annotations != nil {
		delete(annotations, key)
	}
}

// tidy takes an empty map of annotations away, as the API server does, and returns the object.
func tidy(object map[string]any) map[string]any {
	if annotations := annotationsOf(object); annotations != nil && len(annotations) == 0 {
		delete(child(object, "metadata"), "annotations")
	}
	return object
}

// written is a value as JSON.
func written(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "" // what came off the wire can be written again
	}
	return string(data)
}

// object reads a JSON object, nil if it is none.
func object(text string) map[string]any {
	var fields map[string]any
	if utiljson.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	return fields
}
