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

// Labels of exemplars: what the log calls planID, and the name of a NodeClaim.
const (
	ExemplarPlan  = "plan_id"
	ExemplarClaim = "nodeclaim"
)

// ObserveExample observes a value, and shows as an exemplar of its bucket whose it is, so that one gets from a slow bucket to
// the lines of the log. Names that are too long for an exemplar (OpenMetrics: 128 characters with the label) are left out.
func ObserveExample(o prometheus.Observer, value float64, label, name string) {
	exemplary, able := o.(prometheus.ExemplarObserver)
	if !able || name == "" || utf8.RuneCountInString(label)+utf8.RuneCountInString(name) > prometheus.ExemplarMaxRunes {
		o.Observe(value)
		return
	}
	exemplary.ObserveWithExemplar(value, prometheus.Labels{label: name})
}

// OpenMetrics lets the metrics server of controller-runtime answer in the OpenMetrics format where that is asked for: exemplars
// are in no other. It is a filter, because the server's own handler for /metrics cannot be changed in any other way.
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
