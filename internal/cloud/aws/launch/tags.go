package launch

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TagsOf returns the tags of all resources that are created for a claim of the class: the class's tags, with
// placeholders replaced, then the controller's own.
func TagsOf(class *awsv1.EC2NodeClass, pool, cluster string) map[string]string {
	tags := class.ResolvedTags(pool, cluster)
	maps.Copy(tags, map[string]string{
		awsv1.TagClusterPrefix + cluster: "owned",
		awsv1.TagNodePool:                pool,
		awsv1.TagCluster:                 cluster,
		awsv1.TagNodeClass:               class.Name,
	})
	return tags
}

func poolOf(claim *karpv1.NodeClaim) string { return claim.Labels[karpv1.LabelNodePool] }

// ec2Tags returns tags sorted by key, so that the same tags result in the same request.
func ec2Tags(tags map[string]string) []ec2types.Tag {
	list := make([]ec2types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, ec2types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return list
}

func tagMap(tags []ec2types.Tag) map[string]string {
	byKey := make(map[string]string, len(tags))
	for _, tag := range tags {
		byKey[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return byKey
}
