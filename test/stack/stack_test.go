package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption/notice"
)

// orders returns the orders with which stacks are tested.
func orders() map[string]order {
	china, gov := usual("prod"), usual("prod")
	china.partition, china.suffix, china.region = "aws-cn", "amazonaws.com.cn", "cn-north-1"
	gov.partition, gov.region = "aws-us-gov", "us-gov-west-1"
	irsa, named, longest := usual("prod"), usual("prod"), usual(strings.Repeat("c", 100))
	irsa.irsa, irsa.oidc = true, "oidc.eks.eu-west-1.amazonaws.com/id/0123ABCD"
	irsa.namespace, irsa.serviceAccount = "karpenter", "k"
	chinaIRSA := china
	chinaIRSA.irsa, chinaIRSA.oidc = true, "oidc.eks.cn-north-1.amazonaws.com.cn/id/0123ABCD"
	named.nodeRoleName, named.queueName, named.noAccess = "nodes", "notices", true
	// Terraform shortens generated names; CloudFormation cannot.
	longest.nodeRoleName, longest.queueName = strings.Repeat("r", 64), strings.Repeat("q", 80)
	longest.partition, longest.suffix, longest.region = "aws-us-gov", "amazonaws.com", "ap-southeast-7"
	optionals, one := usual("prod"), usual("prod")
	for _, part := range optional() {
		optionals.features = append(optionals.features, part.name)
	}
	one.features = optionals.features[:min(1, len(optionals.features))]
	longest.features = optionals.features
	return map[string]order{"all features": optionals, "one feature": one, "usual": usual("prod"), "China": china, "GovCloud": gov,
		"IRSA": irsa, "IRSA in China": chinaIRSA, "names": named, "longest": longest}
}

// each runs try for every order with both stacks.
func each(t *testing.T, try func(*testing.T, order, account)) {
	for name, o := range orders() {
		for language, evaluate := range stacks {
			t.Run(name+"/"+language, func(t *testing.T) { try(t, o, evaluate(t, o)) })
		}
	}
}

// TestPolicies checks that the controller gets exactly the documented statements, in policies that IAM accepts.
func TestPolicies(t *testing.T) {
	each(t, func(t *testing.T, o order, a account) {
		var granted []any
		for _, text := range a.controller.policies {
			if n := size(text); n > 6144 {
				t.Errorf("a policy of the controller has %d characters, and a managed policy 6,144 at most", n)
			}
			granted = append(granted, statements(t, text)...)
		}
		want := o.source(t, a.node.name, a.queue.name)
		if diff := cmp.Diff(bySid(want), bySid(granted)); diff != "" {
			t.Errorf("the granted permissions differ from %s (-file +stack):\n%s", policyFile, diff)
		}
		if n := len(a.controller.policies); n > 10 {
			t.Errorf("the controller has %d policies, want at most 10", n)
		}
		if len(a.controller.managed) > 0 {
			t.Errorf("the controller has the policies %v of AWS, want none", a.controller.managed)
		}
		if n := len(a.node.policies); n > 0 {
			t.Errorf("nodes have %d own policies, want none", n)
		}
	})
}

