package awssim

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestUnknownFilter refuses filters that a call does not have also when nothing exists that they could select.
func TestUnknownFilter(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		filter := func(name string) []ec2types.Filter {
			return []ec2types.Filter{{Name: &name, Values: []string{"x"}}}
		}
		for _, name := range []string{"no-such-filter", "tag", "tag:", "network-interface.requester-managed"} {
			_, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filter(name)})
			w.refused(err, "InvalidParameterValue")
		}
		for _, name := range []string{"tag:team", "tag-key", "ramdisk-id", "network-interface.addresses.primary"} {
			_, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filter(name)})
			w.must(err)
		}
		_, err := w.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{Filters: filter("tag-key")})
		w.refused(err, "InvalidParameterValue")
	})
}

// TestFilterOfAnswer selects types by members of nested structures and lists of the answer.
func TestFilterOfAnswer(t *testing.T) {
	cases := []struct {
		name, value string
		of          func(ec2types.InstanceTypeInfo) bool
	}{
		{"network-info.maximum-network-cards", "4",
			func(i ec2types.InstanceTypeInfo) bool { return *i.NetworkInfo.MaximumNetworkCards == 4 }},
		{"instance-storage-info.disk.count", "8",
			func(i ec2types.InstanceTypeInfo) bool { return *i.InstanceStorageInfo.Disks[0].Count == 8 }},
		{"processor-info.supported-architecture", "arm64",
			func(i ec2types.InstanceTypeInfo) bool { return i.ProcessorInfo.SupportedArchitectures[0] == "arm64" }},
		{"ebs-info.ebs-optimized-info.maximum-throughput-in-mbps", "1250",
			func(i ec2types.InstanceTypeInfo) bool {
				return *i.EbsInfo.EbsOptimizedInfo.MaximumThroughputInMBps == 1250
			}},
	}
	in(t, Options{}, func(ctx context.Context, w *world) {
		for _, c := range cases {
			out, err := w.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{
				Filters: []ec2types.Filter{{Name: &c.name, Values: []string{c.value}}}})
			w.must(err)
			if len(out.InstanceTypes) == 0 {
				t.Errorf("%s=%s selects no type", c.name, c.value)
			}
			for _, i := range out.InstanceTypes {
				if !c.of(i) {
					t.Errorf("%s=%s selects %s", c.name, c.value, i.InstanceType)
				}
			}
		}
	})
}
