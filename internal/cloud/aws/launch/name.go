package launch

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/karpenter-go/karpenter/cloud"
)

// tagFor is the timeout for tagging one instance.
const tagFor = time.Minute

// Tag adds those tags that the instance does not have. It is rate limited, so it may wait. It returns cloud.ErrNotFound
// if there is no such instance.
func (l *Launcher) Tag(ctx context.Context, providerID string, tags map[string]string) error {
	i, err := l.read(ctx, providerID)
	if err != nil {
		return err
	}
	has, missing := tagMap(i.Tags), maps.Clone(tags)
	maps.DeleteFunc(missing, func(key, _ string) bool {
		_, there := has[key]
		return there
	})
	if len(missing) == 0 {
		return nil
	}
	if l.lastSeen.isShifted(i) {
		return shiftedError("tagging", i)
	}
	ctx, cancel := context.WithTimeout(ctx, tagFor)
	defer cancel()
	id := aws.ToString(i.InstanceId)
	_, err = withRetries(ctx, l, "CreateTags", l.opts.EC2.CreateTags, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2Tags(missing)})
	for _, gone := range goneCodes {
		if codeOf(err) == gone {
			return fmt.Errorf("tagging instance %s: %w: %w", id, cloud.ErrNotFound, err)
		}
	}
	if err != nil {
		return fmt.Errorf("tagging instance %s: %w", id, err)
	}
	return nil
}
