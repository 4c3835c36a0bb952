package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// Reservation is an active capacity reservation.
type Reservation struct {
	awsv1.CapacityReservation
	// Available is the number of further instances that it has room for, and Total that of all.
	Available, Total int
	// Tenancy is default or dedicated.
	Tenancy string
	// unusable is why no instance of a class can use it, as far as that does not depend on the class.
	unusable string
	// platform is empty if EC2 does not report it. group is the ARN of a placement group.
	platform, group string
}

// FoundReservations is the result of a request for capacity reservations.
type FoundReservations struct {
	// List is sorted by ID.
	List []Reservation
	// Unusable describes the matching reservations that no machine of the class can use, sorted by ID.
	Unusable []string
	// AskedAt is when EC2 was asked. Counts may lack instances that were launched since.
	AskedAt time.Time
}

// Reservations finds capacity reservations.
type Reservations struct {
	api   EC2API
	calls *Caller
	now   func() time.Time
	found *cache[string, FoundReservations] // by query
	// placements finds the groups of classes.
	placements *Placements
}

// NewReservations returns a Reservations without results.
func NewReservations(api EC2API, calls *Caller, now func() time.Time) *Reservations {
	return &Reservations{api: api, calls: calls, now: now, found: newCache[string, FoundReservations](now),
		placements: newPlacements(api, calls, now)}
}

const (
	// reservationsFor is how long a result is used. freshFor is that of Fresh.
	reservationsFor = time.Minute
	freshFor        = 5 * time.Second
)

// Find returns the active capacity reservations that the class selects. Without terms there is no call. Errors:
// *CallError.
func (r *Reservations) Find(ctx context.Context, class *awsv1.EC2NodeClass) (FoundReservations, error) {
	return r.find(ctx, class, reservationsFor)
}

// Fresh is Find with a result that is at most a few seconds old.
func (r *Reservations) Fresh(ctx context.Context, class *awsv1.EC2NodeClass) (FoundReservations, error) {
	return r.find(ctx, class, freshFor)
}

func (r *Reservations) find(ctx context.Context, class *awsv1.EC2NodeClass, lifetime time.Duration) (FoundReservations, error) {
	terms := class.Spec.CapacityReservationSelectorTerms
	if len(terms) == 0 {
		return FoundReservations{AskedAt: r.now()}, nil
	}
	ids, queries := reservationQueries(terms)
	found, err := r.ask(ctx, ids, queries, lifetime)
	if err != nil {
		return FoundReservations{}, fmt.Errorf("finding the capacity reservations of EC2NodeClass %q: %w", class.Name, err)
	}
	var group string
	if slices.ContainsFunc(found.List, func(one Reservation) bool { return one.group != "" }) {
		if placement, _ := r.placements.Find(ctx, class); placement != nil { // the condition PlacementGroupReady has the error
			group = placement.ARN
		}
	}
	return found.usableBy(class, group), nil
}

// ByID returns those of the capacity reservations with the given IDs that are active, whether a class selects them or
// not. Errors: *CallError.
func (r *Reservations) ByID(ctx context.Context, ids []string) (FoundReservations, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 {
		return FoundReservations{AskedAt: r.now()}, nil
	}
	found, err := r.ask(ctx, ids, nil, freshFor)
	if err != nil {
		return FoundReservations{}, fmt.Errorf("reading the capacity reservations %s: %w", strings.Join(ids, ", "), err)
	}
	return found, nil
}

// ask returns the result of the queries, not older than the lifetime.
func (r *Reservations) ask(ctx context.Context, ids []string, queries []query, lifetime time.Duration) (FoundReservations, error) {
	key := fmt.Sprint(ids, queries)
	r.found.forget(func(other string, found FoundReservations) bool {
		return other == key && r.now().Sub(found.AskedAt) >= lifetime
	})
	found, err := r.found.value(ctx, key, reservationsFor, func(ctx context.Context) (FoundReservations, error) {
		return r.describe(ctx, ids, queries)
	})
	return found.at(r.now()), err
}

// at returns the result with the states at a time, and without the reservations that have ended then.
func (f FoundReservations) at(now time.Time) FoundReservations {
	all := f.List
	f.List = nil
	for _, one := range all {
		if one.EndTime == nil || one.EndTime.After(now) {
			one.State = one.StateAt(now)
			f.List = append(f.List, one)
		}
	}
	return f
}

