package discovery

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// Kubernetes describes how to get facts from the cluster itself. Its functions may be nil.
type Kubernetes struct {
	// Version returns the version of the API server, such as v1.33.4-eks-1234567. It is not called if FromEKS is set.
	Version func(context.Context) (string, error)
	// FromEKS means that the version is read from EKS (--eks-control-plane).
	FromEKS bool
	// Endpoint is the URL of the API server, and CABundle its certificate authority as base64 of PEM. If they are
	// empty, they are read from EKS (--cluster-endpoint, --cluster-ca-bundle).
	Endpoint string
	CABundle string
	// DNS returns the cluster IP of the service kube-dns, and an empty string if there is none.
	DNS func(context.Context) (string, error)
	// CNI returns the settings of the VPC CNI.
	CNI func(context.Context) (CNI, error)
}

// CNI has the settings of the VPC CNI that determine how many pods a node has addresses for
// (https://github.com/aws/amazon-vpc-cni-k8s#cni-configuration-variables).
type CNI struct {
	PrefixDelegation bool // ENABLE_PREFIX_DELEGATION
	CustomNetworking bool // AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG
	Absent           bool // there is no DaemonSet aws-node: pods have no addresses of the VPC
}

// Facts holds the facts about the cluster that user data and aliases need.
type Facts struct {
	Name        string
	Version     string // minor version, such as 1.33
	Endpoint    string // URL
	CABundle    string // PEM in base64
	ServiceCIDR string // empty if EKS does not report it, or does not know the cluster
	DNS         string // address; empty if unknown
	IPv6        bool   // services and pods have IPv6 addresses
	ARN         string // empty if EKS does not know the cluster
	CNI         CNI
}

// Cluster reads and caches the facts.
type Cluster struct {
	api        EKSAPI
	kubernetes Kubernetes
	calls      *Caller
	opts       Options
	read       *cache[string, Facts]

	mu   sync.Mutex
	last Facts // the last facts that could be read; empty before the first success
	// asking is set while a caller reads the facts.
	asking   bool
	reported string // the last unsupported version that was reported
}

func newCluster(api EKSAPI, kubernetes Kubernetes, calls *Caller, opts Options) *Cluster {
	return &Cluster{api: api, kubernetes: kubernetes, calls: calls, opts: opts, read: newCache[string, Facts](opts.Now)}
}

// unread is how long the last facts are used without a new call after a failure to read them.
const unread = time.Minute

// Facts reads the facts. If they cannot be read, the last ones are used, because they rarely change. Only one caller
// waits for a new read, and after a failure there is at most one read per minute, because every plan and every listed
// machine needs the facts. That caller gets the error together with the last facts. All other callers get the last
// facts without an error during the read and for a minute after a failed one, so the absence of an error does not mean
// that the facts are current. Before the first success no facts exist, and every caller gets the error. Errors:
// *CallError, those of Kubernetes' functions, or a missing fact.
func (c *Cluster) Facts(ctx context.Context) (Facts, error) {
	c.mu.Lock()
	last, asking := c.last, c.asking
	c.asking = true
	c.mu.Unlock()
	if asking && last.Name != "" {
		return last, nil
	}
	facts, err := c.read.value(ctx, c.opts.Cluster, c.opts.Lifetimes.Cluster, c.ask)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = false
	if err != nil {
		if c.last.Name != "" {
			c.read.keep(c.opts.Cluster, c.last, unread)
		}
		return c.last, fmt.Errorf("reading the facts of cluster %q: %w", c.opts.Cluster, err)
	}
	c.last = facts
	if facts.Version != c.reported && !Supported(facts.Version) && c.opts.Unsupported != nil {
		c.reported = facts.Version
		c.opts.Unsupported(facts.Version)
	}
	return facts, nil
}

// SupportedVersions are the Kubernetes versions for which the image aliases, the kubelet's fields and the bootstrap of
// nodes are known, as text.
var SupportedVersions = fmt.Sprintf("1.%d to 1.%d", oldestMinor, newestMinor)

