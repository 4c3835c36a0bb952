package awssim

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// FaultKind is a kind of fault.
type FaultKind string

const (
	// FaultFreeze blocks calls until the fault is cleared or the caller closes the connection.
	FaultFreeze FaultKind = "freeze"
	// FaultSlow delays calls for Delay before they are executed.
	FaultSlow FaultKind = "slow"
	// FaultThrottle is a token bucket with Rate per second and Burst, in addition to the published one.
	FaultThrottle FaultKind = "throttle"
	// FaultFail responds with Code and Status without executing the call.
	FaultFail FaultKind = "fail"
	// FaultDeny responds that the caller has no permission. If "ec2:RunInstances" is denied, CreateFleet reports it per
	// override.
	FaultDeny FaultKind = "deny"
	// FaultLose executes the call and closes the connection without a response.
	FaultLose FaultKind = "lose"
	// FaultGarble executes the call and responds with Body, ContentType and Status (200 when 0), as a proxy or a load
	// balancer does.
	FaultGarble FaultKind = "garble"
	// FaultIgnoreFilters executes the call as if it had no filters: the response contains everything.
	FaultIgnoreFilters FaultKind = "ignore-filters"
	// FaultIgnoreTokens executes each call, even if its client token was used before.
	FaultIgnoreTokens FaultKind = "ignore-tokens"
	// FaultUnknownFields adds unknown members to every structure of the response.
	FaultUnknownFields FaultKind = "unknown-fields"
	// FaultOlderFields removes the members that EC2 has added in recent years.
	FaultOlderFields FaultKind = "older-fields"
	// FaultOddPages returns EC2 lists in pages of which some are empty and some repeat an item.
	FaultOddPages FaultKind = "odd-pages"
	// FaultForgetHalf makes DescribeInstances respond as if every other instance did not exist, for requests by ID and
	// by filter. The instances keep running.
	FaultForgetHalf FaultKind = "forget-half"
	// FaultForgetAll makes DescribeInstances respond as if no instance existed.
	FaultForgetAll FaultKind = "forget-all"
)

var faultKinds = []FaultKind{FaultFreeze, FaultSlow, FaultThrottle, FaultFail, FaultDeny, FaultLose, FaultGarble,
	FaultIgnoreFilters, FaultIgnoreTokens, FaultUnknownFields, FaultOlderFields, FaultOddPages, FaultForgetHalf, FaultForgetAll}

// Fault is a fault of the API.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Service is the service in the credential scope, any when empty.
	Service string `json:"service,omitempty"`
	// Action is the action, any when empty.
	Action string `json:"action,omitempty"`
	// Count is the number of calls that are affected, all when 0. FaultThrottle affects all.
	Count int `json:"count,omitempty"`
	// Delay is for FaultSlow, in nanoseconds in JSON.
	Delay time.Duration `json:"delay,omitempty"`
	// Rate per second and Burst (1 when 0) are for FaultThrottle.
	Rate  float64 `json:"rate,omitempty"`
	Burst int     `json:"burst,omitempty"`
	// Code (InternalError when empty) and Status (503 when 0) are for FaultFail.
	Code   string `json:"code,omitempty"`
	Status int    `json:"status,omitempty"`
	// Body and ContentType (text/html when empty) are for FaultGarble.
	Body        string `json:"body,omitempty"`
	ContentType string `json:"contentType,omitempty"`
}

type fault struct {
	Fault
	id     int
	bucket *bucket
}

// Inject activates a fault and returns the number by which it is cleared.
func (c *Cloud) Inject(f Fault) (int, error) {
	if !slices.Contains(faultKinds, f.Kind) {
		return 0, fmt.Errorf("fault kind %q: must be one of %v", f.Kind, faultKinds)
	}
	if f.Service != "" && methods[f.Service] == nil {
		return 0, fmt.Errorf("fault service %q is not simulated", f.Service)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence++
	c.faults = append(c.faults, &fault{Fault: f, id: c.sequence})
	return c.sequence, nil
}

// Clear removes a fault, or all of them when id is 0. Frozen calls continue.
func (c *Cloud) Clear(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = slices.DeleteFunc(c.faults, func(f *fault) bool { return id == 0 || f.id == id })
	close(c.thawed)
	c.thawed = make(chan struct{})
}

// faultFor returns the oldest fault of a kind that affects a call. The caller holds the lock.
func (c *Cloud) faultFor(r *request, kind FaultKind) *fault {
	for _, f := range c.faults {
		if f.Kind == kind && (f.Service == "" || f.Service == r.service) && (f.Action == "" || f.Action == r.action) {
			return f
		}
	}
	return nil
}

// strike is faultFor, and counts the call. The caller holds the lock.
func (c *Cloud) strike(r *request, kind FaultKind) *fault {
	f := c.faultFor(r, kind)
	if f != nil && f.Count > 0 {
		if f.Count--; f.Count == 0 {
			c.faults = slices.DeleteFunc(c.faults, func(o *fault) bool { return o == f })
		}
	}
	return f
}

// garbled returns the fault that corrupts the response to a call, or nil.
func (c *Cloud) garbled(r *request) *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.strike(r, FaultGarble)
}

// write writes the response of the fault.
func (f *fault) write(w http.ResponseWriter) {
	kind, status := f.ContentType, f.Status
	defaultTo(&kind, "text/html")
	defaultTo(&status, http.StatusOK)
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, f.Body)
}

// gate blocks a call or fails it according to the faults. lose means that its response is to be discarded.
func (c *Cloud) gate(ctx context.Context, r *request) (lose bool, err error) {
	for {
		c.mu.Lock()
		frozen, thawed := c.faultFor(r, FaultFreeze), c.thawed
		c.mu.Unlock()
		if frozen == nil {
			break
		}
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-thawed:
		}
	}
	c.mu.Lock()
	slow, fail, lost := c.strike(r, FaultSlow), c.strike(r, FaultFail), c.strike(r, FaultLose)
	c.mu.Unlock()
	if slow != nil {
		if err := c.wait(ctx, slow.Delay); err != nil {
			return true, err
		}
	}
	if fail != nil {
		code, status := fail.Code, fail.Status
		defaultTo(&code, "InternalError")
		defaultTo(&status, http.StatusServiceUnavailable)
		return lost != nil, &apiError{code, "An internal error has occurred", status}
	}
	return lost != nil, nil
}

// wait waits on the cloud's clock.
func (c *Cloud) wait(ctx context.Context, d time.Duration) error {
	timer := c.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// ExpireCredentials makes every call with that access key fail until it is renewed.
func (c *Cloud) ExpireCredentials(accessKey string) { c.setExpired(accessKey, true) }

// RenewCredentials reverts ExpireCredentials.
func (c *Cloud) RenewCredentials(accessKey string) { c.setExpired(accessKey, false) }

func (c *Cloud) setExpired(accessKey string, expired bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired[accessKey] = expired
}
