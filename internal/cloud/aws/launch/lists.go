package launch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// list reads all instances that pass the filters, each once. It applies the filters to the response again: an endpoint
// that ignores them would return foreign instances, which the garbage collector would terminate.
func (l *Launcher) list(ctx context.Context, filters ...ec2types.Filter) ([]ec2types.Instance, error) {
	sieve := call.NewSieve(service, "DescribeInstances", l.opts.Unasked)
	defer sieve.Close()
	var instances []ec2types.Instance
	index := map[string]int{} // by ID
	in := &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(1000)}
	for n := 0; ; n++ {
		if n == call.MostPages {
			return nil, call.Endless(service, "DescribeInstances")
		}
		out, err := withRetries(ctx, l, "DescribeInstances", l.opts.EC2.DescribeInstances, in)
		if err != nil {
			return nil, err
		}
		for _, r := range out.Reservations {
			for i := range r.Instances {
				id := aws.ToString(r.Instances[i].InstanceId)
				if !sieve.Keep(passes(filters, id, r.Instances[i].Tags), id) {
					continue
				}
				if k, again := index[id]; !again {
					index[id] = len(instances)
					instances = append(instances, r.Instances[i])
				} else if isTerminating(&instances[k]) { // if two pages differ, use the one on which it runs
					instances[k] = r.Instances[i]
				}
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return instances, nil
		}
	}
}

// templateNames returns the names of the launch templates that pass the filters. It applies the filters again, like
// list.
func (l *Launcher) templateNames(ctx context.Context, filters ...ec2types.Filter) ([]string, error) {
	sieve := call.NewSieve(service, "DescribeLaunchTemplates", l.opts.Unasked)
	defer sieve.Close()
	var names []string
	in := &ec2.DescribeLaunchTemplatesInput{Filters: filters, MaxResults: aws.Int32(200)}
	for n := 0; ; n++ {
		if n == call.MostPages {
			return names, call.Endless(service, "DescribeLaunchTemplates")
		}
		out, err := withRetries(ctx, l, "DescribeLaunchTemplates", l.opts.EC2.DescribeLaunchTemplates, in)
		if err != nil {
			return names, fmt.Errorf("listing launch templates: %w", err)
		}
		for i := range out.LaunchTemplates {
			t := &out.LaunchTemplates[i]
			name := aws.ToString(t.LaunchTemplateName)
			if sieve.Keep(passes(filters, aws.ToString(t.LaunchTemplateId), t.Tags), name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return names, nil
		}
	}
}

func tagFilter(key string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: aws.String("tag:" + key), Values: values}
}

// passes reports whether a resource with that ID and those tags matches the filters. It supports tag:KEY, tag-key and
// instance-id, with plain values.
func passes(filters []ec2types.Filter, id string, tags []ec2types.Tag) bool {
	has := tagMap(tags)
	for _, f := range filters {
		name, matches := aws.ToString(f.Name), false
		switch key, byTag := strings.CutPrefix(name, "tag:"); {
		case byTag:
			value, there := has[key]
			matches = there && slices.Contains(f.Values, value)
		case name == "tag-key":
			matches = slices.ContainsFunc(f.Values, func(key string) bool { _, there := has[key]; return there })
		case name == "instance-id":
			matches = slices.Contains(f.Values, id)
		}
		if !matches {
			return false
		}
	}
	return true
}
