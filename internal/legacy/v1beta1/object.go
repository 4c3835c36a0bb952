package v1beta1

// child returns the object at a path, or nil if there is none. It shares data with its parent.
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

// text returns a string field, or an empty string.
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

// annotate sets an annotation. It replaces metadata of an unexpected form, which the API server does not pass.
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

// tidy removes an empty map of annotations, as the API server does, and returns the object.
func tidy(object map[string]any) map[string]any {
	if annotations := annotationsOf(object); annotations != nil && len(annotations) == 0 {
		delete(child(object, "metadata"), "annotations")
	}
	return object
}

// noted parses the JSON object in an annotation. It returns nil if the text is not one, or beyond a limit.
func noted(text string) map[string]any {
	if tooMuch(text) != "" {
		return nil
	}
	return object(text)
}
