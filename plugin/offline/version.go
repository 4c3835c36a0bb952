package offline

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
)

// Objects of API versions that are not supported anymore, or not yet, are errors. Ignoring them would answer another
// question: a plan without the pools of the file.

// readVersions are the kinds that a decision uses, with the one supported version of each.
var readVersions = map[string]string{
	"NodePool": "karpenter.sh/v1", "NodeClaim": "karpenter.sh/v1", "NodeOverlay": "karpenter.sh/v1alpha1", awsv1.Kind: awsv1.GroupVersion.String(),
	"Deployment": appsVersion, "StatefulSet": appsVersion, "ReplicaSet": appsVersion, "DaemonSet": appsVersion,
	"Job": batchVersion, "CronJob": batchVersion,
	"CapacityBuffer": autoscalingv1beta1.GroupVersion.String(), "CapacityQuota": autoscalingv1beta1.GroupVersion.String(),
	"PriorityClass": "scheduling.k8s.io/v1", "StorageClass": "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1",
	"PodDisruptionBudget": "policy/v1", "RuntimeClass": "node.k8s.io/v1", "LimitRange": "v1",
	"Pod": "v1", "Node": "v1", "Namespace": "v1", "Service": "v1", "ReplicationController": "v1",
	"PersistentVolume": "v1", "PersistentVolumeClaim": "v1",
	capture.Type.Kind: capture.Type.APIVersion,
}

// servedAs returns the version in which an object of a kind is read: an API server converts a CapacityBuffer or a
// CapacityQuota of v1alpha1, which have the same fields.
func servedAs(kind metav1.TypeMeta) metav1.TypeMeta {
	now := readVersions[kind.Kind]
	if group, older := strings.CutSuffix(kind.APIVersion, "/v1alpha1"); older && now == autoscalingv1beta1.GroupVersion.String() &&
		group == autoscalingv1beta1.GroupVersion.Group {
		kind.APIVersion = now
	}
	return kind
}

// renamed maps kinds to the kinds that replaced them.
var renamed = map[schema.GroupKind]string{
	{Group: "karpenter.sh", Kind: "Provisioner"}: "a NodePool of karpenter.sh/v1 (kubectl karpenter migrate -f FILE writes it)",
	{Group: "karpenter.sh", Kind: "Machine"}:     "a NodeClaim of karpenter.sh/v1",
}

// formerGroups are the earlier groups of kinds.
var formerGroups = map[string]bool{"extensions": true}

// successorOf returns the replacement of a kind that is supported in another version; "" for kinds that decisions do
// not use.
func successorOf(kind metav1.TypeMeta) string {
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return ""
	}
	if now := renamed[schema.GroupKind{Group: version.Group, Kind: kind.Kind}]; now != "" {
		return now
	}
	now := readVersions[kind.Kind]
	if group, _, _ := strings.Cut(now, "/"); now == "" || group != version.Group && !formerGroups[version.Group] {
		return ""
	}
	resource := strings.ToLower(kind.Kind) + "s"
	switch version.Group {
	case karpv1.Group:
	case awsv1.Group:
		resource = "ec2nodeclasses"
	default:
		return now
	}
	return fmt.Sprintf("%s (kubectl karpenter migrate -f FILE rewrites it; a cluster that has both prints it: kubectl get %s.v1.%s -o yaml)", now, resource, version.Group)
}

// notUsed are the kinds of the groups of Karpenter and of the autoscaling API that decisions do not use, by group.
var notUsed = map[string][]string{
	karpv1.Group:                          nil,
	awsv1.Group:                           {"AWSNodeTemplate"},
	kwokv1alpha1.Group:                    {kwokv1alpha1.Kind},
	capture.Type.GroupVersionKind().Group: nil,
	autoscalingv1beta1.Group:              {"ProvisioningRequest"},
}

// unknownKind returns what is wrong with a kind that its group, one of Karpenter, does not have, "" for all others. An
// object that is left out because its kind is misspelled would count as one that is gone. The autoscaling API may get
// further kinds, so that one of it must resemble a known one.
func unknownKind(kind metav1.TypeMeta) string {
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	others, ours := notUsed[version.Group]
	if err != nil || !ours || slices.Contains(others, kind.Kind) {
		return ""
	}
	var known []string
	for _, name := range sortedKeys(readVersions) {
		if strings.HasPrefix(readVersions[name], version.Group+"/") {
			known = append(known, name)
		}
	}
	meant := didYouMean(kind.Kind, append(slices.Clone(known), others...))
	if version.Group == autoscalingv1beta1.Group && meant == "" {
		return ""
	}
	return fmt.Sprintf("kind: is %s, which %s does not have, want %s%s", kind.Kind, version.Group,
		strings.Join(append(known, others...), ", "), meant)
}
