package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func TestBound(t *testing.T) {
	pool := func(spec string) string {
		return `{"kind":"NodePool","metadata":{"name":"a"},"spec":` + spec + `}`
	}
	noted := func(spec, note string) string {
		return `{"kind":"NodePool","metadata":{"annotations":{"karpenter-go.github.io/unreadable":"` + note + `"},"name":"a"},"spec":` + spec + `}`
	}
	const why = "the quantity 1e-1000000000 has an exponent of 10 digits, want at most 3"
	long := strings.Repeat("1", 65)
	brackets := `{"a":"1e1234","b":"` + strings.Repeat(`{[\"`, 300) + `"}`
	for _, test := range []struct {
		name, document, want string
		faults               []Fault
	}{
		{"nothing", pool(`{"limits":{"cpu":"1e3"}}`), pool(`{"limits":{"cpu":"1e3"}}`), nil},
		{"a label like a quantity", pool(`{"x":"1e1234567"}`), pool(`{"x":"1e1234567"}`), nil},
		{"a small exponent", pool(`{"limits":{"cpu":"1e-1000000000"}}`), noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: "+why),
			[]Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: why}}},
		{"a number", pool(`{"limits":{"cpu":1e-1000000000}}`), noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: "+why),
			[]Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: why}}},
		{"many digits", pool(`{"limits":{"cpu":"` + long + `"}}`),
			noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: a quantity of 65 characters, want at most 64"),
			[]Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: "a quantity of 65 characters, want at most 64"}}},
		{"one of a list", `{"kind":"NodePoolList","items":[` + pool(`{}`) + `,{"metadata":{"name":"b","namespace":"n"},"spec":{"limits":{"cpu":"1e-1000000000"}}}]}`,
			`{"items":[` + pool(`{}`) + `,{"metadata":{"annotations":{"karpenter-go.github.io/unreadable":"spec.limits.cpu: ` + why + `"},"name":"b","namespace":"n"},"spec":{"limits":{"cpu":"0"}}}],"kind":"NodePoolList"}`,
			[]Fault{{Kind: "NodePool", Name: "n/b", Field: "spec.limits.cpu", Why: why}}},
		{"an event", `{"type":"ADDED","object":` + pool(`{"limits":{"cpu":"1e-1000000000"}}`) + `}`,
			`{"object":` + noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: "+why) + `,"type":"ADDED"}`,
			[]Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: why}}},
		{"a duration", pool(`{"template":{"spec":{"terminationGracePeriod":"99999999h"}}}`),
			pool(`{"template":{"spec":{"terminationGracePeriod":"2562047h"}}}`), nil},
		{"a duration that can be read", pool(`{"template":{"spec":{"terminationGracePeriod":"99999999s"}}}`),
			pool(`{"template":{"spec":{"terminationGracePeriod":"99999999s"}}}`), nil},
		{"a field of LimitRange",
			`{"kind":"LimitRange","spec":{"limits":[{"maxLimitRequestRatio":{"cpu":"1e-1000000000"}}]}}`,
			`{"kind":"LimitRange","spec":{"limits":[{"maxLimitRequestRatio":{"cpu":"0"}}]}}`,
			[]Fault{{Kind: "LimitRange", Field: "spec.limits.0.maxLimitRequestRatio.cpu", Why: why}}},
		{"a field of CSIStorageCapacity",
			`{"capacity":"1e-1000000000","kind":"CSIStorageCapacity"}`,
			`{"capacity":"0","kind":"CSIStorageCapacity"}`,
			[]Fault{{Kind: "CSIStorageCapacity", Field: "capacity", Why: why}}},
		{"blanks",
			`{"kind":"Pod","spec":{"overhead":{"cpu":" 1e-1000000000\u00a0"}}}`,
			`{"kind":"Pod","spec":{"overhead":{"cpu":"0"}}}`,
			[]Fault{{Kind: "Pod", Field: "spec.overhead.cpu", Why: why}}},
		{"an escaped character",
			`{"kind":"Pod","spec":{"overhead":{"cpu":"1\u0065-1000000000"}}}`,
			`{"kind":"Pod","spec":{"overhead":{"cpu":"0"}}}`,
			[]Fault{{Kind: "Pod", Field: "spec.overhead.cpu", Why: why}}},
		{"a repeated field",
			`{"kind":"Pod","spec":{"overhead":{"cpu":"1e-1000000000","cpu":"1"}}}`,
			`{"kind":"Pod","spec":{"overhead":{"cpu":"1"}}}`, nil},
		{"a repeated object",
			`{"kind":"Pod","spec":{"overhead":{"cpu":"1e-1000000000"}},"spec":{}}`,
			`{"kind":"Pod","spec":{}}`, nil},
		{"labels that are named like amounts",
			`{"kind":"Pod","metadata":{"labels":{"capacity":"1e12345","limits":"1e12345"}}}`,
			`{"kind":"Pod","metadata":{"labels":{"capacity":"1e12345","limits":"1e12345"}}}`, nil},
		{"brackets in texts", brackets, brackets, nil},
		{"a size", `{"volumeSize":"1e-1000000000"}`, `{"volumeSize":"0"}`, []Fault{{Field: "volumeSize", Why: why}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, faults, err := Bound([]byte(test.document))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBoundRefuses(t *testing.T) {
	for _, document := range []string{`{"limits":{"cpu":"1e1000"}`, nested(300), `{"items":[` + nested(300) + `]}`,
		`{"metadata":` + nested(300) + `,"items":[{}]}`, `{"x":` + nested(300) + `,}`, `{"x":` + nested(300)} {
		if _, _, err := Bound([]byte(document)); err == nil {
			t.Errorf("%.60s: no error", document)
		}
	}
}

// nested returns lists that are nested n deep.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// TestBoundDepth verifies that of objects that are nested too deeply, only the deep fields are removed, and that no other
// object of the document is changed.
func TestBoundDepth(t *testing.T) {
	const why = "objects and lists are nested more than 250 deep"
	const other = `{"metadata":{"name":"b","x":  1}}`
	const head = `{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{`
	const key = `"annotations":{"karpenter-go.github.io/unreadable":"`
	class := func(fields string) string { return head + `"name":"a","uid":"1"},"spec":{"role":"r"` + fields + `}}` }
	noted := func(field string) string {
		return head + key + field + `: ` + why + `"},"name":"a","uid":"1"},"spec":{"role":"r"}}`
	}
	brackets := class(`,"kubelet":"` + strings.Repeat(`{[\"`, 300) + `"`)
	amount := Fault{Kind: "EC2NodeClass", Name: "a", APIVersion: "karpenter.k8s.aws/v1", UID: "1", Field: "spec.volumeSize",
		Why: "the quantity 1e-1000000000 has an exponent of 10 digits, want at most 3"}
	of := func(field string) Fault {
		return Fault{Kind: "EC2NodeClass", Name: "a", APIVersion: "karpenter.k8s.aws/v1", UID: "1", Field: field, Why: why}
	}
	fault := of("spec.kubelet")
	withoutKind := Fault{Kind: "EC2NodeClass", Name: "c", Field: "spec.kubelet", Why: why}
	for _, test := range []struct {
		name, document, want string
		faults               []Fault
	}{
		{"deep enough", class(`,"kubelet":` + nested(248)), class(`,"kubelet":` + nested(248)), nil},
		{"too deep", class(`,"kubelet":` + nested(249)), noted("spec.kubelet"), []Fault{fault}},
		{"deeper than decoders read", class(`,"kubelet":` + nested(100_000)), noted("spec.kubelet"), []Fault{fault}},
		{"brackets in texts", brackets, brackets, nil},
		{"one of a list", `{"kind":"EC2NodeClassList","items":[` + other + `,` + class(`,"kubelet":`+nested(9_990)) + `, ` + other + `]}`,
			`{"kind":"EC2NodeClassList","items":[` + other + `,` + noted("spec.kubelet") + `, ` + other + `]}`, []Fault{fault}},
		{"one without its kind", `{"items":[{"metadata":{"name":"c"},"spec":{"kubelet":{"a":` + nested(300) + `}}}],"kind":"EC2NodeClassList"}`,
			`{"items":[{"metadata":{` + key + `spec.kubelet: ` + why + `"},"name":"c"},"spec":{}}],"kind":"EC2NodeClassList"}`,
			[]Fault{withoutKind}},
		{"an event", `{"type":"ADDED","object":` + class(`,"kubelet":`+nested(300)) + `}`,
			`{"type":"ADDED","object":` + noted("spec.kubelet") + `}`, []Fault{fault}},
		{"a field of the object", strings.TrimSuffix(class(``), "}") + `,"x":` + nested(300) + `}`, noted("x"),
			[]Fault{of("x")}},
		{"a long name", class(`,"` + strings.Repeat("é", 1000) + `":` + nested(300)), noted("spec." + strings.Repeat("é", 125) + "..."),
			[]Fault{of("spec." + strings.Repeat("é", 125) + "...")}},
		{"numbers and a quantity", class(`,"size":12345678901234567890,"volumeSize":"1e-1000000000","kubelet":` + nested(300)),
			head + key + "spec.kubelet: " + why + `"},"name":"a","uid":"1"},"spec":{"role":"r","size":12345678901234567890,"volumeSize":"0"}}`,
			[]Fault{fault, amount}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, faults, err := Bound([]byte(test.document))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDocuments verifies how a response is divided into documents, with reads of any size.
func TestDocuments(t *testing.T) {
	long := `{"a":"` + strings.Repeat("é", 40_000) + `"}`
	for _, test := range []struct {
		body, want string
		err        error
	}{
		{``, ``, nil},
		{" \n", ``, nil},
		{"{}\n", `{}|`, nil},
		{" [1] {\"a\":\"}\\\"{\"}\n\n{\"b\":[[]]}\r\n", `[1]|{"a":"}\"{"}|{"b":[[]]}|`, nil},
		{long + `{"b":` + nested(20_000) + `}{}`, long + `|{"b":` + nested(20_000) + `}|{}|`, nil},
		{`{}{"a":1`, `{}|`, io.ErrUnexpectedEOF},
		{"{}\nnot found", `{}|not found`, io.ErrUnexpectedEOF},
		{`"a" {}`, `"a" {}`, io.ErrUnexpectedEOF},
	} {
		for name, from := range map[string]io.Reader{"at once": strings.NewReader(test.body),
			"by byte":      iotest.OneByteReader(strings.NewReader(test.body)),
			"with the end": iotest.DataErrReader(strings.NewReader(test.body))} {
			mark := func(document []byte) ([]byte, error) { return append(bytes.Clone(document), '|'), nil }
			d := &documents{body: io.NopCloser(from), bound: mark}
			got, err := io.ReadAll(d)
			if string(got) != test.want || !errors.Is(err, test.err) {
				t.Errorf("%.40q, %s: %.80q and error %v, want %.80q and error %v", test.body, name, got, err, test.want, test.err)
			}
		}
	}
}

// answering is an API server that responds with a fixed text.
type answering struct{ kind, body string }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.kind}},
		Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func TestTransport(t *testing.T) {
	const bad = `{"metadata":{"name":"b"},"spec":{"limits":{"cpu":"1e-1000000000"}}}`
	for _, test := range []struct {
		name, path, kind, body string
		want                   string
		told                   int
	}{
		{"a list", "/apis/karpenter.sh/v1/nodepools", "application/json", `{"kind":"NodePoolList","items":[` + bad + `]}`, `"cpu":"0"`, 1},
		{"events", "/apis/karpenter.sh/v1/nodepools", "application/json", "{\"object\":" + bad + "}\n{\"object\":" + bad + "}\n", `"cpu":"0"`, 1},
		{"another group", "/api/v1/pods", "application/json", `{"kind":"PodList","items":[` + bad + `]}`, "1e-1000000000", 0},
		{"another encoding", "/apis/karpenter.sh/v1/nodepools", "application/cbor", bad, "1e-1000000000", 0},
		{"no JSON", "/apis/karpenter.sh/v1/nodepools", "application/json", "not found", "not found", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			told := 0
			tripper := Transport(answering{test.kind, test.body}, func(Fault) { told++ })
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := tripper.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			got, _ := io.ReadAll(response.Body)
			if !strings.Contains(string(got), test.want) || told != test.told {
				t.Errorf("%d faults were reported and %s was read, want %d faults and %s", told, got, test.told, test.want)
			}
		})
	}
}

// TestTransportSetsAside verifies that an object that is nested too deeply, even for decoders, is set aside, and the
// other objects of the response are read.
func TestTransportSetsAside(t *testing.T) {
	deep := `{"metadata":{"name":"deep"},"spec":{"kubelet":` + nested(9_998) + `}}`
	var told []string
	list := `{"kind":"EC2NodeClassList","items":[{"metadata":{"name":"a"}},` + deep + `,{"metadata":{"name":"b"}}]}`
	tripper := Transport(answering{"application/json", list}, func(f Fault) { told = append(told, f.String()) })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/apis/karpenter.k8s.aws/v1/ec2nodeclasses", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := tripper.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var read metav1.PartialObjectMetadataList
	if err := json.NewDecoder(response.Body).Decode(&read); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range read.Items {
		got = append(got, read.Items[i].Name+" "+read.Items[i].Annotations[karpv1.AnnotationUnreadable])
	}
	const why = "spec.kubelet: objects and lists are nested more than 250 deep"
	if diff := cmp.Diff([]string{"a ", "deep " + why, "b "}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"EC2NodeClass deep: " + why}, told); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestTransportFails verifies that a document that cannot be bounded is not passed on.
func TestTransportFails(t *testing.T) {
	tripper := Transport(answering{"application/json", nested(300)}, func(Fault) {})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/apis/karpenter.sh/v1/nodepools", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := tripper.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if len(got) > 0 {
		t.Errorf("%d bytes, want none", len(got))
	}
	if err == nil || !strings.Contains(err.Error(), "nested more than 250 deep") {
		t.Errorf("error %v, want that it is nested more than 250 deep", err)
	}
}

// TestDepth verifies that brackets in texts of JSON do not count, and that those of one YAML document do not count for
// the next one.
func TestDepth(t *testing.T) {
	for _, test := range []struct {
		text string
		want int
	}{
		{`{"a":[{}]}`, 3},
		{` {"a":"{[{[\"[["}{"b":"{"}`, 1},
		{"a: '{'\n---\nb: '{['\n---\nc: []\n", 2},
		{"a:\n- - - b\n", 3},
	} {
		if got := Depth([]byte(test.text)); got != test.want {
			t.Errorf("%q: %d, want %d", test.text, got, test.want)
		}
	}
}

// BenchmarkBound reads a list of 1,000 nodes without a suspicious text, and with one.
func BenchmarkBound(b *testing.B) {
	node := `{"metadata":{"name":"node","uid":"c0ffee00-0000-4000-8000-00000000000f","labels":{"topology.kubernetes.io/zone":"a"}},
		"status":{"capacity":{"cpu":"4","memory":"16074248Ki","pods":"110"},"allocatable":{"cpu":"3920m","memory":"15042056Ki","pods":"110"}}}`
	list := `{"kind":"NodeList","items":[` + strings.Repeat(node+",", 999) + node + `]}`
	for name, document := range map[string]string{"ordinary": list, "suspicious": strings.Replace(list, "c0ffee00", "1e123400", 1)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				if _, _, err := Bound([]byte(document)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzDecode verifies that decoding any document after Bound is bounded work. The measure is the allocated bytes,
// which grow with all costs of parsing a quantity: powers of ten are numbers as long as their exponents.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"1", "1e3", "1e-1000000000", "1E1000000000", ".1e-99999999", "-1e-999",
		"1e+0009", "1.e-1000000", "0e-1000000000",
		"1Ei", "1e", "999999999999h", "+1e-1000000000", " 1e-1000000000", "1e-1000000000\t", "\u00a01e-1000000000"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Add("1e-1000", false)
	f.Add(strings.Repeat("9", 100_000), true)
	f.Fuzz(func(t *testing.T, text string, quoted bool) {
		value := text
		if quoted {
			encoded, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			value = string(encoded)
		}
		for _, test := range []struct {
			document string
			into     any
		}{
			{`{"kind":"NodePool","metadata":{"name":"a"},"status":{"resources":{"x":@}},
				"spec":{"limits":{"cpu":@},"template":{"spec":{"expireAfter":"720h","terminationGracePeriod":@}}}}`, &karpv1.NodePool{}},
			{`{"kind":"LimitRange","spec":{"limits":[{"max":{"cpu":@},
				"maxLimitRequestRatio":{"cpu":@},"default":{"cpu":@}}]}}`, &corev1.LimitRange{}},
			{`{"kind":"CSIStorageCapacity","capacity":@,"maximumVolumeSize":@}`, &storagev1.CSIStorageCapacity{}},
			{`{"kind":"Pod","spec":{"overhead":{"cpu":@,"cpu":"1"},
				"containers":[{"resources":{"requests":{"cpu":@}}}],"volumes":[{"emptyDir":{"sizeLimit":@}}]}}`, &corev1.Pod{}},
		} {
			decodeBounded(t, []byte(strings.ReplaceAll(test.document, "@", value)), test.into)
		}
	})
}

// decodeBounded decodes a document after Bound, as a client does.
func decodeBounded(t *testing.T, document []byte, into any) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	bounded, _, err := Bound(document)
	if err != nil {
		return
	}
	err = utiljson.Unmarshal(bounded, into)
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+100*len(document)); got > most {
		t.Errorf("%d bytes were allocated for a document of %d: %v", got, len(document), err)
	}
}

// FuzzBound verifies that documents of any form are returned as documents of bounded depth, and that those without
// anything to bound are not changed.
func FuzzBound(f *testing.F) {
	for _, document := range []string{`{"items":[{"metadata":{"name":"a"},"spec":{"x":@}},{}],"kind":"NodePoolList"}`, `{"type":"ADDED","object":{"x":@}}`,
		`{"a":@,"a":1}`, `@`, `{"items":@}`, `{"a":"1e1234"@`, `{"":0@`, ` {"\"":[1,@]} `} {
		for _, depth := range []uint16{0, 3, 248, 300, 12_000} {
			f.Add(document, depth)
		}
	}
	f.Fuzz(func(t *testing.T, document string, depth uint16) {
		if strings.Count(document, "@") > 3 {
			t.Skip("too large")
		}
		text := []byte(strings.ReplaceAll(document, "@", nested(int(depth))))
		got, faults, err := Bound(text)
		if err != nil {
			return
		}
		if depth := jsonDepth(got); depth > mostDepth+2 {
			t.Errorf("%.200s: it is still %d deep", text, depth)
		}
		if json.Valid(text) && !json.Valid(got) {
			t.Errorf("%.200s: is no JSON any more: %.200s", text, got)
		}
		if jsonDepth(text) <= mostDepth && len(faults) == 0 && !suspicious(text) && !bytes.Equal(got, text) {
			t.Errorf("%.200s: was changed to %.200s", text, got)
		}
	})
}
