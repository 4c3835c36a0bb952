package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decoded is a simple equivalent of nextJSON by the decoder of the standard library, which copies each value twice.
func decoded(data []byte) (values []string, whole bool) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if err != nil {
			return values, errors.Is(err, io.EOF)
		}
		values = append(values, string(value))
	}
}

// TestNextJSON checks that the values of a file are found where the decoder finds them, whatever their strings and
// the separators contain.
func TestNextJSON(t *testing.T) {
	for _, text := range []string{
		"", " \n", `{}`, `{"a":1}{"b":[{}]}`, "\n{\"a\": \"}\"}\r\n\t{\"b\": \"\\\"{\"} ", `{"a":"\\"}{"b":"\\\"]"}`,
		`{"a":[1,{"b":"[["}]} null [1,2] {"c":{}} "text{" 3 true {"d":4}`, `{"a":1}}{"b":2}`, `{"a":1`, `{"a":"`, `{"a":"\`,
		`{"a":1}{"b":`, `{"a":1]`, `{"a":01}`, `{'a':1}`, `{"a":1},{"b":2}`, `{"a":1}x`, "{\"a\":\"\x00\"}", "{\"a\":\"\xff\"}", `}`, `[`,
	} {
		want, wholeWanted := decoded([]byte(text))
		var got []string
		next, whole := nextJSON([]byte(text)), false
		for {
			value, err := next()
			if err != nil {
				whole = errors.Is(err, io.EOF)
				break
			}
			got = append(got, string(value))
		}
		if diff := cmp.Diff(want, got); diff != "" || whole != wholeWanted {
			t.Errorf("%q: to the end: %v, want %v; values (-want +got):\n%s", text, whole, wholeWanted, diff)
		}
	}
}

// TestNextJSONNamesTheLine checks that the error about an invalid value contains the line of the file, not of the
// value.
func TestNextJSONNamesTheLine(t *testing.T) {
	next := nextJSON([]byte("{\"a\":\n1}\n{\"b\":\n2,}\n"))
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	_, err := next()
	if err == nil || !strings.Contains(err.Error(), "line 4:") {
		t.Errorf("error %v, want one that names line 4", err)
	}
}

// TestSimulateEndlessInput checks that reading endless input stops, with the location in the error.
func TestSimulateEndlessInput(t *testing.T) {
	_, err := ReadText(endless{}, 0, 1<<16)
	if err == nil || err.Error() != "goes on after 65536 bytes, want less" {
		t.Errorf("got %v", err)
	}
}

// endless is an endless text.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}
