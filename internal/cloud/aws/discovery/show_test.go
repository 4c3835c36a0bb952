package discovery

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// Results of calls, and the error of a call.
var (
	foundSubnet = Subnet{ID: "subnet-1", Zone: "a", ZoneID: "az1", VPC: "vpc-1", Free: 5}
	foundGroup  = Group{ID: "sg-1", Name: "nodes", VPC: "vpc-1"}
	foundImage  = Image{ID: "ami-1", Name: "n", Deprecated: true,
		Requirements: []corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, "amd64")}}
	throttled = &CallError{Service: "EC2", Operation: "DescribeImages", Kind: Throttled, Err: errors.New("slow down")}
)

// TestShow checks the condition for each result, and that a failed call changes nothing.
func TestShow(t *testing.T) {
	denied := &CallError{Service: "EC2", Operation: "DescribeImages", Kind: Denied, Err: errors.New("not you")}
	for _, test := range []struct {
		name      string
		condition string
		show      func(Show)
		want      string // status, reason, a part of the message
	}{
		{"subnet", awsv1.ConditionSubnetsReady, func(s Show) { s.Subnets([]Subnet{foundSubnet}) }, "True SubnetsReady "},
		{"no subnet", awsv1.ConditionSubnetsReady, func(s Show) { s.Subnets(nil) }, "False SubnetsNotFound spec.subnetSelectorTerms"},
		{"subnet gone", awsv1.ConditionSubnetsReady, func(s Show) { s.Subnets([]Subnet{foundSubnet}); s.Subnets(nil) }, "False SubnetsNotFound "},
		{"group", awsv1.ConditionSecurityGroupsReady, func(s Show) { s.Groups([]Group{foundGroup}, []Subnet{foundSubnet}) }, "True SecurityGroupsReady "},
		{"no group", awsv1.ConditionSecurityGroupsReady, func(s Show) { s.Groups(nil, []Subnet{foundSubnet}) },
			"False SecurityGroupsNotFound no security group"},
		{"group of another network", awsv1.ConditionSecurityGroupsReady,
			func(s Show) { s.Groups([]Group{{ID: "sg-2", VPC: "vpc-2"}}, []Subnet{foundSubnet}) }, "False SecurityGroupsNotFound sg-2 of vpc-2"},
		{"group, and no subnet", awsv1.ConditionSecurityGroupsReady, func(s Show) { s.Groups([]Group{foundGroup}, nil) }, "True SecurityGroupsReady "},
		{"image", awsv1.ConditionAMIsReady, func(s Show) { s.Images([]Image{foundImage}, nil) }, "True AMIsReady "},
		{"no image", awsv1.ConditionAMIsReady, func(s Show) { s.Images(nil, nil) }, "False AMINotFound spec.amiSelectorTerms"},
		{"alias", awsv1.ConditionAMIsReady, func(s Show) { s.Images(nil, &UnsupportedAliasError{"al2@latest", "1.33", "use another"}) },
			"False UnsupportedAlias use another"},
		{"images not read", awsv1.ConditionAMIsReady, func(s Show) { s.Images([]Image{foundImage}, nil); s.Images(nil, throttled) }, "True AMIsReady "},
		{"images never read", awsv1.ConditionAMIsReady, func(s Show) { s.Images(nil, throttled) }, "Unknown AwaitingReconciliation "},
		{"profile", awsv1.ConditionInstanceProfileReady, func(s Show) { s.Profile("p", nil) }, "True InstanceProfileReady "},
		{"no role", awsv1.ConditionInstanceProfileReady, func(s Show) { s.Profile("", &RoleNotFoundError{"r"}) }, "False RoleNotFound spec.role"},
		{"profile not read", awsv1.ConditionInstanceProfileReady, func(s Show) { s.Profile("p", nil); s.Profile("", throttled) },
			"True InstanceProfileReady "},
		{"no placement group", awsv1.ConditionPlacementGroupReady, func(s Show) { s.Placement(nil, nil) }, "True PlacementGroupReady "},
		{"placement group", awsv1.ConditionPlacementGroupReady, placed(&PlacementGroup{ID: "pg-1"}, nil), "True PlacementGroupReady "},
		{"no such placement group", awsv1.ConditionPlacementGroupReady, placed(nil, nil),
			"False PlacementGroupNotFound check the name or the id"},
		{"placement group deleted", awsv1.ConditionPlacementGroupReady, placed(&PlacementGroup{}, nil, nil, nil),
			"False PlacementGroupNotFound "},
		{"placement group never read", awsv1.ConditionPlacementGroupReady, placed(nil, throttled),
			"False PlacementGroupResolutionFailed EC2 DescribeImages"},
		{"placement group not read", awsv1.ConditionPlacementGroupReady, placed(&PlacementGroup{}, nil, nil, throttled),
			"True PlacementGroupReady "},
		{"placement group refused", awsv1.ConditionPlacementGroupReady, placed(&PlacementGroup{}, nil, nil, denied),
			"True CallRefused the previous result is used"},
		{"placement group after a failure", awsv1.ConditionPlacementGroupReady, placed(nil, throttled, &PlacementGroup{}, nil),
			"True PlacementGroupReady "},
		{"placement group that was not supported", awsv1.ConditionPlacementGroupReady, func(s Show) {
			s.conditions().SetFalse(awsv1.ConditionPlacementGroupReady, reasonNotYetActedOn, "not supported yet")
			placed(nil, throttled)(s)
		}, "False PlacementGroupResolutionFailed "},
		{"selector changed, not read", awsv1.ConditionPlacementGroupReady, func(s Show) {
			placed(&PlacementGroup{}, nil)(s)
			s.Class.Generation++
			placed(nil, throttled)(s)
		}, "False PlacementGroupResolutionFailed "},
		{"images refused", awsv1.ConditionAMIsReady, func(s Show) {
			s.Images([]Image{foundImage}, nil)
			s.Unanswered(awsv1.ConditionAMIsReady, denied)
			s.Unanswered(awsv1.ConditionAMIsReady, denied)
		}, "True CallRefused the previous result is used: EC2 DescribeImages"},
		{"images refused for a while", awsv1.ConditionAMIsReady, func(s Show) {
			s.Images([]Image{foundImage}, nil)
			s.Unanswered(awsv1.ConditionAMIsReady, denied)
			s.Images([]Image{foundImage}, nil)
		}, "True AMIsReady "},
		{"reservations", awsv1.ConditionCapacityReservationsReady, func(s Show) { s.ExpectReservations(); s.Reservations(FoundReservations{}) },
			"True CapacityReservationsReady "},
		{"reservations that cannot be used", awsv1.ConditionCapacityReservationsReady,
			func(s Show) { s.Reservations(FoundReservations{Unusable: []string{"cr-1 is on an Outpost"}}) },
			"True CapacityReservationsReady not used: cr-1 is on an Outpost"},
		{"reservations never read", awsv1.ConditionCapacityReservationsReady, func(s Show) { s.ExpectReservations() },
			"Unknown AwaitingReconciliation "},
		{"reservations refused for a while", awsv1.ConditionCapacityReservationsReady, func(s Show) {
			s.Reservations(FoundReservations{})
			s.ExpectReservations()
			s.Unanswered(awsv1.ConditionCapacityReservationsReady, denied)
		}, "True CallRefused the previous result is used"},
		{"reservations of an earlier version, refused", awsv1.ConditionCapacityReservationsReady, func(s Show) {
			s.conditions().SetFalse(awsv1.ConditionCapacityReservationsReady, reasonNotYetActedOn, "not supported yet")
			s.ExpectReservations()
			s.Unanswered(awsv1.ConditionCapacityReservationsReady, denied)
		}, "True CallRefused the previous result is used"},
	} {
		class := classOf(nil)
		test.show(Show{Class: class})
		c := class.Condition(test.condition)
		want := strings.SplitN(test.want, " ", 3)
		switch {
		case string(c.Status) != want[0]:
			t.Errorf("%s: the status is %s, want %s", test.name, c.Status, want[0])
		case c.Reason != want[1]:
			t.Errorf("%s: the reason is %s, want %s", test.name, c.Reason, want[1])
		case !strings.Contains(c.Message, want[2]):
			t.Errorf("%s: the message is %q, want %q in it", test.name, c.Message, want[2])
		}
	}
}

