package awssim

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// Options configure a Cloud. Every zero value has a default or means none.
type Options struct {
	// Region is us-east-1 (the default), us-west-2 or eu-west-1: the regions with zones in the catalog.
	Region string
	// AccountID is the account of all resources, 12 digits.
	AccountID string
	// Cluster is the EKS cluster that DescribeCluster returns.
	Cluster Cluster
	// Queue is the name of the SQS queue for EventBridge events; none when empty.
	Queue string
	// Roles are the names of IAM roles that exist besides KarpenterNodeRole-<cluster>.
	Roles []string
	// SubnetBits is the length of the subnets' prefix, 19 when zero (8,187 addresses); EC2 allows 16 to 28.
	SubnetBits int
	// Seed is the seed of all generated data.
	Seed uint64
	// Clock is the real clock when nil.
	Clock clock.Clock
	// Scarcity is the fraction of spot pools, 0 to 1, that are empty at any time. For on-demand pools it is a tenth of
	// that. The set of empty pools changes every 15 minutes, and spot instances that exceed the size of their pool are
	// interrupted. With 0, pools are constant.
	Scarcity float64
	// Lag is the maximum staleness of a read: an instance, tag, launch template or profile may not be visible for that
	// long, and states may be old. The staleness differs from call to call.
	Lag time.Duration
	// Timing is the duration of the steps in an instance's life.
	Timing Timing
	// Limits are the token buckets, PublishedLimits when nil. An empty map means no limit.
	Limits map[string]Limit
	// Quota limits the running vCPUs of the account.
	Quota Quota
	// PageSize, if not zero, is the maximum size of a page whatever MaxResults is, which AWS permits.
	PageSize int
	// Hook is called for instances that have booted or are gone.
	Hook Hook
}

// Cluster is an EKS cluster as DescribeCluster returns it.
type Cluster struct {
	Name string // sandbox when empty
	// Endpoint is the URL of the API server.
	Endpoint string
	// CA is the certificate bundle, PEM. DescribeCluster returns it in base64.
	CA string
	// Version is the Kubernetes minor version, 1.36 when empty.
	Version string
	// ServiceCIDR is the range of cluster IPs, 10.100.0.0/16 when empty. An IPv6 range makes it an IPv6 cluster.
	ServiceCIDR string
}

// Timing is the mean duration of the steps in an instance's life. Each instance takes 0.75 to 1.25 times that.
type Timing struct {
	Pending      time.Duration // from the launch to running, 5 s
	Boot         time.Duration // from running to Hook.Booted, 20 s
	ShuttingDown time.Duration // from the termination to terminated, 10 s
	Forgotten    time.Duration // from terminated until EC2 no longer shows it, 1 h
}

// Quota is the maximum number of running vCPUs, per capacity type. 0 means no limit.
type Quota struct {
	OnDemand int
	Spot     int
}

// Hook receives the events of instances, one call at a time and in order, without any lock being held. The calls are
// made by Run or Settle.
type Hook interface {
	// Booted is called when the instance runs and its user data has been executed.
	Booted(Instance)
	// Gone is called when the instance is terminated, possibly without a call of Booted before.
	Gone(Instance)
}

// regions are the regions with zones in the catalog, with the prefix of their zone IDs.
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
		return o, fmt.Errorf("region %q: the catalog knows the zones of us-east-1, us-west-2 and eu-west-1 only", o.Region)
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
