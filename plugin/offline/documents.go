package offline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// readAll reads a file's documents: JSON values one after the other, or YAML documents.
func (o *Manifests) readAll(file string, data []byte) {
	next := documentsOf(data)
	for document := 1; ; document++ {
		text, err := next()
		if errors.Is(err, io.EOF) {
			return
		}
		origin := fmt.Sprintf("%s: document %d", file, document)
		var broken *brokenStreamError
		switch {
		case err != nil && templated.Match(text):
			o.problem(fmt.Errorf("%s: is a template (%s), want manifests; render it first, such as: "+
				"helm template CHART | kubectl karpenter ... -f -", origin, templated.Find(text)))
			return
		case err != nil:
			o.problem(fmt.Errorf("%s: %s", origin, OneLine(err)))
			if errors.As(err, &broken) {
				return
			}
		case len(text) > 0 && string(text) != "null":
			o.read(origin, text)
		}
	}
}

// documentsOf returns the documents of a text as JSON, one after the other.
func documentsOf(data []byte) (next func() ([]byte, error)) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' && !bytes.HasPrefix(trimmed, []byte("{{")) {
		return nextJSON(trimmed)
	}
	return nextYAML(data)
}

// templated matches what templates of Helm, Jinja and others have and manifests do not, outside of texts.
var templated = regexp.MustCompile(`\{\{|\{%|<%`)

// brokenStreamError means that the rest of the file cannot be split into documents.
type brokenStreamError struct{ err error }

func (e *brokenStreamError) Error() string { return e.err.Error() }
func (e *brokenStreamError) Unwrap() error { return e.err }

// nextJSON returns the JSON values of a file, one after the other, without copying them: a list of 100,000 pods is 60
// MB. For an invalid value, the decoder of the standard library gives the error.
func nextJSON(data []byte) func() ([]byte, error) {
	rest := data
	return func() ([]byte, error) {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if n := objectLength(rest); n > 0 && json.Valid(rest[:n]) {
			text := rest[:n:n]
			rest = rest[n:]
			return text, nil
		}
		done := len(data) - len(rest)
		decoder := json.NewDecoder(bytes.NewReader(rest))
		var text json.RawMessage
		err := decoder.Decode(&text)
		switch {
		case err == nil:
			rest = rest[decoder.InputOffset():]
			return text, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, &brokenStreamError{errors.New("is cut off in the middle of a JSON object")}
		case errors.Is(err, io.EOF):
			return nil, err
		}
		return nil, &brokenStreamError{jsonProblem(data, done, err)}
	}
}

// objectLength returns the length in bytes of the object at the start of the text, 0 if there is none or it does not
// end.
func objectLength(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 && !quoted {
			if text[0] != '{' {
				return 0
			}
			return i + 1
		}
	}
	return 0
}

// excerpt is a JSON value inside a text. Unlike json.RawMessage it is not a copy: texts are not changed after
// reading.
type excerpt []byte

// UnmarshalJSON keeps the value unparsed.
func (e *excerpt) UnmarshalJSON(value []byte) error {
	*e = value
	return nil
}

// nextYAML returns the documents of a file as JSON, or one that is not YAML as it is.
func nextYAML(data []byte) func() ([]byte, error) {
	// The reader loses a last line without an end that fills its buffer.
	reader := yamlstream.NewYAMLReader(bufio.NewReader(io.MultiReader(bytes.NewReader(data), strings.NewReader("\n"))))
	return func() ([]byte, error) {
		text, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, err
		case err != nil:
			return nil, &brokenStreamError{err}
		}
		converted, err := toJSON(text)
		if err != nil {
			return text, err
		}
		return converted, nil
	}
}

// toJSON converts a YAML document as kubectl does, where a field beside a merge key (<<) overrides what that merges. A
// field that is written twice in one mapping is an error; kubectl takes the last one.
func toJSON(text []byte) ([]byte, error) {
	converted, err := yaml.YAMLToJSONStrict(text)
	if err == nil || !bytes.Contains(text, []byte("<<")) {
		return converted, err
	}
	var document yamlnode.Node
	if yamlnode.Unmarshal(text, &document) != nil {
		return nil, err
	}
	if twice := repeated(&document); twice != nil {
		return nil, fmt.Errorf("yaml: line %d: key %q already set in map", twice.Line, twice.Value)
	}
	return yaml.YAMLToJSON(text)
}

// repeated returns the first name that is written twice in one mapping, nil for none.
func repeated(node *yamlnode.Node) *yamlnode.Node {
	seen := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yamlnode.MappingNode && i%2 == 0 && child.Kind == yamlnode.ScalarNode && child.Tag != "!!merge" {
			if seen[child.Value] {
				return child
			}
			seen[child.Value] = true
		}
		if twice := repeated(child); twice != nil {
			return twice
		}
	}
	return nil
}
