package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Passes holds the scheduling passes in progress. The duration of each is computed at each scrape.
type Passes struct {
	desc  *prometheus.Desc
	mutex sync.Mutex
	began map[string]pass
}

// pass is the start time of a pass and its clock. The zero value means no pass.
type pass struct {
	at    time.Time
	clock clock.PassiveClock
}

func newPasses(f factory) *Passes {
	const name, help = namespace + "_scheduler_unfinished_work_seconds", "For how long the pass under way has been running; 0 between passes."
	p := &Passes{desc: prometheus.NewDesc(name, help, []string{"controller"}, nil), began: map[string]pass{}}
	f.MustRegister(p)
	f.note(name, "gauge", help, []string{"controller"})
	return p
}

// Begin records that a pass of a controller begins, by its clock. Call the returned function when it ends.
func (p *Passes) Begin(controller string, by clock.PassiveClock) (end func()) {
	p.set(controller, pass{by.Now(), by})
	return func() { p.set(controller, pass{}) }
}

func (p *Passes) set(controller string, began pass) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.began[controller] = began
}

// Describe implements prometheus.Collector.
func (p *Passes) Describe(to chan<- *prometheus.Desc) { to <- p.desc }

// Collect implements prometheus.Collector.
func (p *Passes) Collect(to chan<- prometheus.Metric) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for controller, began := range p.began {
		seconds := 0.0
		if began.clock != nil {
			seconds = began.clock.Since(began.at).Seconds()
		}
		to <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, seconds, controller)
	}
}
