package launch

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// statement is a statement of docs/aws-iam-policy.json, for the cluster of testdata.
type statement struct {
	Sid       string
	Action    several
	Resource  several
	Condition map[string]map[string]several
}

// several is one string or a list.
type several []string

func (s *several) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*s = several{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(s))
}

// access is one authorization that AWS makes for a call: an action on a resource, with the values of condition keys.
type access struct {
	action, resource string
	keys             map[string]string
}

// allows evaluates a statement as IAM documents it.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
func (s *statement) allows(t *testing.T, a access) bool {
	t.Helper()
	like := func(pattern, value string) bool {
		matched, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(value, "/", "\x00"))
		return err == nil && matched
	}
	if !slices.Contains(s.Action, a.action) || !slices.ContainsFunc(s.Resource, func(r string) bool { return like(r, a.resource) }) {
		return false
	}
	for operator, keys := range s.Condition {
		for key, wanted := range keys {
			value, has := a.keys[key]
			switch operator {
			case "StringEquals":
				if !has || !slices.Contains(wanted, value) {
					return false
				}
			case "StringLike":
				if !has || !slices.ContainsFunc(wanted, func(w string) bool { return like(w, value) }) {
					return false
				}
			case "StringEqualsIfExists":
				if has && !slices.Contains(wanted, value) {
					return false
				}
			case "ForAllValues:StringEquals": // of NameOwnInstances, which no launch needs
				return false
			default:
				t.Fatalf("%s: this test does not know the operator %s", s.Sid, operator)
			}
		}
	}
	return true
}

func readStatements(t *testing.T) []statement {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/aws-iam-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("${PARTITION}", "aws", "${REGION}", "us-east-1", "${ACCOUNT}", "123456789012", "${CLUSTER}", "prod",
		"${NODE_ROLE}", "KarpenterNodeRole-prod", "${QUEUE}", "prod").Replace(string(text))
	var policy struct{ Statement []statement }
	if err := json.Unmarshal([]byte(filled), &policy); err != nil {
		t.Fatal(err)
	}
	return policy.Statement
}

// tagged are resources with tags in the request: AWS authorizes the call on each of them, and the tags by CreateTags.
func tagged(call string, resource ec2types.ResourceType, tags map[string]string) []access {
	keys := map[string]string{"ec2:CreateAction": call}
	for key, value := range tags {
		keys["aws:RequestTag/"+key] = value
	}
	arn := fmt.Sprintf("arn:aws:ec2:us-east-1:123456789012:%s/*", resource)
	list := []access{{"ec2:" + call, arn, keys}}
	if len(tags) > 0 {
		list = append(list, access{"ec2:CreateTags", arn, keys})
	}
	return list
}

// accesses returns what AWS authorizes for a fleet and its launch templates.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
func accesses(templates []template, fleet *ec2.CreateFleetInput) []access {
	var list []access
	byResource := map[ec2types.ResourceType]map[string]string{}
	for _, s := range fleet.TagSpecifications {
		byResource[s.ResourceType] = tagMap(s.Tags)
	}
	list = append(list, tagged("CreateFleet", "fleet", byResource["fleet"])...)
	list = append(list, tagged("RunInstances", "instance", byResource["instance"])...)
	list = append(list, tagged("RunInstances", "volume", byResource["volume"])...)
	used := map[string]bool{"image/ami": true, "subnet/subnet": true, "security-group/sg": true}
	for _, t := range templates {
		made := t.request()
		list = append(list, tagged("CreateLaunchTemplate", "launch-template", tagMap(made.TagSpecifications[0].Tags))...)
		keys := map[string]string{}
		for key, value := range t.tags {
			keys["aws:ResourceTag/"+key] = value
		}
		for _, call := range []string{"ec2:CreateFleet", "ec2:RunInstances"} {
			list = append(list, access{call, "arn:aws:ec2:us-east-1:123456789012:launch-template/lt-1", keys})
		}
		for _, s := range t.data.TagSpecifications {
			list = append(list, tagged("RunInstances", s.ResourceType, tagMap(s.Tags))...)
		}
		maps.Copy(used, usedBy(t.data))
	}
	for _, resource := range slices.Sorted(maps.Keys(used)) {
		account := "123456789012"
		if strings.HasPrefix(resource, "image/") || strings.HasPrefix(resource, "snapshot/") {
			account = ""
		}
		list = append(list, access{"ec2:RunInstances", "arn:aws:ec2:us-east-1:" + account + ":" + resource, nil})
	}
	return list
}

// usedBy returns the existing resources that a launch template names, besides images, subnets and security groups.
func usedBy(data *ec2types.RequestLaunchTemplateData) map[string]bool {
	used := map[string]bool{}
	for _, m := range data.BlockDeviceMappings {
		if m.Ebs != nil && m.Ebs.SnapshotId != nil {
			used["snapshot/"+*m.Ebs.SnapshotId] = true
		}
	}
	if c := data.CapacityReservationSpecification; c != nil && c.CapacityReservationTarget != nil {
		used["capacity-reservation/"+aws.ToString(c.CapacityReservationTarget.CapacityReservationId)] = true
	}
	if p := data.Placement; p != nil && (p.GroupId != nil || p.GroupName != nil) {
		used["placement-group/"+aws.ToString(p.GroupId)+aws.ToString(p.GroupName)] = true
	}
	return used
}

// TestLaunchesAreAllowed evaluates the documented policy for everything that AWS authorizes for the launches in testdata,
// by an evaluation of its own.
func TestLaunchesAreAllowed(t *testing.T) {
	statements := readStatements(t)
	resources := map[string]bool{}
	golden.Each(t, func(t *testing.T, file *golden.File) {
		s, o := ordered(t, file)
		p, err := newPlan(o, s.Region)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range accesses(slices.Collect(maps.Values(p.templates)), p.request(Record{Batch: "b", Attempt: 1, Size: 1}, nil, nil)) {
			if !slices.ContainsFunc(statements, func(s statement) bool { return s.allows(t, a) }) {
				t.Errorf("no statement allows %s on %s with %v", a.action, a.resource, a.keys)
			}
			kind, _, _ := strings.Cut(a.resource[strings.LastIndex(a.resource, ":")+1:], "/")
			resources[kind] = true
		}
	})
	for _, want := range []string{"capacity-reservation", "fleet", "image", "instance", "launch-template", "network-interface",
		"security-group",
		"snapshot", "spot-instances-request", "subnet", "volume"} {
		if !resources[want] {
			t.Errorf("no launch of testdata uses a resource of type %s", want)
		}
	}
	stranger := tagged("RunInstances", "instance", map[string]string{"kubernetes.io/cluster/other": "owned"})[0]
	if slices.ContainsFunc(statements, func(s statement) bool { return s.allows(t, stranger) }) {
		t.Error("the policy allows instances of another cluster: the test evaluates nothing")
	}
}
