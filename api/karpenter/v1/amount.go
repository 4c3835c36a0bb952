package v1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of the text of a quantity. resource.ParseQuantity computes powers of ten of any exponent: 1e-100000000 takes minutes,
// and 1e-1000000000 practically for ever.
const (
	// LongestQuantity is how many bytes a quantity may have.
	LongestQuantity = 64
	// exponentDigits is how many digits its exponent may have.
	exponentDigits = 3
)

// BoundQuantity is nil for a text that resource.ParseQuantity reads, or refuses, in next to no time.
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

// ParseQuantity is resource.ParseQuantity of a bounded text.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := BoundQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}
