package class

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// placed returns a class with the placement group "group".
func placed() *awsv1.EC2NodeClass {
	return awstest.Class(func(class *awsv1.EC2NodeClass) {
		class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "group"}
	})
}

// TestPlacementGroupTenancy checks which pools with dedicated instances a placement group cannot serve: EC2 runs none in
// spread groups, and uses two partitions for them.
func TestPlacementGroupTenancy(t *testing.T) {
	const yes, no = "True ValidationSucceeded", "False PlacementGroupTenancy"
	in := func(key string, values ...string) karpv1.Requirement {
		return karpv1.Requirement{Key: key, Operator: "In", Values: values}
	}
	dedicated := in(awsv1.LabelInstanceTenancy, "dedicated")
	for name, test := range map[string]struct {
		group        awssim.PlacementGroup
		labels       map[string]string
		requirements []karpv1.Requirement
		want, says   string
	}{
		"spread": {awssim.PlacementGroup{Strategy: "spread"}, nil, []karpv1.Requirement{dedicated}, no, `NodePool "pool" requires`},
		"spread, by label": {awssim.PlacementGroup{Strategy: "spread"}, map[string]string{awsv1.LabelInstanceTenancy: "dedicated"}, nil, no,
			"is for spread instances"},
		"spread, either tenancy": {awssim.PlacementGroup{Strategy: "spread"}, nil,
			[]karpv1.Requirement{in(awsv1.LabelInstanceTenancy, "dedicated", "default")}, yes, ""},
		"spread, no tenancy": {awssim.PlacementGroup{Strategy: "spread"}, nil, nil, yes, ""},
		"cluster":            {awssim.PlacementGroup{Strategy: "cluster"}, nil, []karpv1.Requirement{dedicated}, yes, ""},
		"partitions":         {awssim.PlacementGroup{Strategy: "partition", Partitions: 7}, nil, []karpv1.Requirement{dedicated}, yes, ""},
		"the second partition": {awssim.PlacementGroup{Strategy: "partition", Partitions: 7}, nil,
			[]karpv1.Requirement{dedicated, in(awsv1.LabelPlacementGroupPartition, "2", "3")}, yes, ""},
		"the third partition": {awssim.PlacementGroup{Strategy: "partition", Partitions: 7}, nil,
			[]karpv1.Requirement{dedicated, in(awsv1.LabelPlacementGroupPartition, "3")}, no,
			"in at most 2 partitions of placement group pg-"},
		"the third partition, by label": {awssim.PlacementGroup{Strategy: "partition", Partitions: 7},
			map[string]string{awsv1.LabelPlacementGroupPartition: "3"}, []karpv1.Requirement{dedicated}, no, "allows none of 1, 2"},
		"the third partition, not dedicated": {awssim.PlacementGroup{Strategy: "partition", Partitions: 7}, nil,
			[]karpv1.Requirement{in(awsv1.LabelPlacementGroupPartition, "3")}, yes, ""},
	} {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
		pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
		pool.Spec.Template.ObjectMeta.Labels, pool.Spec.Template.Spec.Requirements = test.labels, test.requirements
		within(t, awssim.Options{}, func(ctx context.Context, w *world) {
			test.group.Name = "group"
			w.AWS.AddPlacementGroup(test.group)
			class := w.reconciled(ctx)
			expect(t, name, class, awsv1.ConditionPlacementGroupReady, "True PlacementGroupReady")
			expect(t, name, class, awsv1.ConditionValidationSucceeded, test.want)
			if message := class.Condition(awsv1.ConditionValidationSucceeded).Message; !strings.Contains(message, test.says) {
				t.Errorf("%s: the message is %q, want %q", name, message, test.says)
			}
		}, placed(), pool)
	}
}

// recorder keeps the launches that a dry run tries.
type recorder struct {
	EC2API
	runs []*ec2.RunInstancesInput
}

func (r *recorder) RunInstances(ctx context.Context, in *ec2.RunInstancesInput, o ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	r.runs = append(r.runs, in)
	return r.EC2API.RunInstances(ctx, in, o...)
}

// TestDryRunWithoutPools checks that the dry run of a class without pools does not name its placement group: the type that
// is tried, which no pool has chosen, may not be for groups of the strategy.
func TestDryRunWithoutPools(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.AWS.AddPlacementGroup(awssim.PlacementGroup{Name: "group", Strategy: "cluster"})
		tried := &recorder{EC2API: w.DryRun.EC2}
		w.DryRun.EC2 = tried
		expect(t, "no pools", w.reconciled(ctx), awsv1.ConditionValidationSucceeded, "True ValidationSucceeded")
		if len(tried.runs) == 0 {
			t.Fatal("nothing was tried")
		}
		for _, run := range tried.runs {
			if p := run.Placement; p != nil && aws.ToString(p.GroupId)+aws.ToString(p.GroupName) != "" {
				t.Errorf("the dry run is for the placement %+v", p)
			}
		}
	}, placed())
}
