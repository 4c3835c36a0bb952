package stack

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// kinds are the resource types that the template may contain: resources of other types would not be checked.
var kinds = []string{"AWS::EKS::AccessEntry", "AWS::EKS::PodIdentityAssociation", "AWS::Events::Rule", "AWS::IAM::ManagedPolicy",
	"AWS::IAM::Role", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy"}

// account returns the account that the template creates.
func (x *template) account() account {
	for name := range x.sections["Resources"].(map[string]any) {
		if kind, _ := x.resource(name); !slices.Contains(kinds, kind) {
			x.t.Fatalf("%s is a %s: this test does not check those", name, kind)
		}
	}
	var a account
	a.node, a.controller = x.role("KarpenterNodeRole"), x.role("KarpenterControllerRole")
	if roles := x.made("AWS::IAM::Role"); len(roles) != 2 {
		x.t.Errorf("there are the roles %v, want two", slices.Sorted(maps.Keys(roles)))
	}
	for _, made := range x.made("AWS::EKS::PodIdentityAssociation") {
		x.only(made, "ClusterName", "Namespace", "ServiceAccount", "RoleArn")
		a.association = map[string]string{"cluster": text(made["ClusterName"]), "namespace": text(made["Namespace"]), "service account": text(made["ServiceAccount"])}
		x.same("the association's role", made["RoleArn"], x.attribute("KarpenterControllerRole.Arn"))
	}
	for _, made := range x.made("AWS::EKS::AccessEntry") {
		x.only(made, "ClusterName", "PrincipalArn", "Type")
		a.access = map[string]string{"cluster": text(made["ClusterName"]), "type": text(made["Type"])}
		x.same("who has access", made["PrincipalArn"], x.attribute("KarpenterNodeRole.Arn"))
	}
	for _, made := range x.made("AWS::SQS::Queue") {
		x.only(made, "QueueName", "MessageRetentionPeriod", "SqsManagedSseEnabled")
		a.queue = queue{name: text(made["QueueName"]), retention: text(made["MessageRetentionPeriod"]), encrypted: text(made["SqsManagedSseEnabled"]),
			arn: x.attribute("KarpenterInterruptionQueue.Arn")}
	}
	for _, made := range x.made("AWS::SQS::QueuePolicy") {
		x.only(made, "Queues", "PolicyDocument")
		a.queue.policy = document(x.t, made["PolicyDocument"])
		x.same("the queue of the policy", made["Queues"].([]any)[0], x.ref("KarpenterInterruptionQueue").(string))
	}
	rules := x.made("AWS::Events::Rule")
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		x.only(rules[name], "EventPattern", "Targets")
		r := rule{arn: x.attribute(name + ".Arn"), pattern: document(x.t, rules[name]["EventPattern"]).(map[string]any)}
		for _, target := range rules[name]["Targets"].([]any) {
			r.targets = append(r.targets, text(target.(map[string]any)["Arn"]))
		}
		a.rules = append(a.rules, r)
	}
	return a
}

func (x *template) role(name string) role {
	made := x.made("AWS::IAM::Role")[name]
	x.only(made, "RoleName", "AssumeRolePolicyDocument", "ManagedPolicyArns")
	r := role{name: text(made["RoleName"]), trust: document(x.t, made["AssumeRolePolicyDocument"])}
	own := map[string]string{}
	for policy, properties := range x.made("AWS::IAM::ManagedPolicy") {
		x.only(properties, "Description", "PolicyDocument")
		own[text(x.ref(policy))] = text(properties["PolicyDocument"])
	}
	for _, arn := range made["ManagedPolicyArns"].([]any) {
		if policy, is := own[text(arn)]; is {
			r.policies = append(r.policies, policy)
		} else {
			r.managed = append(r.managed, text(arn))
		}
	}
	return r
}

// only fails for properties that this test does not check, including misspelled ones.
func (x *template) only(properties map[string]any, known ...string) {
	for name := range properties {
		if !slices.Contains(known, name) {
			x.t.Errorf("the property %s is not checked", name)
		}
	}
}

func (x *template) same(what string, have any, want string) {
	if have != any(want) {
		x.t.Errorf("%s is %v, want %s", what, have, want)
	}
}

func text(of any) string {
	if of == nil {
		return ""
	}
	return fmt.Sprint(of)
}

// TestTemplate checks that the template is short enough for CloudFormation without a bucket, and that every output
// has a value.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
func TestTemplate(t *testing.T) {
	file, err := os.Stat(cfnFile)
	if err != nil {
		t.Fatal(err)
	}
	if file.Size() > 51_200 {
		t.Errorf("%s has %d bytes, 51,200 at most", cfnFile, file.Size())
	}
	x := &template{t: t, o: usual("prod"), sections: readTemplate(t), parameters: map[string]string{"ClusterName": "prod"}}
	for _, name := range []string{"NodeRoleName", "QueueName"} {
		x.parameters[name] = ""
	}
	have := map[string]string{}
	for name, output := range x.sections["Outputs"].(map[string]any) {
		have[name] = text(x.eval(output.(map[string]any)["Value"]))
	}
	for name, want := range map[string]string{"NodeRoleName": "KarpenterNodeRole-prod", "QueueName": "prod", "ControllerRoleArn": "arn:aws:iam::" + accountID + ":role/KarpenterControllerRole"} {
		if have[name] != want {
			t.Errorf("the output %s is %q, want %q", name, have[name], want)
		}
	}
	if !strings.HasPrefix(text(x.sections["AWSTemplateFormatVersion"]), "2010-09-09") {
		t.Errorf("the template's version is %v", x.sections["AWSTemplateFormatVersion"])
	}
}
