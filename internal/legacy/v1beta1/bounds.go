package v1beta1

import (
	"fmt"
	"strings"
)

// These constants bound the JSON texts in annotations, which any client can write. What this package writes has a
// handful of edits with paths of six names at most.
const (
	// mostNames bounds the path of an edit, mostEdits the edits of one annotation.
	mostNames, mostEdits = 64, 1000
	// mostPathBytes bounds the paths of all recorded edits together. They repeat the names of the fields above.
	mostPathBytes = 64 << 10
	// mostDepth bounds the nesting of a text. Kubernetes objects have a quarter of it.
	mostDepth = 100
	// mostCost, in bytes, bounds what the fields of a text cost (Cost): about 400 maps or 3,000 values.
	mostCost = 1 << 20
	// longestName bounds the name of an object in an error. Names of the API are shorter.
	longestName = 64
)

// BoundError reports a text in an annotation that is not read, or not written, because reading it would cost too much.
type BoundError struct {
	Kind, Name, Annotation string
	// Why is what is beyond which limit.
	Why string
}

func (e *BoundError) Error() string {
	name := e.Name
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "") + "..."
	}
	return fmt.Sprintf("%s %s: annotation %s: %s", e.Kind, name, e.Annotation, e.Why)
}

// Cost estimates the memory in bytes that decoding, converting and encoding the fields of a JSON text allocates, in
// addition to the text itself, and returns how deep they are nested. Maps cost most, then values. Strings cost no more
// than their length, whatever they contain.
func Cost[Text string | []byte](text Text) (bytes, depth int) {
	maps, empty, values, level := 0, 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{':
			if i+1 < len(text) && text[i+1] == '}' {
				empty++
			} else {
				maps++
			}
			level++
		case '[':
			values++
			level++
		case '}', ']':
			level--
		case ',':
			values++
		}
		depth = max(depth, level)
	}
	return 2500*maps + 500*empty + 350*values, depth
}

// tooMuch returns why a JSON text may not be read, or an empty string.
func tooMuch(text string) string {
	cost, depth := Cost(text)
	switch {
	case depth > mostDepth:
		return fmt.Sprintf("its text is nested %d deep, want at most %d", depth, mostDepth)
	case cost > mostCost:
		return fmt.Sprintf("it has so many fields that reading it would take %d bytes, want at most %d", cost, mostCost)
	}
	return ""
}

// beyond returns an error about an annotation of an object.
func beyond(object map[string]any, annotation, why string) *BoundError {
	return &BoundError{Kind: text(object, "kind"), Name: text(child(object, "metadata"), "name"), Annotation: annotation, Why: why}
}
