package awssim

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Served is a call that is simulated: what acts of it. Every other parameter and filter is refused, by the code that
// the service has for that (see unknownCodes).
type Served struct {
	Service string   `json:"service"`
	Action  string   `json:"action"`
	Params  []string `json:"params"` // names on the wire, of the top level
	// Filters have where an answer shows the value, elements with ">" between them; the path is empty for a filter that
	// is refused because the simulation has no such fact.
	Filters map[string]string `json:"filters"`
}

// ServedCalls returns all calls that are simulated, by service and action.
func ServedCalls() []Served {
	var all []Served
	for _, service := range sortedKeys(methods) {
		for _, action := range sortedKeys(methods[service]) {
			m := methods[service][action]
			params := append([]string{}, m.params...)
			if m.dryRun {
				params = append(params, "DryRun")
			}
			slices.Sort(params)
			all = append(all, Served{service, action, params, m.filters})
		}
	}
	return all
}

// looked notes which parameters of a call in a Query protocol an action has read. The caller holds the lock.
func (c *Cloud) looked(r *request) {
	for _, name := range []string{"Action", "Version", "DryRun", "ClientToken"} {
		r.form.at(name)
	}
	r.form.leaves("", func(name string, leaf *node) {
		name = r.service + ":" + r.action + " " + name
		unread, before := c.unread[name]
		c.unread[name] = !leaf.read && (unread || !before)
	})
}

// Ignored returns the parameters, as "ec2:RunInstances Placement.Tenancy", that calls have succeeded with and no action
// has looked at: faults of the simulation, which must refuse what it does not do.
func (c *Cloud) Ignored() []string {
	ignored := []string{}
	c.locked(func(time.Time) {
		for _, name := range sortedKeys(c.unread) {
			if c.unread[name] {
				ignored = append(ignored, name)
			}
		}
	})
	return ignored
}

// unknownCodes are the codes by which the services refuse a parameter. EC2's:
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
var unknownCodes = map[string]string{"ec2": "UnknownParameter", "iam": "ValidationError", "sts": "ValidationError",
	"ssm": "ValidationException", "sqs": "UnsupportedOperation", "pricing": "InvalidParameterException",
	"eks": "InvalidParameterException", "events": "ValidationException",
	"arc-zonal-shift": "ValidationException", "savingsplans": "ValidationException"}

// known refuses a parameter that does not act.
func (m method) known(r *request) error {
	var given []string
	switch {
	case r.form != nil:
		given = sortedKeys(r.form.children)
	case len(r.body) > 0:
		var members map[string]json.RawMessage
		if err := json.Unmarshal(r.body, &members); err != nil {
			return &apiError{"SerializationException", "the request of " + r.action + " is not a JSON object", http.StatusBadRequest}
		}
		given = sortedKeys(members)
	}
	known := append([]string{"Action", "Version"}, m.params...)
	if m.dryRun {
		known = append(known, "DryRun")
	}
	for _, name := range given {
		if !slices.Contains(known, name) {
			return &apiError{unknownCodes[r.service],
				"The parameter " + name + " is not recognized or not simulated in " + r.action, http.StatusBadRequest}
		}
	}
	return nil
}
