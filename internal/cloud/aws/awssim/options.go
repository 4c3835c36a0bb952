package awssim

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// Options of a Cloud. Every zero value has a default or means none.
type Options struct {
	// Region is us-east-1 (the default), us-west-2 or eu-west-1: those whose zones the catalogue knows.
	Region string
	// AccountID is the account of all resources, 12 digits.
	AccountID string
	// Cluster is the EKS cluster that DescribeCluster knows.
	Cluster Cluster
	// Queue is the name of the SQS queue that EventBridge events go to; none when empty.
	Queue string
	// Roles are names of IAM roles that exist beside KarpenterNodeRole-<cluster>.
	Roles []string
	// SubnetBits is the length of the subnets' prefix, 19 when zero (8,187 addresses); EC2 allows 16 to 28.
	SubnetBits int
	// Seed of everything that is invented.
	Seed uint64
	// Clock is the real one when nil.
	Clock clock.Clock
	// Scarcity is the share of spot pools, 0 to 1, that are dry at any time; of on-demand pools a tenth of it. Dry pools
	// change every quarter of an hour, and spot instances beyond what is left of their pool are interrupted. 0 keeps
	// pools constant.
	Scarcity float64
	// Lag is how stale a read may be at most: an instance, tag, launch template or profile may not be seen for that
	// long, states may be old. How stale differs from call to call.
	Lag time.Duration
	// Timing is how long instances take.
	Timing Timing
	// Limits are the token buckets, PublishedLimits when nil; an empty map is no limit.
	Limits map[string]Limit
	// Quota bounds the running vCPUs of the account.
	Quota Quota
	// PageSize, if not zero, is the most that any page holds whatever MaxResults says, which AWS may do.
	PageSize int
	// Hook is told of instances that booted and are gone.
	Hook Hook
}

// Cluster is an EKS cluster as DescribeCluster tells.
type Cluster struct {
	Name string // sandbox when empty
	// Endpoint is the URL of the API server.
	Endpoint string
	// CA is the certificate bundle, PEM; it is told in base64.
	CA string
	// Version is the Kubernetes minor, 1.36 when empty.
	Version string
	// ServiceCIDR is the range of cluster IPs, 10.100.0.0/16 when empty; an IPv6 range makes it an IPv6 cluster.
	ServiceCIDR string
}

// Timing is the mean time that a step of an instance's life takes; each instance takes 0.75 to 1.25 times that.
type Timing struct {
	Pending      time.Duration // from the launch to running, 5 s
	Boot         time.Duration // from running to Hook.Booted, 20 s
	ShuttingDown time.Duration // from the termination to terminated, 10 s
	Forgotten    time.Duration // from terminated until EC2 no longer knows it, 1 h
}

// Quota is the most vCPUs that may run, per capacity type; 0 is no limit.
type Quota struct {
	OnDemand int
	Spot     int
}

// Hook is told what happens to instances, one call at a time and in order, without any lock being held. Calls come from
// Run (or Settle), so neither runs without it.
type Hook interface {
	// Booted says that the instance runs and its user data has been carried out.
	Booted(Instance)
	// Gone says that the instance is terminated; Booted may not have come before.
	Gone(Instance)
}

// regions are those whose zones the catalogue knows, with the prefix of their zone ids.
var regions = map[string]string{"us-east-1": "use1", "us-west-2": "usw2", "eu-west-1": "euw1"}

func (o Options) withDefaults() (Options, error) {
	defaultTo(&o.Region, "us-east-1")
	defaultTo(&o.AccountID, "111122223333")
	defaultTo(&o.Cluster.Name, "sandbox")
	defaultTo(&o.Cluster.Endpoint, "https://127.0.0.1:6443")
	defaultTo(&o.Cluster.Version, "1.36")
	defaultTo(&o.Cluster.ServiceCIDR, "10.100.0.0/16")
	defaultTo(&o.SubnetBits, 19)
	defaultTo(&o.Timing.Pending, 5*time.Second)
	defaultTo(&o.Timing.Boot, 20*time.Second)
	defaultTo(&o.Timing.ShuttingDown, 10*time.Second)
	defaultTo(&o.Timing.Forgotten, time.Hour)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Limits == nil {
		o.Limits = PublishedLimits()
	}
	if regions[o.Region] == "" {
		return o, fmt.Errorf("region %q: the catalogue knows the zones of us-east-1, us-west-2 and eu-west-1 only", o.Region)
	}
	if o.SubnetBits < 19 || o.SubnetBits > 28 {
		return o, fmt.Errorf("subnet prefix /%d: must be 19 to 28", o.SubnetBits)
	}
	return o, nil
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
