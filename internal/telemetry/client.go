package telemetry

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientmetrics "k8s.io/client-go/tools/metrics"
)

// requests measures the requests to the API server.
type requests struct {
	latency *prometheus.HistogramVec
	total   *prometheus.CounterVec
	// next receives the results too: it is the previous metric of client-go.
	next clientmetrics.ResultMetric
}

func newRequests(f factory) *requests {
	return &requests{
		latency: f.plainHistogram("client_go_request_duration_seconds",
			"Time of requests to the API server; watches are over when they are answered.",
			prometheus.ExponentialBuckets(0.001, 1.5, 20), "verb", "group", "version", "kind", "subresource"),
		total: f.plainCounter("client_go_request_total", "Requests to the API server by HTTP status.", "code", "method"),
	}
}

// MeasureClient makes client-go report its requests from now on. Call it once in a process, before any request.
func (m *Metrics) MeasureClient() {
	m.requests.next = clientmetrics.RequestResult
	clientmetrics.RequestLatency, clientmetrics.RequestResult = m.requests, m.requests
}

// Observe implements clientmetrics.LatencyMetric.
func (c *requests) Observe(_ context.Context, verb string, u url.URL, elapsed time.Duration) {
	group, version, kind, subresource := resourceOf(u.Path)
	c.latency.WithLabelValues(verb, group, version, kind, subresource).Observe(elapsed.Seconds())
}

// Increment implements clientmetrics.ResultMetric.
func (c *requests) Increment(ctx context.Context, code, method, host string) {
	c.total.WithLabelValues(code, method).Inc()
	if c.next != nil {
		c.next.Increment(ctx, code, method, host)
	}
}

// resourceOf parses the path of a request, in which client-go has replaced names. All results are empty if the path
// is not that of a resource.
func resourceOf(path string) (group, version, kind, subresource string) {
	_, path, _ = strings.Cut("/"+strings.Trim(path, "/"), "/api")
	rest := strings.Split(path, "/") // "" or "s" first
	switch {
	case rest[0] == "" && len(rest) > 2:
		version, rest = rest[1], rest[2:]
	case rest[0] == "s" && len(rest) > 3:
		group, version, rest = rest[1], rest[2], rest[3:]
	default:
		return "", "", "", ""
	}
	if rest[0] == "namespaces" && len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
		rest = rest[2:]
	}
	if len(rest) > 2 {
		subresource = rest[2]
	}
	return group, version, rest[0], subresource
}
