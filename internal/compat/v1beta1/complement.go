package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// complement holds what an object of the other version contains beyond what this version can represent: edits that
// are applied after the plain mapping, if the object that carries them still has the digest Of.
type complement struct {
	Of    string `json:"of"`
	Edits []edit `json:"edits"`
}

// edit sets or removes the field at a path. Lists are values: a path consists of field names only.
type edit struct {
	Path   []string `json:"path"`
	Value  any      `json:"value,omitempty"`
	Remove bool     `json:"remove,omitempty"`
}

// digest returns a hash of the input of the mappings: the spec, and the annotations that represent parts of it.
// Status and the rest of the metadata change frequently and are not included.
func digest(object map[string]any) string {
	notes := map[string]any{}
	for _, key := range meaningful {
		if text, ok := annotation(object, key); ok {
			notes[key] = text
		}
	}
	text, err := json.Marshal([]any{object["spec"], notes})
	if err != nil {
		return "" // decoded input can always be encoded again; this matches nothing
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// meaningful lists the annotations that are mapped to fields.
var meaningful = []string{AnnotationKubelet, AnnotationNodeClassReference, AnnotationUbuntu}

// differences returns the edits that convert the spec and the annotations of one object to those of another.
func differences(from, to map[string]any) []edit {
	var edits []edit
	compare([]string{"spec"}, from["spec"], to["spec"], present(from, "spec"), present(to, "spec"), &edits)
	before, after := annotationsOf(from), annotationsOf(to)
	for _, key := range union(before, after) {
		compare([]string{"metadata", "annotations", key}, before[key], after[key], present(before, key), present(after, key), &edits)
	}
	return edits
}

func compare(path []string, from, to any, was, is bool, edits *[]edit) {
	before, isMap := from.(map[string]any)
	after, stillMap := to.(map[string]any)
	switch {
	case was && !is:
		*edits = append(*edits, edit{Path: slices.Clone(path), Remove: true})
	case was && isMap && stillMap:
		for _, key := range union(before, after) {
			compare(append(slices.Clone(path), key), before[key], after[key], present(before, key), present(after, key), edits)
		}
	case is && (!was || !reflect.DeepEqual(from, to)):
		*edits = append(*edits, edit{Path: slices.Clone(path), Value: to})
	}
}

// union returns the keys of both, sorted.
func union(a, b map[string]any) []string {
	keys := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func present(in map[string]any, key string) bool {
	_, ok := in[key]
	return ok
}

// keep writes the edits into an annotation of their object. Without edits, there is no annotation.
func keep(object map[string]any, key string, edits []edit) {
	if len(edits) == 0 {
		return
	}
	text, err := json.Marshal(complement{digest(object), edits})
	if err != nil {
		return // see digest
	}
	annotate(object, key, string(text))
}

// take removes the annotation and returns its content. An annotation that cannot be parsed is treated as absent.
func take(object map[string]any, key string) complement {
	text, ok := annotation(object, key)
	if !ok {
		return complement{}
	}
	unannotate(object, key)
	var raw map[string]any
	var kept complement
	if utiljson.Unmarshal([]byte(text), &raw) != nil || json.Unmarshal([]byte(text), &kept) != nil {
		return complement{}
	}
	list, _ := raw["edits"].([]any)
	for i := range kept.Edits { // convert again, with integers as in objects
		if fields, ok := list[i].(map[string]any); ok {
			kept.Edits[i].Value = fields["value"]
		}
	}
	return kept
}

// restore applies the edits, if they belong to an object with this digest. Edits of fields that keep does not include
// are ignored: any client can write annotations, and the API server rejects a conversion that changes a name or a
// finalizer.
func (c complement) restore(of string, object map[string]any) {
	if c.Of == "" || c.Of != of {
		return
	}
	for _, e := range c.Edits {
		note := len(e.Path) == 3 && e.Path[0] == "metadata" && e.Path[1] == "annotations"
		_, isText := e.Value.(string)
		if len(e.Path) > 0 && e.Path[0] == "spec" || note && (isText || e.Remove) {
			e.make(object)
		}
	}
	tidy(object)
}

func (e edit) make(object map[string]any) {
	at := object
	for _, name := range e.Path[:len(e.Path)-1] {
		next, ok := at[name].(map[string]any)
		if !ok {
			if e.Remove {
				return
			}
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	last := e.Path[len(e.Path)-1]
	if e.Remove {
		delete(at, last)
		return
	}
	at[last] = e.Value
}
