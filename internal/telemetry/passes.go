package telemetry

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
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

// PlanID is the log key of the ID of a pass. The exemplars of the histograms of pass durations have the same ID.
const PlanID = "planID"

// slow is the duration from which on a pass is logged even without a result, so that a pass that is seen in a
// histogram can be found in the log.
const slow = time.Second

// PassID derives an ID of a pass from the loop, its start time and the version of its snapshot.
func PassID(loop string, began time.Time, version uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", loop, began.UnixNano(), version))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:12]
}

// LogSlow logs that the decision of a pass took long.
func LogSlow(log logr.Logger, elapsed time.Duration) {
	if elapsed >= slow {
		log.Info("deciding took long", "seconds", elapsed.Seconds())
	}
}
