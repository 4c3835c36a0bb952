package v1

import (
	"regexp"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
)

// unhealthy matches the message of the condition Ready that lists the conditions it depends on: "A=False,
// B=Unknown".
var unhealthy = regexp.MustCompile(`^\w+=(True|False|Unknown)(, \w+=(True|False|Unknown))*$`)

// WithReasons extends the message of the condition Ready. If the message only lists the conditions that Ready
// depends on, it appends their messages: "NodeClassReady=False: there is no node class default".
func WithReasons(conditions []status.Condition) []status.Condition {
	at := slices.IndexFunc(conditions, func(c status.Condition) bool { return c.Type == status.ConditionReady })
	if at < 0 || !unhealthy.MatchString(conditions[at].Message) {
		return conditions
	}
	words := strings.Split(conditions[at].Message, ", ")
	for i, word := range words {
		name, value, _ := strings.Cut(word, "=")
		of := slices.IndexFunc(conditions, func(c status.Condition) bool { return c.Type == name })
		switch {
		case value == "True":
			words[i] += ": not checked for the current generation"
		case of >= 0 && conditions[of].Message != "":
			words[i] += ": " + conditions[of].Message
		case of >= 0 && conditions[of].Reason != "":
			words[i] += ": " + conditions[of].Reason
		}
	}
	explained := slices.Clone(conditions)
	explained[at].Message = strings.Join(words, "; ")
	return explained
}
