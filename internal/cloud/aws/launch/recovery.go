package launch

import (
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// maintenance returns the maintenance options of a launch template, nil unless the class disables automatic recovery:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-configuration-recovery.html
func maintenance(class *awsv1.EC2NodeClass) *ec2types.LaunchTemplateInstanceMaintenanceOptionsRequest {
	if class.Annotations[awsv1.AnnotationAutoRecovery] != awsv1.Disabled {
		return nil
	}
	return &ec2types.LaunchTemplateInstanceMaintenanceOptionsRequest{AutoRecovery: ec2types.LaunchTemplateAutoRecoveryStateDisabled}
}
