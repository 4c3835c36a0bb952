package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AWS holds the metrics of the AWS provider. The comment of each lists its labels in order.
type AWS struct {
	// Calls counts calls to AWS, and CallDuration is their duration. Labels: service, operation and, for Calls, code
	// (the error code of AWS, OK, or NoAnswer). Not in upstream Karpenter.
	Calls        *prometheus.CounterVec
	CallDuration *prometheus.HistogramVec
	// SDKRequests and SDKAttempts count requests of the SDK and their attempts, SDKRequestDuration and
	// SDKAttemptDuration are their durations, and SDKRetries is the number of retries of a request. Labels: service,
	// operation and, for the counts, status_code (of HTTP, 0 without a response).
	SDKRequests, SDKAttempts                           *prometheus.CounterVec
	SDKRequestDuration, SDKAttemptDuration, SDKRetries *prometheus.HistogramVec
	// LaunchFailures counts instances that EC2 did not launch. Labels: zone, zone_id, capacity_type, reason.
	LaunchFailures *prometheus.CounterVec
	// TerminationFailures counts instances that EC2 did not terminate. Labels: zone, zone_id.
	TerminationFailures *prometheus.CounterVec
	// BatchTime is how long a batch was collected, and BatchSize the number of its items. Label: batcher.
	BatchTime *prometheus.HistogramVec
	BatchSize *prometheus.HistogramVec

	// UserData is the size of the user data of a class's machines, before the labels and taints of pools. Label:
	// nodeclass.
	UserData *prometheus.GaugeVec

	// InterruptionReceived counts messages, and InterruptionForeign, which is not in upstream Karpenter, those about
	// machines that this cluster does not manage. Label: message_type.
	InterruptionReceived *prometheus.CounterVec
	InterruptionForeign  *prometheus.CounterVec
	// InterruptionDeleted counts deleted messages.
	InterruptionDeleted prometheus.Counter
	// InterruptionQueueDuration is the time from an event until its handling.
	InterruptionQueueDuration prometheus.Histogram
	// InterruptionUnhealthy counts each problem of a machine once. Label: category.
	InterruptionUnhealthy *prometheus.CounterVec
	// InterruptionHeld is how many machines with problems are not replaced yet, because there are too many at the
	// same time. Not in upstream Karpenter.
	InterruptionHeld prometheus.Gauge
	// ZoneShifted is 1 while traffic is shifted away from a zone and 0 otherwise; ZonalShiftAge is how long it has
	// been, 0 if it is not. Labels: zone, zone_id. Not in upstream Karpenter.
	ZoneShifted, ZonalShiftAge *prometheus.GaugeVec
	// Reservations is how many more instances a capacity reservation has room for. Labels: id, instance_type, zone. Not in
	// upstream Karpenter.
	Reservations *prometheus.GaugeVec
	// Unasked counts the parts of responses of AWS that were not requested. Labels: service, operation. Not in
	// upstream Karpenter.
	Unasked *prometheus.CounterVec
}

// NewAWS creates the metrics of the AWS provider and registers them, once per registry.
func NewAWS(registerer prometheus.Registerer) *AWS {
	var list []Metric
	return newAWS(factory{registerer, &list})
}

