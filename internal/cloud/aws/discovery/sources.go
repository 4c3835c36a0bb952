package discovery

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// EC2API has the methods of *ec2.Client that the package calls.
type EC2API interface {
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeCapacityReservations(context.Context, *ec2.DescribeCapacityReservationsInput,
		...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error)
	DescribePlacementGroups(context.Context, *ec2.DescribePlacementGroupsInput,
		...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error)
}

// SSMAPI has the methods of *ssm.Client that the package calls.
type SSMAPI interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// EKSAPI has the methods of *eks.Client that the package calls.
type EKSAPI interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
}

// IAMAPI has the methods of *iam.Client that the package calls.
type IAMAPI interface {
	GetInstanceProfile(context.Context, *iam.GetInstanceProfileInput, ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error)
	CreateInstanceProfile(context.Context, *iam.CreateInstanceProfileInput, ...func(*iam.Options)) (*iam.CreateInstanceProfileOutput, error)
	DeleteInstanceProfile(context.Context, *iam.DeleteInstanceProfileInput, ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error)
	AddRoleToInstanceProfile(context.Context, *iam.AddRoleToInstanceProfileInput,
		...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error)
	RemoveRoleFromInstanceProfile(context.Context, *iam.RemoveRoleFromInstanceProfileInput,
		...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error)
	ListInstanceProfiles(context.Context, *iam.ListInstanceProfilesInput, ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error)
}

// Clients are the clients of the services.
type Clients struct {
	EC2 EC2API
	SSM SSMAPI
	EKS EKSAPI
	IAM IAMAPI
}

// Options are the options of all sources.
type Options struct {
	// Cluster is the name of the EKS cluster, and Region its region.
	Cluster string
	Region  string
	// Now returns the current time, time.Now when nil.
	Now func() time.Time
	// Timeout is the limit of one call, including the SDK's retries, 30 seconds when zero.
	Timeout time.Duration
	// Lifetimes are the lifetimes of results, StandardLifetimes where zero.
	Lifetimes Lifetimes
	// Refused reports the subnets that EC2 recently refused for lack of addresses (instance.Unavailable.HasSubnet). It
	// may be nil.
	Refused func(subnetID string) bool
	// Observe receives every call when it has ended. It is called concurrently and may be nil.
	Observe func(Call)
	// Unasked receives items in responses that the request did not ask for. It is called concurrently and may be nil.
	Unasked func(call.Unasked)
	// Unsupported receives a Kubernetes version that is not in SupportedVersions, once. It may be nil.
	Unsupported func(version string)
}

// Lifetimes are how long results are used before they are read again.
type Lifetimes struct {
	Subnets          time.Duration // --subnet-refresh-interval
	SecurityGroups   time.Duration
	Images           time.Duration // --ami-refresh-interval
	Parameters       time.Duration // image IDs in AWS's own SSM parameters
	CustomParameters time.Duration // image IDs in parameters that classes refer to
	Profiles         time.Duration // existence of the instance profile and its role
	MissingRole      time.Duration // nonexistence of a role
	UnusedProfiles   time.Duration // how long a profile must be unused before it is deleted
	Cluster          time.Duration // version, endpoint, certificate authority, service addresses
}

// StandardLifetimes returns the lifetimes for production.
func StandardLifetimes() Lifetimes {
	return Lifetimes{
		Subnets: time.Minute, SecurityGroups: time.Minute, Images: time.Minute,
		Parameters: 24 * time.Hour, CustomParameters: 5 * time.Minute,
		Profiles: 15 * time.Minute, MissingRole: time.Minute, UnusedProfiles: time.Hour,
		Cluster: 5 * time.Minute,
	}
}

func (l *Lifetimes) complete() {
	standard := StandardLifetimes()
	for _, field := range []struct{ have, want *time.Duration }{
		{&l.Subnets, &standard.Subnets}, {&l.SecurityGroups, &standard.SecurityGroups}, {&l.Images, &standard.Images},
		{&l.Parameters, &standard.Parameters}, {&l.CustomParameters, &standard.CustomParameters}, {&l.Profiles, &standard.Profiles},
		{&l.MissingRole, &standard.MissingRole}, {&l.UnusedProfiles, &standard.UnusedProfiles}, {&l.Cluster, &standard.Cluster},
	} {
		if *field.have == 0 {
			*field.have = *field.want
		}
	}
}

// Sources are all readers of AWS resources, with one set of clients.
type Sources struct {
	Subnets   *Subnets
	Groups    *Groups
	Images    *Images
	Profiles  *Profiles
	Cluster   *Cluster
	Addresses *Addresses
	// Reservations finds capacity reservations.
	Reservations *Reservations
	// Placements finds placement groups.
	Placements *Placements
	// Calls makes the calls of all of them.
	Calls *Caller
}

// New returns the sources. Parts of kubernetes may be unset (see Kubernetes).
func New(clients Clients, kubernetes Kubernetes, opts Options) (*Sources, error) {
	if opts.Cluster == "" || opts.Region == "" {
		return nil, errors.New("discovery needs the name of the cluster (--cluster-name) and its region")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.Observe == nil {
		opts.Observe = func(Call) {}
	}
	opts.Lifetimes.complete()
	calls := &Caller{Timeout: opts.Timeout, Now: opts.Now, Observe: opts.Observe, Unasked: opts.Unasked}
	addresses := NewAddresses(opts.Now, max(5*time.Minute, opts.Lifetimes.Subnets+4*time.Minute), opts.Refused)
	cluster := newCluster(clients.EKS, kubernetes, calls, opts)
	reservations := NewReservations(clients.EC2, calls, opts.Now)
	return &Sources{
		Subnets:   newSubnets(clients.EC2, addresses, calls, opts),
		Groups:    newGroups(clients.EC2, calls, opts),
		Images:    newImages(clients.EC2, newParameters(clients.SSM, calls, opts), calls, opts),
		Profiles:  newProfiles(clients.IAM, calls, opts),
		Cluster:   cluster,
		Addresses: addresses, Reservations: reservations, Placements: reservations.placements,
		Calls: calls,
	}, nil
}

// revision identifies a generation of a class: results for its selectors do not apply to another one.
type revision struct {
	uid        string
	generation int64
}

func revisionOf(class *awsv1.EC2NodeClass) revision {
	return revision{string(class.UID), class.Generation}
}
