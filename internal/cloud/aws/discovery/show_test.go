package discovery

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// TestShow checks the condition for each result, and that a failed call changes nothing.
func TestShow(t *testing.T) {
	subnet := Subnet{ID: "subnet-1", Zone: "a", ZoneID: "az1", VPC: "vpc-1", Free: 5}
	group := Group{ID: "sg-1", Name: "nodes", VPC: "vpc-1"}
	image := Image{ID: "ami-1", Name: "n", Deprecated: true,
		Requirements: []corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, "amd64")}}
	call := &CallError{Service: "EC2", Operation: "DescribeImages", Kind: Throttled, Err: errors.New("slow down")}
	denied := &CallError{Service: "EC2", Operation: "DescribeImages", Kind: Denied, Err: errors.New("not you")}
	for _, test := range []struct {
		name      string
		condition string
		show      func(Show)
		want      string // status, reason, a part of the message
	}{
		{"subnet", awsv1.ConditionSubnetsReady, func(s Show) { s.Subnets([]Subnet{subnet}) }, "True SubnetsReady "},
		{"no subnet", awsv1.ConditionSubnetsReady, func(s Show) { s.Subnets(nil) }, "False SubnetsNotFound spec.subnetSelectorTerms"},
		{"subnet gone", awsv1.ConditionSubnetsReady, func(s Show) { s.Subnets([]Subnet{subnet}); s.Subnets(nil) }, "False SubnetsNotFound "},
		{"group", awsv1.ConditionSecurityGroupsReady, func(s Show) { s.Groups([]Group{group}, []Subnet{subnet}) }, "True SecurityGroupsReady "},
		{"no group", awsv1.ConditionSecurityGroupsReady, func(s Show) { s.Groups(nil, []Subnet{subnet}) },
			"False SecurityGroupsNotFound no security group"},
		{"group of another network", awsv1.ConditionSecurityGroupsReady,
			func(s Show) { s.Groups([]Group{{ID: "sg-2", VPC: "vpc-2"}}, []Subnet{subnet}) }, "False SecurityGroupsNotFound sg-2 of vpc-2"},
		{"group, and no subnet", awsv1.ConditionSecurityGroupsReady, func(s Show) { s.Groups([]Group{group}, nil) }, "True SecurityGroupsReady "},
		{"image", awsv1.ConditionAMIsReady, func(s Show) { s.Images([]Image{image}, nil) }, "True AMIsReady "},
		{"no image", awsv1.ConditionAMIsReady, func(s Show) { s.Images(nil, nil) }, "False AMINotFound spec.amiSelectorTerms"},
		{"alias", awsv1.ConditionAMIsReady, func(s Show) { s.Images(nil, &UnsupportedAliasError{"al2@latest", "1.33", "use another"}) },
			"False UnsupportedAlias use another"},
		{"images not read", awsv1.ConditionAMIsReady, func(s Show) { s.Images([]Image{image}, nil); s.Images(nil, call) }, "True AMIsReady "},
		{"images never read", awsv1.ConditionAMIsReady, func(s Show) { s.Images(nil, call) }, "Unknown AwaitingReconciliation "},
		{"profile", awsv1.ConditionInstanceProfileReady, func(s Show) { s.Profile("p", nil) }, "True InstanceProfileReady "},
		{"no role", awsv1.ConditionInstanceProfileReady, func(s Show) { s.Profile("", &RoleNotFoundError{"r"}) }, "False RoleNotFound spec.role"},
		{"profile not read", awsv1.ConditionInstanceProfileReady, func(s Show) { s.Profile("p", nil); s.Profile("", call) },
			"True InstanceProfileReady "},
		{"no placement group", awsv1.ConditionPlacementGroupReady, func(s Show) { s.Inert() }, "True PlacementGroupReady "},
		{"placement group", awsv1.ConditionPlacementGroupReady, func(s Show) {
			s.Class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "pg"}
			s.Inert()
		}, "False NotYetActedOn not supported yet"},
		{"images refused", awsv1.ConditionAMIsReady, func(s Show) {
			s.Images([]Image{image}, nil)
			s.Unanswered(awsv1.ConditionAMIsReady, denied)
			s.Unanswered(awsv1.ConditionAMIsReady, denied)
		}, "True CallRefused the previous result is used: EC2 DescribeImages"},
		{"images refused for a while", awsv1.ConditionAMIsReady, func(s Show) {
			s.Images([]Image{image}, nil)
			s.Unanswered(awsv1.ConditionAMIsReady, denied)
			s.Images([]Image{image}, nil)
		}, "True AMIsReady "},
		{"reservations", awsv1.ConditionCapacityReservationsReady, func(s Show) {
			s.Class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
			s.Inert()
		}, "False NotYetActedOn not supported yet"},
	} {
		class := classOf(nil)
		test.show(Show{Class: class})
		c := class.Condition(test.condition)
		want := strings.SplitN(test.want, " ", 3)
		switch {
		case string(c.Status) != want[0]:
			t.Errorf("%s: string(c.Status) is %v, want %v, %s, want %s", test.name, string(c.Status), want[0], c.Status, test.want)
		case c.Reason != want[1]:
			t.Errorf("%s: c.Reason is %v, want %v, want %s", test.name, c.Reason, want[1], test.want)
		case !strings.Contains(c.Message, want[2]):
			t.Errorf("%s: c.Message lacks %q, %q, want %s", test.name, want[2], c.Message, test.want)
		}
	}

	class := classOf(nil)
	show := Show{Class: class}
	class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
	show.Inert()
	class.Spec.CapacityReservationSelectorTerms = nil
	show.Inert()
	if c := class.Condition(awsv1.ConditionCapacityReservationsReady); c != nil {
		t.Errorf("without reservation terms: %s %s", c.Status, c.Reason)
	}
	show.Subnets([]Subnet{subnet})
	show.Groups([]Group{group, {ID: "sg-2", Name: "nodes", VPC: "vpc-2"}}, []Subnet{subnet})
	show.Images([]Image{image}, nil)
	show.Profile("p", nil)
	show.Images(nil, call)
	class.Status.Conditions = nil
	want := awsv1.EC2NodeClassStatus{
		Subnets:        []awsv1.Subnet{{ID: "subnet-1", Zone: "a", ZoneID: "az1"}},
		SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		AMIs: []awsv1.AMI{{ID: "ami-1", Name: "n", Deprecated: true,
			Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn,
				Values: []string{"amd64"}}}}},
		InstanceProfile: "p",
	}
	if diff := cmp.Diff(want, class.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
