package stack

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

// update rewrites the parts that are generated from the policy.
var update = flag.Bool("update", false, "write the generated parts of deploy/aws again")

const (
	policyFile   = "../../docs/aws-iam-policy.json"
	optionalFile = "../../docs/aws-iam-policy-optional.json"
	cfnFile      = "../../deploy/aws/cloudformation.yaml"
	moduleDir    = "../../deploy/aws/terraform"
)

// order is the input of a stack.
type order struct {
	partition, suffix, region string // of AWS: its name, the suffix of its service names
	cluster                   string
	irsa, noAccess            bool
	oidc                      string
	namespace, serviceAccount string
	nodeRoleName, queueName   string   // empty: the default
	features                  []string // optional features that are allowed
}

const accountID = "123456789012"

// usual returns the default order for a cluster of that name.
func usual(cluster string) order {
	return order{partition: "aws", suffix: "amazonaws.com", region: "eu-west-1", cluster: cluster, namespace: "kube-system", serviceAccount: "karpenter"}
}

// account is the set of resources that a stack creates.
type account struct {
	node, controller role
	association      map[string]string // of the controller's role with its service account; nil if there is none
	access           map[string]string // of the node role to the cluster; nil if there is none
	queue            queue
	rules            []rule
}

type role struct {
	name     string // empty: AWS generates one
	trust    any
	managed  []string // ARNs of AWS managed policies
	policies []string // own policies, as text
}

type queue struct {
	name, retention, encrypted string
	policy                     any
	arn                        string
}

type rule struct {
	name    string // empty: AWS generates one
	arn     string
	pattern map[string]any
	targets []string // ARNs
}

// stacks are the two implementations.
var stacks = map[string]func(testing.TB, order) account{"CloudFormation": cloudformation, "Terraform": terraform}

// source returns the statements of the documented policy and those of the order's optional features, for an order whose
// node role and queue have those names.
func (o order) source(t testing.TB, nodeRole, queue string) []any {
	t.Helper()
	fill := func(file string) []any {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer("${PARTITION}", o.partition, "${REGION}", o.region, "${ACCOUNT}", accountID,
			"${CLUSTER}", o.cluster, "${NODE_ROLE}", nodeRole, "${QUEUE}", queue).Replace(string(text))
		if strings.Contains(filled, "${") {
			t.Fatalf("%s has a variable that is unknown to this test", file)
		}
		return statements(t, filled)
	}
	optional := slices.DeleteFunc(fill(optionalFile), func(s any) bool { return !slices.Contains(o.features, sid(s)) })
	return append(fill(policyFile), optional...)
}

// statements returns the statements of a policy's text.
func statements(t testing.TB, text string) []any {
	t.Helper()
	var policy struct {
		Version   string
		Statement []any
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&policy); err != nil {
		t.Fatalf("reading a policy: %v\n%s", err, text)
	}
	if policy.Version != "2012-10-17" {
		t.Errorf("a policy of version %q with %d statements", policy.Version, len(policy.Statement))
	}
	return policy.Statement
}

// sid returns the id of a statement.
func sid(statement any) string {
	s, _ := statement.(map[string]any)["Sid"].(string)
	return s
}

// bySid sorts statements.
func bySid(all []any) []any {
	return slices.SortedFunc(slices.Values(all), func(a, b any) int { return strings.Compare(sid(a), sid(b)) })
}

// document returns a text, or a value, as a JSON value.
func document(t testing.TB, of any) any {
	t.Helper()
	text, is := of.(string)
	if !is {
		made, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		text = string(made)
	}
	var read any
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatalf("reading a document: %v\n%s", err, text)
	}
	return read
}

// size returns the size of a text for IAM: white space does not count.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
func size(text string) int { return len(strings.Join(strings.Fields(text), "")) }
