package v1

import (
	"regexp"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
)

// unhealthy is the message that the condition Ready gets from the conditions that it depends on: "A=False, B=Unknown".
var unhealthy = regexp.MustCompile(`^\w+=(True|False|Unknown)(, \w+=(True|False|Unknown))*$`)

// WithReasons adds to the message of the condition Ready, where that only names the conditions that Ready waits for, what these
// say themselves: "NodeClassReady=False: there is no node class default".
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
