package class

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// finding is the reason why no machine of a class could be launched, for its condition ValidationSucceeded.
type finding struct {
	status  metav1.ConditionStatus // False, or Unknown
	reason  string
	message string
	// forbidden means that the controller lacks a permission. Otherwise the class is wrong.
	forbidden bool
}

func wrong(reason, format string, args ...any) *finding {
	return &finding{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...)}
}

// examine checks the class without any call, and returns nil if there is no problem. The conditions of discovery must
// be current. It returns the first problem. expressions means that the feature gate NodeClassCEL is on.
func examine(class *awsv1.EC2NodeClass, cluster discovery.Facts, expressions bool) *finding {
	for _, check := range []func(*awsv1.EC2NodeClass, discovery.Facts) *finding{
		services, kubelet(expressions), dependencies, annotations, tags, tagLengths, userData,
	} {
		if found := check(class, cluster); found != nil {
			return found
		}
	}
	return nil
}

// Unlaunchable returns why no machine of the class could be launched in any cluster, in the words of the class's
// conditions, or "". It is examine without what only AWS and the cluster know.
func Unlaunchable(class *awsv1.EC2NodeClass) string {
	// The reason shows whether the feature gate is off. Without a status it is assumed to be on.
	expressions := class.Condition(awsv1.ConditionValidationSucceeded).Reason != awsv1.ReasonKubeletExpressionsDisabled
	some := discovery.Facts{Name: "cluster", Endpoint: "https://cluster", CABundle: "Y2E=", ServiceCIDR: "10.100.0.0/16"}
	for _, check := range []func(*awsv1.EC2NodeClass, discovery.Facts) *finding{
		kubelet(expressions), annotations, tags, tagLengths, userData,
	} {
		if found := check(class, some); found != nil {
			return found.message
		}
	}
	return ""
}

// services checks the service CIDR, which user data of AL2023 needs.
func services(class *awsv1.EC2NodeClass, cluster discovery.Facts) *finding {
	if class.Family() == awsv1.FamilyAL2023 && cluster.ServiceCIDR == "" {
		return wrong(awsv1.ReasonClusterCIDRResolutionFailed,
			"AL2023 nodes need the service CIDR, which EKS does not report for this cluster; allow eks:DescribeCluster")
	}
	return nil
}

// kubelet returns the check of the kubelet's settings. expressions means that they may have expressions.
func kubelet(expressions bool) func(*awsv1.EC2NodeClass, discovery.Facts) *finding {
	return func(class *awsv1.EC2NodeClass, _ discovery.Facts) *finding {
		var invalid *userdata.KubeletError
		refused := errors.As(userdata.CheckKubelet(class.Family(), class.Spec.Kubelet), &invalid)
		found := expressionsOf(class, expressions)
		if refused && (invalid.Reason == awsv1.ReasonInvalidKubeletConfiguration || found == nil) {
			return wrong(invalid.Reason, "%s", invalid.Error())
		}
		return found
	}
}

// dependencies checks the conditions that are required to describe a machine.
func dependencies(class *awsv1.EC2NodeClass, _ discovery.Facts) *finding {
	var missing, unknown []string
	for _, name := range []string{awsv1.ConditionAMIsReady, awsv1.ConditionSubnetsReady, awsv1.ConditionSecurityGroupsReady,
		awsv1.ConditionInstanceProfileReady, awsv1.ConditionPlacementGroupReady} {
		switch c := class.Condition(name); {
		case c.Reason == awsv1.ReasonInstanceProfileNotFound: // a dry run has set it, and is made again
		case c.IsFalse():
			missing = append(missing, name)
		case !c.IsTrue():
			unknown = append(unknown, name)
		}
	}
	switch {
	case len(missing) > 0:
		return wrong(awsv1.ReasonDependenciesNotReady, "%s must be true first", strings.Join(missing, ", "))
	case len(unknown) > 0:
		return &finding{status: metav1.ConditionUnknown, reason: awsv1.ReasonDependenciesNotReady,
			message: strings.Join(unknown, ", ") + ": not known yet"}
	}
	return nil
}

const (
	// mostTags is EC2's maximum number of tags per resource:
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
	mostTags = 50
	// ourTags is the number of tags that the controller sets on an instance: cluster (two), pool, class, claim,
	// purchase, its places, and Name.
	ourTags = 8
)

