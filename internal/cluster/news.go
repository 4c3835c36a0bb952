package cluster

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// news passes on what happened to the state: after each call that may have changed it, without its lock.
type news struct {
	state    *state.State
	rejected func(kind string, count int)
	departed func(model.Departure)
	log      logr.Logger

	// mutex guards the fields below, and keeps news in their order. It is taken before the state's lock.
	mutex         sync.Mutex
	subscriptions []subscription
	// alarm advances the state at the time wake.
	alarm *time.Timer
	wake  time.Time
}

type subscription struct {
	changes state.Change
	channel chan<- struct{}
}

func (n *news) subscribe(of state.Change) <-chan struct{} {
	to := make(chan struct{}, 1)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.subscriptions = append(n.subscriptions, subscription{of, to})
	return to
}

// notify tells subscribers of a change.
func (n *news) notify(change state.Change) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.tell(change)
}

func (n *news) tell(change state.Change) {
	for _, w := range n.subscriptions {
		if w.changes&change == 0 {
			continue
		}
		select {
		case w.channel <- struct{}{}:
		default:
		}
	}
}

// publish passes on the news.
func (n *news) publish() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	latest := n.state.Drain()
	if n.rejected != nil {
		for kind, count := range latest.Rejected {
			n.rejected(kind, count)
		}
	}
	for _, pod := range latest.Departed {
		if d, gone := convert.Departed(pod, time.Now()); gone && n.departed != nil {
			n.departed(d)
		}
	}
	for i := range latest.Removed {
		if n.departed != nil {
			n.departed(model.Departure{Removed: &latest.Removed[i]})
		}
	}
	for _, u := range latest.Uncreated {
		n.log.Info("pods that were planned before their creation do not come", "kind", u.Kind, "name", u.Name.String(),
			"reason", u.Why, "until", u.Until)
	}
	n.tell(latest.Changes)
	n.wakeAt(latest.Wake)
}

// wakeAt advances the state at a time, unless that is done sooner; the state then says when to do it again.
func (n *news) wakeAt(at time.Time) {
	if at.IsZero() || !n.wake.IsZero() && !at.Before(n.wake) {
		return
	}
	if n.alarm != nil {
		n.alarm.Stop()
	}
	n.wake = at
	n.alarm = time.AfterFunc(time.Until(at), func() {
		n.mutex.Lock()
		n.wake = time.Time{}
		n.mutex.Unlock()
		n.state.Advance(time.Now())
		n.publish()
	})
}
