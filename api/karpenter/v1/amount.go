package v1

import (
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

// ParseQuantity calls resource.ParseQuantity if BoundQuantity accepts the text.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := BoundQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}