func (r *Reservations) describe(ctx context.Context, ids []string, queries []query) (FoundReservations, error) {
	found := FoundReservations{AskedAt: r.now()}
	byID := map[string]Reservation{}
	if err := r.named(ctx, ids, byID); err != nil {
		return FoundReservations{}, err
	}
	for _, q := range queries {
		if err := r.read(ctx, nil, q, byID); err != nil {
			return FoundReservations{}, err
		}
	}
	found.List = slices.SortedFunc(maps.Values(byID), func(a, b Reservation) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// named reads the reservations with the given IDs. EC2 refuses all of them if one does not exist; then each is read
// individually.
func (r *Reservations) named(ctx context.Context, ids []string, byID map[string]Reservation) error {
	if len(ids) == 0 {
		return nil
	}
	active := query{filters: []filter{activeReservations}}
	err := r.read(ctx, ids, active, byID)
	if KindOf(err) != NotFound {
		return err
	}
	if len(ids) == 1 {
		return nil
	}
	var failed []error
	for _, id := range ids {
		if err := r.read(ctx, []string{id}, active, byID); KindOf(err) != NotFound {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// activeReservations excludes those that have ended, or have not begun.
var activeReservations = filter{"state", []string{string(ec2types.CapacityReservationStateActive)}}

func (r *Reservations) read(ctx context.Context, ids []string, q query, byID map[string]Reservation) error {
	sieve := r.calls.Sieve("EC2", "DescribeCapacityReservations")
	defer sieve.Close()
	in := &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: ids, Filters: q.ec2()}
	if len(ids) == 0 {
		in.MaxResults = aws.Int32(1000)
	}
	pages := ec2.NewDescribeCapacityReservationsPaginator(r.api, in)
	for page, err := range call.Pages(ctx, r.calls, "EC2", "DescribeCapacityReservations", pages) {
		if err != nil {
			return err
		}
		for i := range page.CapacityReservations {
			read := &page.CapacityReservations[i]
			id := value(read.CapacityReservationId)
			of := map[string]string{"owner-id": value(read.OwnerId), "state": string(read.State),
				"instance-match-criteria": string(read.InstanceMatchCriteria)}
			if sieve.Keep(q.asksFor(of, read.Tags) && (len(ids) == 0 || slices.Contains(ids, id)), id) {
				byID[id] = reservationFrom(read)
			}
		}
	}
	return nil
}

// reservationFrom converts a reservation. Older endpoints omit its type and tenancy.
func reservationFrom(read *ec2types.CapacityReservation) Reservation {
	one := Reservation{CapacityReservation: awsv1.CapacityReservation{
		ID: value(read.CapacityReservationId), AvailabilityZone: value(read.AvailabilityZone), InstanceType: value(read.InstanceType),
		OwnerID: value(read.OwnerId), InstanceMatchCriteria: string(read.InstanceMatchCriteria), Interruptible: value(read.Interruptible),
		ReservationType: cmp.Or(string(read.ReservationType), awsv1.ReservationTypeDefault),
	}, Available: int(value(read.AvailableInstanceCount)), Total: int(value(read.TotalInstanceCount)),
		Tenancy: cmp.Or(string(read.Tenancy), awsv1.TenancyDefault), platform: string(read.InstancePlatform),
		group: value(read.PlacementGroupArn)}
	if read.EndDate != nil {
		one.EndTime = &metav1.Time{Time: *read.EndDate}
	}
	criteria := []string{string(ec2types.InstanceMatchCriteriaOpen), string(ec2types.InstanceMatchCriteriaTargeted)}
	kinds := []string{awsv1.ReservationTypeDefault, awsv1.ReservationTypeCapacityBlock}
	switch {
	case value(read.OutpostArn) != "":
		one.unusable = "is on an Outpost"
	case !slices.Contains(criteria, one.InstanceMatchCriteria):
		one.unusable = fmt.Sprintf("has the unknown instance match criteria %q", one.InstanceMatchCriteria)
	case !slices.Contains(kinds, one.ReservationType):
		one.unusable = fmt.Sprintf("is of the unknown type %q", one.ReservationType)
	}
	return one
}

// usableBy separates the reservations that no machine of the class can use from the others. group is the ARN of the class's
// placement group, empty if it has none.
func (f FoundReservations) usableBy(class *awsv1.EC2NodeClass, group string) FoundReservations {
	all := f.List
	f.List, f.Unusable = nil, nil
	for i := range all {
		if why := all[i].excludes(class, group); why != "" {
			f.Unusable = append(f.Unusable, all[i].ID+" "+why)
		} else {
			f.List = append(f.List, all[i])
		}
	}
	return f
}

// excludes returns why no machine of the class can use the reservation, or an empty string.
func (r *Reservation) excludes(class *awsv1.EC2NodeClass, group string) string {
	platform := string(ec2types.CapacityReservationInstancePlatformLinuxUnix)
	if class.Family().Windows() {
		platform = string(ec2types.CapacityReservationInstancePlatformWindows)
	}
	switch {
	case r.unusable != "":
		return r.unusable
	case r.platform != "" && r.platform != platform:
		return fmt.Sprintf("is for %s, and the machines of the class are %s", r.platform, platform)
	case r.group != "" && r.group != group:
		return fmt.Sprintf("is in placement group %s, which is not that of the class", r.group)
	}
	return ""
}

// reservationQueries returns the IDs in the terms, and a query for each other term.
func reservationQueries(terms []awsv1.CapacityReservationSelectorTerm) (ids []string, queries []query) {
	for _, term := range terms {
		if term.ID != "" {
			ids = append(ids, term.ID)
			continue
		}
		q := query{filters: append(tagFilters(term.Tags), activeReservations)}
		if term.OwnerID != "" {
			q.filters = append(q.filters, filter{"owner-id", []string{term.OwnerID}})
		}
		if term.InstanceMatchCriteria != "" {
			q.filters = append(q.filters, filter{"instance-match-criteria", []string{term.InstanceMatchCriteria}})
		}
		queries = append(queries, q)
	}
	return slices.Compact(slices.Sorted(slices.Values(ids))), queries
}
