package v1beta1

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// fieldsOf returns the fields of a JSON object, numbered from 0.
func fieldsOf(name, value string, n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"%s%d":%s`, name, i, value)
	}
	return strings.Join(fields, ",")
}

func nest(open, end string, n int) string {
	return strings.Repeat(open, n) + "1" + strings.Repeat(end, n)
}

// TestIgnored verifies that an annotation beyond a limit does not make a conversion fail: it is ignored, the caller is
// told the object, the annotation and the limit, and nothing of the object of v1 is lost.
func TestIgnored(t *testing.T) {
	edits := func(list string) string { return `{"of":"DIGEST","edits":[` + list + `]}` }
	for _, test := range []struct{ name, key, text, why string }{
		{"many edits", AnnotationV1Beta1, edits(strings.Repeat(`{},`, 1000) + `{"path":["spec","x"],"value":1}`), "it has 1001 edits, want at most 1000"},
		{"a long path", AnnotationV1Beta1, edits(`{"path":["spec"` + strings.Repeat(`,"a"`, 64) + `],"value":1}`),
			"an edit has a path of 65 names, want at most 64"},
		{"a deep value", AnnotationV1Beta1, edits(`{"path":["spec","x"],"value":` + nest("[", "]", 98) + `}`), "its text is nested 101 deep, want at most 100"},
		{"a dear value", AnnotationV1Beta1, edits(`{"path":["spec","x"],"value":{` + fieldsOf("a", "1", 3000) + `}}`),
			"it has so many fields that reading it would take 1058900 bytes, want at most 1048576"},
		{"dear settings", AnnotationKubelet, "{" + fieldsOf("a", "{}", 1300) + "}", "it has so many fields"},
		{"deep settings", AnnotationKubelet, `{"a":` + nest(`{"a":`, "}", 100) + "}", "its text is nested 101 deep"},
		{"a dear reference", AnnotationNodeClassReference, "{" + fieldsOf("a", "{}", 1300) + "}", "it has so many fields"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := example(t, "plain", "v1")
			unannotate(now, AnnotationNodeClassReference)
			child(now, "metadata")["name"] = strings.Repeat("n", 1000)
			want, err := Converter{}.FromV1(now)
			if err != nil {
				t.Fatal(err)
			}
			annotate(now, test.key, strings.ReplaceAll(test.text, "DIGEST", digest(now)))
			var reported []*BoundError
			c := Converter{Ignored: func(err *BoundError) { reported = append(reported, err) }}
			got, err := c.FromV1(now)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "from v1", without(want, AnnotationV1), without(without(got, AnnotationV1), test.key))
			if len(reported) != 1 || reported[0].Kind != "NodePool" {
				t.Fatalf("errors %v, want one about a NodePool", reported)
			}
			if got := reported[0]; got.Annotation != test.key || !strings.HasPrefix(got.Why, test.why) {
				t.Fatalf("error %v, want one about %s: %s", got, test.key, test.why)
			}
			text := reported[0].Error()
			if len(text) > 256 {
				t.Errorf("%d bytes, want at most 256: %s", len(text), text)
			}
			if !strings.HasPrefix(text, "NodePool nnn") || !strings.Contains(text, "...: annotation "+test.key+": ") {
				t.Errorf("%s: want the object with a shortened name, and the annotation", text)
			}
			back, err := Converter{}.ToV1(got)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "back in v1", now, back)
		})
	}
}

// TestIgnoredBack verifies the same for the annotation of an object of v1beta1.
func TestIgnoredBack(t *testing.T) {
	beta := example(t, "plain", "v1beta1")
	want, err := Converter{}.ToV1(beta)
	if err != nil {
		t.Fatal(err)
	}
	annotate(beta, AnnotationV1, `{"of":"`+digest(beta)+`","edits":[{"path":["spec"`+strings.Repeat(`,"a"`, 64)+`],"value":1}]}`)
	var reported []*BoundError
	got, err := Converter{Ignored: func(err *BoundError) { reported = append(reported, err) }}.ToV1(beta)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "to v1", want, got)
	if len(reported) != 1 || reported[0].Annotation != AnnotationV1 {
		t.Errorf("the caller was told %v, want one error about %s", reported, AnnotationV1)
	}
}

// TestManyDifferences verifies that differences of many fields are recorded as one, and that an annotation is ignored
// if the differences that it makes are too much for another one.
func TestManyDifferences(t *testing.T) {
	for _, test := range []struct {
		fields  int
		ignored bool
	}{{10, false}, {1500, false}, {3500, true}} {
		now := object(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"x"},"spec":{"x":{` + fieldsOf("a", "1", test.fields) + `}}}`)
		annotate(now, AnnotationV1Beta1, `{"of":"`+digest(now)+`","edits":[{"path":["spec","x"],"value":{"b":2}}]}`)
		var reported []*BoundError
		c := Converter{Ignored: func(err *BoundError) { reported = append(reported, err) }}
		beta, err := c.FromV1(now)
		if err != nil {
			t.Fatal(err)
		}
		if restored := present(child(beta, "spec", "x"), "b"); restored == test.ignored || (len(reported) > 0) != test.ignored {
			t.Errorf("%d fields: restored is %t and the caller was told %v, want that it is ignored: %t",
				test.fields, restored, reported, test.ignored)
		}
		back, err := c.ToV1(beta)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, fmt.Sprintf("%d fields, back in v1", test.fields), now, back)
	}
}

