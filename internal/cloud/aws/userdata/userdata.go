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

// Limit is the maximum number of bytes of user data before base64 encoding
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html). From NearLimit on, there is a warning.
const (
	Limit     = 16384
	NearLimit = 14745
)

// InvalidError describes the problem of one field of the class, and its remedy.
type InvalidError struct {
	Field   string // path in the object, such as spec.userData
	Problem string // what is wrong
	Remedy  string // a valid form
	Err     error  // the cause, if there is one; may be nil
}

func (e *InvalidError) Error() string {
	text := e.Field + ": " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Remedy
}

func (e *InvalidError) Unwrap() error { return e.Err }

// SizeError means that the user data, including the user's own, is longer than Limit.
type SizeError struct {
	Size int // bytes
	// Compressed is the number of bytes after compression, or Size if it is not compressed.
	Compressed int
}

func (e *SizeError) Error() string {
	compressed := ""
	if e.Compressed != e.Size {
		compressed = fmt.Sprintf(", %d compressed", e.Compressed)
	}
	return fmt.Sprintf("spec.userData: including the data that the node needs to join, it has %d bytes%s, and EC2 accepts %d; "+
		"shorten it, for example to a script that downloads the rest", e.Size, compressed, Limit)
}

// Cluster holds the facts that a machine needs to join the cluster.
type Cluster struct {
	Name        string
	Endpoint    string // URL of the API server
	CABundle    string // certificates of the certificate authority: PEM in base64
	ServiceCIDR string // CIDR of services; AL2023 requires it
	DNS         string // address of the service kube-dns; empty if unknown
	IPv6        bool   // services and pods have IPv6 addresses
}

// Node is the planned node.
type Node struct {
	Labels        map[string]string // labels of the claim, with its capacity type
	Taints        []corev1.Taint
	StartupTaints []corev1.Taint
	MaxPods       int64
}

// Request has all inputs of user data.
type Request struct {
	Family        awsv1.Family
	Custom        string // spec.userData of the class
	Kubelet       *awsv1.KubeletConfiguration
	InstanceStore awsv1.InstanceStorePolicy // empty: the instance's own disks are not used
	ImageName     string                    // name of the image, or version of the alias (for Bottlerocket)
	Cluster       Cluster
	Node          Node
}

// Render renders the user data, compressed with gzip if it is longer than Limit and the images of the family accept that.
// Errors are *InvalidError, *KubeletError and *SizeError.
func Render(r Request) ([]byte, error) {
	text, err := r.render()
	if err != nil {
		return nil, err
	}
	data := fitted(r.Family, text)
	if len(data) > Limit {
		return nil, &SizeError{Size: len(text), Compressed: len(data)}
	}
	return data, nil
}

func (r Request) render() ([]byte, error) {
	if r.Family == awsv1.FamilyCustom {
		return []byte(r.Custom), nil
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
	case awsv1.FamilyWindows2019, awsv1.FamilyWindows2022, awsv1.FamilyWindows2025:
		return r.windows()
	}
	return nil, &InvalidError{Field: "spec.amiFamily", Problem: fmt.Sprintf("there is no family %q", r.Family),
		Remedy: "use AL2, AL2023, Bottlerocket, Custom, Windows2019, Windows2022 or Windows2025"}
}

// check rejects facts that would change the meaning of a script or a document.
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

// labels returns the labels that a kubelet may set on its own node. Other labels, such as the zone, are set by the
// cloud controller or at the registration of the node
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

// labelList returns the value of the kubelet's flag --node-labels.
func (r Request) labelList() string {
	labels := r.labels()
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// taints returns all initial taints of the node without duplicates, the unregistered taint last.
func (r Request) taints() []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range slices.Concat(r.Node.Taints, r.Node.StartupTaints, []corev1.Taint{karpv1.UnregisteredTaint()}) {
		if !slices.ContainsFunc(taints, func(known corev1.Taint) bool { return known.MatchTaint(&taint) }) {
			taint.TimeAdded = nil // the kubelet ignores it
			taints = append(taints, taint)
		}
	}
	return taints
}

// dns returns the addresses of the cluster's DNS servers. If they are unknown, it returns none, and the image
// determines them.
func (r Request) dns() []string {
	switch {
	case r.Kubelet != nil && len(r.Kubelet.ClusterDNS) > 0:
		return r.Kubelet.ClusterDNS
	case r.Cluster.DNS != "":
		return []string{r.Cluster.DNS}
	}
	return nil
}
