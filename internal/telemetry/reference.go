package telemetry

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Metric describes a metric. docs/reference/metrics.md is generated from these descriptions, and dashboards are
// checked against them.
type Metric struct {
	Name string
	// Type is counter, gauge, histogram or summary.
	Type   string
	Help   string
	Labels []string
	// Buckets holds the upper bounds of a histogram's buckets.
	Buckets []float64
	// Detail means that there is a series for each object, only with --metrics-detail.
	Detail bool
}

// factory registers and records metrics.
type factory struct {
	prometheus.Registerer
	list *[]Metric
}

func (f factory) note(name, kind, help string, labels []string, buckets ...float64) {
	*f.list = append(*f.list, Metric{Name: name, Type: kind, Help: help, Labels: labels, Buckets: buckets})
}

// counter, gauge, histogram and summary create metrics whose names begin with the namespace.
func (f factory) counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	return f.plainCounter(prometheus.BuildFQName(namespace, subsystem, name), help, labels...)
}

func (f factory) gauge(subsystem, name, help string, labels ...string) *prometheus.GaugeVec {
	full := prometheus.BuildFQName(namespace, subsystem, name)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: full, Help: help}, labels)
	f.MustRegister(v)
	f.note(full, "gauge", help, labels)
	return v
}

func (f factory) histogram(subsystem, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.plainHistogram(prometheus.BuildFQName(namespace, subsystem, name), help, buckets, labels...)
}

func (f factory) summary(subsystem, name, help string, labels ...string) *prometheus.SummaryVec {
	full := prometheus.BuildFQName(namespace, subsystem, name)
	v := prometheus.NewSummaryVec(prometheus.SummaryOpts{
		Name: full, Help: help,
		Objectives: map[float64]float64{0: 0.01, 0.5: 0.01, 0.9: 0.01, 0.99: 0.01, 1: 0.01},
	}, labels)
	f.MustRegister(v)
	f.note(full, "summary", help, labels)
	return v
}

// plainCounter and plainHistogram create metrics whose names do not begin with the namespace.
func (f factory) plainCounter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.MustRegister(v)
	f.note(name, "counter", help, labels)
	return v
}

func (f factory) plainHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	f.MustRegister(v)
	f.note(name, "histogram", help, labels, buckets...)
	return v
}

// Reference returns all metrics, by name, with the conditions of these kinds. Those of the AWS provider only exist
// with that provider.
func Reference(kinds []Kind) []Metric {
	var list []Metric
	f := factory{prometheus.NewRegistry(), &list}
	newMetrics(f)
	newAWS(f)
	newObjects(f, ObjectOptions{Kinds: kinds, WellKnown: karpv1.CoreRules().WellKnown, Detail: true})
	slices.SortFunc(list, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return list
}
