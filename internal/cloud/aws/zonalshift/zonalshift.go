// Package zonalshift reads from which zones Amazon Application Recovery Controller shifts the traffic of an EKS cluster
// away.
//
//	GetManagedResource(ARN of the cluster) --> the shifts that are applied: zone ID, start, end
//
// Shifts that users start, practice runs and autoshifts count. The last have no end of their own. The answer shows the
// zone of each, so that one call is sufficient.
//
// The package must not depend on the effects of a shift, nor on Kubernetes.
package zonalshift

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// API has the method of *arczonalshift.Client that the package calls.
type API interface {
	GetManagedResource(context.Context, *arczonalshift.GetManagedResourceInput,
		...func(*arczonalshift.Options)) (*arczonalshift.GetManagedResourceOutput, error)
}

// timeout is the limit of one call. The next one follows soon.
const timeout = 10 * time.Second

// Endless is how long a shift without an end of its own is assumed to hold after the last answer that has it. It is
// rounded down to the hour, so that equal answers have equal ends.
const Endless = 12 * time.Hour

// Reader reads the zonal shifts of one cluster.
type Reader struct {
	API   API
	Calls *call.Caller
	// ARN returns the ARN of the cluster, empty if it is not known.
	ARN func(context.Context) (string, error)
	Now func() time.Time
}

// Shift is a shift of traffic away from a zone.
type Shift struct {
	// Began is when it started, and Until when it ends unless it is ended or extended before.
	Began, Until time.Time
}

// Read returns the shifts that are applied now, by zone ID such as use1-az1. Errors: *call.Error, of the kind NotFound
// if the cluster is not registered for zonal shifts, or that the ARN is not known.
func (r *Reader) Read(ctx context.Context) (map[string]Shift, error) {
	arn, err := r.ARN(ctx)
	if err != nil && arn == "" {
		return nil, err
	}
	if arn == "" {
		return nil, errors.New("reading zonal shifts: EKS does not know the cluster, and its ARN is needed")
	}
	calls := *r.Calls
	calls.Timeout = timeout
	out, err := call.Do(ctx, &calls, "ARC", "GetManagedResource", func(ctx context.Context) (*arczonalshift.GetManagedResourceOutput, error) {
		return r.API.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(arn)})
	})
	if err != nil {
		return nil, fmt.Errorf("reading zonal shifts: %w", err)
	}
	if other := aws.ToString(out.Arn); other != "" && other != arn {
		return nil, fmt.Errorf("reading zonal shifts: the answer is about %s, and %s was asked for", other, arn)
	}
	return applied(out, r.Now()), nil
}

// applied returns the shifts of an answer that are in effect. If a zone has several, the one that ends last counts.
func applied(out *arczonalshift.GetManagedResourceOutput, now time.Time) map[string]Shift {
	shifts := map[string]Shift{}
	add := func(zone *string, began, until *time.Time) {
		s := Shift{Began: aws.ToTime(began), Until: now.Truncate(time.Hour).Add(Endless)}
		if until != nil {
			s.Until = *until
		}
		if id := aws.ToString(zone); id != "" && s.Until.After(now) && s.Until.After(shifts[id].Until) {
			shifts[id] = s
		}
	}
	for _, s := range out.ZonalShifts {
		if s.AppliedStatus == types.AppliedStatusApplied {
			add(s.AwayFrom, s.StartTime, s.ExpiryTime)
		}
	}
	for _, s := range out.Autoshifts {
		if s.AppliedStatus == types.AutoshiftAppliedStatusApplied {
			add(s.AwayFrom, s.StartTime, nil)
		}
	}
	return shifts
}
