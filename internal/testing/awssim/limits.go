package awssim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limit is a token bucket: its capacity, and its refill rate per second.
type Limit struct {
	Burst int     `json:"burst"`
	Rate  float64 `json:"rate"`
}

// Keys of limits. An action is "ec2:CreateFleet". The suffix "/resources" is for the bucket from which each resource of
// a call takes a token. "ec2:Describe*" and "ec2:*" are for actions without their own key, each of which has its own
// bucket. The suffix "/unfiltered" is for calls with neither filters nor pages.
const (
	resourceLimit   = "/resources"
	unfilteredLimit = "/unfiltered"
)

// PublishedLimits returns the limits that AWS publishes for a new account. EC2's tables have no resource limit for
// CreateFleet, so its instances take no resource tokens here.
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html, as of 2026; ssm:
// https://docs.aws.amazon.com/general/latest/gr/ssm.html (GetParameter and related actions share 40 per second by
// default).
func PublishedLimits() map[string]Limit {
	return map[string]Limit{
		"ec2:Describe*":                         {100, 20},
		"ec2:DescribeInstances/unfiltered":      {50, 10},
		"ec2:DescribeInstanceStatus/unfiltered": {50, 10},
		"ec2:DescribeSecurityGroups/unfiltered": {50, 10},
		"ec2:*":                                 {50, 5},
		"ec2:CreateTags":                        {100, 10},
		"ec2:RunInstances":                      {5, 2},
		"ec2:RunInstances/resources":            {1000, 2},
		"ec2:TerminateInstances":                {100, 5},
		"ec2:TerminateInstances/resources":      {1000, 20},
		"ssm:*":                                 {40, 40},
	}
}

type bucket struct {
	limit  Limit
	tokens float64
	at     time.Time
}

// drain takes n tokens if that many are available.
func (b *bucket) drain(n int, now time.Time) bool {
	b.tokens = min(float64(b.limit.Burst), b.tokens+b.limit.Rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.tokens < float64(n) {
		return false
	}
	b.tokens -= float64(n)
	return true
}

// take charges a call, or rejects it. The caller holds the lock.
func (c *Cloud) take(r *request, now time.Time) error {
	if f := c.faultFor(r, FaultThrottle); f != nil {
		if f.bucket == nil {
			f.bucket = &bucket{Limit{max(f.Burst, 1), f.Rate}, float64(max(f.Burst, 1)), now}
		}
		if !f.bucket.drain(1, now) {
			return throttleError(r.service)
		}
	}
	if !c.charge(c.limitKey(r), r.service+":"+r.action, 1, now) {
		return throttleError(r.service)
	}
	if ids := r.form.items("InstanceId"); r.action == "TerminateInstances" {
		if !c.charge("ec2:TerminateInstances"+resourceLimit, "", len(ids), now) {
			return throttleError(r.service)
		}
	}
	return nil
}

// limitKey returns the key of the limit for a call.
func (c *Cloud) limitKey(r *request) string {
	name := r.service + ":" + r.action
	unfiltered := name + unfilteredLimit
	if _, ok := c.opts.Limits[unfiltered]; ok && !r.form.has("Filter") && !r.form.has("MaxResults") && !r.form.has("NextToken") {
		return unfiltered
	}
	if _, ok := c.opts.Limits[name]; ok {
		return name
	}
	if r.service == "ec2" && strings.HasPrefix(r.action, "Describe") {
		return "ec2:Describe*"
	}
	return r.service + ":*"
}

// charge takes n tokens from a bucket: the limit's own one, or the action's bucket for that limit.
func (c *Cloud) charge(key, action string, n int, now time.Time) bool {
	limit, ok := c.opts.Limits[key]
	if !ok {
		return true
	}
	if strings.HasSuffix(key, "*") && key != "ssm:*" {
		key += " of " + action
	}
	b := c.buckets[key]
	if b == nil {
		b = &bucket{limit, float64(limit.Burst), now}
		c.buckets[key] = b
	}
	return b.drain(n, now)
}

// throttleError returns a service's error for throttling.
func throttleError(service string) error {
	switch service {
	case "ec2":
		return &apiError{"RequestLimitExceeded", "Request limit exceeded.", http.StatusServiceUnavailable}
	case "iam", "sts":
		return &apiError{"Throttling", "Rate exceeded", http.StatusBadRequest}
	case "eks", "arc-zonal-shift":
		return &apiError{"ThrottlingException", "Rate exceeded", http.StatusTooManyRequests}
	case "sqs":
		return &apiError{"RequestThrottled", "Rate exceeded", http.StatusBadRequest}
	}
	return &apiError{"ThrottlingException", "Rate exceeded", http.StatusBadRequest}
}

// expiredError returns a service's error for expired temporary credentials.
func expiredError(service string) error {
	message := "The security token included in the request is expired"
	switch service {
	case "ec2":
		return &apiError{"RequestExpired", "Request has expired.", http.StatusBadRequest}
	case "iam", "sts":
		return &apiError{"ExpiredToken", message, http.StatusForbidden}
	case "eks", "arc-zonal-shift", "savingsplans":
		return &apiError{"ExpiredTokenException", message, http.StatusForbidden}
	}
	return &apiError{"ExpiredTokenException", message, http.StatusBadRequest}
}

// deniedError returns a service's error for a missing permission.
func (c *Cloud) deniedError(service, action string) error {
	message := "User: arn:aws:sts::" + c.opts.AccountID + ":assumed-role/controller/session is not authorized to perform: " + service + ":" + action +
		" because no identity-based policy allows the " + service + ":" + action + " action"
	switch service {
	case "ec2":
		return &apiError{"UnauthorizedOperation", "You are not authorized to perform this operation. " + message, http.StatusForbidden}
	case "iam", "sts":
		return &apiError{"AccessDenied", message, http.StatusForbidden}
	case "eks", "arc-zonal-shift", "savingsplans":
		return &apiError{"AccessDeniedException", message, http.StatusForbidden}
	}
	return &apiError{"AccessDeniedException", message, http.StatusBadRequest}
}

// permitted rejects actions that Inject has denied. The caller holds the lock.
func (c *Cloud) permitted(r *request) error {
	if c.faultFor(r, FaultDeny) != nil {
		return c.deniedError(r.service, r.action)
	}
	return nil
}

// launchDenied reports whether ec2:RunInstances is denied. A fleet may still be created, and EC2 reports the error per
// override.
func (c *Cloud) launchDenied() bool {
	return slices.ContainsFunc(c.faults, func(f *fault) bool { return f.Kind == FaultDeny && f.Service == "ec2" && f.Action == "RunInstances" })
}
