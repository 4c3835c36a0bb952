package v1

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"time"
)

// Never is the wire form of an absent duration: no expiration, no consolidation.
const Never = "Never"

// NillableDuration is a duration, or Never, which is the nil Duration. A parsed value keeps its text and is
// written back byte for byte: "720h" does not become "720h0m0s". The Go zero value is written as Never.
// +kubebuilder:validation:Type:="string"
type NillableDuration struct {
	// Duration is nil for Never. For a text beyond the range of time.Duration (292 years) it is the maximum
	// time.Duration.
	*time.Duration

	// Raw is the JSON string as it was read, with quotes. It is written back unless it is empty. After changing
	// Duration, set Raw to nil, or build a new value with DurationOf.
	Raw []byte
}

// DurationOf returns the NillableDuration of d. d should be a whole number of seconds, because the API accepts
// hours, minutes and seconds only.
func DurationOf(d time.Duration) NillableDuration {
	return NillableDuration{Duration: &d}
}

// IsNever reports whether the duration is absent.
func (d NillableDuration) IsNever() bool { return d.Duration == nil }

// String returns the wire form without quotes.
func (d NillableDuration) String() string {
	var text string
	if len(d.Raw) > 0 && json.Unmarshal(d.Raw, &text) == nil {
		return text
	}
	if d.Duration == nil {
		return Never
	}
	return d.Duration.String()
}

// Equal reports whether both have the same length, regardless of their text.
func (d NillableDuration) Equal(other NillableDuration) bool {
	if d.Duration == nil || other.Duration == nil {
		return d.Duration == other.Duration
	}
	return *d.Duration == *other.Duration
}

// MarshalJSON writes the text that was read. Without one it writes the duration, or "Never".
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	if len(d.Raw) > 0 {
		return d.Raw, nil
	}
	return json.Marshal(d.String())
}

// unsignedDuration matches what the CRD schema accepts, except Never.
var unsignedDuration = regexp.MustCompile(`^([0-9]+(s|m|h))+$`)

// UnmarshalJSON parses "Never", or a duration of the syntax of time.ParseDuration, and keeps the bytes. A
// duration beyond the range of time.Duration is not an error: one such object in the API must not make a whole
// list unreadable.
func (d *NillableDuration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading a duration: %s is not a string such as \"720h\" or \"Never\"", data)
	}
	raw := append([]byte(nil), data...)
	if text == Never {
		*d = NillableDuration{Raw: raw}
		return nil
	}
	value, err := time.ParseDuration(text)
	if err != nil {
		if !unsignedDuration.MatchString(text) {
			return fmt.Errorf("reading a duration: %q is neither \"Never\" nor hours, minutes and seconds such as \"1h30m\"", text)
		}
		value = math.MaxInt64
	}
	*d = NillableDuration{Duration: &value, Raw: raw}
	return nil
}
