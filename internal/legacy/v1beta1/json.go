package v1beta1

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Marshal returns a decoded value as JSON. In contrast to json.Marshal, it needs no more memory than the text, and does
// not escape the characters of HTML, whose escapes take six times their length.
func Marshal(value any) ([]byte, error) {
	text := bytes.NewBuffer(make([]byte, 0, lengthOf(func(w *writer) { w.value(value) })))
	w := newWriter(text, false)
	w.value(value)
	return text.Bytes(), w.err
}

// written returns a value as JSON.
func written(value any) string { return textOf(func(w *writer) { w.value(value) }) }

// textOf returns what write writes. It is called twice.
func textOf(write func(*writer)) string {
	var text strings.Builder
	text.Grow(lengthOf(write))
	write(newWriter(&text, false))
	return text.String()
}

func lengthOf(write func(*writer)) int {
	var n length
	write(newWriter(&n, false))
	return int(n)
}

// length is a writer that counts.
type length int

func (n *length) Write(p []byte) (int, error) {
	*n += length(len(p))
	return len(p), nil
}

func (n *length) WriteString(s string) (int, error) {
	*n += length(len(s))
	return len(s), nil
}

// object parses a JSON object. It returns nil if the text is not one.
func object(text string) map[string]any {
	var fields map[string]any
	if utiljson.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	return fields
}

// writer writes values as json.Marshal does, part by part.
type writer struct {
	to      io.Writer
	part    bytes.Buffer
	encoder *json.Encoder // writes to part
	err     error         // the first one
}

// newWriter returns a writer. With html, it escapes the characters of HTML.
func newWriter(to io.Writer, html bool) *writer {
	w := &writer{to: to}
	w.encoder = json.NewEncoder(&w.part)
	w.encoder.SetEscapeHTML(html)
	return w
}

func (w *writer) value(value any) {
	switch value := value.(type) {
	case map[string]any:
		w.raw("{")
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if i > 0 {
				w.raw(",")
			}
			w.text(key)
			w.raw(":")
			w.value(value[key])
		}
		w.raw("}")
	case []any:
		w.raw("[")
		for i, member := range value {
			if i > 0 {
				w.raw(",")
			}
			w.value(member)
		}
		w.raw("]")
	case string:
		w.text(value)
	default:
		w.encode(value)
		w.bytes(w.part.Bytes())
	}
}

// longestPart, in bytes, bounds what is encoded at a time.
const longestPart = 4 << 10

func (w *writer) text(text string) {
	w.raw(`"`)
	for len(text) > 0 {
		end := min(len(text), longestPart)
		for range utf8.UTFMax - 1 { // a character is not divided
			if end < len(text) && !utf8.RuneStart(text[end]) {
				end--
			}
		}
		w.encode(text[:end])
		w.bytes(w.part.Bytes()[1 : w.part.Len()-1])
		text = text[end:]
	}
	w.raw(`"`)
}

// encode writes a value other than a map or a list to part.
func (w *writer) encode(value any) {
	w.part.Reset()
	if err := w.encoder.Encode(value); err != nil {
		w.fail(err)
		w.part.WriteString("null\n")
	}
	w.part.Truncate(w.part.Len() - 1) // the end of the line
}

func (w *writer) raw(text string) {
	if _, err := io.WriteString(w.to, text); err != nil {
		w.fail(err)
	}
}

func (w *writer) bytes(text []byte) {
	if _, err := w.to.Write(text); err != nil {
		w.fail(err)
	}
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
