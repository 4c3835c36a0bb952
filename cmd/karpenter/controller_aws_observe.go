package main

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// awsEvent returns the Kubernetes event for an event of the provider, by its reason.
func awsEvent(object client.Object, e interruption.Event) telemetry.Event {
	switch e.Reason {
	case telemetry.ReasonSpotInterrupted:
		return telemetry.SpotInterrupted(object, e.Message)
	case telemetry.ReasonReservationInterrupted:
		return telemetry.ReservationInterrupted(object, e.Message)
	case telemetry.ReasonInstanceStopping:
		return telemetry.InstanceStopping(object, e.Message)
	case telemetry.ReasonInstanceTerminating:
		return telemetry.InstanceTerminating(object, e.Message)
	case telemetry.ReasonInstanceStateDisputed:
		return telemetry.InstanceStateDisputed(object, e.Message)
	case telemetry.ReasonInstanceUnhealthy:
		return telemetry.InstanceUnhealthy(object, e.Message, e.Warning)
	case telemetry.ReasonTerminatingOnInterruption:
		return telemetry.TerminatingOnInterruption(object, e.Message)
	case telemetry.ReasonSpotRebalance:
		return telemetry.SpotRebalance(object, e.Message)
	case telemetry.ReasonSpotRoleMissing:
		return telemetry.SpotRoleMissing(object, e.Message)
	case telemetry.ReasonReservationLost:
		return telemetry.ReservationLost(object, e.Message)
	case telemetry.ReasonBlockExpiring:
		return telemetry.BlockExpiring(object, e.Message)
	case telemetry.ReasonZonalShiftActive:
		return telemetry.ZonalShiftActive(object, e.Message)
	case telemetry.ReasonZonalShiftCleared:
		return telemetry.ZonalShiftCleared(object, e.Message)
	case telemetry.ReasonSpreadGroupFull:
		return telemetry.SpreadGroupFull(object, e.Message)
	}
	return telemetry.WaitingOnClaimTermination(object, e.Message)
}

// watchSDK records metrics about the SDK's requests to AWS.
func watchSDK(m *telemetry.AWS) func(*middleware.Stack) error {
	return call.Watch(func(r call.Request) {
		m.SDKRequests.WithLabelValues(r.Service, r.Operation, strconv.Itoa(r.Status)).Inc()
		m.SDKRequestDuration.WithLabelValues(r.Service, r.Operation).Observe(r.Took.Seconds())
		m.SDKRetries.WithLabelValues(r.Service, r.Operation).Observe(float64(r.Retries))
	}, func(r call.Request) {
		m.SDKAttempts.WithLabelValues(r.Service, r.Operation, strconv.Itoa(r.Status)).Inc()
		m.SDKAttemptDuration.WithLabelValues(r.Service, r.Operation).Observe(r.Took.Seconds())
	})
}

