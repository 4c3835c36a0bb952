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

// Kubernetes is what the cluster itself can be asked. Nil functions are not asked.
type Kubernetes struct {
	// Version of the API server, such as v1.33.4-eks-1234567. It is not asked when FromEKS is set.
	Version func(context.Context) (string, error)
	// FromEKS has EKS asked for the version (--eks-control-plane).
	FromEKS bool
	// Endpoint of the API server as a URL, and its certificate authority as base64 of PEM; EKS is asked where empty
	// (--cluster-endpoint, --cluster-ca-bundle).
	Endpoint string
	CABundle string
	// DNS is the cluster IP of the service kube-dns; empty if there is none.
	DNS func(context.Context) (string, error)
}

// Facts are what machines and aliases must know of the cluster.
type Facts struct {
	Name        string
	Version     string // minor: 1.33
	Endpoint    string // URL
	CABundle    string // PEM in base64
	ServiceCIDR string // empty if EKS does not say, or does not know the cluster
	DNS         string // address; empty if not known
	IPv6        bool   // services and pods have IPv6 addresses
}

// Cluster knows the facts.
type Cluster struct {
	api        EKSAPI
	kubernetes Kubernetes
	calls      *Caller
	opts       Options
	read       *cache[string, Facts]

	mu   sync.Mutex
	last Facts // that could be read; empty before the first time
	// asking is set while somebody does.
	asking bool
	told   string // version, of those that are not supported
}

func newCluster(api EKSAPI, kubernetes Kubernetes, calls *Caller, opts Options) *Cluster {
	return &Cluster{api: api, kubernetes: kubernetes, calls: calls, opts: opts, read: newCache[string, Facts](opts.Now)}
}

// unread is for how long the last facts are used, and nobody is asked, after they could not be read.
const unread = time.Minute

// Facts reads the facts. When they cannot be read the last ones are as good: they hardly ever change. Only one caller waits for
// facts to be read anew, and at most once a minute in vain, because every plan and every machine that is listed asks for them.
// That caller gets the error, together with the last facts. Everybody else, while it asks and for a minute after it has asked in
// vain, gets the last facts without an error: no error does not say that they are fresh. Before the first success nobody has
// facts, and everybody the error. Errors: *CallError, those of Kubernetes' functions, or that a fact is missing.
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
	if facts.Version != c.told && !Supported(facts.Version) && c.opts.Unsupported != nil {
		c.told = facts.Version
		c.opts.Unsupported(facts.Version)
	}
	return facts, nil
}

// SupportedVersions are those of Kubernetes that the aliases of images, the kubelet's fields and the bootstrap of nodes are known
// for, AWS specification 1, in words.
var SupportedVersions = fmt.Sprintf("1.%d to 1.%d", oldestMinor, newestMinor)

const oldestMinor, newestMinor = 26, 36

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
			return facts, fmt.Errorf("asking the API server for its version: %w", err)
		}
	}
	if facts.Version, err = minorVersion(version); err != nil {
		return facts, err
	}
	if c.kubernetes.DNS != nil {
		if facts.DNS, err = c.kubernetes.DNS(ctx); err != nil {
			return facts, fmt.Errorf("asking for the address of kube-dns: %w", err)
		}
	}
	if facts.ServiceCIDR == "" { // EKS does not say
		facts.IPv6 = strings.Contains(facts.DNS, ":")
	}
	return facts, facts.check()
}

// describe asks EKS. A cluster that EKS does not know is no error, as long as the rest is given.
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
		return "", errors.New("EKS answered without a cluster")
	}
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

// minorVersion is 1.33 of v1.33.4-eks-1234567.
func minorVersion(text string) (string, error) {
	parts := versionPattern.FindStringSubmatch(text)
	if parts == nil {
		return "", fmt.Errorf("version of Kubernetes: is %q, want one such as 1.33 or v1.33.4", text)
	}
	return parts[1] + "." + parts[2], nil
}
