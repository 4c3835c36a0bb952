package awsclients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// shell runs commands with an aws that reaches the simulation, and returns what they print.
func (s *sim) shell(commands string) string {
	s.Helper()
	bin := s.TempDir()
	wrapper := "#!/bin/sh\nexec " + cli + " --endpoint-url " + s.url + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte(wrapper), 0o700); err != nil { //nolint:gosec // a program
		s.Fatal(err)
	}
	command := exec.CommandContext(s.Context(), "/bin/bash", "-euo", "pipefail", "-c", commands)
	command.Env = append(s.environment(), "PATH="+bin+":/usr/bin:/bin")
	out, err := command.CombinedOutput()
	if err != nil {
		s.Fatalf("%s\n%v\n%s", commands, err, out)
	}
	return strings.TrimSpace(string(out))
}

var block = regexp.MustCompile("(?s)```sh\n(.*?)```")

// blockWith returns the block of docs/aws.md that has a text.
func blockWith(t *testing.T, text string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/aws.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range block.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(match[1], text) {
			return match[1]
		}
	}
	t.Fatalf("no block of docs/aws.md has %q", text)
	return ""
}

// TestSetUpByHand runs the commands of docs/aws.md that create the queue and the rules, with the AWS CLI. The role, its
// policy and the access entry are not simulated.
func TestSetUpByHand(t *testing.T) {
	s := startIn(t, "eu-west-1")
	got := s.shell(blockWith(t, "get-caller-identity") + blockWith(t, "sqs create-queue") +
		`aws sqs get-queue-attributes --queue-url $URL --attribute-names All --query Attributes --output json > $HOME/attributes
cat $HOME/attributes`)
	var attributes map[string]string
	if err := json.Unmarshal([]byte(got[strings.LastIndex(got, "\n{")+1:]), &attributes); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if attributes["MessageRetentionPeriod"] != "300" || attributes["SqsManagedSseEnabled"] != "true" {
		t.Errorf("the queue has the attributes %v", attributes)
	}
	var policy struct {
		Statement []struct{ Effect, Action, Resource string }
	}
	if err := json.Unmarshal([]byte(attributes["Policy"]), &policy); err != nil {
		t.Fatalf("the queue's policy: %v", err)
	}
	if len(policy.Statement) != 2 ||
		policy.Statement[0].Action != "sqs:SendMessage" || policy.Statement[0].Resource != attributes["QueueArn"] {
		t.Errorf("the queue's policy has %+v", policy.Statement)
	}
	ec2 := func(kind string) string { return `{"source":["aws.ec2"],"detail-type":["` + kind + `"]}` }
	want := map[string]string{
		"my-cluster-spot":        ec2("EC2 Spot Instance Interruption Warning"),
		"my-cluster-reservation": ec2("EC2 Capacity Reservation Instance Interruption Warning"),
		"my-cluster-borrowed":    ec2("EC2 Interruptible Capacity Reservation Instance Interruption Warning"),
		"my-cluster-rebalance":   ec2("EC2 Instance Rebalance Recommendation"),
		"my-cluster-state": `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],` +
			`"detail":{"state":["stopping","stopped","shutting-down","terminated"]}}`,
		"my-cluster-health": `{"source":["aws.health"],"detail-type":["AWS Health Event"],` +
			`"detail":{"service":["EC2"],"eventTypeCategory":["scheduledChange"]}}`,
	}
	if diff := cmp.Diff(want, s.Rules()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestCLI runs commands of the AWS CLI that read, with a query each.
func TestCLI(t *testing.T) {
	s := start(t)
	subnet := s.Subnets()[0].ID
	plan := s.AddSavingsPlan(awssim.SavingsPlan{Type: "EC2Instance", Family: "m6i", Rates: map[string]float64{"m6i.large": 0.06}})
	for _, c := range []struct{ command, want string }{
		{"sts get-caller-identity --query Account --output text", "111122223333"},
		{"eks describe-cluster --name sandbox --query cluster.status --output text", "ACTIVE"},
		{"ec2 describe-instance-types --instance-types m5.large --query 'InstanceTypes[].MemoryInfo.SizeInMiB' --output text", "8192"},
		{"ec2 describe-instances --query 'Reservations[].Instances[].InstanceId' --output json", "[]"},
		{"iam get-role --role-name KarpenterNodeRole-sandbox --query Role.RoleName --output text", "KarpenterNodeRole-sandbox"},
		{"sqs get-queue-url --queue-name interruptions --query QueueUrl --output text", s.url + "/111122223333/interruptions"},
		{"ec2 describe-availability-zones --query 'length(AvailabilityZones)' --output text", "6"},
		{"ec2 create-tags --resources " + subnet + " --tags Key=karpenter.sh/discovery,Value=other", ""},
		{"ec2 describe-subnets --filters Name=tag:karpenter.sh/discovery,Values=other --query 'Subnets[].SubnetId' --output text", subnet},
		{"savingsplans describe-savings-plans --states active --query 'length(savingsPlans)' --output text", "1"},
		{"savingsplans describe-savings-plan-rates --savings-plan-id " + plan + " --filters name=instanceType,values=m6i.large " +
			"name=tenancy,values=shared name=productType,values=EC2 --query 'searchResults[].[rate,currency]' --output text", "0.06\tUSD"},
		{"ec2 describe-subnets --filters Name=colour,Values=red 2>&1 | grep -o InvalidParameterValue || true", "InvalidParameterValue"},
	} {
		if got := s.shell("aws " + c.command); got != c.want {
			t.Errorf("aws %s prints %q, want %q", c.command, got, c.want)
		}
	}
}
