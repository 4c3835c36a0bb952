package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Objects of API versions that are not read any more, or not yet. Passing them over would answer a question that nobody
// asked: a plan without the pools of the file.

// readVersions are the kinds that a decision depends on, with the one version of each that is read.
var readVersions = map[string]string{
	"NodePool": "karpenter.sh/v1", "NodeClaim": "karpenter.sh/v1", awsv1.Kind: awsv1.GroupVersion.String(),
	"Deployment": appsVersion, "StatefulSet": appsVersion, "ReplicaSet": appsVersion, "DaemonSet": appsVersion,
	"Job": batchVersion, "CronJob": batchVersion,
	"PriorityClass": "scheduling.k8s.io/v1", "StorageClass": "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1",
	"PodDisruptionBudget": "policy/v1", "RuntimeClass": "node.k8s.io/v1", "LimitRange": "v1",
	"Pod": "v1", "Node": "v1", "Namespace": "v1", "Service": "v1", "ReplicationController": "v1",
	"PersistentVolume": "v1", "PersistentVolumeClaim": "v1",
}

// renamed are kinds that became another, and which.
var renamed = map[schema.GroupKind]string{
	{Group: "karpenter.sh", Kind: "Provisioner"}: "a NodePool of karpenter.sh/v1 (karpenter migrate -f FILE writes it)",
	{Group: "karpenter.sh", Kind: "Machine"}:     "a NodeClaim of karpenter.sh/v1",
}

// formerGroups are where kinds were before they came to their group.
var formerGroups = map[string]bool{"extensions": true}

// successorOf says what an object is to be instead, when its kind is one that we read and its version is not; "" for
// kinds that are no part of a decision.
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
	return fmt.Sprintf("%s (karpenter migrate -f FILE rewrites it; a cluster that has both prints it: kubectl get %s.v1.%s -o yaml)", now, resource, version.Group)
}
