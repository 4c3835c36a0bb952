package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// complement holds what an object of the other version contains beyond what this version can represent: edits that
// are applied after the plain mapping, if the object that carries them still has the digest Of.
type complement struct {
	Of    string
	Edits []edit
}

// edit sets or removes the field at a path. Lists are values: a path consists of field names only.
type edit struct {
	Path   []string
	Value  any
	Remove bool
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
	sum := sha256.New()
	newWriter(sum, true).value([]any{object["spec"], notes}) // decoded input can always be encoded again
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// meaningful lists the annotations that are mapped to fields.
var meaningful = []string{AnnotationKubelet, AnnotationNodeClassReference, AnnotationUbuntu}

// differences returns the edits that convert the spec and the annotations of one object to those of another.
func differences(from, to map[string]any) []edit {
	c := comparison{path: []string{"spec"}}
	c.compare(from["spec"], to["spec"], present(from, "spec"), present(to, "spec"))
	if c.beyond() {
		c.edits = []edit{{Path: []string{"spec"}, Value: to["spec"]}}
	}
	before, after := annotationsOf(from), annotationsOf(to)
	for _, key := range union(before, after) {
		one := comparison{path: []string{"metadata", "annotations", key}}
		one.compare(before[key], after[key], present(before, key), present(after, key))
		c.edits = append(c.edits, one.edits...)
	}
	return c.edits
}

// comparison collects the edits between two values. Values below the longest path, and all values of a comparison with
// too many edits, are recorded as a whole.
type comparison struct {
	path  []string // of the current value
	edits []edit
	bytes int // of the paths of all edits
}

func (c *comparison) beyond() bool { return len(c.edits) > mostEdits || c.bytes > mostPathBytes }

func (c *comparison) compare(from, to any, was, is bool) {
	before, isMap := from.(map[string]any)
	after, stillMap := to.(map[string]any)
	switch {
	case c.beyond():
	case was && !is:
		c.add(edit{Remove: true})
	case was && isMap && stillMap && len(c.path) < mostNames:
		for _, key := range union(before, after) {
			c.path = append(c.path, key)
			c.compare(before[key], after[key], present(before, key), present(after, key))
			c.path = c.path[:len(c.path)-1]
		}
	case is && (!was || !reflect.DeepEqual(from, to)):
		c.add(edit{Value: to})
	}
}

func (c *comparison) add(e edit) {
	e.Path = slices.Clone(c.path)
	for _, name := range e.Path {
		c.bytes += len(name)
	}
	c.edits = append(c.edits, e)
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

// keep writes the edits into an annotation of their object. Without edits, there is no annotation. It returns an error
// if take would not read what it would write.
func keep(object map[string]any, key string, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	text := textOf(complement{digest(object), edits}.write)
	why := tooMuch(text)
	if len(edits) > mostEdits {
		why = manyEdits(len(edits))
	}
	if why != "" {
		return beyond(object, key, why)
	}
	annotate(object, key, text)
	return nil
}

// write writes the value of the annotation.
func (c complement) write(w *writer) {
	w.raw(`{"of":`)
	w.text(c.Of)
	w.raw(`,"edits":[`)
	for i, e := range c.Edits {
		if i > 0 {
			w.raw(",")
		}
		w.raw(`{"path":[`)
		for i, name := range e.Path {
			if i > 0 {
				w.raw(",")
			}
			w.text(name)
		}
		w.raw("]")
		if e.Value != nil {
			w.raw(`,"value":`)
			w.value(e.Value)
		}
		if e.Remove {
			w.raw(`,"remove":true`)
		}
		w.raw("}")
	}
	w.raw("]}")
}

func manyEdits(n int) string { return fmt.Sprintf("it has %d edits, want at most %d", n, mostEdits) }

// take removes the annotation and returns its content. An annotation that cannot be parsed is treated as absent, and so
// is one that is beyond a limit. Of the latter, take returns the reason.
func take(object map[string]any, key string) (kept complement, why string) {
	text, ok := annotation(object, key)
	if !ok {
		return complement{}, ""
	}
	unannotate(object, key)
	if why := tooMuch(text); why != "" {
		return complement{}, why
	}
	var raw map[string]any
	if utiljson.Unmarshal([]byte(text), &raw) != nil {
		return complement{}, ""
	}
	list, _ := raw["edits"].([]any)
	if len(list) > mostEdits {
		return complement{}, manyEdits(len(list))
	}
	kept.Of, _ = raw["of"].(string)
	for _, fields := range list {
		e, ok := editOf(fields)
		if !ok {
			return complement{}, ""
		}
		if len(e.Path) > mostNames {
			return complement{}, fmt.Sprintf("an edit has a path of %d names, want at most %d", len(e.Path), mostNames)
		}
		kept.Edits = append(kept.Edits, e)
	}
	return kept, ""
}

// editOf returns the edit with these fields, and whether they are those of an edit.
func editOf(fields any) (edit, bool) {
	all, ok := fields.(map[string]any)
	if !ok {
		return edit{}, false
	}
	e := edit{Value: all["value"]}
	e.Remove, _ = all["remove"].(bool)
	names, _ := all["path"].([]any)
	for _, name := range names {
		text, ok := name.(string)
		if !ok {
			return edit{}, false
		}
		e.Path = append(e.Path, text)
	}
	return e, true
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

// make applies the edit. The fields above it are those of the object from which the edit was recorded, so they exist,
// except the map of annotations. An edit without them is ignored.
func (e edit) make(object map[string]any) {
	if e.Path[0] == "metadata" {
		if e.Remove {
			unannotate(object, e.Path[2])
		} else {
			annotate(object, e.Path[2], e.Value.(string))
		}
		return
	}
	above, last := child(object, e.Path[:len(e.Path)-1]...), e.Path[len(e.Path)-1]
	switch {
	case above == nil:
	case e.Remove:
		delete(above, last)
	default:
		above[last] = e.Value
	}
}
