package offline

import (
	"bytes"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// depth returns how deep the documents of a JSON or YAML text may be nested: an upper bound, by the brackets of a
// document, in strings too unless it is JSON, or by the spaces and dashes at the beginnings of its lines.
func depth(text []byte) int {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		return jsonDepth(trimmed)
	}
	deepest := 0
	for document := range bytes.SplitSeq(text, []byte("\n---")) {
		deepest = max(deepest, yamlDepth(document))
	}
	return deepest
}

func jsonDepth(text []byte) int {
	deepest, depth := 0, 0
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
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

// boundQuantities returns an error for a quantity of the object that takes too long to parse. An object of an unknown
// kind is not decoded.
func (o *Manifests) boundQuantities(head *objectHead, text []byte) error {
	object, err := o.scheme.New(head.GroupVersionKind())
	if err != nil {
		return nil
	}
	return karpv1.BoundQuantities(text, object)
}
