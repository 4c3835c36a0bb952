package awssim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// request is a call of an action, decoded from the wire protocol.
type request struct {
	service   string // service in the credential scope: ec2, iam, ssm ...
	action    string
	accessKey string
	id        string
	xml       bool        // the request is of a Query protocol, and so is the response
	values    url.Values  // for a Query request
	form      *node       // the values as a tree
	body      []byte      // for a JSON request
	path      string      // for a REST request
	host      string      // includes the scheme, for URLs in responses
	filters   filterTable // of the action
}

// in decodes a JSON request.
func (r *request) in(into any) error {
	if len(r.body) == 0 {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(r.body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return &apiError{"SerializationException", "the request of " + r.action + " is not understood or not simulated: " + err.Error(),
			http.StatusBadRequest}
	}
	return nil
}

// apiError is an AWS error.
type apiError struct {
	code    string
	message string
	status  int
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// refuse returns an EC2 client error.
func refuse(code, format string, args ...any) error {
	return &apiError{code, fmt.Sprintf(format, args...), http.StatusBadRequest}
}

// action executes a request at the given time. The caller holds the lock.
type action func(c *Cloud, r *request, now time.Time) (any, error)

// method is an action and the checks that the dispatcher makes before it.
type method struct {
	run     action
	params  []string // top-level parameters that are simulated; all others are refused
	filters filterTable
	waiting waiter // used instead of run for actions that wait without the lock
	dryRun  bool   // the action has a DryRun parameter; the dispatcher handles it unless late is set
	late    bool   // the action checks its parameters before it handles DryRun itself
}

type waiter func(ctx context.Context, c *Cloud, r *request) (any, error)

// methods are all actions by service and name.
var methods = map[string]map[string]method{
	"ec2": ec2Methods(), "ssm": ssmMethods(), "eks": eksMethods(), "sqs": sqsMethods(), "events": eventsMethods(),
	"pricing": pricingMethods(), "iam": iamMethods(), "sts": stsMethods(), "arc-zonal-shift": arcMethods(),
	"savingsplans": savingsPlansMethods(),
}

// Serve serves requests on a listener, and runs the events that are due, until ctx ends. It closes the listener.
func (c *Cloud) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	running := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() { defer close(running); c.Run(ctx) }()
	err := server.Serve(l)
	cancel()
	<-running
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ServeHTTP handles one request of the SDK, or of the admin API under /_admin/.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	if strings.HasPrefix(hr.URL.Path, adminPath) {
		c.serveAdmin(w, hr)
		return
	}
	r, err := c.parse(hr)
	var lose bool
	var out any
	if err == nil {
		lose, err = c.gate(hr.Context(), r)
	}
	if hr.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		out, err = c.answer(hr.Context(), r)
	}
	garbled := c.garbled(r)
	c.count(r, err, lose || garbled != nil)
	if lose {
		panic(http.ErrAbortHandler)
	}
	if garbled != nil {
		garbled.write(w)
		return
	}
	write(w, r, reply{out, err, c.reshaped(r)})
}

// parse determines the service and action of a request from the credential scope that the SDK signed, which is
// <key>/<date>/<region>/<service>/aws4_request, and from the protocol's location of the action.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func (c *Cloud) parse(hr *http.Request) (*request, error) {
	r := &request{host: "http://" + hr.Host, path: hr.URL.Path}
	c.locked(func(time.Time) { r.id = c.uuid() })
	_, credential, ok := strings.Cut(hr.Header.Get("Authorization"), "Credential=")
	scope := strings.Split(strings.SplitN(credential, ",", 2)[0], "/")
	if !ok || len(scope) != 5 {
		r.service, r.xml = "ec2", true
		return r, &apiError{"MissingAuthenticationToken", "Request is missing Authentication Token", http.StatusForbidden}
	}
	r.accessKey, r.service = scope[0], scope[3]
	target := hr.Header.Get("X-Amz-Target")
	r.xml = slices.Contains([]string{"ec2", "iam", "sts"}, r.service) || r.service == "sqs" && target == ""
	if err := c.rightRegion(r.service, scope[2]); err != nil {
		return r, err
	}
	body, err := io.ReadAll(io.LimitReader(hr.Body, 4<<20))
	if err != nil {
		return r, &apiError{"RequestTimeout", "the request's body did not arrive", http.StatusBadRequest}
	}
	r.body = body
	switch {
	case r.xml:
		if r.values, err = url.ParseQuery(string(body)); err != nil {
			return r, refuse("MalformedQueryString", "The query string contains a syntax error")
		}
		r.form, r.action = parseForm(r.values), r.values.Get("Action")
		if r.service == "sqs" {
			if err := r.fromQuery(); err != nil {
				return r, err
			}
		}
	case r.service == "eks":
		r.action = eksAction(hr.Method, r.path)
	case r.service == "arc-zonal-shift":
		r.action = arcAction(hr.Method, r.path)
	case r.service == "savingsplans":
		r.action = hr.Method + " " + r.path
		if hr.Method == http.MethodPost {
			r.action = strings.TrimPrefix(r.path, "/")
		}
	default:
		_, r.action, _ = strings.Cut(target, ".")
	}
	if m, ok := methods[r.service][r.action]; !ok || (m.run == nil && m.waiting == nil) {
		return r, &apiError{"InvalidAction", "The action " + r.service + ":" + r.action + " is not simulated", http.StatusBadRequest}
	}
	return r, nil
}

