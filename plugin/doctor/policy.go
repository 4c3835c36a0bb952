package doctor

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/cloud"
)

// sinceOld lists actions that the controller's IAM policy must allow now and that the policies of Karpenter 0.x did
// not include. The latter had ec2:CreateLaunchTemplate, CreateFleet, RunInstances, CreateTags, TerminateInstances,
// DescribeLaunchTemplates, DescribeInstances, DescribeSecurityGroups, DescribeSubnets, DescribeInstanceTypes,
// DescribeInstanceTypeOfferings and DescribeAvailabilityZones, iam:PassRole and ssm:GetParameter
// (https://karpenter.sh/v0.13.2/getting-started/getting-started-with-terraform/).
var sinceOld = []string{
	"ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeSpotPriceHistory", "eks:DescribeCluster",
	"iam:GetInstanceProfile", "iam:ListInstanceProfiles", "pricing:GetProducts",
	"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage",
}

// fewestSinceOld is how many of them must be missing for a policy to count as an old one.
const fewestSinceOld = 3

// withPolicy returns the findings with one added that explains many: a policy of Karpenter 0.x.
func withPolicy(found []cloud.Finding) []cloud.Finding {
	var missing []string
	for _, finding := range found {
		if finding.Code == CloudPermissionDenied && slices.Contains(sinceOld, finding.Object) {
			missing = append(missing, finding.Object)
		}
	}
	if len(missing) < fewestSinceOld {
		return found
	}
	slices.Sort(missing)
	return append(slices.Clone(found), cloud.Finding{
		Code: PolicyOutdated, Object: "iam",
		Problem: "the IAM policy of the controller's role looks like one of Karpenter 0.x: it does not allow " + strings.Join(missing, ", "),
		Fix: "attach docs/aws-iam-policy.json to the role of the controller instead of the old policy; " +
			"docs/migrating.md#the-iam-policy lists the new permissions, and those that can be omitted",
	})
}