// placed shows results of Placements.Find, pairs of a group and an error, for a class that selects a group.
func placed(results ...any) func(Show) {
	return func(s Show) {
		s.Class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "pg"}
		for i := 0; i < len(results); i += 2 {
			group, _ := results[i].(*PlacementGroup)
			err, _ := results[i+1].(error)
			s.Placement(group, err)
		}
	}
}

// TestShowStatus checks that conditions that no longer apply are removed, and what remains in the status.
func TestShowStatus(t *testing.T) {
	class := classOf(nil)
	show := Show{Class: class}
	show.Reservations(FoundReservations{List: []Reservation{{CapacityReservation: awsv1.CapacityReservation{ID: "cr-1"}}}})
	if len(class.Status.CapacityReservations) != 1 {
		t.Errorf("reservations %+v", class.Status.CapacityReservations)
	}
	show.WithoutReservations()
	if c := class.Condition(awsv1.ConditionCapacityReservationsReady); c != nil {
		t.Errorf("while reservations are not used: %s %s", c.Status, c.Reason)
	}
	show.Subnets([]Subnet{foundSubnet})
	show.Groups([]Group{foundGroup, {ID: "sg-2", Name: "nodes", VPC: "vpc-2"}}, []Subnet{foundSubnet})
	show.Images([]Image{foundImage}, nil)
	show.Profile("p", nil)
	show.Images(nil, throttled)
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
