package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Fault is a field of an object that cannot be read and was replaced.
type Fault struct {
	Kind, Name string
	// APIVersion and UID are empty if the document does not contain them.
	APIVersion, UID string
	// Field is the path of the field, such as spec.limits.cpu.
	Field string
	Why   string
}

// String returns the object, the field and the reason.
func (f Fault) String() string {
	return fmt.Sprintf("%s %s: %s: %s", f.Kind, f.Name, f.Field, f.Why)
}

// longest is the longest duration in whole hours.
const longest = "2562047h"

// longestField bounds the path of a field in a fault, in bytes. The author of an object chooses the names.
const longestField = 256

// Bound returns the document with every quantity that cannot be read in bounded work replaced by 0, without the fields
// that are nested too deeply, and these fields. A document without any, which is nearly every document, is returned
// unchanged. A suspicious document in which an object repeats a field is returned with the last one only. The error
// reports a document that is not JSON, or one that is nested too deeply outside of its objects.
func Bound(document []byte) ([]byte, []Fault, error) {
	document, faults, err := shallow(document)
	if err != nil || !suspicious(document) {
		return document, faults, err
	}
	tree, err := decoded(document)
	if err != nil {
		return nil, nil, err
	}
	w := &walk{known: knownFields(), faults: faults}
	w.value(nil, tree)
	if !w.changed && !repeats(document, tree) {
		return document, w.faults, nil
	}
	bounded, err := json.Marshal(tree)
	if err != nil {
		return nil, nil, err
	}
	return bounded, w.faults, nil
}

// suspicious reports whether the text may contain a quantity with a long exponent, a long quantity, or a long
// duration. That is an e after a digit or a point, followed by more digits than a bounded exponent has, or more
// digits than any quantity or duration has, or an escaped character of a quantity.
func suspicious(text []byte) bool {
	const manyDigits = 7 // 10,000,000 s is less than four months, 10,000,000 h is too long
	digits := 0
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
			continue
		case (c == 'e' || c == 'E') && i > 0 && (digits > 0 || text[i-1] == '.') && longExponent(text[i+1:]):
			return true
		case c == '\\' && escapesAmount(text[i+1:]):
			return true
		case digits >= manyDigits && (c == 's' || c == 'm' || c == 'h') || digits > karpv1.LongestQuantity/2:
			return true
		}
		digits = 0
	}
	return digits > karpv1.LongestQuantity/2
}

// escapesAmount reports whether a text after a backslash is the number of an ASCII character other than <, > and &,
// which encoders escape. Decoders that encode a document again would turn it into a character of a quantity.
func escapesAmount(text []byte) bool {
	if len(text) < 5 || text[0] != 'u' || text[1] != '0' || text[2] != '0' {
		return false
	}
	code := strings.ToLower(string(text[3:5]))
	return code[0] >= '2' && code[0] <= '7' && code != "26" && code != "3c" && code != "3e"
}

func longExponent(text []byte) bool {
	text = bytes.TrimLeft(text[:min(len(text), 6)], "+-")
	if len(text) < 4 {
		return false
	}
	return !slices.ContainsFunc(text[:4], func(c byte) bool { return c < '0' || c > '9' })
}

// walk traverses a tree and replaces what cannot be read.
type walk struct {
	known *fields
	// object is the innermost object with a kind, or an item of a list. Faults carry its name.
	object  map[string]any
	kind    string
	faults  []Fault
	changed bool
}

func (w *walk) value(path []string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if isObject(path) {
			object, kind := w.object, w.kind
			w.object, w.kind = value, text(value, "kind", strings.TrimSuffix(kind, "List"))
			w.fields(nil, value)
			w.object, w.kind = object, kind
			return
		}
		w.fields(path, value)
	case []any:
		for i, member := range value {
			w.value(append(slices.Clone(path), fmt.Sprint(i)), member)
		}
	}
}

// isObject reports whether an object may begin at a path: that of the document, an item of a list, or the object of
// an event.
func isObject(path []string) bool {
	return len(path) == 0 || len(path) == 2 && path[0] == "items" || len(path) == 1 && path[0] == "object"
}

func (w *walk) fields(path []string, fields map[string]any) {
	parent := ""
	if len(path) > 0 {
		parent = path[len(path)-1]
	}
	if w.known.texts[parent] {
		return
	}
	for _, name := range sorted(fields) {
		at := append(slices.Clone(path), name)
		amount := w.known.amountMaps[parent] || w.known.amounts[name]
		duration := w.known.durationMaps[parent] || w.known.durations[name]
		switch value := fields[name].(type) {
		case string:
			if amount {
				w.amount(at, fields, name, value)
			} else if duration {
				w.duration(fields, name, value)
			}
		case json.Number:
			if amount {
				w.amount(at, fields, name, value.String())
			}
		default:
			w.value(at, value)
		}
	}
}

func (w *walk) amount(at []string, fields map[string]any, name, value string) {
	value = strings.TrimSpace(value) // as Quantity.UnmarshalJSON does
	if strings.Trim(value, "0123456789.+-eEinumkKMGTP") != "" {
		return // not a quantity: its parser fails at the first invalid character
	}
	err := karpv1.BoundQuantity(value)
	if err == nil {
		return
	}
	fields[name], w.changed = "0", true
	w.faults = append(w.faults, setAside(w.object, w.kind, strings.Join(at, "."), err.Error()))
}

// setAside writes a fault onto the object, and returns it.
func setAside(object map[string]any, kind, field, why string) Fault {
	if len(field) > longestField {
		field = strings.ToValidUTF8(field[:longestField], "") + "..."
	}
	fault := Fault{Kind: kind, APIVersion: text(object, "apiVersion", ""), Field: field, Why: why}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return fault
	}
	fault.Name, fault.UID = text(metadata, "name", ""), text(metadata, "uid", "")
	if namespace := text(metadata, "namespace", ""); namespace != "" {
		fault.Name = namespace + "/" + fault.Name
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	if _, noted := annotations[karpv1.AnnotationUnreadable]; !noted {
		annotations[karpv1.AnnotationUnreadable] = fault.Field + ": " + fault.Why
	}
	return fault
}

func (w *walk) duration(fields map[string]any, name, value string) {
	if _, err := time.ParseDuration(value); err != nil && len(value) > 0 && strings.Trim(value, "0123456789hms") == "" {
		fields[name], w.changed = longest, true
	}
}

func text(fields map[string]any, name, otherwise string) string {
	if s, ok := fields[name].(string); ok {
		return s
	}
	return otherwise
}

func sorted(fields map[string]any) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Depth returns how deep the documents of a JSON or YAML text may be nested. For YAML it is an upper bound: by the
// brackets of a document, in strings too, or by the spaces and dashes at the beginnings of its lines.
func Depth(text []byte) int {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		return jsonDepth(trimmed)
	}
	deepest := 0
	for document := range bytes.SplitSeq(text, []byte("\n---")) {
		deepest = max(deepest, yamlDepth(document))
	}
	return deepest
}

func yamlDepth(text []byte) int {
	deepest, depth, begins := 0, 0, 0
	inLine := false
	for _, c := range text {
		switch {
		case c == '\n':
			begins, inLine = 0, false
		case inLine:
		case c == ' ' || c == '-' || c == '?':
			begins++
			deepest = max(deepest, begins/2)
		default:
			inLine = true
		}
		switch c {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}