// rightRegion rejects requests that are signed for a region without this account's service. The price list has three
// regions of its own, IAM and Savings Plans have one; for Savings Plans, clients that are given an endpoint use theirs.
// https://docs.aws.amazon.com/general/latest/gr/billing.html, iam-service.html
func (c *Cloud) rightRegion(service, region string) error {
	where := []string{c.opts.Region}
	switch service {
	case "pricing":
		where = []string{"us-east-1", "eu-central-1", "ap-south-1"}
	case "iam":
		where = []string{"us-east-1"}
	case "savingsplans":
		where = append(where, "us-east-1")
	}
	switch {
	case slices.Contains(where, region):
		return nil
	case service == "ec2":
		return &apiError{"AuthFailure", "Credential should be scoped to a valid region.", http.StatusUnauthorized}
	}
	return &apiError{"InvalidSignatureException", "Credential should be scoped to a valid region.", http.StatusForbidden}
}

// answer executes the action.
func (c *Cloud) answer(ctx context.Context, r *request) (any, error) {
	m := methods[r.service][r.action]
	r.filters = m.filters
	if m.waiting != nil {
		if err := c.admit(r, m); err != nil {
			return nil, err
		}
		return m.waiting(ctx, c, r)
	}
	if err := c.admit(r, m); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.settle()
	c.oddPages = c.strike(r, FaultOddPages) != nil
	out, err := m.run(c, r, now)
	if err == nil && r.form != nil {
		c.looked(r)
	}
	return out, err
}

// admit makes the checks before an action: credentials, permission, the token bucket, known parameters, DryRun.
func (c *Cloud) admit(r *request, m method) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.settle()
	if c.expired[r.accessKey] {
		return expiredError(r.service)
	}
	if err := c.permitted(r); err != nil {
		return err
	}
	if err := c.take(r, now); err != nil {
		return err
	}
	if err := m.known(r); err != nil || r.form == nil {
		return err
	}
	if err := m.checkFilters(r); err != nil {
		return err
	}
	c.unfiltered(r)
	if m.dryRun && !m.late && r.form.boolean("DryRun") {
		return dryRunError()
	}
	return nil
}

// dryRunError returns EC2's response to a dry run that would have succeeded.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/CommonParameters.html (DryRun)
func dryRunError() error {
	return &apiError{"DryRunOperation", "Request would have succeeded, but DryRun flag is set.", http.StatusPreconditionFailed}
}

// CallCount is the key for the number of responses of an action with a code: an error code, OK, Lost for a response
// that was discarded after the action, or HungUp for a caller that closed the connection.
type CallCount struct {
	Service string `json:"service"`
	Action  string `json:"action"`
	Code    string `json:"code"`
}

func (c *Cloud) count(r *request, err error, lost bool) {
	code := "OK"
	var refusal *apiError
	switch {
	case errors.As(err, &refusal):
		code = refusal.code
	case err != nil:
		code = "HungUp"
	case lost:
		code = "Lost"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[CallCount{r.service, r.action, code}]++
}

// Calls returns the counts of all responses since the start or the last ResetCalls.
func (c *Cloud) Calls() map[CallCount]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make(map[CallCount]int, len(c.calls))
	for call, n := range c.calls {
		counts[call] = n
	}
	return counts
}

// ResetCalls resets the counts.
func (c *Cloud) ResetCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.calls)
}
