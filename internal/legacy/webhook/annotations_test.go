package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
)

// digestOf returns the digest of an object that has this spec and these annotations with a meaning.
func digestOf(t *testing.T, spec any, notes map[string]any) string {
	t.Helper()
	text, err := json.Marshal([]any{spec, notes})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// quoted returns a JSON string with the text. If hidden, what the estimate of a cost counts is written as escapes.
func quoted(t *testing.T, text string, hidden bool) string {
	t.Helper()
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	if !hidden {
		return string(encoded)
	}
	return strings.NewReplacer(",", `\u002c`, "{", `\u007b`, "[", `\u005b`).Replace(string(encoded))
}

const mebibyte = 1 << 20

// classRef is the spec of the pools of this test.
var classRef = map[string]any{"template": map[string]any{"spec": map[string]any{"nodeClassRef": map[string]any{"name": "a"}}}}

// annotated returns a request with a pool that has these annotations, as JSON strings, and a spec.
func annotated(from, to, spec string, annotations map[string]string) string {
	return `{"kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"karpenter.sh/` + to + `","objects":[` + poolText(from, spec, annotations) + `]}}`
}

// poolText returns a pool of a version.
func poolText(version, spec string, annotations map[string]string) string {
	var list []string
	for key, text := range annotations {
		list = append(list, `"`+key+`":`+text)
	}
	return `{"apiVersion":"karpenter.sh/` + version + `","kind":"NodePool","metadata":{"name":"x","annotations":{` + strings.Join(list, ",") + `}},"spec":` + spec + `}`
}

// edits returns the text of an annotation with edits of an object with this spec.
func edits(t *testing.T, spec any, list string) string {
	t.Helper()
	return `{"of":"` + digestOf(t, spec, map[string]any{}) + `","edits":` + list + `}`
}

// hostileTexts are annotations whose texts cost much more than their length when they are read.
var hostileTexts = []struct {
	name, from, to, key string
	text                func(t *testing.T, length int) string
}{
	{"a long path", "v1", "v1beta1", v1beta1.AnnotationV1Beta1, longPath},
	{"a long path back", "v1beta1", "v1", v1beta1.AnnotationV1, longPath},
	{"many edits", "v1", "v1beta1", v1beta1.AnnotationV1Beta1, func(t *testing.T, length int) string {
		t.Helper()
		return edits(t, classRef, filled("[", `{"path":["spec","x"],"value":{}}`, "]", length))
	}},
	{"a dense value", "v1", "v1beta1", v1beta1.AnnotationV1Beta1, denseValue},
	{"a dense value back", "v1beta1", "v1", v1beta1.AnnotationV1, denseValue},
	{"a deep value", "v1", "v1beta1", v1beta1.AnnotationV1Beta1, func(t *testing.T, length int) string {
		t.Helper()
		n := min(length/6, 9_000)
		return edits(t, classRef, `[{"path":["spec","x"],"value":`+strings.Repeat(`{"a":`, n)+"1"+strings.Repeat("}", n)+`}]`)
	}},
	{"kubelet settings", "v1", "v1beta1", v1beta1.AnnotationKubelet, denseMap},
	{"a reference", "v1", "v1beta1", v1beta1.AnnotationNodeClassReference, denseMap},
	{"a note", "v1", "v1beta1", v1beta1.AnnotationUbuntu, func(_ *testing.T, length int) string { return strings.Repeat(",", length) }},
}

func longPath(t *testing.T, length int) string {
	t.Helper()
	return edits(t, classRef, `[{"path":["spec"`+strings.Repeat(`,"a"`, length/4)+`],"value":1}]`)
}

func denseValue(t *testing.T, length int) string {
	t.Helper()
	return edits(t, classRef, `[{"path":["spec","x"],"value":`+filled("[", "{}", "]", length)+`}]`)
}

func denseMap(_ *testing.T, length int) string { return `{"a":` + filled("[", "{}", "]", length) + "}" }

// tail is a writer that keeps the last bytes, where the result is.
type tail struct {
	httptest.ResponseRecorder
	last []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.last = append(w.last, p[max(0, len(p)-400):]...)
	w.last = append([]byte{}, w.last[max(0, len(w.last)-400):]...)
	return len(p), nil
}

func (w *tail) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// result returns the part of the response about success.
func (w *tail) result() string {
	_, text, _ := strings.Cut(string(w.last), `"result":`)
	return text
}

// heldByRequest returns the maximum memory in use while a request is answered, and the result. A delayed garbage
// collection on a busy machine only increases the memory, so the minimum of a few requests counts.
func heldByRequest(body string, most int64) (least int64, result string) {
	for i := range 5 {
		r := newReviewer(deaf{}, time.Now, logr.Discard())
		request := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
		w := &tail{}
		before := liveBytes()
		peak, end := sample()
		r.ServeHTTP(w, request)
		end()
		result = w.result()
		if got := int64(peak.Load()) - int64(before); i == 0 || got < least {
			least = got
		}
		if least <= most {
			break
		}
	}
	return least, result
}

// TestAnnotations verifies that a request with an annotation that is read as JSON costs no more than one without: at
// most 10 MiB per MiB, however its text is written. The object is converted without what the annotation says.
func TestAnnotations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	for _, hostile := range hostileTexts {
		for _, length := range []int{35 << 10, 300 << 10, mebibyte - 2000} {
			for _, hidden := range []bool{false, true} {
				how := map[bool]string{false: "plain", true: "escaped"}[hidden]
				t.Run(fmt.Sprintf("%s, %d KiB, %s", hostile.name, length>>10, how), func(t *testing.T) {
					body := annotated(hostile.from, hostile.to, `{"template":{"spec":{"nodeClassRef":{"name":"a"}}}}`,
						map[string]string{hostile.key: quoted(t, hostile.text(t, length), hidden)})
					most := 10 * int64(max(len(body), mebibyte))
					got, result := heldByRequest(body, most)
					t.Logf("%d bytes: %.1f MiB", len(body), float64(got)/mebibyte)
					if got > most {
						t.Errorf("a request of %d bytes used %d bytes of memory, want at most %d", len(body), got, most)
					}
					if len(body) < longestObject && !strings.Contains(result, `"status":"Success"`) {
						t.Errorf("the object was not converted: %s", result)
					}
				})
			}
		}
	}
}