// TestRefused verifies that an object of v1beta1 is refused, and not changed, if v1 cannot hold what only v1beta1 has.
func TestRefused(t *testing.T) {
	beta := example(t, "plain", "v1beta1")
	child(beta, "spec", "template", "spec")["resources"] = object("{" + fieldsOf("a", "1", 3500) + "}")
	_, err := Converter{}.ToV1(beta)
	var bound *BoundError
	if !errors.As(err, &bound) || bound.Annotation != AnnotationV1Beta1 {
		t.Fatalf("error %v, want one about %s", err, AnnotationV1Beta1)
	}
	if !strings.Contains(err.Error(), "so many fields") {
		t.Errorf("error %v, want one about the number of fields", err)
	}
	child(beta, "spec", "template", "spec")["resources"] = object("{" + fieldsOf("a", "1", 2000) + "}")
	now, err := Converter{}.ToV1(beta)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Converter{}.FromV1(now)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "back", beta, back)
}

// TestDeepDifference verifies that what differs below the longest path is recorded as a whole.
func TestDeepDifference(t *testing.T) {
	from, to := map[string]any{"spec": object(nest(`{"a":`, "}", 70))}, map[string]any{"spec": object(nest(`{"a":`, "}", 71))}
	got := differences(from, to)
	if len(got) != 1 || len(got[0].Path) != 64 {
		t.Fatalf("%d edits, the first with a path of %d names, want 1 with 64", len(got), len(got[0].Path))
	}
	changed := runtime.DeepCopyJSON(from)
	complement{Of: "a", Edits: got}.restore("a", changed)
	wantSame(t, "restored", to, changed)
}

// TestDigest verifies that the digest is that of json.Marshal, which stored annotations have, and that values are
// written as by json.Encoder.
func TestDigest(t *testing.T) {
	for _, spec := range []string{`null`, `1`, `{}`, `[]`, `{"b":[1,2.5,1e30,true,null,{"c":{}}],"a<":"<&>\u2028\u0001\"\\é"}`,
		`"` + strings.Repeat("a", 4095) + strings.Repeat("é", 5000) + `"`, "\"" + strings.Repeat("\xff\xc3", 5000) + "\""} {
		var value any
		if err := json.Unmarshal([]byte(spec), &value); err != nil {
			t.Fatal(err)
		}
		object := map[string]any{"spec": value}
		annotate(object, AnnotationKubelet, "{}")
		text, err := json.Marshal([]any{value, map[string]any{AnnotationKubelet: "{}"}})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if got, want := digest(object), hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("%.40s: %s, want %s", spec, got, want)
		}
		var plain bytes.Buffer
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			t.Fatal(err)
		}
		got, err := Marshal(value)
		if err != nil || string(got)+"\n" != plain.String() {
			t.Errorf("%.40s: %.40s and error %v, want %.40s", spec, got, err, plain.String())
		}
		if cap(got) > len(got) {
			t.Errorf("%.40s: %d bytes with a capacity of %d", spec, len(got), cap(got))
		}
	}
	invalid := map[string]any{"spec": strings.Repeat("é", 3000) + strings.Repeat("\x80", 5000) + strings.Repeat("é", 3000)}
	text, err := json.Marshal([]any{invalid["spec"], map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if got, want := digest(invalid), hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("a text that is not UTF-8: %s, want %s", got, want)
	}
}

// TestCost verifies that only what is outside of strings counts.
func TestCost(t *testing.T) {
	for _, test := range []struct {
		text         string
		bytes, depth int
	}{
		{``, 0, 0}, {`"{[,\"{,"`, 0, 0}, {`{}`, 500, 1}, {`{"a":[1,2]}`, 2500 + 2*350, 2}, {`[[],{"a,":"\\"}]`, 2500 + 3*350, 2}, {`"\`, 0, 0}, {`"`, 0, 0},
	} {
		if bytes, depth := Cost(test.text); bytes != test.bytes || depth != test.depth {
			t.Errorf("%s: %d bytes, %d deep, want %d and %d", test.text, bytes, depth, test.bytes, test.depth)
		}
	}
}
