package notice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Ahead is how long in advance EC2 announces the end of a spot instance or of an instance in an interruptible
// reservation. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitor-interruptible-cr.html
const Ahead = 2 * time.Minute

// envelope has the fields of an EventBridge event that are used. Other fields are not decoded: AWS's own examples
// differ in their types (resources is a list or a string).
// https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
type envelope struct {
	Version    string          `json:"version"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Time       string          `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// wrapped is an event from an SNS topic without raw delivery.
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
type wrapped struct {
	Type     string `json:"Type"`
	TopicARN string `json:"TopicArn"`
	Message  string `json:"Message"`
}

// Event is a type of event, identified by its fields source and detail-type.
type Event struct{ Source, DetailType string }

// Events returns the relevant event types, sorted: those that EventBridge rules must deliver.
func Events() []Event {
	return slices.SortedFunc(maps.Keys(readers), func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.DetailType, b.DetailType))
	})
}

// readers has a function for each relevant event type.
var readers = map[Event]func(envelope) (Notice, error){
	{"aws.ec2", "EC2 Spot Instance Interruption Warning"}: func(e envelope) (Notice, error) { return interrupted(e, SpotInterrupted) },
	// AWS's documentation has two names for the next one.
	{"aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"}:               func(e envelope) (Notice, error) { return interrupted(e, ReservationInterrupted) },
	{"aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning"}: func(e envelope) (Notice, error) { return interrupted(e, ReservationInterrupted) },
	{"aws.ec2", "EC2 Instance Rebalance Recommendation"}:                                rebalance,
	{"aws.ec2", "EC2 Instance State-change Notification"}:                               stateChange,
	{"aws.health", "AWS Health Event"}:                                                  healthEvent,
}

// Parse parses the body of a message. An error means that it is Malformed, and has the cause; the notice then has that
// kind. Unknown events are not an error: they are NoOp.
func Parse(body string) (Notice, error) {
	n, err := parse(body)
	if err != nil {
		return Notice{Kind: Malformed}, err
	}
	return n, nil
}

func parse(body string) (Notice, error) {
	var outer wrapped
	if err := json.Unmarshal([]byte(body), &outer); err == nil && outer.Type == "Notification" && outer.TopicARN != "" {
		body = outer.Message
	}
	var e envelope
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return Notice{}, fmt.Errorf("reading an event: %w", err)
	}
	if e.Source == "" && e.DetailType == "" {
		return Notice{}, fmt.Errorf("reading an event: it has no source and no detail-type, so it is not an EventBridge event")
	}
	read := readers[Event{e.Source, e.DetailType}]
	if e.Version != "0" || read == nil {
		return Notice{Kind: NoOp, Sent: timeOf(e.Time), What: fmt.Sprintf("%q of %q, version %q, is not handled", e.DetailType, e.Source,
			e.Version)}, nil
	}
	n, err := read(e)
	if err != nil {
		return Notice{}, fmt.Errorf("reading the detail of %q: %w", e.DetailType, err)
	}
	n.Sent = timeOf(e.Time)
	return n, nil
}

// machineDetail is the detail of events about one machine.
type machineDetail struct {
	ID     string `json:"instance-id"`
	Action string `json:"instance-action"`
	State  string `json:"state"`
	End    string `json:"instance-termination-time"`
}

func machineOf(e envelope) (machineDetail, error) {
	var d machineDetail
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return d, err
	}
	if !instanceID.MatchString(d.ID) {
		return d, fmt.Errorf("instance-id %q: must be like i-0123456789abcdef0", d.ID)
	}
	return d, nil
}

var instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// interrupted parses a notice that a machine will be reclaimed. Hibernation begins with the notice, stopping and
// terminating two minutes later.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html#ec2-spot-instance-interruption-warning-event
func interrupted(e envelope, kind Kind) (Notice, error) {
	d, err := machineOf(e)
	if err != nil {
		return Notice{}, err
	}
	at := timeOf(d.End)
	if sent := timeOf(e.Time); at.IsZero() && !sent.IsZero() {
		at = sent.Add(Ahead)
		if d.Action == "hibernate" {
			at = sent
		}
	}
	return Notice{Kind: kind, Instances: []string{d.ID}, At: at, What: d.Action}, nil
}

// rebalance parses a notice that a spot machine is at elevated risk.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
func rebalance(e envelope) (Notice, error) {
	d, err := machineOf(e)
	return Notice{Kind: RebalanceRecommendation, Instances: []string{d.ID}}, err
}

// stateChange parses a notice that the state of a machine has changed.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html
func stateChange(e envelope) (Notice, error) {
	d, err := machineOf(e)
	if err != nil {
		return Notice{}, err
	}
	n := Notice{Instances: []string{d.ID}, At: timeOf(e.Time), What: d.State}
	switch strings.ToLower(d.State) {
	case "stopping", "stopped":
		n.Kind = InstanceStopped
	case "shutting-down", "terminated":
		n.Kind = InstanceTerminated
	case "":
		return Notice{}, fmt.Errorf("state is missing")
	default:
		return Notice{Kind: NoOp, What: "state " + d.State}, nil
	}
	return n, nil
}

// healthDetail has the fields of an AWS Health event that are used.
// https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html
type healthDetail struct {
	Service  string `json:"service"`
	Category string `json:"eventTypeCategory"`
	Code     string `json:"eventTypeCode"`
	Start    string `json:"startTime"`
	Status   string `json:"statusCode"`
	Entities []struct {
		Value string `json:"entityValue"`
	} `json:"affectedEntities"`
}

func healthEvent(e envelope) (Notice, error) {
	var d healthDetail
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return Notice{}, err
	}
	switch {
	case d.Service != "EC2" || d.Category != "scheduledChange":
		return Notice{Kind: NoOp, What: fmt.Sprintf("%s of %s", d.Category, d.Service)}, nil
	case d.Status == "closed":
		return Notice{Kind: NoOp, What: d.Code + " is over"}, nil
	}
	n := Notice{Kind: ScheduledChange, At: timeOf(d.Start), What: d.Code}
	for _, entity := range d.Entities {
		// An entity is an ID or an ARN, and may be something other than a machine.
		id := entity.Value[strings.LastIndexByte(entity.Value, '/')+1:]
		if instanceID.MatchString(id) && !slices.Contains(n.Instances, id) {
			n.Instances = append(n.Instances, id)
		}
	}
	if len(n.Instances) == 0 {
		return Notice{Kind: NoOp, What: d.Code + " names no machine"}, nil
	}
	return n, nil
}

// timeOf parses the two formats of times in events. It returns zero for anything else: a notice is valid without a
// time.
func timeOf(text string) time.Time {
	for _, layout := range []string{time.RFC3339, http.TimeFormat, time.RFC1123} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}
