package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// OneLine returns the text of an error without line breaks.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// visible returns a text with its control characters but line breaks and tabs as escapes, so that a name in a file
// cannot move the cursor of a terminal or change its colors.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// wrongType matches the decoder's error about a value of the wrong JSON type, or a number that is out of range.
var wrongType = regexp.MustCompile(`cannot unmarshal (\w+)(?: (\S+))? into Go (?:struct field \w*\.(\S+)|value) of type (\S+)`)

// wanted describes the values that a Go type accepts.
func wanted(kind string) string {
	switch {
	case kind == "int32":
		return "an integer, 2147483647 at most"
	case strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint"):
		return "an integer"
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a string"
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	case strings.HasPrefix(kind, "map[") || strings.Contains(kind, "."):
		return "an object"
	}
	return kind
}

// decodeProblem describes an error of the decoder in terms of the file, with the field if it can be determined.
func decodeProblem(text []byte, err error) string {
	if strict, ok := runtime.AsStrictDecodingError(err); ok && len(strict.Errors()) > 0 {
		return OneLine(strict.Errors()[0])
	}
	if match := wrongType.FindStringSubmatch(err.Error()); match != nil {
		is, field := "a JSON "+match[1], match[3]
		if match[2] != "" {
			is = match[2]
		}
		if field == "" {
			field = "the object"
		}
		return fmt.Sprintf("%s: is %s, want %s", field, is, wanted(match[4]))
	}
	if errors.Is(err, resource.ErrFormatWrong) || strings.Contains(err.Error(), resource.ErrFormatWrong.Error()) {
		var object any
		if json.Unmarshal(text, &object) == nil {
			if field, value := wrongQuantity("", object); field != "" {
				return fmt.Sprintf("%s: is %q, want a quantity such as 500m or 2Gi", field, value)
			}
		}
	}
	return OneLine(err)
}

// wrongQuantity returns the first invalid value of a quantity field, and the path of its field.
func wrongQuantity(path string, object any) (field, value string) {
	switch object := object.(type) {
	case []any:
		for i, member := range object {
			if field, value = wrongQuantity(fmt.Sprintf("%s[%d]", path, i), member); field != "" {
				return field, value
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(object) {
			at := strings.TrimPrefix(path+"."+key, ".")
			if amounts, ok := object[key].(map[string]any); ok && slices.Contains([]string{"requests", "limits", "capacity", "allocatable"}, key) {
				for _, name := range sortedKeys(amounts) {
					text := fmt.Sprint(amounts[name])
					if _, err := karpv1.ParseQuantity(text); err != nil {
						return at + "." + name, text
					}
				}
				continue
			}
			if field, value = wrongQuantity(at, object[key]); field != "" {
				return field, value
			}
		}
	}
	return "", ""
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// jsonProblem returns where JSON is invalid; all is the complete text, from the offset at which the decoder began to
// read.
func jsonProblem(all []byte, from int, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	line := 1 + bytes.Count(all[:min(from+int(syntax.Offset), len(all))], []byte("\n"))
	return fmt.Errorf("line %d: is not JSON: %w", line, err)
}