// TestDearest verifies the memory of requests with objects that are as dear as the bounds allow, in every part that is
// read more than once.
func TestDearest(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	dense := func(cost int) string { return filled("[", "{}", "]", cost/850*3) }
	pad := func(body string) string {
		return strings.Replace(body, `"name":"x"`, `"name":"`+strings.Repeat("x", max(1, mebibyte-len(body)))+`"`, 1)
	}
	long := strings.Repeat("a", mebibyte/2)
	html := strings.Repeat("<", mebibyte-2000)
	withLong := map[string]any{long: map[string]any{"z": 1}}
	for name, body := range map[string]string{
		"all annotations": pad(annotated("v1", "v1beta1", `{"x":`+dense(2_900_000)+`,"template":{"spec":{"nodeClassRef":{"name":"a"}}}}`, map[string]string{
			v1beta1.AnnotationKubelet:            quoted(t, `{"a":`+dense(1_000_000)+`}`, true),
			v1beta1.AnnotationNodeClassReference: quoted(t, `{"a":`+dense(1_000_000)+`}`, true),
		})),
		"edits": pad(annotated("v1", "v1beta1", `{"x":`+dense(2_900_000)+`}`, map[string]string{
			v1beta1.AnnotationV1Beta1: quoted(t, edits(t, map[string]any{"x": make([]struct{}, strings.Count(dense(2_900_000), "{"))},
				`[{"path":["spec","y"],"value":`+dense(1_000_000)+`}]`), true),
		})),
		"a long name with many fields": annotated("v1", "v1beta1", `{"`+long+`":{"z":1}}`, map[string]string{
			v1beta1.AnnotationV1Beta1: quoted(t, edits(t, withLong, `[{"path":["spec","`+long+`"],"value":{"a":1`+numbered(900)+`}}]`), false)}),
		"brackets in the spec":      annotated("v1beta1", "v1", `{"x":"`+html+`"}`, nil),
		"brackets in the kubelet":   annotated("v1beta1", "v1", `{"template":{"spec":{"kubelet":{"a":"`+html+`"}}}}`, nil),
		"brackets in the resources": annotated("v1beta1", "v1", `{"template":{"spec":{"resources":{"a":"`+html+`"}}}}`, nil),
		"brackets in the reference": annotated("v1beta1", "v1", `{"template":{"spec":{"nodeClassRef":{"name":"`+html+`"}}}}`, nil),
		"brackets in a reference of v1": annotated("v1", "v1beta1", `{"template":{"spec":{"nodeClassRef":{"name":"a"}}}}`, map[string]string{
			v1beta1.AnnotationNodeClassReference: quoted(t, `{"name":"`+html[:mebibyte/7]+`"}`, false)}),
		"brackets in the settings of v1": annotated("v1", "v1beta1", `{"template":{"spec":{}}}`, map[string]string{
			v1beta1.AnnotationKubelet: `"{\"a\":\"` + html + `\"}"`}),
		"brackets in edits": annotated("v1", "v1beta1", `{}`, map[string]string{
			v1beta1.AnnotationV1Beta1: `"` + strings.ReplaceAll(edits(t, map[string]any{}, `[{"path":["spec","x"],"value":"`+html+`"}]`), `"`, `\"`) + `"`}),
		"brackets in an unknown annotation": annotated("v1", "v1beta1", `{}`, map[string]string{v1beta1.AnnotationV1Beta1: `"` + html + `"`}),
		"line separators":                   annotated("v1beta1", "v1", `{"template":{"spec":{"resources":{"a":"`+strings.Repeat("\u2028", mebibyte/3-2000)+`"}}}}`, nil),
		"quotes":                            annotated("v1beta1", "v1", `{"template":{"spec":{"resources":{"a":"`+strings.Repeat(`\"`, mebibyte/2-2000)+`"}}}}`, nil),
		"no UTF-8":                          annotated("v1beta1", "v1", `{"x":"`+strings.Repeat("\xff", mebibyte-2000)+`"}`, nil),
		"deep maps":                         annotated("v1beta1", "v1", `{"x":`+strings.Repeat(`{"a":`, 990)+"1"+strings.Repeat("}", 990)+`}`, nil),
		"deep lists":                        annotated("v1beta1", "v1", `{"x":`+strings.Repeat(`[`, 990)+"1"+strings.Repeat("]", 990)+`}`, nil),
	} {
		t.Run(name, func(t *testing.T) {
			most := 10 * int64(max(len(body), mebibyte))
			got, result := heldByRequest(body, most)
			t.Logf("%d bytes: %.1f MiB, %s", len(body), float64(got)/mebibyte, short(result))
			if got > most {
				t.Errorf("a request of %d bytes used %d bytes of memory, want at most %d", len(body), got, most)
			}
		})
	}
}

// numbered returns the fields of a JSON object.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	return b.String()
}
