package offline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
)

// writeStream writes a struct like json.Encoder with an indent of one space, but element by element of its lists: an
// answer of 20,000 nodes is 150 MB of text, of which an encoder holds several copies.
func writeStream(out io.Writer, object any) error {
	s := &stream{out: bufio.NewWriter(out)}
	s.encoder = json.NewEncoder(&s.buffer)
	s.encoder.SetEscapeHTML(false)
	s.text("{")
	value, comma := reflect.ValueOf(object).Elem(), ""
	for _, f := range reflect.VisibleFields(value.Type()) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || options == "omitempty" && value.FieldByIndex(f.Index).IsZero() {
			continue
		}
		s.text(comma + "\n \"" + name + "\": ")
		s.field(value.FieldByIndex(f.Index))
		comma = ","
	}
	s.text("\n}\n")
	if s.err != nil {
		return s.err
	}
	return s.out.Flush()
}

// stream writes one object. It keeps the first error and writes nothing after it.
type stream struct {
	out     *bufio.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder
	err     error
}

func (s *stream) field(value reflect.Value) {
	if value.Kind() != reflect.Slice || value.Len() == 0 {
		s.value(value, " ")
		return
	}
	comma := "["
	for i := range value.Len() {
		s.text(comma + "\n  ")
		s.value(value.Index(i).Addr(), "  ")
		comma = ","
	}
	s.text("\n ]")
}

func (s *stream) value(value reflect.Value, prefix string) {
	s.buffer.Reset()
	s.encoder.SetIndent(prefix, " ")
	if err := s.encoder.Encode(value.Interface()); err != nil && s.err == nil {
		s.err = err
	}
	if s.err == nil {
		_, s.err = s.out.Write(bytes.TrimSuffix(s.buffer.Bytes(), []byte("\n")))
	}
}

func (s *stream) text(text string) {
	if s.err == nil {
		_, s.err = s.out.WriteString(text)
	}
}
