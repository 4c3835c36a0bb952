package provision

import (
	"sync"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Departures collects pods that have left nodes, and nodes that are being removed, until the provision loop takes them.
// The zero value is empty. A nil value stays empty.
type Departures struct {
	mu   sync.Mutex
	list []model.Departure
}

// mostDepartures bounds what is kept between two ticks. A missing departure delays the start of the launch limit
// (futile.Launches).
const mostDepartures = 10_000

// Add adds a pod that has ended or is being preempted, or a node that is being removed. It is safe for concurrent use.
func (d *Departures) Add(departure model.Departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) < mostDepartures {
		d.list = append(d.list, departure)
	}
}

func (d *Departures) take() []model.Departure {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list = nil
	return list
}
