package awssim

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// noticeAhead is how long in advance the end of a spot instance is announced.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
const noticeAhead = 2 * time.Minute

// envelope is an event in the format in which EventBridge sends it to a queue.
// https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
type envelope struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     any      `json:"detail"`
}

// emit sends an event about an instance to the queue. The caller holds the lock.
func (c *Cloud) emit(source, kind string, i *instance, detail any, now time.Time) {
	if c.queue == nil {
		return
	}
	body, err := json.Marshal(envelope{"0", c.uuid(), kind, source, c.opts.AccountID, now.UTC().Format(time.RFC3339), c.opts.Region,
		[]string{"arn:aws:ec2:" + i.Zone + ":instance/" + i.ID}, detail})
	if err != nil {
		panic(fmt.Sprintf("encoding an event: %v", err))
	}
	c.post(string(body), now)
}

// announce sends the event for a change of state.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html
func (c *Cloud) announce(i *instance, now time.Time) {
	c.emit("aws.ec2", "EC2 Instance State-change Notification", i, map[string]string{"instance-id": i.ID, "state": i.state()}, now)
}

// interrupt announces the end of a spot instance, and terminates it two minutes later. The caller holds the lock.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html#ec2-spot-instance-interruption-warning-event
func (c *Cloud) interrupt(i *instance, now time.Time) {
	i.interrupted = true
	c.emit("aws.ec2", "EC2 Spot Instance Interruption Warning", i, map[string]string{"instance-id": i.ID, "instance-action": "terminate"}, now)
	c.after(now, noticeAhead, func(now time.Time) { c.terminate(i, now, "Server.SpotInstanceTermination") })
}

// Interrupt sends an interruption notice for a spot instance and terminates it two minutes later.
func (c *Cloud) Interrupt(id string) error {
	var err error
	found := c.withInstance(id, func(i *instance, now time.Time) {
		switch {
		case i.CapacityType != spot:
			err = fmt.Errorf("instance %s is %s: only spot instances are interrupted", id, i.CapacityType)
		case !i.alive():
			err = fmt.Errorf("instance %s is %s already", id, i.state())
		case !i.interrupted:
			c.interrupt(i, now)
		}
	})
	if found != nil {
		return found
	}
	return err
}

// Rebalance sends a rebalance recommendation for a spot instance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
func (c *Cloud) Rebalance(id string) error {
	return c.withInstance(id, func(i *instance, now time.Time) {
		c.emit("aws.ec2", "EC2 Instance Rebalance Recommendation", i, map[string]string{"instance-id": i.ID}, now)
	})
}

// healthDetail is the detail of an AWS Health event.
// https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html
type healthDetail struct {
	ARN         string              `json:"eventArn"`
	Service     string              `json:"service"`
	TypeCode    string              `json:"eventTypeCode"`
	Category    string              `json:"eventTypeCategory"`
	Scope       string              `json:"eventScopeCode"`
	Start       string              `json:"startTime"`
	End         string              `json:"endTime"`
	Status      string              `json:"statusCode"`
	Region      string              `json:"eventRegion"`
	Description []map[string]string `json:"eventDescription"`
	Entities    []map[string]string `json:"affectedEntities"`
	Account     string              `json:"affectedAccount"`
}

// statusEvent is a scheduled event of an instance.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStatusEvent.html
type statusEvent struct {
	id, code, description string
	notBefore             time.Time
}

