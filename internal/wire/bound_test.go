package wire

import (
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	for _, test := range []struct {
		name, document, want string
		faults               []Fault
	}{
		{"nothing", pool(`{"limits":{"cpu":"1e3"}}`), pool(`{"limits":{"cpu":"1e3"}}`), nil},
		{"a label like a quantity", pool(`{"x":"1e1234567"}`), pool(`{"x":"1e1234567"}`), nil},
		{"a small exponent", pool(`{"limits":{"cpu":"1e-1000000000"}}`), noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: "+why), []Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: why}}},
		{"a number", pool(`{"limits":{"cpu":1e-1000000000}}`), noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: "+why), []Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: why}}},
		{"many digits", pool(`{"limits":{"cpu":"` + long + `"}}`), noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: a quantity of 65 characters, want at most 64"),
			[]Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: "a quantity of 65 characters, want at most 64"}}},
		{"one of a list", `{"kind":"NodePoolList","items":[` + pool(`{}`) + `,{"metadata":{"name":"b","namespace":"n"},"spec":{"limits":{"cpu":"1e-1000000000"}}}]}`,
			`{"items":[` + pool(`{}`) + `,{"metadata":{"annotations":{"karpenter-go.github.io/unreadable":"spec.limits.cpu: ` + why + `"},"name":"b","namespace":"n"},"spec":{"limits":{"cpu":"0"}}}],"kind":"NodePoolList"}`,
			[]Fault{{Kind: "NodePool", Name: "n/b", Field: "spec.limits.cpu", Why: why}}},
		{"an event", `{"type":"ADDED","object":` + pool(`{"limits":{"cpu":"1e-1000000000"}}`) + `}`, `{"object":` + noted(`{"limits":{"cpu":"0"}}`, "spec.limits.cpu: "+why) + `,"type":"ADDED"}`,
			[]Fault{{Kind: "NodePool", Name: "a", Field: "spec.limits.cpu", Why: why}}},
		{"a duration", pool(`{"template":{"spec":{"terminationGracePeriod":"99999999h"}}}`), pool(`{"template":{"spec":{"terminationGracePeriod":"2562047h"}}}`), nil},
		{"a duration that can be read", pool(`{"template":{"spec":{"terminationGracePeriod":"99999999s"}}}`), pool(`{"template":{"spec":{"terminationGracePeriod":"99999999s"}}}`), nil},
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
	for _, document := range []string{`{"limits":{"cpu":"1e1000"}`, `{"cpu":"1e10000","x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`} {
		if _, _, err := Bound([]byte(document)); err == nil {
			t.Errorf("%.60s: no error", document)
		}
	}
}

// answering is an API server that responds with a fixed text.
type answering struct{ kind, body string }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.kind}}, Body: io.NopCloser(strings.NewReader(a.body))}, nil
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

// FuzzDecode verifies that decoding any document after Bound is bounded work. The measure is the allocated bytes,
// which grow with all costs of parsing a quantity: powers of ten are numbers as long as their exponents.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"1", "1e3", "1e-1000000000", "1E1000000000", ".1e-99999999", "-1e-999", "1e+0009", "1.e-1000000", "0e-1000000000", "1Ei", "1e", "999999999999h", "+1e-1000000000"} {
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
		document := []byte(`{"kind":"NodePool","metadata":{"name":"a"},"spec":{"limits":{"cpu":` + value + `},"template":{"spec":{"expireAfter":"720h","terminationGracePeriod":` + value +
			`}}},"status":{"resources":{"x":` + value + `}}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		bounded, _, err := Bound(document)
		if err != nil {
			return
		}
		var pool karpv1.NodePool
		err = utiljson.Unmarshal(bounded, &pool)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+100*len(document)); got > most {
			t.Errorf("%d bytes were allocated for a document of %d: %v", got, len(document), err)
		}
	})
}
