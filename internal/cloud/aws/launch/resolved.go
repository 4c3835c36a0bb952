package launch

import (
	"maps"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

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

// sized sets the sizes of volumes that expressions determine, in GiB by device.
func sized(list []ec2types.LaunchTemplateBlockDeviceMappingRequest, sizes string) []ec2types.LaunchTemplateBlockDeviceMappingRequest {
	if sizes == "" {
		return list
	}
	results := instance.Entries(sizes)
	for i := range list {
		if gib, err := strconv.ParseInt(results[aws.ToString(list[i].DeviceName)], 10, 32); err == nil && list[i].Ebs != nil {
			list[i].Ebs.VolumeSize = aws.Int32(int32(gib))
		}
	}
	return list
}

// VolumeDevices returns the devices of the EBS volumes with which machines of the class are launched, in their order.
func VolumeDevices(class *awsv1.EC2NodeClass) []string {
	var devices []string
	for _, m := range blockDevices(class.Spec.BlockDeviceMappings, class.Family()) {
		if m.Ebs != nil {
			devices = append(devices, aws.ToString(m.DeviceName))
		}
	}
	return devices
}