const oldestMinor, newestMinor = 26, 37

// Supported reports whether a version, such as 1.33, is one of SupportedVersions.
func Supported(version string) bool {
	minor, err := minorOf(version)
	return err == nil && minor >= oldestMinor && minor <= newestMinor
}

func (c *Cluster) ask(ctx context.Context) (Facts, error) {
	facts := Facts{Name: c.opts.Cluster, Endpoint: c.kubernetes.Endpoint, CABundle: c.kubernetes.CABundle}
	version, err := c.describe(ctx, &facts)
	if err != nil {
		return facts, err
	}
	if !c.kubernetes.FromEKS && c.kubernetes.Version != nil {
		if version, err = c.kubernetes.Version(ctx); err != nil {
			return facts, fmt.Errorf("reading the version of the API server: %w", err)
		}
	}
	if facts.Version, err = minorVersion(version); err != nil {
		return facts, err
	}
	if c.kubernetes.DNS != nil {
		if facts.DNS, err = c.kubernetes.DNS(ctx); err != nil {
			return facts, fmt.Errorf("reading the address of kube-dns: %w", err)
		}
	}
	facts.CNI = c.cni(ctx)
	if facts.ServiceCIDR == "" { // EKS does not report it
		facts.IPv6 = strings.Contains(facts.DNS, ":")
	}
	return facts, facts.check()
}

// cni reads the settings of the VPC CNI. They only cause hints, so an error leaves the last ones in place.
func (c *Cluster) cni(ctx context.Context) CNI {
	if c.kubernetes.CNI != nil {
		if found, err := c.kubernetes.CNI(ctx); err == nil {
			return found
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.CNI
}

// describe reads the facts from EKS. A cluster that EKS does not know is not an error, provided that all other facts
// are configured.
func (c *Cluster) describe(ctx context.Context, facts *Facts) (version string, err error) {
	out, err := Do(ctx, c.calls, "EKS", "DescribeCluster", func(ctx context.Context) (*eks.DescribeClusterOutput, error) {
		return c.api.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.opts.Cluster})
	})
	complete := facts.Endpoint != "" && facts.CABundle != "" && !c.kubernetes.FromEKS
	if kind := KindOf(err); complete && (kind == NotFound || kind == Denied) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if out.Cluster == nil {
		return "", errors.New("the response of EKS has no cluster")
	}
	facts.ARN = value(out.Cluster.Arn)
	if facts.Endpoint == "" {
		facts.Endpoint = value(out.Cluster.Endpoint)
	}
	if facts.CABundle == "" {
		facts.CABundle = value(value(out.Cluster.CertificateAuthority).Data)
	}
	network := value(out.Cluster.KubernetesNetworkConfig)
	facts.ServiceCIDR = value(network.ServiceIpv4Cidr)
	if cidr := value(network.ServiceIpv6Cidr); cidr != "" {
		facts.ServiceCIDR, facts.IPv6 = cidr, true
	}
	return value(out.Cluster.Version), nil
}

func (f *Facts) check() error {
	if f.Endpoint == "" {
		return errors.New("the endpoint of the API server is not known; set --cluster-endpoint")
	}
	if _, err := base64.StdEncoding.DecodeString(f.CABundle); err != nil || f.CABundle == "" {
		return errors.New("the certificate authority of the API server is not known or is not base64; set --cluster-ca-bundle to base64 of PEM")
	}
	return nil
}

var versionPattern = regexp.MustCompile(`^v?(1)\.([0-9]+)([.+-].*)?$`)

// minorVersion returns the minor version: 1.33 for v1.33.4-eks-1234567.
func minorVersion(text string) (string, error) {
	parts := versionPattern.FindStringSubmatch(text)
	if parts == nil {
		return "", fmt.Errorf("version of Kubernetes: is %q, want one such as 1.33 or v1.33.4", text)
	}
	return parts[1] + "." + parts[2], nil
}