func newAWS(f factory) *AWS {
	const cloud, notices = "cloudprovider", "interruption"
	return &AWS{
		Calls: f.counter(cloud, "api_calls_total", "Calls to AWS.", "service", "operation", "code"),
		CallDuration: f.histogram(cloud, "api_call_duration_seconds", "Time of calls to AWS.", prometheus.DefBuckets,
			"service", "operation"),
		SDKRequests: f.plainCounter("aws_sdk_go_request_total", "Requests of the AWS SDK.", "service", "operation", "status_code"),
		SDKAttempts: f.plainCounter("aws_sdk_go_request_attempt_total", "Attempts at requests of the AWS SDK.",
			"service", "operation", "status_code"),
		SDKRequestDuration: f.plainHistogram("aws_sdk_go_request_duration_seconds", "Time of requests of the AWS SDK, with their retries.",
			prometheus.DefBuckets, "service", "operation"),
		SDKAttemptDuration: f.plainHistogram("aws_sdk_go_request_attempt_duration_seconds",
			"Time of attempts at requests of the AWS SDK.", prometheus.DefBuckets, "service", "operation"),
		SDKRetries: f.plainHistogram("aws_sdk_go_request_retry_count", "How often a request of the AWS SDK was repeated.",
			[]float64{0, 1, 2, 3, 5, 10}, "service", "operation"),
		LaunchFailures: f.counter(cloud, "instance_launch_failures_total", "What EC2 did not launch.", "zone",
			"zone_id", "capacity_type", "reason"),
		TerminationFailures: f.counter(cloud, "instance_termination_failures_total", "Instances that EC2 did not terminate.", "zone", "zone_id"),
		BatchTime: f.histogram(cloud, "batcher_batch_time_seconds", "Time for which a batch was collected.",
			DurationBuckets(), "batcher"),
		BatchSize: f.histogram(cloud, "batcher_batch_size", "Size of a batch.", sizeBuckets(), "batcher"),
		UserData: f.gauge("ec2nodeclasses", "userdata_bytes",
			"Size of the user data of a class's machines; EC2 takes 16384 bytes.", "nodeclass"),

		InterruptionReceived: f.counter(notices, "received_messages_total", "Messages about interruptions.", "message_type"),
		InterruptionForeign:  f.counter(notices, "foreign_messages_total", "Messages about machines that are not ours.", "message_type"),
		InterruptionDeleted:  f.counter(notices, "deleted_messages_total", "Messages removed from the queue.").WithLabelValues(),
		InterruptionQueueDuration: f.histogram(notices, "message_queue_duration_seconds", "Time from an event until it was acted upon.",
			DurationBuckets()).WithLabelValues().(prometheus.Histogram),
		InterruptionUnhealthy: f.counter(notices, "instance_status_unhealthy_total", "Machines found to be in trouble.", "category"),
		InterruptionHeld: f.gauge(notices, "instance_status_held",
			"Machines in trouble that are not replaced yet, because too many are at the same time.").WithLabelValues(),
		ZoneShifted: f.gauge(cloud, "zone_shifted", "1 while traffic is shifted away from the zone.", "zone", "zone_id"),
		ZonalShiftAge: f.gauge(cloud, "zonal_shift_seconds", "Time since traffic was shifted away from the zone; 0 if it is not.",
			"zone", "zone_id"),
		Reservations: f.gauge(cloud, "capacity_reservation_available",
			"How many more instances a capacity reservation that a node class selects has room for.", "id", "instance_type", "zone"),
		Unasked: f.counter(cloud, "unrequested_items_total",
			"Items of answers of AWS that do not match the request. They are ignored.", "service", "operation"),
	}
}

// These are the event reasons of the AWS provider.
const (
	ReasonSpotInterrupted           = "SpotInterrupted"
	ReasonReservationInterrupted    = "CapacityReservationInstanceInterrupted"
	ReasonInstanceStopping          = "InstanceStopping"
	ReasonInstanceTerminating       = "InstanceTerminating"
	ReasonInstanceStateDisputed     = "InstanceStateDisputed" // not upstream
	ReasonInstanceUnhealthy         = "InstanceUnhealthy"
	ReasonTerminatingOnInterruption = "TerminatingOnInterruption"
	ReasonSpotRebalance             = "SpotRebalanceRecommendation"
	ReasonWaitingOnClaimTermination = "WaitingOnNodeClaimTermination"
	ReasonSpotRoleMissing           = "SpotSLRCreationFailed"
	ReasonReservationLost           = "ReservationLost"
	ReasonBlockExpiring             = "CapacityBlockExpiring"
	ReasonSpreadGroupFull           = "SpreadGroupFull" // not upstream
	ReasonZonalShiftActive          = "ZonalShiftActive"
	ReasonZonalShiftCleared         = "ZonalShiftCleared"
)

