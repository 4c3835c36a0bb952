package notice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	idA = "i-0123456789abcdef0"
	idB = "i-0fedcba9876543210"
)

var sent = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// event returns an envelope in EventBridge's format with the given detail.
func event(source, detailType, detail string) string {
	return fmt.Sprintf(`{"version":"0","id":"12345678-1234-1234-1234-123456789012","detail-type":%q,"source":%q,"account":"123456789012",
"time":"2026-11-20T12:00:00Z","region":"us-east-1","resources":["arn:aws:ec2:us-east-1a:instance/%s"],"detail":%s}`,
		detailType, source, idA, detail)
}

func ec2Event(detailType, detail string) string { return event("aws.ec2", detailType, detail) }

func about(rest string) string { return `{"instance-id":"` + idA + `"` + rest + `}` }

func health(rest string) string {
	return event("aws.health", "AWS Health Event",
		`{"eventArn":"arn:aws:health:us-east-1::event/EC2/x","service":"EC2","eventTypeCode":"AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
"eventTypeCategory":"scheduledChange","eventScopeCode":"ACCOUNT_SPECIFIC","startTime":"Sun, 22 Nov 2026 12:00:00 GMT","endTime":"Sun, 22 Nov 2026 14:00:00 GMT"`+rest+`}`)
}

var retirement = Notice{Kind: ScheduledChange, Instances: []string{idA, idB}, Sent: sent, At: sent.Add(48 * time.Hour),
	What: "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"}

func wrap(t testing.TB, body string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{"Type": "Notification", "MessageId": "m",
		"TopicArn": "arn:aws:sns:us-east-1:123456789012:events", "Message": body, "Timestamp": "2026-11-20T12:00:00.000Z"})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	spotWarning        = "EC2 Spot Instance Interruption Warning"
	reservationWarning = "EC2 Capacity Reservation Instance Interruption Warning"
	rebalanceWord      = "EC2 Instance Rebalance Recommendation"
	stateWord          = "EC2 Instance State-change Notification"
)

