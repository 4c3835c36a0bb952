package launch

import (
	"maps"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// kubelet returns the kubelet's settings of the class, with the results of its expressions.
func (o *Order) kubelet(results instance.Resolved) *awsv1.KubeletConfiguration {
	settings := o.Class.Spec.Kubelet
	if settings == nil || results.KubeReserved == "" && results.SystemReserved == "" {
		return settings
	}
	own := *settings
	own.KubeReserved = withResults(own.KubeReserved, results.KubeReserved)
	own.SystemReserved = withResults(own.SystemReserved, results.SystemReserved)
	return &own
}

func withResults(amounts map[string]string, results string) map[string]string {
	if results == "" {
		return amounts
	}
	own := maps.Clone(amounts)
	maps.Copy(own, instance.Entries(results))
	return own
}