// tags checks for tags that the controller itself sets, in classes that are older than the rules of the CRD, and for
// more tags than EC2 allows.
func tags(class *awsv1.EC2NodeClass, _ discovery.Facts) *finding {
	others := len(class.Spec.Tags)
	if _, named := class.Spec.Tags[awsv1.TagName]; named {
		others--
	}
	if others > mostTags-ourTags {
		return wrong(awsv1.ReasonTagValidationFailed,
			"spec.tags: has %d tags beside Name, want %d at most: EC2 takes %d, and karpenter sets %d", others, mostTags-ourTags, mostTags, ourTags)
	}
	for _, key := range slices.Sorted(maps.Keys(class.Spec.Tags)) {
		if key == awsv1.TagCluster || key == awsv1.TagNodePool || key == awsv1.TagNodeClaim || key == awsv1.TagNodeClass || strings.HasPrefix(key, awsv1.TagClusterPrefix) {
			return wrong(awsv1.ReasonTagValidationFailed, "spec.tags: %s is set by karpenter; remove it", key)
		}
		if n := utf8.RuneCountInString(key); n > longestKey {
			return wrong(awsv1.ReasonTagValidationFailed, "spec.tags: the key %s has %d characters, want %d at most", key, n, longestKey)
		}
		if strings.HasPrefix(strings.ToLower(key), reservedTag) {
			return wrong(awsv1.ReasonTagValidationFailed, "spec.tags: %s begins with %s, which AWS reserves; remove it", key, reservedTag)
		}
	}
	return nil
}

// EC2's maximum length of a tag's key and of its value, in characters, and the prefix that AWS reserves:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions. longestPool is the maximum length
// of a NodePool's name, which is the value of a label.
const (
	longestKey, longestTag, longestPool = 128, 256, 63
	reservedTag                         = "aws:"
)

// tagLengths checks that values of tags are short enough, with every pool's name in place of placeholders.
func tagLengths(class *awsv1.EC2NodeClass, cluster discovery.Facts) *finding {
	resolved := class.ResolvedTags(strings.Repeat("p", longestPool), cluster.Name)
	for _, key := range slices.Sorted(maps.Keys(resolved)) {
		n, text := utf8.RuneCountInString(resolved[key]), "%d characters"
		if resolved[key] != class.Spec.Tags[key] {
			text = "up to %d characters with the names that replace its placeholders"
		}
		if n > longestTag {
			return wrong(awsv1.ReasonTagValidationFailed, "spec.tags[%s]: has "+text+", want %d at most", key, n, longestTag)
		}
	}
	return nil
}

func userData(class *awsv1.EC2NodeClass, cluster discovery.Facts) *finding {
	_, err := sample(class, cluster)
	var size *userdata.SizeError
	var kubelet *userdata.KubeletError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &size):
		return wrong(awsv1.ReasonUserDataSizeLimitExceeded, "%s", err)
	case errors.As(err, &kubelet):
		return wrong(kubelet.Reason, "%s", err)
	}
	return wrong(awsv1.ReasonInvalidUserData, "%s", err)
}

// accepted returns the finding for a valid class, with what has no effect: fields of its user data, and text of tags that
// looks like a placeholder.
func accepted(class *awsv1.EC2NodeClass, cluster discovery.Facts) *finding {
	found := &finding{status: metav1.ConditionTrue, reason: awsv1.ConditionValidationSucceeded}
	var notes []string
	if unknown := class.UnknownPlaceholders(); len(unknown) > 0 {
		found.reason = awsv1.ReasonUnknownTagPlaceholder
		notes = append(notes, fmt.Sprintf("spec.tags: %s has no meaning and stays as it is; {{%s}} are replaced",
			strings.Join(unknown, ", "), strings.Join(awsv1.TagPlaceholders, "}}, {{")))
	}
	if unknown := userdata.Unknown(sampleRequest(class, cluster)); len(unknown) > 0 {
		found.reason = awsv1.ReasonUnknownUserDataField
		notes = append(notes, "spec.userData: nodes join, but nodeadm or the kubelet may ignore fields that are not known here: "+
			strings.Join(unknown, ", "))
	}
	if class.Family().Windows() && class.Spec.InstanceStorePolicy != nil {
		notes = append(notes, "spec.instanceStorePolicy: has no effect on the nodes, because the images of Windows do not combine disks")
	}
	found.message = strings.Join(notes, "; ")
	return found
}

// sample returns the user data of a node without additional labels and taints.
func sample(class *awsv1.EC2NodeClass, cluster discovery.Facts) ([]byte, error) {
	return userdata.Render(sampleRequest(class, cluster))
}

// clusterData returns the cluster facts that user data contains.
func clusterData(cluster discovery.Facts) userdata.Cluster {
	return userdata.Cluster{Name: cluster.Name, Endpoint: cluster.Endpoint, CABundle: cluster.CABundle,
		ServiceCIDR: cluster.ServiceCIDR, DNS: cluster.DNS, IPv6: cluster.IPv6}
}

func sampleRequest(class *awsv1.EC2NodeClass, cluster discovery.Facts) userdata.Request {
	request := userdata.Request{
		Family:  class.Family(),
		Kubelet: class.Spec.Kubelet,
		Cluster: clusterData(cluster),
		Node: userdata.Node{MaxPods: 110, Labels: map[string]string{karpv1.LabelCapacityType: karpv1.CapacityTypeOnDemand,
			awsv1.LabelNodeClass: class.Name}},
	}
	if class.Spec.UserData != nil {
		request.Custom = *class.Spec.UserData
	}
	if class.Spec.InstanceStorePolicy != nil {
		request.InstanceStore = *class.Spec.InstanceStorePolicy
	}
	if len(class.Status.AMIs) > 0 {
		request.ImageName = class.Status.AMIs[0].Name
	}
	return request
}
