package v1

import "testing"

// TestBoundQuantities verifies that only whole strings and numbers are taken for quantities.
func TestBoundQuantities(t *testing.T) {
	for text, want := range map[string]bool{
		`{"cpu":"1e-1000000000"}`:                false,
		`{"cpu": 1E+1000 }`:                      false,
		`{"cpu":" .5e1000"}`:                     false,
		`["1.e-9999"]`:                           false,
		`1e1000`:                                 false,
		`{"cpu":"1e999","memory":"1Ei"}`:         true,
		`{"id":"sg-0123e45678"}`:                 true,
		`{"image":"a@sha256:12e45678"}`:          true,
		`{"image":"a@sha256:12e45678ab"}`:        true,
		`{"text":"1e10000Mi","other":"a1e1000"}`: true,
	} {
		if err := BoundQuantities([]byte(text)); (err == nil) != want {
			t.Errorf("%s: %v, want an error: %t", text, err, !want)
		}
	}
}