// observeAWS returns an observer that turns the provider's reports into metrics, events and log lines.
func (w *wiring) observeAWS(m *telemetry.AWS) aws.Observer {
	log := w.mgr.GetLogger().WithName("aws")
	return aws.Observer{
		Called: func(c call.Call) {
			m.Calls.WithLabelValues(c.Service, c.Operation, c.Code).Inc()
			m.CallDuration.WithLabelValues(c.Service, c.Operation).Observe(c.Took.Seconds())
			if log.V(1).Enabled() {
				log.V(1).Info("called AWS", "service", c.Service, "operation", c.Operation, "code", c.Code, "requestID", c.RequestID, "took", c.Took.String())
			}
		},
		Launch: launch.Observer{
			Refused: func(r launch.Refusal) {
				m.LaunchFailures.WithLabelValues(r.Zone, r.ZoneID, r.CapacityType, r.Reason).Inc()
			},
			NotEnded: func(zone, zoneID string) { m.TerminationFailures.WithLabelValues(zone, zoneID).Inc() },
			Batched: func(batcher string, size int, elapsed time.Duration) {
				m.BatchSize.WithLabelValues(batcher).Observe(float64(size))
				m.BatchTime.WithLabelValues(batcher).Observe(elapsed.Seconds())
			},
		},
		Interruption: interruption.Observer{
			Received:  func(k interruption.Kind) { m.InterruptionReceived.WithLabelValues(string(k)).Inc() },
			Foreign:   func(k interruption.Kind) { m.InterruptionForeign.WithLabelValues(string(k)).Inc() },
			Deleted:   func(n int) { m.InterruptionDeleted.Add(float64(n)) },
			Waited:    func(d time.Duration) { m.InterruptionQueueDuration.Observe(d.Seconds()) },
			Unhealthy: func(c interruption.Category) { m.InterruptionUnhealthy.WithLabelValues(string(c)).Inc() },
			Held:      observeHeld(m, log),
			Trouble: func(part string, err error) {
				if err == nil {
					log.Info("watching for interruptions works again", "part", part)
					return
				}
				log.Error(err, "watching for interruptions; it is tried again", "part", part)
			},
			Failed: func(k interruption.Kind, err error) {
				log.Error(err, "acting on a notice; it comes again", "notice", string(k))
			},
			Spoilt: func(err error) { log.Info("dropped a message that is malformed", "cause", err.Error()) },
		},
		Unasked: observeUnasked(m, log, w.clock),
		UserData: func(class string, bytes int) {
			if bytes == 0 {
				m.UserData.DeleteLabelValues(class)
				return
			}
			m.UserData.WithLabelValues(class).Set(float64(bytes))
		},
		Shifted: func(zones []aws.ZoneShift) {
			m.ZoneShifted.Reset()
			m.ZonalShiftAge.Reset()
			for _, z := range zones {
				m.ZoneShifted.WithLabelValues(z.Zone, z.ZoneID).Set(min(1, z.Since.Seconds()))
				m.ZonalShiftAge.WithLabelValues(z.Zone, z.ZoneID).Set(z.Since.Seconds())
			}
		},
		Reservations: func(list []instance.CountedReservation) {
			m.Reservations.Reset()
			for _, r := range list {
				m.Reservations.WithLabelValues(r.ID, r.Type, r.Zone).Set(float64(r.Available))
			}
		},
		Unsupported: func(version string) {
			log.Error(errors.New("this version of Kubernetes is not supported by this program"), "nodes may not join, or not as planned", "version", version, "supported", discovery.SupportedVersions)
		},
		Event: func(object client.Object, e interruption.Event) { w.recorder.Emit(awsEvent(object, e)) },
		Disrupted: func(claim *karpv1.NodeClaim, kind interruption.Kind) {
			w.metrics.Disrupted(claim, string(kind), "")
		},
	}
}

// observeHeld reports unhealthy machines whose replacement is held back. It logs the beginning and the end of such a
// hold.
func observeHeld(m *telemetry.AWS, log logr.Logger) func(interruption.Held) {
	before := 0
	return func(h interruption.Held) {
		m.InterruptionHeld.Set(float64(h.Held))
		switch {
		case h.Held > 0 && before == 0:
			log.Info("machines whose status checks fail are not replaced yet: involuntary removals are limited", "failing", h.Troubled, "held", h.Held)
		case h.Held == 0 && before > 0:
			log.Info("no machine whose status checks fail is held any more", "failing", h.Troubled)
		}
		before = h.Held
	}
}

// unaskedEvery is the minimum time between two log lines about unrequested content in the responses of one operation.
const unaskedEvery = 10 * time.Minute

// observeUnasked reports responses that contain content that was not requested.
func observeUnasked(m *telemetry.AWS, log logr.Logger, clock clock.PassiveClock) func(call.Unasked) {
	var mu sync.Mutex
	reported := map[string]time.Time{}
	return func(u call.Unasked) {
		m.Unasked.WithLabelValues(u.Service, u.Operation).Add(float64(u.Count))
		mu.Lock()
		defer mu.Unlock()
		now := clock.Now()
		if at, before := reported[u.Operation]; before && now.Sub(at) < unaskedEvery {
			return
		}
		reported[u.Operation] = now
		log.Info("AWS answered with items that do not match the request; they are ignored", "service", u.Service, "operation", u.Operation, "count", u.Count, "example", u.Example)
	}
}
