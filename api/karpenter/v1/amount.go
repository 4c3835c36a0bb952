package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
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

// BoundQuantities returns an error for a JSON text if a quantity in it takes resource.ParseQuantity a long time to
// parse when the text is decoded into a value of the type. Other fields may look the same: a label that is a short
// commit, such as 1e98701. The schemas of the definitions refuse such quantities; a text that no schema has checked,
// such as that of a file, is passed to this function before it is decoded.
func BoundQuantities(text []byte, into any) error {
	if !unbounded(text) {
		return nil // nearly always
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return boundValue(d, reflect.TypeOf(into))
}

// unbounded reports whether a whole string or number of the text would be refused as a quantity, whatever field it is
// in.
func unbounded(text []byte) bool {
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
		if BoundQuantity(string(text[begin:end])) != nil {
			return true
		}
	}
	return false
}

// boundValue reads a value that will be decoded into the type, nil for a field that the type does not have. It returns
// an error for an unbounded quantity, and for text that is not JSON.
func boundValue(d *json.Decoder, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, composed := token.(json.Delim)
	if !composed {
		if t == reflect.TypeFor[resource.Quantity]() {
			return BoundQuantity(strings.TrimSpace(fmt.Sprint(token)))
		}
		return nil
	}
	for d.More() {
		key := json.Token("")
		if open == '{' {
			if key, err = d.Token(); err != nil {
				return err
			}
		}
		if err := boundValue(d, memberType(t, fmt.Sprint(key))); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// memberType returns the type of a member of a list, a map or a struct, nil if there is none.
func memberType(t reflect.Type, key string) reflect.Type {
	switch {
	case t == nil:
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.EqualFold(name, key) && name != "" {
				return f.Type
			}
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
