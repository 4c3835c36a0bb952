package v1

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of the text of a quantity. resource.ParseQuantity computes powers of ten of any exponent: 1e-100000000
// takes minutes, and 1e-1000000000 practically never ends.
const (
	// LongestQuantity is the maximum length of a quantity in bytes.
	LongestQuantity = 64
	// exponentDigits is the maximum number of digits of its exponent.
	exponentDigits = 3
)

// BoundQuantity returns an error for a text that resource.ParseQuantity may need a long time to parse.
func BoundQuantity(text string) error {
	if len(text) > LongestQuantity {
		return fmt.Errorf("a quantity of %d characters, want at most %d", len(text), LongestQuantity)
	}
	at := strings.LastIndexAny(text, "eE")
	if at < 0 {
		return nil
	}
	if digits := strings.TrimLeft(text[at+1:], "+-"); len(digits) > exponentDigits {
		return fmt.Errorf("the quantity %s has an exponent of %d digits, want at most %d", text, len(digits), exponentDigits)
	}
	return nil
}

// BoundQuantities returns an error for a JSON text in which a whole string or number is a quantity that
// resource.ParseQuantity may need a long time to parse, whatever field it is in. The schemas of the definitions refuse
// such quantities; a text that no schema has checked, such as that of a file, is passed to this function before it is
// decoded.
func BoundQuantities(text []byte) error {
	const amount = "0123456789.+-eE"
	for begin, end := 0, 0; end < len(text); {
		begin = end + len(text[end:]) - len(bytes.TrimLeftFunc(text[end:], func(r rune) bool { return !strings.ContainsRune(amount, r) }))
		end = begin + len(text[begin:]) - len(bytes.TrimLeft(text[begin:], amount))
		before, after := "\" \t\r\n,:[", "\" \t\r\n,]}"
		if end < len(text) && text[end] == '"' {
			before = "\" \t\r\n"
		}
		if !bytes.ContainsAny(text[begin:end], "eE") || begin > 0 && !strings.ContainsRune(before, rune(text[begin-1])) ||
			end < len(text) && !strings.ContainsRune(after, rune(text[end])) {
			continue
		}
		if err := BoundQuantity(string(text[begin:end])); err != nil {
			return err
		}
	}
	return nil
}

// ParseQuantity calls resource.ParseQuantity if BoundQuantity accepts the text.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := BoundQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}
