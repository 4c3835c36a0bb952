package v1

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

func TestNillableDurationKeepsItsText(t *testing.T) {
	for _, test := range []struct {
		text  string
		value time.Duration
		never bool
	}{
		{text: "Never", never: true},
		{text: "0s"},
		{text: "720h", value: 720 * time.Hour},
		{text: "60m", value: time.Hour},
		{text: "1h60m0s", value: 2 * time.Hour},
		{text: "1s1m1h", value: time.Hour + time.Minute + time.Second},
		{text: "99999999999999999999h", value: math.MaxInt64},
		{text: "2562047h2562047h", value: math.MaxInt64},
	} {
		t.Run(test.text, func(t *testing.T) {
			type holder struct {
				D NillableDuration `json:"d"`
			}
			for _, format := range []struct {
				name      string
				input     string
				unmarshal func([]byte, any) error
				marshal   func(any) ([]byte, error)
			}{
				{"JSON", `{"d":"` + test.text + `"}`, json.Unmarshal, json.Marshal},
				{"YAML", "d: " + test.text + "\n", func(b []byte, v any) error { return yaml.UnmarshalStrict(b, v) }, yaml.Marshal},
			} {
				var h holder
				if err := format.unmarshal([]byte(format.input), &h); err != nil {
					t.Fatalf("%s: %v", format.name, err)
				}
				switch {
				case h.D.IsNever() != test.never:
					t.Errorf("%s: h.D.IsNever() is %v, want %v", format.name, h.D.IsNever(), test.never)
				case (!test.never && *h.D.Duration != test.value):
					t.Errorf("%s: !test.never && *h.D.Duration != test.value, read %v, want %v, never %v", format.name,
						h.D.Duration, test.value, test.never)
				}
				if h.D.String() != test.text {
					t.Errorf("%s: String() is %q", format.name, h.D.String())
				}
				output, err := format.marshal(holder{*h.D.DeepCopy()})
				if err != nil {
					t.Fatalf("%s: %v", format.name, err)
				}
				if string(output) != format.input {
					t.Errorf("%s: wrote %q, want the bytes that were read, %q", format.name, output, format.input)
				}
			}
		})
	}
}

func TestNillableDurationFromGo(t *testing.T) {
	for _, test := range []struct {
		name     string
		duration NillableDuration
		want     string
	}{
		{"zero value", NillableDuration{}, `"Never"`},
		{"never", NillableDuration{}, `"Never"`},
		{"zero seconds", DurationOf(0), `"0s"`},
		{"ninety seconds", DurationOf(90 * time.Second), `"1m30s"`},
	} {
		got, err := json.Marshal(test.duration)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != test.want {
			t.Errorf("%s: wrote %s, want %s", test.name, got, test.want)
		}
	}
}

// parseDuration parses "Never", or hours, minutes and seconds such as "1h30m".
func parseDuration(text string) (d NillableDuration, err error) {
	raw, err := json.Marshal(text)
	if err != nil {
		return d, err
	}
	err = d.UnmarshalJSON(raw)
	return d, err
}

func TestNillableDurationDeepCopyIsApart(t *testing.T) {
	original, err := parseDuration("60m")
	if err != nil {
		t.Fatal(err)
	}
	copied := original.DeepCopy()
	*copied.Duration = time.Second
	copied.Raw[1] = '7'
	if *original.Duration != time.Hour || string(original.Raw) != `"60m"` {
		t.Errorf("changing a copy changed the original to %v, %s", *original.Duration, original.Raw)
	}
}

func TestNillableDurationEqual(t *testing.T) {
	parse := func(text string) NillableDuration {
		d, err := parseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"60m", "1h", true}, {"Never", "Never", true}, {"Never", "0s", false}, {"0s", "Never", false}, {"1h", "2h", false},
	} {
		if got := parse(test.a).Equal(parse(test.b)); got != test.want {
			t.Errorf("%s equal to %s: got %v", test.a, test.b, got)
		}
	}
}

func TestNillableDurationRefusesOtherText(t *testing.T) {
	for _, input := range []string{`""`, `"never"`, `"3d"`, `"5"`, `5`, `{}`, `"1h "`} {
		var d NillableDuration
		if err := d.UnmarshalJSON([]byte(input)); err == nil {
			t.Errorf("%s was read as %v, want an error", input, d)
		}
	}
	var d NillableDuration
	if err := json.Unmarshal([]byte("null"), &d); err != nil || !d.IsNever() {
		t.Errorf("null was read as %v, %v, want Never", d, err)
	}
}
