package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// mostDepth is the maximum nesting of objects and lists in an object. Kubernetes objects have less than a tenth of it.
// Decoders of JSON return an error beyond 10,000, for a whole list.
const mostDepth = 250

// errSyntax reports a text that is not JSON.
var errSyntax = errors.New("the document is not JSON")

// part is a member of a JSON object, or an element of a list. Its value is text[start:end].
type part struct {
	name       string
	start, end int
}

// parts returns the members of the JSON object, or the elements of the list, at the beginning of a text. It works for
// any depth, and does not verify the values.
func parts(text []byte) ([]part, error) {
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return nil, errSyntax
	}
	named := text[0] == '{'
	var list []part
	for i := 1; ; {
		i = afterBlanks(text, i)
		if i >= len(text) {
			return nil, errSyntax
		}
		if text[i] == '}' || text[i] == ']' {
			return list, nil
		}
		if text[i] == ',' {
			i = afterBlanks(text, i+1)
		}
		var p part
		if named {
			end := valueEnd(text, i)
			if end > len(text) || json.Unmarshal(text[i:end], &p.name) != nil {
				return nil, errSyntax
			}
			i = afterBlanks(text, end)
			if i >= len(text) || text[i] != ':' {
				return nil, errSyntax
			}
			i = afterBlanks(text, i+1)
		}
		p.start, p.end = i, valueEnd(text, i)
		if p.end > len(text) || p.end == p.start {
			return nil, errSyntax
		}
		list = append(list, p)
		i = p.end
	}
}

func afterBlanks(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// valueEnd returns the index after the JSON value at an index. It is beyond the text if the value does not end.
func valueEnd(text []byte, i int) int {
	if i >= len(text) {
		return i + 1
	}
	if c := text[i]; c != '{' && c != '[' && c != '"' {
		if n := bytes.IndexAny(text[i:], ",]}: \t\r\n"); n >= 0 {
			return i + n
		}
		return len(text)
	}
	var s scan
	for ; i < len(text); i++ {
		if s.next(text[i]); s.depth == 0 && !s.quoted {
			return i + 1
		}
	}
	return i + 1
}

// scan is the state of a pass over the bytes of a JSON text.
type scan struct {
	depth, deepest  int
	quoted, escaped bool
}

func (s *scan) next(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.quoted:
		s.escaped = c == '\\'
		s.quoted = c != '"'
	case c == '"':
		s.quoted = true
	case c == '{' || c == '[':
		s.depth++
		s.deepest = max(s.deepest, s.depth)
	case c == '}' || c == ']':
		s.depth--
	}
}

// jsonDepth returns how deep the values of a JSON text are nested.
func jsonDepth(text []byte) int {
	var s scan
	for _, c := range text {
		s.next(c)
	}
	return s.deepest
}

// shallow returns the document without the fields of its objects that are nested too deeply, and those fields. The
// other objects of a list are not changed. What is removed is a field of the spec as a whole, such as spec.kubelet.
func shallow(document []byte) ([]byte, []Fault, error) {
	if jsonDepth(document) <= mostDepth {
		return document, nil, nil
	}
	objects, kind, err := objectsOf(document)
	if err != nil {
		return nil, nil, err
	}
	var result bytes.Buffer
	var faults []Fault
	copied := 0
	for _, at := range objects {
		text := document[at.start:at.end]
		if jsonDepth(text) <= mostDepth {
			continue
		}
		object, found, err := cut(text, kind)
		if err != nil {
			return nil, nil, err
		}
		result.Write(document[copied:at.start])
		result.Write(object)
		copied = at.end
		faults = append(faults, found...)
	}
	result.Write(document[copied:])
	if jsonDepth(result.Bytes()) > mostDepth+2 { // an item of a list
		return nil, nil, tooDeep()
	}
	return result.Bytes(), faults, nil
}

func tooDeep() error {
	return fmt.Errorf("objects and lists are nested more than %d deep", mostDepth)
}

// objectsOf returns where the objects of a document are: the items of a list, the object of an event, or the document
// itself. It returns the kind of those without their own.
func objectsOf(document []byte) (objects []part, kind string, err error) {
	begin := afterBlanks(document, 0)
	if begin == len(document) || document[begin] != '{' {
		return nil, "", tooDeep()
	}
	fields, err := parts(document[begin:])
	if err != nil {
		return nil, "", err
	}
	for _, f := range fields {
		at, value := part{start: begin + f.start, end: begin + f.end}, document[begin+f.start:begin+f.end]
		switch {
		case f.name == "kind":
			_ = json.Unmarshal(value, &kind) // a kind that is no text is not used
		case f.name == "items" && value[0] == '[':
			if objects, err = parts(value); err != nil {
				return nil, "", err
			}
			for i := range objects {
				objects[i].start += at.start
				objects[i].end += at.start
			}
		case f.name == "object" && value[0] == '{':
			objects = []part{at}
		}
	}
	if objects == nil {
		end := valueEnd(document, begin)
		if end > len(document) {
			return nil, "", errSyntax
		}
		objects = []part{{start: begin, end: end}}
	}
	return objects, strings.TrimSuffix(kind, "List"), nil
}

// cut returns an object without the fields that are nested too deeply.
func cut(text []byte, kind string) ([]byte, []Fault, error) {
	if text[0] != '{' {
		return nil, nil, tooDeep()
	}
	fields, err := parts(text)
	if err != nil {
		return nil, nil, err
	}
	object := map[string]any{}
	var paths []string
	for _, f := range fields {
		value := text[f.start:f.end]
		if jsonDepth(value) < mostDepth {
			if object[f.name], err = decoded(value); err != nil {
				return nil, nil, err
			}
			continue
		}
		if value[0] != '{' {
			paths = append(paths, f.name)
			continue
		}
		members, err := parts(value)
		if err != nil {
			return nil, nil, err
		}
		kept := map[string]any{}
		for _, m := range members {
			if member := value[m.start:m.end]; jsonDepth(member) >= mostDepth-1 {
				paths = append(paths, f.name+"."+m.name)
			} else if kept[m.name], err = decoded(member); err != nil {
				return nil, nil, err
			}
		}
		object[f.name] = kept
	}
	if s, ok := object["kind"].(string); ok {
		kind = s
	}
	faults := make([]Fault, 0, len(paths))
	for _, path := range paths {
		faults = append(faults, setAside(object, kind, path, tooDeep().Error()))
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, nil, err
	}
	return encoded, faults, nil
}

func decoded(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}
