package markup

import (
	"fmt"
	"reflect"
)

// builtins are functions that every template has.
var builtins = map[string]any{
	"eq":     equal,
	"ne":     func(a, b any) (bool, error) { same, err := equal(a, b); return !same, err },
	"gt":     func(a, b any) (bool, error) { c, err := compare(a, b); return c > 0, err },
	"ge":     func(a, b any) (bool, error) { c, err := compare(a, b); return c >= 0, err },
	"not":    func(a any) bool { return !truth(reflect.ValueOf(a)) },
	"and":    func(values ...any) any { return decided(values, false) },
	"or":     func(values ...any) any { return decided(values, true) },
	"len":    length,
	"index":  index,
	"printf": fmt.Sprintf,
}

// decided returns the first value that is as true as wanted, or else the last.
func decided(values []any, wanted bool) any {
	for i, value := range values {
		if truth(reflect.ValueOf(value)) == wanted || i == len(values)-1 {
			return value
		}
	}
	return nil
}

// plain returns a value as a string, a whole number or a bool, if it is of such a kind.
func plain(value any) (any, bool) {
	of := indirect(reflect.ValueOf(value))
	switch {
	case of.Kind() == reflect.String:
		return of.String(), true
	case of.CanInt():
		return of.Int(), true
	case of.CanUint():
		return int64(of.Uint()), true
	case of.Kind() == reflect.Bool:
		return of.Bool(), true
	}
	return nil, false
}

func equal(a, b any) (bool, error) {
	left, known := plain(a)
	right, also := plain(b)
	if !known || !also || reflect.TypeOf(left) != reflect.TypeOf(right) {
		return false, fmt.Errorf("%T and %T cannot be compared", a, b)
	}
	return left == right, nil
}

func compare(a, b any) (int64, error) {
	left, _ := plain(a)
	right, _ := plain(b)
	x, is := left.(int64)
	y, also := right.(int64)
	if !is || !also {
		return 0, fmt.Errorf("%T and %T have no order", a, b)
	}
	return x - y, nil
}

func length(of any) (int, error) {
	value := indirect(reflect.ValueOf(of))
	switch value.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		return value.Len(), nil
	}
	return 0, fmt.Errorf("%T has no length", of)
}

func index(of any, at int) (any, error) {
	value := indirect(reflect.ValueOf(of))
	if value.Kind() != reflect.Slice && value.Kind() != reflect.Array {
		return nil, fmt.Errorf("%T has no elements", of)
	}
	if at < 0 || at >= value.Len() {
		return nil, fmt.Errorf("element %d of %d", at, value.Len())
	}
	return value.Index(at).Interface(), nil
}
