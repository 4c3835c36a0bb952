package userdata

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Limit is the greatest number of bytes of user data before base64
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html); from NearLimit on it is worth a warning.
const (
	Limit     = 16384
	NearLimit = 14745
)

// ErrNotYetActedOn says that a family is accepted in classes, and that no machine of it can be launched yet.
var ErrNotYetActedOn = errors.New("the family is accepted and not yet acted on")

// InvalidError says what is wrong with one field of the class, and what would be right.
type InvalidError struct {
	Field   string // path from the object on, such as spec.userData
	Problem string // what is wrong
	Remedy  string // what would be right
	Err     error  // why, when something else found it; may be nil
}

func (e *InvalidError) Error() string {
	text := e.Field + ": " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Remedy
}

func (e *InvalidError) Unwrap() error { return e.Err }

// SizeError says that the whole of the user data, ours and the user's, is longer than Limit.
type SizeError struct {
	Size int // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("spec.userData: with what the node needs to join it has %d bytes, and EC2 accepts %d; "+
		"shorten it, for example to a script that downloads the rest", e.Size, Limit)
}

// Cluster is what a machine must know to find the cluster.
type Cluster struct {
	Name        string
	Endpoint    string // URL of the API server
	CABundle    string // certificates of its authority: PEM in base64
	ServiceCIDR string // of services; AL2023 needs it
	DNS         string // address of the service kube-dns; empty if not known
	IPv6        bool   // services and pods have IPv6 addresses
}

// Node is what the machine is to be as a node.
type Node struct {
	Labels        map[string]string // those of the claim, with its capacity type
	Taints        []corev1.Taint
	StartupTaints []corev1.Taint
	MaxPods       int64
}

// Request is all that user data is made of.
type Request struct {
	Family        awsv1.Family
	Custom        string // spec.userData of the class
	Kubelet       *awsv1.KubeletConfiguration
	InstanceStore awsv1.InstanceStorePolicy // empty: disks that come with the machine are left alone
	ImageName     string                    // of the image, or the version of an alias: older Bottlerocket is told more
	Cluster       Cluster
	Node          Node
}

// Render writes the user data. Errors are *InvalidError, *KubeletError, *SizeError and ErrNotYetActedOn.
func Render(r Request) ([]byte, error) {
	text, err := r.render()
	if err != nil {
		return nil, err
	}
	if len(text) > Limit {
		return nil, &SizeError{Size: len(text)}
	}
	return text, nil
}

func (r Request) render() ([]byte, error) {
	switch {
	case r.Family == awsv1.FamilyCustom:
		return []byte(r.Custom), nil
	case r.Family.Windows():
		return nil, fmt.Errorf("user data for %s: %w", r.Family, ErrNotYetActedOn)
	}
	if err := CheckKubelet(r.Family, r.Kubelet); err != nil {
		return nil, err
	}
	if err := r.Cluster.check(); err != nil {
		return nil, err
	}
	switch r.Family {
	case awsv1.FamilyAL2:
		return r.al2()
	case awsv1.FamilyAL2023:
		return r.al2023()
	case awsv1.FamilyBottlerocket:
		return r.bottlerocket()
	}
	return nil, &InvalidError{Field: "spec.amiFamily", Problem: fmt.Sprintf("there is no family %q", r.Family),
		Remedy: "use AL2, AL2023, Bottlerocket or Custom"}
}

// check refuses facts that would end up in a script or a document as something else than they are.
func (c Cluster) check() error {
	if c.Name == "" || c.Endpoint == "" {
		return errors.New("user data needs the name and the endpoint of the cluster: set --cluster-name and --cluster-endpoint")
	}
	if _, err := base64.StdEncoding.DecodeString(c.CABundle); err != nil {
		return fmt.Errorf("the CA bundle of cluster %s is not base64: set --cluster-ca-bundle to base64 of PEM: %w", c.Name, err)
	}
	if c.DNS != "" {
		if _, err := netip.ParseAddr(c.DNS); err != nil {
			return fmt.Errorf("the address of the DNS service of cluster %s: %w", c.Name, err)
		}
	}
	if c.ServiceCIDR != "" {
		if _, err := netip.ParsePrefix(c.ServiceCIDR); err != nil {
			return fmt.Errorf("the service CIDR of cluster %s: %w", c.Name, err)
		}
	}
	return nil
}

// labels are those that a kubelet may give its own node. Others, such as the zone, come from the cloud controller or
// with the registration of the node
// (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction).
func (r Request) labels() map[string]string {
	labels := map[string]string{karpv1.LabelDoNotSyncTaints: "true"}
	for key, value := range r.Node.Labels {
		if !reservedLabel(key) {
			labels[key] = value
		}
	}
	return labels
}

func reservedLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

// labelList is the value of the kubelet's flag --node-labels.
func (r Request) labelList() string {
	labels := r.labels()
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// taints are all that the node starts with, the unregistered one last, each once.
func (r Request) taints() []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range slices.Concat(r.Node.Taints, r.Node.StartupTaints, []corev1.Taint{karpv1.UnregisteredTaint()}) {
		if !slices.ContainsFunc(taints, func(known corev1.Taint) bool { return known.MatchTaint(&taint) }) {
			taint.TimeAdded = nil // the kubelet does not read it
			taints = append(taints, taint)
		}
	}
	return taints
}

// dns are the addresses of the cluster's DNS servers; none if they are not known, which leaves it to the image.
func (r Request) dns() []string {
	switch {
	case r.Kubelet != nil && len(r.Kubelet.ClusterDNS) > 0:
		return r.Kubelet.ClusterDNS
	case r.Cluster.DNS != "":
		return []string{r.Cluster.DNS}
	}
	return nil
}
