package launch

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// EC2 recovers the instances of a class automatically unless its annotation disables that. The dry run of the class
// asks for the same.
func TestAutoRecovery(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		l := w.launcher()
		for _, value := range []string{"", "default", "disabled"} {
			order := w.order("claim-" + value)
			want := ec2types.InstanceAutoRecoveryStateDefault
			if order.Class = order.Class.DeepCopy(); value != "" {
				order.Class.Annotations = map[string]string{awsv1.AnnotationAutoRecovery: value}
				want = ec2types.InstanceAutoRecoveryState(value)
			}
			machine, err := l.Launch(ctx, order)
			w.must(err)
			id := machine.ProviderID[strings.LastIndexByte(machine.ProviderID, '/')+1:]
			out, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
			w.must(err)
			if got := out.Reservations[0].Instances[0].MaintenanceOptions.AutoRecovery; got != want {
				t.Errorf("annotation %q: the instance has the automatic recovery %q, want %q", value, got, want)
			}
			trials := Trials([]*Order{order})
			request, err := trials[0].Instance("subnet", nil)
			w.must(err)
			switch options := request.MaintenanceOptions; {
			case value == "disabled" && (options == nil || options.AutoRecovery != want):
				t.Errorf("annotation %q: the dry run has the maintenance options %+v", value, options)
			case value != "disabled" && options != nil:
				t.Errorf("annotation %q: the dry run has maintenance options", value)
			}
			request.NetworkInterfaces[0].SubnetId = aws.String(w.class.Status.Subnets[0].ID)
			if _, err = w.ec2.RunInstances(ctx, request); codeOf(err) != "DryRunOperation" {
				t.Errorf("annotation %q: the dry run: %v", value, err)
			}
		}
	})
}
