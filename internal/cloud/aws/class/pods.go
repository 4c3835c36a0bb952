package class

import (
	"fmt"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// PodsHint describes settings of the VPC CNI that change the number of pods that a node has addresses for, and of which
// the class or the controller knows nothing. Machines are launched in any case. A class with maxPods of its own, or with
// any value of the annotation, has no hint.
func PodsHint(class *awsv1.EC2NodeClass, cluster discovery.Facts, reservedENIs int64) string {
	_, said := class.Annotations[awsv1.AnnotationPrefixDelegation]
	if class.Spec.Kubelet != nil && class.Spec.Kubelet.MaxPods != nil || class.Family().Windows() {
		return ""
	}
	switch {
	case cluster.CNI.PrefixDelegation && !said && !cluster.IPv6:
		return fmt.Sprintf("DaemonSet kube-system/aws-node has ENABLE_PREFIX_DELEGATION=true, "+
			"and nodes have the pods of a cluster without prefixes; "+
			"set the annotation %s to true for more pods per node, or to false to keep them", awsv1.AnnotationPrefixDelegation)
	case cluster.CNI.CustomNetworking && reservedENIs == 0:
		return "DaemonSet kube-system/aws-node has AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true, " +
			"so that pods cannot use the first network interface; set --reserved-enis (settings.reservedENIs) to 1"
	}
	return ""
}
