package telemetry

import (
	"net/http"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// These are the labels of exemplars: the ID that the log calls planID, and the name of a NodeClaim.
const (
	ExemplarPlan  = "plan_id"
	ExemplarClaim = "nodeclaim"
)

// ObserveExample observes a value, and attaches the label as an exemplar to its bucket, so that the log lines for a
// slow bucket can be found. Names that are too long for an exemplar (OpenMetrics: 128 characters with the label) are
// omitted.
func ObserveExample(o prometheus.Observer, value float64, label, name string) {
	exemplary, able := o.(prometheus.ExemplarObserver)
	if !able || name == "" || utf8.RuneCountInString(label)+utf8.RuneCountInString(name) > prometheus.ExemplarMaxRunes {
		o.Observe(value)
		return
	}
	exemplary.ObserveWithExemplar(value, prometheus.Labels{label: name})
}

// OpenMetrics makes the metrics server of controller-runtime respond in the OpenMetrics format if it is requested,
// because only that format contains exemplars. It is a filter, because the server's own handler for /metrics cannot
// be replaced in any other way.
func OpenMetrics(gatherer prometheus.Gatherer) func(*rest.Config, *http.Client) (server.Filter, error) {
	metrics := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, EnableOpenMetrics: true})
	filter := func(_ logr.Logger, other http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				metrics.ServeHTTP(w, r)
				return
			}
			other.ServeHTTP(w, r)
		}), nil
	}
	return func(*rest.Config, *http.Client) (server.Filter, error) { return filter, nil }
}