func TestParse(t *testing.T) {
	taken := Notice{Kind: SpotInterrupted, Instances: []string{idA}, Sent: sent, At: sent.Add(2 * time.Minute), What: "terminate"}
	with := func(n Notice, change func(*Notice)) Notice {
		change(&n)
		return n
	}
	state := func(kind Kind, state string) Notice {
		return Notice{Kind: kind, Instances: []string{idA}, Sent: sent, At: sent, What: state}
	}
	warning := ec2Event(spotWarning, about(`,"instance-action":"terminate"`))
	for name, test := range map[string]struct {
		body string
		want Notice
	}{
		"a spot warning":    {warning, taken},
		"by way of a topic": {wrap(t, warning), taken},
		"hibernation begins at once": {ec2Event(spotWarning, about(`,"instance-action":"hibernate"`)),
			with(taken, func(n *Notice) { n.At, n.What = sent, "hibernate" })},
		"a notice without a time counts": {strings.Replace(warning, "2026-11-20T12:00:00Z", "yesterday", 1),
			with(taken, func(n *Notice) { n.Sent, n.At = time.Time{}, time.Time{} })},
		"resources as a string, as AWS's page has it": {strings.Replace(warning, `["arn:aws:ec2:us-east-1a:instance/`+idA+`"]`, `"arn"`, 1),
			taken},
		"unknown fields": {strings.Replace(warning, `"version"`, `"later":{"a":[1]},"version"`, 1), taken},
		"a reservation's warning": {ec2Event(reservationWarning,
			about(`,"instance-action":"terminate","instance-termination-time":"2026-11-20T12:01:30Z"`)),
			with(taken, func(n *Notice) { n.Kind, n.At = ReservationInterrupted, sent.Add(90*time.Second) })},
		"a reservation's warning by its other name": {ec2Event("EC2 Interruptible Capacity Reservation Instance Interruption Warning",
			about(`,"instance-action":"terminate"`)),
			with(taken, func(n *Notice) { n.Kind = ReservationInterrupted })},
		"a recommendation": {ec2Event(rebalanceWord, about("")),
			Notice{Kind: RebalanceRecommendation, Instances: []string{idA}, Sent: sent}},
		"stopping":      {ec2Event(stateWord, about(`,"state":"stopping"`)), state(InstanceStopped, "stopping")},
		"stopped":       {ec2Event(stateWord, about(`,"state":"stopped"`)), state(InstanceStopped, "stopped")},
		"shutting down": {ec2Event(stateWord, about(`,"state":"shutting-down"`)), state(InstanceTerminated, "shutting-down")},
		"terminated":    {ec2Event(stateWord, about(`,"state":"terminated"`)), state(InstanceTerminated, "terminated")},
		"running is nothing": {ec2Event(stateWord, about(`,"state":"running"`)),
			Notice{Kind: NoOp, Sent: sent, What: "state running"}},
		"a retirement": {health(`,"affectedEntities":[{"entityValue":"` + idA + `"},{"entityValue":"arn:aws:ec2:us-east-1:1:instance/` + idB + `"},{"entityValue":"` + idA + `"},{"entityValue":"vol-1"}]`), retirement},
		"a change that is over": {health(`,"statusCode":"closed","affectedEntities":[{"entityValue":"` + idA + `"}]`),
			Notice{Kind: NoOp, Sent: sent, What: retirement.What + " is over"}},
		"a change of volumes": {health(`,"affectedEntities":[{"entityValue":"vol-0123456789abcdef0"}]`),
			Notice{Kind: NoOp, Sent: sent, What: retirement.What + " names no machine"}},
		"a health event of another kind": {strings.Replace(health(""), "scheduledChange", "issue", 1),
			Notice{Kind: NoOp, Sent: sent, What: "issue of EC2"}},
		"a health event of another cloud": {strings.Replace(health(""), `"service":"EC2"`, `"service":"RDS"`, 1),
			Notice{Kind: NoOp, Sent: sent, What: "scheduledChange of RDS"}},
		"an event of another service": {event("aws.s3", "Object Created", `{"bucket":"b"}`),
			Notice{Kind: NoOp, Sent: sent, What: `"Object Created" of "aws.s3", version "0", is not handled`}},
		"a detail that is not ours to read": {event("aws.s3", "Object Created", `7`),
			Notice{Kind: NoOp, Sent: sent, What: `"Object Created" of "aws.s3", version "0", is not handled`}},
		"another version": {strings.Replace(warning, `"version":"0"`, `"version":"1"`, 1),
			Notice{Kind: NoOp, Sent: sent, What: `"EC2 Spot Instance Interruption Warning" of "aws.ec2", version "1", is not handled`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.body)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestParseMalformed(t *testing.T) {
	for name, test := range map[string]struct{ body, why string }{
		"nothing":                         {"", "reading an event: unexpected end of JSON input"},
		"half of one":                     {ec2Event(spotWarning, about(""))[:120], "reading an event: unexpected end of JSON input"},
		"a text":                          {"hello", "reading an event: invalid character"},
		"a number":                        {"7", "reading an event: json: cannot unmarshal number"},
		"null":                            {"null", "no source and no detail-type"},
		"an object of another controller": {`{"hello":"world"}`, "no source and no detail-type"},
		"a topic's that is no event":      {wrap(t, "hello"), "reading an event: invalid character"},
		"a warning without an instance": {ec2Event(spotWarning, `{"instance-action":"terminate"}`),
			`instance-id "": must be like i-0123456789abcdef0`},
		"an instance that cannot be": {ec2Event(rebalanceWord, `{"instance-id":"i-xyz"}`),
			`reading the detail of "EC2 Instance Rebalance Recommendation": instance-id "i-xyz"`},
		"an id of another type":    {ec2Event(spotWarning, `{"instance-id":7}`), "cannot unmarshal number"},
		"no detail":                {ec2Event(spotWarning, "null"), `instance-id ""`},
		"a change to no state":     {ec2Event(stateWord, about("")), "state is missing"},
		"entities of another type": {health(`,"affectedEntities":"all"`), "cannot unmarshal string"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.body)
			if diff := cmp.Diff(Notice{Kind: Malformed}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("error %v, want one with %q", err, test.why)
			}
		})
	}
}

// Every input results in a known kind. Relevant notices have machines, and others have none. The result is the same for
// an event from a topic.
func FuzzParse(f *testing.F) {
	for _, body := range []string{
		ec2Event(spotWarning, about(`,"instance-action":"terminate"`)), ec2Event(spotWarning, about(`,"instance-action":"hibernate"`)),
		ec2Event(reservationWarning, about(`,"instance-termination-time":"2026-11-20T12:01:30Z"`)), ec2Event(rebalanceWord, about("")),
		ec2Event(stateWord, about(`,"state":"stopping"`)), ec2Event(stateWord, about(`,"state":"Terminated"`)),
		ec2Event(stateWord, about(`,"state":"running"`)),
		health(`,"affectedEntities":[{"entityValue":"` + idA + `"},{"entityValue":"vol-1"}]`), health(`,"statusCode":"closed"`),
		health(`,"affectedEntities":{}`),
		event("aws.s3", "Object Created", "{}"), wrap(f, ec2Event(rebalanceWord, about(""))), wrap(f, "hello"), wrap(f, wrap(f, "{}")),
		"", "null", "7", "[]", "{}", `{"source":"aws.ec2"}`, ec2Event(spotWarning, about(""))[:100], strings.Repeat("[", 20_000), `{"version":0}`,
	} {
		f.Add(body)
	}
	about := []Kind{SpotInterrupted, ReservationInterrupted, RebalanceRecommendation, InstanceStopped, InstanceTerminated, ScheduledChange}
	f.Fuzz(func(t *testing.T, body string) {
		n, err := Parse(body)
		if (err != nil) != (n.Kind == Malformed) {
			t.Fatalf("kind %q with error %v", n.Kind, err)
		}
		counts := slices.Contains(about, n.Kind)
		if counts != (len(n.Instances) > 0) {
			t.Fatalf("a message of kind %q names the instances %q", n.Kind, n.Instances)
		}
		if !counts {
			if n.Kind != NoOp && n.Kind != Malformed {
				t.Fatalf("the kind is %q, which is not one of %q", n.Kind, about)
			}
		}
		seen := map[string]bool{}
		for _, id := range n.Instances {
			if !instanceID.MatchString(id) || seen[id] {
				t.Fatalf("instances %q", n.Instances)
			}
			seen[id] = true
		}
		var outer wrapped
		if json.Unmarshal([]byte(body), &outer) == nil && outer.Type != "" || !validText(body) {
			return
		}
		if again, _ := Parse(wrap(t, body)); !cmp.Equal(n, again) {
			t.Fatalf("from a topic: %s", cmp.Diff(n, again))
		}
	})
}

// validText reports whether a text is unchanged by JSON encoding.
func validText(s string) bool { return strings.ToValidUTF8(s, "") == s }
