package commitment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// API has the methods of *ec2.Client that the package calls.
type API interface {
	DescribeReservedInstances(context.Context, *ec2.DescribeReservedInstancesInput,
		...func(*ec2.Options)) (*ec2.DescribeReservedInstancesOutput, error)
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
}

// timeout is the limit of one call. Reserved instances have no pages, and an account may have thousands of purchases.
const timeout = 30 * time.Second

// Reader reads the commitments of an account in one region.
type Reader struct {
	API API
	// Plans is nil if Savings Plans are not read.
	Plans PlansAPI
	Calls *call.Caller
	// Cluster is the name of the cluster, whose instances are not among the others. Region is that of the instances.
	Cluster, Region string
	Now             func() time.Time

	// lacking are the IDs of purchases that the last answer lacks.
	lacking map[string]bool
}

// products are the names of Linux. Others with a license, such as RHEL, have other prices.
var products = []string{string(types.RIProductDescriptionLinuxUnix), string(types.RIProductDescriptionLinuxUnixAmazonVpc)}

// Read returns the commitments that are active, and the instances that use them first. What could not be read is as before,
// so that the rest counts if one call is not allowed. Errors: those of all calls that failed, each a *call.Error.
func (r *Reader) Read(ctx context.Context, before Facts) (Facts, error) {
	calls := *r.Calls
	calls.Timeout = timeout
	facts, errs := before, [2]error{}
	if reserved, err := r.reserved(ctx, &calls); err == nil {
		facts.Reserved = remembered(r, reserved, before.Reserved, func(x Reserved) string { return x.ID })
	} else {
		errs[0] = err
	}
	if plans, err := r.plans(ctx, &calls); err == nil {
		facts.Plans = remembered(r, plans, before.Plans, func(x Plan) string { return x.ID })
	} else {
		errs[1] = err
	}
	if len(facts.Reserved)+len(facts.Plans) > 0 {
		others, err := r.others(ctx, &calls)
		if err != nil { // without them, too much would be left
			return before, errors.Join(errs[0], errs[1], err)
		}
		facts.Others = others
	}
	return facts, errors.Join(errs[:]...)
}

// remembered returns what an answer has, with what it lacks for the first time. A purchase goes before its end by an
// exchange, a sale or a return only, so that one answer alone must not take away what a fleet was planned with.
func remembered[T any](r *Reader, found, before []T, id func(T) string) []T {
	for _, x := range before {
		has := slices.ContainsFunc(found, func(y T) bool { return id(y) == id(x) })
		if again := r.lacking[id(x)]; has || again {
			delete(r.lacking, id(x))
			continue
		}
		if r.lacking == nil {
			r.lacking = map[string]bool{}
		}
		r.lacking[id(x)], found = true, append(found, x)
	}
	return found
}

// reserved returns the reserved instances.
func (r *Reader) reserved(ctx context.Context, calls *call.Caller) ([]Reserved, error) {
	var all []Reserved
	in := &ec2.DescribeReservedInstancesInput{Filters: []types.Filter{
		{Name: aws.String("state"), Values: []string{string(types.ReservedInstanceStateActive)}},
		{Name: aws.String("product-description"), Values: products}}}
	out, err := call.Do(ctx, calls, "EC2", "DescribeReservedInstances",
		func(ctx context.Context) (*ec2.DescribeReservedInstancesOutput, error) {
			return r.API.DescribeReservedInstances(ctx, in)
		})
	if err != nil {
		return nil, fmt.Errorf("reading reserved instances: %w", err)
	}
	sieve := calls.Sieve("EC2", "DescribeReservedInstances")
	defer sieve.Close()
	for i := range out.ReservedInstances {
		x := &out.ReservedInstances[i]
		asked := x.State == types.ReservedInstanceStateActive && slices.Contains(products, string(x.ProductDescription))
		if sieve.Keep(asked, aws.ToString(x.ReservedInstancesId)) && r.counts(x) {
			all = append(all, Reserved{ID: aws.ToString(x.ReservedInstancesId), Type: string(x.InstanceType),
				Zone: aws.ToString(x.AvailabilityZone), Count: int(aws.ToInt32(x.InstanceCount)), End: aws.ToTime(x.End)})
		}
	}
	return all, nil
}

// counts reports whether reserved instances are of a kind that machines can use, and have an end in the future. Those of
// dedicated tenancy are for other instances.
func (r *Reader) counts(x *types.ReservedInstances) bool {
	class := x.OfferingClass == types.OfferingClassTypeStandard || x.OfferingClass == types.OfferingClassTypeConvertible
	zonal := x.Scope == types.ScopeAvailabilityZone
	return class && x.InstanceTenancy == types.TenancyDefault && zonal == (aws.ToString(x.AvailabilityZone) != "") &&
		aws.ToTime(x.End).After(r.Now()) && aws.ToInt32(x.InstanceCount) > 0 && x.InstanceType != ""
}

// others returns the instances that use commitments first: running on demand, and not launched for a NodePool of the
// cluster, or launched into a capacity reservation. For plans, those of the cluster cost what the reservation does, and no
// commitment covers them, but for AWS they use it as others do.
func (r *Reader) others(ctx context.Context, calls *call.Caller) ([]Instance, error) {
	var others []Instance
	pages := ec2.NewDescribeInstancesPaginator(r.API, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(1000), Filters: []types.Filter{
		{Name: aws.String("instance-state-name"), Values: []string{string(types.InstanceStateNameRunning)}}}})
	for page, err := range call.Pages(ctx, calls, "EC2", "DescribeInstances", pages) {
		if err != nil {
			return nil, fmt.Errorf("reading the instances that use commitments: %w", err)
		}
		for _, reservation := range page.Reservations {
			for i := range reservation.Instances {
				if x := &reservation.Instances[i]; uses(x) && (aws.ToString(x.CapacityReservationId) != "" || !r.launched(x)) {
					others = append(others, Instance{string(x.InstanceType), aws.ToString(x.Placement.AvailabilityZone)})
				}
			}
		}
	}
	return others, nil
}

// uses reports whether an instance can use commitments for Linux with shared tenancy.
func uses(x *types.Instance) bool {
	return x.State != nil && x.State.Name == types.InstanceStateNameRunning && x.InstanceLifecycle == "" &&
		aws.ToString(x.PlatformDetails) == string(types.RIProductDescriptionLinuxUnix) && x.Placement != nil &&
		(x.Placement.Tenancy == types.TenancyDefault || x.Placement.Tenancy == "")
}

// launched reports whether the controller has launched the instance.
func (r *Reader) launched(x *types.Instance) bool {
	pool, cluster := false, false
	for _, tag := range x.Tags {
		pool = pool || aws.ToString(tag.Key) == awsv1.TagNodePool
		cluster = cluster || aws.ToString(tag.Key) == awsv1.TagCluster && aws.ToString(tag.Value) == r.Cluster
	}
	return pool && cluster
}
