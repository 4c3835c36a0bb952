package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

func TestExemplars(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	scheduling := m.SchedulingDuration.WithLabelValues("provisioner")
	ObserveExample(scheduling, 0.02, ExemplarPlan, "abc")
	ObserveExample(scheduling, 7, ExemplarPlan, strings.Repeat("x", 128)) // too long: counted, without an exemplar
	ObserveExample(scheduling, 8, ExemplarPlan, "")
	filter, err := OpenMetrics(registry)(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "other") })
	handler, err := filter(logr.Discard(), other)
	if err != nil {
		t.Fatal(err)
	}
	scrape := func(path, accept string) (kind, body string) {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Header().Get("Content-Type"), answer.Body.String()
	}
	kind, body := scrape("/metrics", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
	for _, want := range []string{
		`karpenter_scheduler_scheduling_duration_seconds_bucket{controller="provisioner",le="0.025"} 1 # {plan_id="abc"} 0.02`,
		`karpenter_scheduler_scheduling_duration_seconds_bucket{controller="provisioner",le="7.0"} 2` + "\n",
		`karpenter_scheduler_scheduling_duration_seconds_count{controller="provisioner"} 3` + "\n", "# EOF",
	} {
		if !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.Contains(body, want) {
			t.Errorf("%s without %q:\n%s", kind, want, body)
		}
	}
	kind, body = scrape("/metrics", "text/plain")
	switch {
	case !strings.HasPrefix(kind, "text/plain"):
		t.Errorf("kind is %q, want the prefix %q", kind, "text/plain")
	case strings.Contains(body, "plan_id"):
		t.Errorf("body contains \"plan_id\"\n%s", body)
	case !strings.Contains(body, `le="7"} 2`):
		t.Errorf("body lacks `le=\"7\"} 2`\n%s", body)
	}
	if _, body = scrape("/debug/pprof/", "application/openmetrics-text"); body != "other" {
		t.Errorf("another path returned %q", body)
	}
}