// SpotInterrupted reports that EC2 reclaims a spot instance.
func SpotInterrupted(object client.Object, message string) Event {
	return event(object, warning, ReasonSpotInterrupted, message, uid(object))
}

// ReservationInterrupted reports that EC2 reclaims an instance for the owner of its capacity reservation.
func ReservationInterrupted(object client.Object, message string) Event {
	return event(object, warning, ReasonReservationInterrupted, message, uid(object))
}

// InstanceStopping reports that an instance is stopping.
func InstanceStopping(object client.Object, message string) Event {
	return event(object, warning, ReasonInstanceStopping, message, uid(object))
}

// InstanceTerminating reports that an instance is terminating.
func InstanceTerminating(object client.Object, message string) Event {
	return event(object, warning, ReasonInstanceTerminating, message, uid(object))
}

// InstanceStateDisputed reports that a NodeClaim is kept although a notice says that its instance stops or terminates,
// because EC2 shows the instance as running.
func InstanceStateDisputed(object client.Object, message string) Event {
	return event(object, warning, ReasonInstanceStateDisputed, message, uid(object))
}

// InstanceUnhealthy reports a problem of an instance, or an event that EC2 has scheduled for it.
func InstanceUnhealthy(object client.Object, message string, urgent bool) Event {
	e := event(object, normal, ReasonInstanceUnhealthy, message, uid(object))
	if urgent {
		e.Type = warning
	}
	return e
}

// TerminatingOnInterruption reports that a NodeClaim is deleted because of an interruption.
func TerminatingOnInterruption(object client.Object, message string) Event {
	return event(object, warning, ReasonTerminatingOnInterruption, message, uid(object))
}

// SpotRebalance reports that EC2 recommends to replace a spot instance that is at elevated risk of interruption.
func SpotRebalance(object client.Object, message string) Event {
	return event(object, normal, ReasonSpotRebalance, message, uid(object))
}

// SpotRoleMissing reports that no spot instance can be launched in this account, and the required action.
func SpotRoleMissing(object client.Object, message string) Event {
	return event(object, warning, ReasonSpotRoleMissing, message, uid(object))
}

// ReservationLost reports that a machine is no longer in its capacity reservation, and is billed on demand.
func ReservationLost(object client.Object, message string) Event {
	return event(object, warning, ReasonReservationLost, message, uid(object))
}

// BlockExpiring reports that a machine leaves its capacity block, whose instances EC2 terminates soon.
func BlockExpiring(object client.Object, message string) Event {
	return event(object, warning, ReasonBlockExpiring, message, uid(object))
}

// SpreadGroupFull reports that a spread placement group has as many instances as EC2 allows in each zone of a NodeClaim,
// which is not launched.
func SpreadGroupFull(object client.Object, message string) Event {
	return event(object, warning, ReasonSpreadGroupFull, message, uid(object))
}

// ZonalShiftActive reports that traffic is shifted away from a zone in which the pool may launch nodes.
func ZonalShiftActive(pool client.Object, message string) Event {
	return event(pool, warning, ReasonZonalShiftActive, message, uid(pool))
}

// ZonalShiftCleared reports that traffic is no longer shifted away from a zone in which the pool may launch nodes.
func ZonalShiftCleared(pool client.Object, message string) Event {
	return event(pool, normal, ReasonZonalShiftCleared, message, uid(pool))
}

// WaitingOnClaimTermination reports which NodeClaims block the deletion of a node class.
func WaitingOnClaimTermination(object client.Object, message string) Event {
	return event(object, normal, ReasonWaitingOnClaimTermination, message, uid(object))
}

// sizeBuckets returns the buckets of the sizes of batches, which are those of upstream.
func sizeBuckets() []float64 {
	return []float64{1, 2, 4, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 175, 200, 225, 250, 275, 300,
		350, 400, 450, 500, 550, 600, 650, 700, 800, 900, 1000}
}
