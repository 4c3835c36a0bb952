package awssim

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// FaultKind is what goes wrong.
type FaultKind string

const (
	// FaultFreeze keeps calls waiting until the fault is cleared or the caller hangs up.
	FaultFreeze FaultKind = "freeze"
	// FaultSlow keeps calls waiting for Delay before they are carried out.
	FaultSlow FaultKind = "slow"
	// FaultThrottle is a token bucket of Rate a second and Burst beside the published one.
	FaultThrottle FaultKind = "throttle"
	// FaultFail answers Code with Status instead of carrying the call out.
	FaultFail FaultKind = "fail"
	// FaultDeny answers that the caller has no permission. Denied "ec2:RunInstances" is what CreateFleet reports per
	// override.
	FaultDeny FaultKind = "deny"
	// FaultLose carries the call out and drops the connection instead of answering.
	FaultLose FaultKind = "lose"
	// FaultGarble carries the call out and answers Body, of ContentType and with Status (200 when 0), as a proxy or a load
	// balancer in between does.
	FaultGarble FaultKind = "garble"
	// FaultIgnoreFilters carries the call out as if it had no filters: everything is in the answer.
	FaultIgnoreFilters FaultKind = "ignore-filters"
	// FaultIgnoreTokens carries each call out, whatever its client token was used for before.
	FaultIgnoreTokens FaultKind = "ignore-tokens"
	// FaultUnknownFields answers with members that no client knows yet, in every structure.
	FaultUnknownFields FaultKind = "unknown-fields"
	// FaultOlderFields answers without the members that EC2 has added in the last years.
	FaultOlderFields FaultKind = "older-fields"
	// FaultOddPages answers lists of EC2's in pages of which some are empty and some repeat an item.
	FaultOddPages FaultKind = "odd-pages"
	// FaultForgetHalf answers DescribeInstances as if every other instance did not exist, whether it is asked for by its id or
	// by a filter. The instances run on.
	FaultForgetHalf FaultKind = "forget-half"
	// FaultForgetAll answers DescribeInstances as if no instance existed.
	FaultForgetAll FaultKind = "forget-all"
)

var faultKinds = []FaultKind{FaultFreeze, FaultSlow, FaultThrottle, FaultFail, FaultDeny, FaultLose, FaultGarble,
	FaultIgnoreFilters, FaultIgnoreTokens, FaultUnknownFields, FaultOlderFields, FaultOddPages, FaultForgetHalf, FaultForgetAll}

// Fault is something wrong with the API.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Service as in the credential scope, any when empty.
	Service string `json:"service,omitempty"`
	// Action, any when empty.
	Action string `json:"action,omitempty"`
	// Count is how many calls it concerns, all when 0. FaultThrottle concerns all.
	Count int `json:"count,omitempty"`
	// Delay of FaultSlow, nanoseconds in JSON.
	Delay time.Duration `json:"delay,omitempty"`
	// Rate a second and Burst (1 when 0) of FaultThrottle.
	Rate  float64 `json:"rate,omitempty"`
	Burst int     `json:"burst,omitempty"`
	// Code (InternalError when empty) and Status (503 when 0) of FaultFail.
	Code   string `json:"code,omitempty"`
	Status int    `json:"status,omitempty"`
	// Body and ContentType (text/html when empty) of FaultGarble.
	Body        string `json:"body,omitempty"`
	ContentType string `json:"contentType,omitempty"`
}

type fault struct {
	Fault
	id     int
	bucket *bucket
}

// Inject makes something go wrong from now on and returns the number by which it is cleared.
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

// Clear ends a fault, or all of them when id is 0. Frozen calls go on.
func (c *Cloud) Clear(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = slices.DeleteFunc(c.faults, func(f *fault) bool { return id == 0 || f.id == id })
	close(c.thawed)
	c.thawed = make(chan struct{})
}

// faultFor is the oldest fault of a kind that concerns a call. The lock is held.
func (c *Cloud) faultFor(r *request, kind FaultKind) *fault {
	for _, f := range c.faults {
		if f.Kind == kind && (f.Service == "" || f.Service == r.service) && (f.Action == "" || f.Action == r.action) {
			return f
		}
	}
	return nil
}

// strike is faultFor, and counts the call. The lock is held.
func (c *Cloud) strike(r *request, kind FaultKind) *fault {
	f := c.faultFor(r, kind)
	if f != nil && f.Count > 0 {
		if f.Count--; f.Count == 0 {
			c.faults = slices.DeleteFunc(c.faults, func(o *fault) bool { return o == f })
		}
	}
	return f
}

// garbled is the fault that spoils the answer to a call, nil without one.
func (c *Cloud) garbled(r *request) *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.strike(r, FaultGarble)
}

// write answers in place of AWS.
func (f *fault) write(w http.ResponseWriter) {
	kind, status := f.ContentType, f.Status
	defaultTo(&kind, "text/html")
	defaultTo(&status, http.StatusOK)
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, f.Body)
}

// gate keeps a call waiting or fails it as the faults say. lose says that its answer is to be thrown away.
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

// ExpireCredentials has every call signed with that access key refused until it is renewed.
func (c *Cloud) ExpireCredentials(accessKey string) { c.setExpired(accessKey, true) }

// RenewCredentials undoes ExpireCredentials.
func (c *Cloud) RenewCredentials(accessKey string) { c.setExpired(accessKey, false) }

func (c *Cloud) setExpired(accessKey string, expired bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired[accessKey] = expired
}