// TestTrust checks who may assume the roles.
func TestTrust(t *testing.T) {
	each(t, func(t *testing.T, o order, a account) {
		allow := func(principal, action, condition string) any {
			return document(t, fmt.Sprintf(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": %s, "Action": %s%s}]}`, principal, action, condition))
		}
		nodes := allow(fmt.Sprintf(`{"Service": "ec2.%s"}`, o.suffix), `"sts:AssumeRole"`, "")
		if diff := cmp.Diff(nodes, a.node.trust); diff != "" {
			t.Errorf("the node role's trust policy (-want +have):\n%s", diff)
		}
		controller := allow(`{"Service": "pods.eks.amazonaws.com"}`, `["sts:AssumeRole", "sts:TagSession"]`,
			fmt.Sprintf(`, "Condition": {"StringEquals": {"aws:RequestTag/eks-cluster-name": %q, "aws:RequestTag/kubernetes-namespace": %q, "aws:RequestTag/kubernetes-service-account": %q}}`,
				o.cluster, o.namespace, o.serviceAccount))
		association := map[string]string{"cluster": o.cluster, "namespace": o.namespace, "service account": o.serviceAccount}
		if o.irsa {
			controller = allow(fmt.Sprintf(`{"Federated": "arn:%s:iam::%s:oidc-provider/%s"}`, o.partition, accountID, o.oidc), `"sts:AssumeRoleWithWebIdentity"`,
				fmt.Sprintf(`, "Condition": {"StringEquals": {"%s:aud": "sts.amazonaws.com", "%s:sub": "system:serviceaccount:%s:%s"}}`, o.oidc, o.oidc, o.namespace, o.serviceAccount))
			association = nil
		}
		if diff := cmp.Diff(controller, a.controller.trust); diff != "" {
			t.Errorf("the controller role's trust policy (-want +have):\n%s", diff)
		}
		if diff := cmp.Diff(association, a.association); diff != "" {
			t.Errorf("the association of Pod Identity (-want +have):\n%s", diff)
		}
	})
}

// TestNodes checks the permissions of a node, and its access to the cluster.
func TestNodes(t *testing.T) {
	each(t, func(t *testing.T, o order, a account) {
		var want []string
		for _, name := range []string{"AmazonEC2ContainerRegistryPullOnly", "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonSSMManagedInstanceCore"} {
			want = append(want, "arn:"+o.partition+":iam::aws:policy/"+name)
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(a.node.managed))); diff != "" {
			t.Errorf("policies of nodes (-want +have):\n%s", diff)
		}
		access := map[string]string{"cluster": o.cluster, "type": "EC2_LINUX"}
		if o.noAccess {
			access = nil
		}
		if diff := cmp.Diff(access, a.access); diff != "" {
			t.Errorf("the access entry of nodes (-want +have):\n%s", diff)
		}
	})
}

// TestQueue checks that messages are retained for five minutes and encrypted, and that only the stack's rules may
// write.
func TestQueue(t *testing.T) {
	each(t, func(t *testing.T, o order, a account) {
		if a.queue.retention != "300" || a.queue.encrypted != "true" {
			t.Errorf("the queue keeps messages for %s s, encrypted: %s", a.queue.retention, a.queue.encrypted)
		}
		var arns []any
		for _, r := range a.rules {
			arns = append(arns, r.arn)
			if diff := cmp.Diff([]string{a.queue.arn}, r.targets); diff != "" {
				t.Errorf("rule %s (-queue +targets):\n%s", r.arn, diff)
			}
		}
		slices.SortFunc(arns, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		want := map[string]any{"Version": "2012-10-17", "Statement": []any{
			map[string]any{"Sid": "OnlyFromTheRules", "Effect": "Allow", "Principal": map[string]any{"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage",
				"Resource": a.queue.arn, "Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": arns}}},
			map[string]any{"Sid": "OnlyByTLS", "Effect": "Deny", "Principal": "*", "Action": "sqs:*",
				"Resource": a.queue.arn, "Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}}},
		}}
		if diff := cmp.Diff(want, a.queue.policy); diff != "" {
			t.Errorf("the queue's policy (-want +have):\n%s", diff)
		}
	})
}

// TestRules checks that every event that the controller acts on matches exactly one rule, and that no rule matches
// only events that it does not read.
func TestRules(t *testing.T) {
	details := map[notice.Event][]string{
		{Source: "aws.ec2", DetailType: "EC2 Spot Instance Interruption Warning"}:                               {`{"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"}`},
		{Source: "aws.ec2", DetailType: "EC2 Capacity Reservation Instance Interruption Warning"}:               {`{"instance-id": "i-0123456789abcdef0"}`},
		{Source: "aws.ec2", DetailType: "EC2 Interruptible Capacity Reservation Instance Interruption Warning"}: {`{"instance-id": "i-0123456789abcdef0"}`},
		{Source: "aws.ec2", DetailType: "EC2 Instance Rebalance Recommendation"}:                                {`{"instance-id": "i-0123456789abcdef0"}`},
		{Source: "aws.ec2", DetailType: "EC2 Instance State-change Notification"}: {
			`{"instance-id": "i-0123456789abcdef0", "state": "stopping"}`, `{"instance-id": "i-0123456789abcdef0", "state": "stopped"}`,
			`{"instance-id": "i-0123456789abcdef0", "state": "shutting-down"}`, `{"instance-id": "i-0123456789abcdef0", "state": "terminated"}`,
			`{"instance-id": "i-0123456789abcdef0", "state": "pending"}`, `{"instance-id": "i-0123456789abcdef0", "state": "running"}`},
		{Source: "aws.health", DetailType: "AWS Health Event"}: {
			`{"service": "EC2", "eventTypeCategory": "scheduledChange", "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "affectedEntities": [{"entityValue": "i-0123456789abcdef0"}]}`,
			`{"service": "RDS", "eventTypeCategory": "scheduledChange"}`, `{"service": "EC2", "eventTypeCategory": "issue"}`},
	}
	each(t, func(t *testing.T, o order, a account) {
		used := map[string]bool{}
		for _, event := range notice.Events() {
			if len(details[event]) == 0 {
				t.Errorf("this test has no example of %v", event)
			}
			for _, detail := range details[event] {
				body := fmt.Sprintf(`{"version": "0", "source": %q, "detail-type": %q, "time": "2026-11-20T12:00:00Z", "detail": %s}`, event.Source, event.DetailType, detail)
				n, err := notice.Parse(body)
				if err != nil {
					t.Fatalf("the example %s: %v", body, err)
				}
				passes := 0
				for _, r := range a.rules {
					if matches(t, r.pattern, document(t, body).(map[string]any)) {
						passes++
						used[r.arn] = true
					}
				}
				if want := map[bool]int{true: 0, false: 1}[n.Kind == notice.NoOp]; passes != want {
					t.Errorf("%s, which means %s, matches %d rules, want %d", body, n.Kind, passes, want)
				}
			}
		}
		for _, r := range a.rules {
			if !used[r.arn] {
				t.Errorf("the rule %s matches no event that the controller acts on: %v", r.arn, r.pattern)
			}
		}
		if len(a.rules) == 0 {
			t.Error("there are no rules")
		}
	})
}

// matches reports whether an event matches a pattern: every field of it has one of the listed values.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern.html
func matches(t testing.TB, pattern, event map[string]any) bool {
	t.Helper()
	for key, want := range pattern {
		switch want := want.(type) {
		case []any:
			if !slices.Contains(want, event[key]) {
				return false
			}
		case map[string]any:
			below, is := event[key].(map[string]any)
			if !is || !matches(t, want, below) {
				return false
			}
		default:
			t.Fatalf("a pattern has %v at %s; EventBridge requires a list or an object", want, key)
		}
	}
	return true
}

// TestNames checks that AWS accepts the names for any cluster, and that the defaults are used if no names are given.
func TestNames(t *testing.T) {
	word := regexp.MustCompile(`^[A-Za-z0-9_-]*$`)
	for n := range 100 {
		long := usual(strings.Repeat("c", n+1))
		for language, evaluate := range stacks {
			if language == "CloudFormation" && n+1 > 46 {
				continue // it requires names, and reports that
			}
			a := evaluate(t, long)
			for _, name := range []struct {
				of, is string
				most   int
			}{{"node role", a.node.name, 64}, {"controller's role", a.controller.name, 64}, {"queue", a.queue.name, 80}} {
				if len(name.is) > name.most || !word.MatchString(name.is) {
					t.Errorf("%s, a cluster's name of %d characters: the name of the %s has %d characters, %d at most: %s", language, n+1, name.of, len(name.is), name.most, name.is)
				}
			}
			if n+1 <= 46 {
				if want := "KarpenterNodeRole-" + long.cluster; a.node.name != want {
					t.Errorf("%s: the node role is %s, want %s", language, a.node.name, want)
				}
				if a.queue.name != long.cluster {
					t.Errorf("%s: the queue is %s, want %s", language, a.queue.name, long.cluster)
				}
			}
		}
	}
	// Shortened names differ if the clusters differ.
	one, two := usual(strings.Repeat("c", 99)+"1"), usual(strings.Repeat("c", 99)+"2")
	a, b := terraform(t, one), terraform(t, two)
	for what, names := range map[string][2]string{
		"node role":         {a.node.name, b.node.name},
		"controller's role": {a.controller.name, b.controller.name},
		"queue":             {a.queue.name, b.queue.name},
	} {
		if names[0] == names[1] {
			t.Errorf("two clusters share the name %s of the %s", names[0], what)
		}
	}
}

// manual is the page with the manual steps.
const manual = "../../docs/aws.md"

// TestPolicyByHand checks that the documented policy fits into one managed policy for a cluster name of the maximum
// length in the page, and that the names in the page are valid for it.
func TestPolicyByHand(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	allowed := regexp.MustCompile(`the cluster's may have (\d+) here`).FindSubmatch(text)
	if allowed == nil {
		t.Fatalf("%s does not contain the maximum length of a cluster's name", manual)
	}
	most, err := strconv.Atoi(string(allowed[1]))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("c", most)
	for _, role := range []string{"KarpenterNodeRole-", "KarpenterController-"} {
		if !strings.Contains(string(text), role+"$CLUSTER") || len(role+name) > 64 {
			t.Errorf("the role %s$CLUSTER, if it is in %s, has %d characters", role, manual, len(role+name))
		}
	}
	o := usual(name)
	o.partition, o.region = "aws-us-gov", "ap-southeast-7"
	filled, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": o.source(t, "KarpenterNodeRole-"+name, name)})
	if err != nil {
		t.Fatal(err)
	}
	if n := size(string(filled)); n > 6144 {
		t.Errorf("for a cluster's name of %d characters the policy has %d, 6,144 at most", most, n)
	}
}

// TestRulesByHand checks that the commands of the page create a rule for exactly the events that the controller acts
// on.
func TestRulesByHand(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	have := map[notice.Event]int{}
	for _, match := range regexp.MustCompile(`(?m)^rule \w+ +(\S+) +"([^"]+)"(?: '\S+')?$`).FindAllStringSubmatch(string(text), -1) {
		have[notice.Event{Source: match[1], DetailType: match[2]}]++
	}
	want := map[notice.Event]int{}
	for _, event := range notice.Events() {
		want[event] = 1
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("rules of %s (-events +page):\n%s", manual, diff)
	}
}
