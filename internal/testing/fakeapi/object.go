package fakeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// form is an encoding of an object.
type form struct{ metadata, protobuf bool }

func (f form) index() int {
	i := 0
	if f.metadata {
		i++
	}
	if f.protobuf {
		i += 2
	}
	return i
}

// object is an immutable object of the API, or the template of those of all blocks.
type object struct {
	kind      *kind
	content   *unstructured.Unstructured
	version   uint64
	variables []variable // those that occur in a template
	once      [4]sync.Once
	encoded   [4]pattern
}

// ref is an object, or that of a block.
type ref struct {
	*object
	block int
}

// pattern is the bytes of an object and the places where those of other blocks differ.
type pattern struct {
	bytes []byte
	spots []spot
}

type spot struct {
	at       int
	variable *variable
}

// newPattern finds the variables in the bytes.
func newPattern(text []byte, variables []variable) pattern {
	p := pattern{bytes: text}
	for i := range variables {
		v := &variables[i]
		for from := 0; ; {
			at := bytes.Index(text[from:], []byte(v.text))
			if at < 0 {
				break
			}
			from += at + len(v.text)
			p.spots = append(p.spots, spot{from - v.width, v})
		}
	}
	return p
}

// append appends the bytes of a block's object.
func (p *pattern) append(to []byte, block int) []byte {
	base := len(to)
	to = append(to, p.bytes...)
	if block == 0 {
		return to
	}
	var digits [64]byte
	for _, s := range p.spots {
		copy(to[base+s.at:], s.variable.digits(digits[:0], block))
	}
	return to
}

// occurring returns the variables that occur in the object.
func occurring(text []byte, variables []variable) []variable {
	return slices.DeleteFunc(slices.Clone(variables), func(v variable) bool { return !bytes.Contains(text, []byte(v.text)) })
}

// keyOf returns how a shelf names an object: "namespace/name", "/name" without a namespace.
func keyOf(namespace, name string) string { return namespace + "/" + name }

func (o *object) key() string { return keyOf(o.content.GetNamespace(), o.content.GetName()) }

// whole returns the content of the block's object, a copy.
func (r ref) whole() (*unstructured.Unstructured, error) {
	if r.block == 0 {
		return r.content.DeepCopy(), nil
	}
	text := r.append(nil, form{})
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(text)
}

// append appends the encoded object.
func (r ref) append(to []byte, f form) []byte { return r.pattern(f).append(to, r.block) }

// size is the number of bytes that append appends.
func (r ref) size(f form) int { return len(r.pattern(f).bytes) }

func (o *object) pattern(f form) *pattern {
	i := f.index()
	o.once[i].Do(func() { o.encoded[i] = newPattern(o.encode(f), o.variables) })
	return &o.encoded[i]
}

// encode returns the object in a form. It panics if the object has none, which a request for it cannot cause.
func (o *object) encode(f form) []byte {
	text, err := o.marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encoding %s %s: %v", o.kind.Kind, o.key(), err))
	}
	return text
}

func (o *object) marshal(f form) ([]byte, error) {
	var typed any
	switch {
	case f.metadata:
		part := &metav1.PartialObjectMetadata{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": o.content.Object["metadata"]},
			part); err != nil {
			return nil, err
		}
		if !f.protobuf {
			part.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
			return json.Marshal(part)
		}
		typed = part
	case !f.protobuf:
		return o.content.MarshalJSON()
	default:
		made, err := scheme.New(o.kind.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.content.Object, made); err != nil {
			return nil, err
		}
		made.GetObjectKind().SetGroupVersionKind(o.kind.GroupVersionKind)
		typed = made
	}
	encoder, ok := typed.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf", typed)
	}
	return encoder.Marshal()
}

// selector decides which objects a request is about.
type selector struct {
	labels labels.Selector
	fields fields.Selector
}

func (s selector) empty() bool { return s.labels.Empty() && s.fields.Empty() }

// matches reports whether the selectors admit the block's object.
func (s selector) matches(r ref) bool {
	if s.empty() {
		return true
	}
	marks, at := labels.Set(r.content.GetLabels()), r.fields()
	if r.block > 0 {
		names := replacer(r.variables, r.block)
		for _, set := range []map[string]string{marks, at} {
			for key, value := range set {
				set[key] = names.Replace(value)
			}
		}
	}
	return s.labels.Matches(marks) && s.fields.Matches(at)
}

// fields returns the fields that can be selected.
func (o *object) fields() fields.Set {
	set := fields.Set{"metadata.name": o.content.GetName(), "metadata.namespace": o.content.GetNamespace()}
	for _, path := range [][]string{{"spec", "nodeName"}, {"status", "phase"}, {"type"}, {"reason"}, {"involvedObject", "name"}} {
		value, _, _ := unstructured.NestedString(o.content.Object, path...)
		set[joined(path)] = value
	}
	return set
}

func joined(path []string) string {
	text := path[0]
	for _, part := range path[1:] {
		text += "." + part
	}
	return text
}

// versioned sets the content's version.
func (o *object) versioned(version uint64) *object {
	o.version = version
	o.content.SetResourceVersion(strconv.FormatUint(version, 10))
	return o
}