// Schedule schedules an event for an instance. code is one of EC2's (instance-retirement, instance-stop,
// instance-reboot, system-reboot, system-maintenance). It sends a Health event, and DescribeInstanceStatus shows the
// scheduled event. Nothing else happens at that time.
func (c *Cloud) Schedule(id, code string, at time.Time) error {
	known := map[string]string{"instance-retirement": "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
		"instance-stop":   "AWS_EC2_INSTANCE_STOP_SCHEDULED",
		"instance-reboot": "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", "system-reboot": "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
		"system-maintenance": "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED"}
	if known[code] == "" {
		return fmt.Errorf("event code %q: must be one of %v", code, sortedKeys(known))
	}
	return c.withInstance(id, func(i *instance, now time.Time) {
		i.events = append(i.events, statusEvent{c.newID("instance-event"), code, "scheduled " + code, at})
		httpTime := "Mon, 02 Jan 2006 15:04:05 GMT"
		c.emit("aws.health", "AWS Health Event", i, healthDetail{
			ARN: "arn:aws:health:" + c.opts.Region + "::event/EC2/" + known[code] + "/" + i.ID, Service: "EC2",
			TypeCode: known[code], Category: "scheduledChange",
			Scope: "ACCOUNT_SPECIFIC", Start: at.UTC().Format(httpTime), End: at.Add(2 * time.Hour).UTC().Format(httpTime),
			Status: "upcoming", Region: c.opts.Region,
			Description: []map[string]string{{"language": "en_US", "latestDescription": "A change is scheduled for your instance."}},
			Entities:    []map[string]string{{"entityValue": i.ID, "status": "IMPAIRED"}}, Account: c.opts.AccountID}, now)
	})
}

// EndSchedule marks the scheduled events of an instance as completed or canceled, as EC2 does in their description.
func (c *Cloud) EndSchedule(id, how string) error {
	return c.withInstance(id, func(i *instance, _ time.Time) {
		for k := range i.events {
			i.events[k].description = "[" + how + "] " + i.events[k].description
		}
	})
}

// Impair makes a status check of an instance fail from now on, or succeed again if which is empty: "instance", "system",
// "ebs" (its first volume is impaired) or "ebs-data" (a volume that was attached later is).
func (c *Cloud) Impair(id, which string) error {
	if !slices.Contains([]string{"", "instance", "system", "ebs", "ebs-data"}, which) {
		return fmt.Errorf("status check %q: must be instance, system, ebs, ebs-data or empty", which)
	}
	return c.withInstance(id, func(i *instance, now time.Time) { i.impaired, i.impairment = now, which })
}

// Spoilage is a way to corrupt a message.
type Spoilage string

const (
	// SpoilTruncate sends the first half of the last message again, which is not valid JSON.
	SpoilTruncate Spoilage = "truncate"
	// SpoilNext truncates the next message to its first half, so that its content is lost.
	SpoilNext Spoilage = "next"
	// SpoilDuplicate sends the last message again, as standard queues may.
	SpoilDuplicate Spoilage = "duplicate"
	// SpoilForeign sends an event of another service.
	SpoilForeign Spoilage = "foreign"
	// SpoilUnknown sends a notice about an instance that does not exist.
	SpoilUnknown Spoilage = "unknown"
)

// Spoil sends a corrupted message to the queue, or corrupts the next one.
func (c *Cloud) Spoil(how Spoilage) error {
	var err error
	c.locked(func(now time.Time) {
		if c.queue == nil {
			err = fmt.Errorf("spoiling a message: there is no queue")
			return
		}
		last := "{}"
		if n := len(c.queue.messages); n > 0 {
			last = c.queue.messages[n-1].body
		}
		stranger := &instance{Instance: Instance{ID: c.newID("i"), Zone: c.zones[0].name}}
		switch how {
		case SpoilNext:
			c.queue.corrupt++
		case SpoilTruncate:
			c.post(last[:(len(last)+1)/2], now)
		case SpoilDuplicate:
			c.post(last, now)
		case SpoilForeign:
			c.emit("aws.s3", "Object Created", stranger, map[string]string{"bucket": "elsewhere"}, now)
		case SpoilUnknown:
			c.emit("aws.ec2", "EC2 Spot Instance Interruption Warning", stranger,
				map[string]string{"instance-id": stranger.ID, "instance-action": "terminate"}, now)
		default:
			err = fmt.Errorf("spoilage %q: must be truncate, next, duplicate, foreign or unknown", how)
		}
	})
	return err
}

// Send sends any text to the queue.
func (c *Cloud) Send(body string) {
	c.locked(func(now time.Time) { c.post(body, now) })
}

// Queued returns the number of messages in the queue, including hidden ones.
func (c *Cloud) Queued() int {
	n := 0
	c.locked(func(time.Time) {
		if c.queue != nil {
			n = len(c.queue.messages)
		}
	})
	return n
}
