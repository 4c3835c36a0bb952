package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// overHTTP is the exporter of the controller.
func overHTTP(ctx context.Context, url string) (sdktrace.SpanExporter, error) {
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url))
}

// receiver is an OTLP receiver in memory.
type receiver struct {
	mutex sync.Mutex
	spans []*tracev1.Span
	// resource has the attributes of the service that has sent the spans.
	resource map[string]string
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{resource: map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		sent := &collector.ExportTraceServiceRequest{}
		if err = errors.Join(err, proto.Unmarshal(body, sent)); err != nil || request.URL.Path != "/v1/traces" {
			http.Error(w, "not OTLP", http.StatusBadRequest)
			return
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for _, resource := range sent.ResourceSpans {
			for _, a := range resource.Resource.Attributes {
				r.resource[a.Key] = a.Value.GetStringValue()
			}
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return r
}

// text returns the spans as an indented tree: seconds from begin to end, name, attributes, links and status.
func (r *receiver) text(begun time.Time) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := map[string]string{}
	for _, s := range r.spans {
		known[hex.EncodeToString(s.TraceId)+hex.EncodeToString(s.SpanId)] = s.Name
	}
	var out strings.Builder
	var print func(parent *tracev1.Span, indent string)
	print = func(parent *tracev1.Span, indent string) {
		var lines []string
		below := map[string]*tracev1.Span{}
		for _, s := range r.spans {
			child := parent == nil && len(s.ParentSpanId) == 0 ||
				parent != nil && slices.Equal(s.ParentSpanId, parent.SpanId) && slices.Equal(s.TraceId, parent.TraceId)
			if !child {
				continue
			}
			seconds := func(nano uint64) float64 { return time.Unix(0, int64(nano)).Sub(begun).Seconds() } //nolint:gosec // of this age
			line := fmt.Sprintf("%04.1f-%04.1f %s", seconds(s.StartTimeUnixNano), seconds(s.EndTimeUnixNano), s.Name)
			var attributes []string
			for _, a := range s.Attributes {
				value := a.Value.GetStringValue()
				if value == "" {
					value = fmt.Sprint(a.Value.GetIntValue())
				}
				attributes = append(attributes, " "+a.Key+"="+value)
			}
			slices.Sort(attributes)
			line += strings.Join(attributes, "")
			for _, l := range s.Links {
				line += " -> " + known[hex.EncodeToString(l.TraceId)+hex.EncodeToString(l.SpanId)]
			}
			if s.Status != nil && s.Status.Message != "" {
				line += " failed: " + s.Status.Message
			}
			lines, below[line] = append(lines, line), s
		}
		slices.Sort(lines)
		for _, line := range lines {
			out.WriteString(indent + line + "\n")
			print(below[line], indent+"  ")
		}
	}
	print(nil, "")
	return out.String()
}

// TestTraces follows a pass that creates three claims: one becomes a node, one is not created, one is deleted again.
func TestTraces(t *testing.T) {
	r := receive(t)
	traces, err := NewTraces(t.Context(), "1.2.3", testr.New(t), overHTTP)
	if err != nil || traces == nil {
		t.Fatalf("traces are %v: %v", traces, err)
	}
	begun := time.Now()
	at := func(seconds float64) time.Time { return begun.Add(time.Duration(seconds * float64(time.Second))) }
	traces.Planned("abc", at(1.5), "a", "b", "c")
	traces.Step(Step{Claim: "a", Pool: "p", Name: "cloud create", Before: begun, Begin: at(2), End: at(3)})
	traces.Step(Step{Claim: "a", Pool: "p", Name: "launch", Before: begun, End: at(3.5)})
	traces.Unplanned("b")
	traces.Pass("abc", Span{Name: "provision", Begin: begun, End: at(2.5), Parts: []Span{
		{Name: "batch", Begin: begun, End: at(1)},
		{Name: "execute", Begin: at(1.5), End: at(2), Counts: map[string]int{"nodeclaims": 2}, Parts: []Span{
			{Name: "create NodeClaim", Begin: at(1.6), End: at(1.7), Claim: "a"},
			{Name: "create NodeClaim", Begin: at(1.6), End: at(1.8), Claim: "b", Err: errors.New("refused")}}}}})
	traces.Step(Step{Claim: "a", Pool: "p", Node: "n", Name: "register", Before: begun, End: at(9)})
	traces.Bound("default", "web", "n", at(1.5), at(9.5))
	traces.Bound("default", "other", "elsewhere", at(1.5), at(9.5))
	traces.Step(Step{Claim: "a", Pool: "p", Node: "n", Name: "initialize", Before: begun, End: at(10), Last: true})
	traces.Step(Step{Claim: "a", Pool: "p", Node: "n", Name: "initialize", Before: begun, End: at(11), Last: true})
	traces.Gone("a", at(12), "empty")
	traces.Step(Step{Claim: "old", Name: "register", Before: at(4), End: at(5)})
	traces.Gone("c", at(3), "insufficient capacity")
	traces.Gone("unknown", at(3), "drifted")
	if err := traces.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `00.0-02.5 provision karpenter.plan.id=abc
  00.0-01.0 batch karpenter.plan.id=abc
  01.5-02.0 execute karpenter.nodeclaims=2 karpenter.plan.id=abc
    01.6-01.7 create NodeClaim karpenter.nodeclaim.name=a karpenter.plan.id=abc -> NodeClaim
    01.6-01.8 create NodeClaim karpenter.nodeclaim.name=b karpenter.plan.id=abc ->  failed: refused
01.5-03.0 NodeClaim karpenter.nodeclaim.name=c karpenter.plan.id=abc -> provision failed: deleted: insufficient capacity
01.5-10.0 NodeClaim k8s.node.name=n karpenter.nodeclaim.name=a karpenter.nodepool.name=p karpenter.plan.id=abc -> provision
  01.5-03.5 launch karpenter.nodeclaim.name=a karpenter.plan.id=abc
  01.5-09.5 pod bound k8s.namespace.name=default k8s.node.name=n k8s.pod.name=web karpenter.nodeclaim.name=a karpenter.plan.id=abc
  02.0-03.0 cloud create karpenter.nodeclaim.name=a karpenter.plan.id=abc
  03.5-09.0 register k8s.node.name=n karpenter.nodeclaim.name=a karpenter.plan.id=abc
  09.0-10.0 initialize k8s.node.name=n karpenter.nodeclaim.name=a karpenter.plan.id=abc
`
	if diff := cmp.Diff(want, r.text(begun)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if name := r.resource["service.name"]; name != "karpenter" {
		t.Errorf("the service is %q", name)
	}
}

// TestTracesGoOn: the steps of a claim that another process has launched are in the same trace.
func TestTracesGoOn(t *testing.T) {
	r := receive(t)
	begun := time.Now()
	for i, name := range []string{"launch", "register"} {
		traces, err := NewTraces(t.Context(), "", testr.New(t), overHTTP)
		if err != nil {
			t.Fatal(err)
		}
		at := begun.Add(time.Duration(i) * time.Second)
		traces.Step(Step{Claim: "a", Name: name, Before: at, End: at.Add(time.Second)})
		if err := traces.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.spans) != 2 || !slices.Equal(r.spans[0].TraceId, r.spans[1].TraceId) ||
		!slices.Equal(r.spans[0].ParentSpanId, r.spans[1].ParentSpanId) {
		t.Fatalf("the spans are %v, want two of one parent", r.spans)
	}
}

// TestTracesResource: of attributes that cannot all be read, the others are sent, and the log names the variable.
func TestTracesResource(t *testing.T) {
	for attributes, want := range map[string]map[string]string{
		"cluster":             {},
		"cluster,team=blue":   {"team": "blue"},
		"cluster=a,team=blue": {"cluster": "a", "team": "blue"},
	} {
		t.Run(attributes, func(t *testing.T) {
			r := receive(t)
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
			t.Setenv("OTEL_SERVICE_NAME", "other")
			log, lines := recorded()
			traces, err := NewTraces(t.Context(), "1.2.3", log, overHTTP)
			if err != nil {
				t.Fatal(err)
			}
			traces.Pass("abc", Span{Name: "provision"})
			if err := traces.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(r.resource, func(key, _ string) bool { return strings.HasPrefix(key, "telemetry.sdk.") })
			want["service.name"], want["service.version"] = "other", "1.2.3"
			if diff := cmp.Diff(want, r.resource); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
			var faults []string
			for _, line := range *lines {
				if strings.Contains(line, `"error"=`) {
					faults = append(faults, line)
				}
			}
			if strings.HasPrefix(attributes, "cluster=") {
				if len(faults) > 0 {
					t.Errorf("the log has %q", faults)
				}
			} else if len(faults) != 1 || !strings.Contains(faults[0], `OTEL_RESOURCE_ATTRIBUTES is \"`+attributes+`\"`) {
				t.Errorf("the log has %q, want one error with the variable", faults)
			}
		})
	}
}

// TestTracesEndpoint: an endpoint that is no URL is logged and there are no traces, and the log says where others go.
func TestTracesEndpoint(t *testing.T) {
	const (
		base, whole, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
		want                  = ": want http://HOST:PORT or https://HOST:PORT; no traces are sent"
	)
	for name, c := range map[string]struct {
		environment map[string]string
		url, fault  string
	}{
		"no scheme":             {map[string]string{base: "localhost:4318"}, "", base + ` is "localhost:4318"` + want},
		"an address":            {map[string]string{base: "127.0.0.1:14318"}, "", base + ` is "127.0.0.1:14318"` + want},
		"no host":               {map[string]string{base: "http://:4318"}, "", base + ` is "http://:4318"` + want},
		"another scheme":        {map[string]string{whole: "grpc://a:4317"}, "", whole + ` is "grpc://a:4317"` + want},
		"no scheme for traces":  {map[string]string{base: "http://a:1", whole: "b:1"}, "", whole + ` is "b:1"` + want},
		"switched off":          {map[string]string{base: "localhost:4318", "OTEL_SDK_DISABLED": "true"}, "", ""},
		"base":                  {map[string]string{base: "http://a:4318"}, "http://a:4318/v1/traces", ""},
		"base with a path":      {map[string]string{base: " HTTPS://a/otlp/ "}, "https://a/otlp/v1/traces", ""},
		"insecure does not win": {map[string]string{base: "https://a", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, "https://a/v1/traces", ""},
		"for traces":            {map[string]string{base: "b:1", whole: "http://u:p@a:4318/x"}, "http://a:4318/x", ""},
		"for traces, no path":   {map[string]string{whole: "http://a:4318"}, "http://a:4318/", ""},
		"http/protobuf":         {map[string]string{base: "http://a:1", protocol: "http/protobuf"}, "http://a:1/v1/traces", ""},
		"another protocol": {map[string]string{base: "http://a:1", protocol: "grpc"}, "http://a:1/v1/traces",
			protocol + ` is "grpc": traces are sent as http/protobuf, the only protocol that is spoken`},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range c.environment {
				t.Setenv(key, value)
			}
			log, lines := recorded()
			traces, err := NewTraces(t.Context(), "", log, overHTTP)
			if err != nil || (traces != nil) != (c.url != "") {
				t.Errorf("traces are %v: %v", traces, err)
			}
			if traces != nil {
				t.Cleanup(func() { _ = traces.Shutdown(context.WithoutCancel(t.Context())) })
			}
			var expected []string
			if c.fault != "" {
				expected = append(expected, fmt.Sprintf(`"msg"="setting up traces" "error"=%q`, c.fault))
			}
			if c.url != "" {
				expected = append(expected, `"level"=0 "msg"="sending traces" "url"="`+c.url+`"`)
			}
			if diff := cmp.Diff(expected, *lines); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTracesScheme: traces go to the URL that is logged, whatever OTEL_EXPORTER_OTLP_INSECURE says of other protocols.
func TestTracesScheme(t *testing.T) {
	r := receive(t)
	t.Setenv("OTEL_EXPORTER_OTLP_INSECURE", "false")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	traces, err := NewTraces(t.Context(), "", logr.Discard(), overHTTP)
	if err != nil {
		t.Fatal(err)
	}
	traces.Pass("abc", Span{Name: "provision"})
	if err := traces.Shutdown(t.Context()); err != nil || len(r.spans) != 1 {
		t.Errorf("%d spans have arrived: %v", len(r.spans), err)
	}
}

// recorded returns a log and its lines.
func recorded() (logr.Logger, *[]string) {
	var lines []string
	return funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}), &lines
}

// TestTracesOff: without an endpoint, or where the environment switches traces off, there are none.
func TestTracesOff(t *testing.T) {
	for name, environment := range map[string][]string{
		"no endpoint":         nil,
		"no SDK":              {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1", "OTEL_SDK_DISABLED", "true"},
		"no exporter":         {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:1", "OTEL_TRACES_EXPORTER", "none"},
		"an endpoint of logs": {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://localhost:1"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; i < len(environment); i += 2 {
				t.Setenv(environment[i], environment[i+1])
			}
			traces, err := NewTraces(t.Context(), "", testr.New(t), overHTTP)
			if traces != nil || err != nil {
				t.Errorf("traces are %v: %v", traces, err)
			}
			if n := testing.AllocsPerRun(10, func() {
				traces.Planned("abc", time.Time{})
				traces.Step(Step{})
				traces.Bound("", "", "", time.Time{}, time.Time{})
			}); n > 0 {
				t.Errorf("traces that are off allocate %.0f times", n)
			}
		})
	}
}
