package awssim

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// rule is a rule of EventBridge's default bus. Rules are kept and do not select: the queue of Options gets all events.
type rule struct {
	pattern string
	targets map[string]string // ARNs by ID
}

func eventsMethods() map[string]method {
	return map[string]method{
		"PutRule":    {run: putRule, params: []string{"EventPattern", "Name"}},
		"PutTargets": {run: putTargets, params: []string{"Rule", "Targets"}},
	}
}

var ruleName = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,64}$`)

// putRule implements events:PutRule for rules with a pattern.
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html
func putRule(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct{ Name, EventPattern string }
	if err := r.in(&in); err != nil {
		return nil, err
	}
	var pattern map[string]any
	switch {
	case !ruleName.MatchString(in.Name):
		return nil, &apiError{"ValidationException", "Value '" + in.Name +
			`' at 'name' failed to satisfy constraint: Member must satisfy regular expression pattern: [\.\-_A-Za-z0-9]+`, http.StatusBadRequest}
	case in.EventPattern == "":
		return nil, &apiError{"ValidationException", "Parameter(s) EventPattern or ScheduleExpression must be specified.", http.StatusBadRequest}
	case json.Unmarshal([]byte(in.EventPattern), &pattern) != nil || !selects(pattern):
		return nil, &apiError{"InvalidEventPatternException", "Event pattern is not valid. Reason: Filter is not an object of arrays",
			http.StatusBadRequest}
	}
	if c.rules[in.Name] == nil {
		c.rules[in.Name] = &rule{targets: map[string]string{}}
	}
	c.rules[in.Name].pattern = in.EventPattern
	return map[string]string{"RuleArn": "arn:aws:events:" + c.opts.Region + ":" + c.opts.AccountID + ":rule/" + in.Name}, nil
}

// selects reports whether a pattern is an object of arrays, or of such objects for fields within fields.
func selects(pattern map[string]any) bool {
	for _, value := range pattern {
		inner, nested := value.(map[string]any)
		if _, list := value.([]any); !list && !(nested && selects(inner)) {
			return false
		}
	}
	return len(pattern) > 0
}

// putTargets implements events:PutTargets for at most five queues, each of which may fail.
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutTargets.html
func putTargets(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct {
		Rule    string
		Targets []struct{ Id, Arn string }
	}
	if err := r.in(&in); err != nil {
		return nil, err
	}
	found := c.rules[in.Rule]
	if found == nil {
		return nil, &apiError{"ResourceNotFoundException", "Rule " + in.Rule + " does not exist on EventBus default.", http.StatusBadRequest}
	}
	failures := []map[string]string{}
	for _, t := range in.Targets {
		if !strings.HasPrefix(t.Arn, "arn:aws:sqs:"+c.opts.Region+":") {
			failures = append(failures, map[string]string{"TargetId": t.Id, "ErrorCode": "ValidationException",
				"ErrorMessage": "Provided Arn " + t.Arn + " is not of a queue in this region"})
			continue
		}
		found.targets[t.Id] = t.Arn
	}
	return map[string]any{"FailedEntryCount": len(failures), "FailedEntries": failures}, nil
}

// Rules returns the event patterns of EventBridge's rules that have a target, by name.
func (c *Cloud) Rules() map[string]string {
	patterns := map[string]string{}
	c.locked(func(time.Time) {
		for name, r := range c.rules {
			if len(r.targets) > 0 {
				patterns[name] = r.pattern
			}
		}
	})
	return patterns
}
