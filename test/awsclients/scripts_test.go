package awsclients

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// modules are the scripts that are no cases.
var modules = []string{"model.py", "sim.py", "world.py"}

// TestScripts runs each script of cases on a simulation of its own, and then counts what they have called.
func TestScripts(t *testing.T) {
	need(t)
	scripts, err := filepath.Glob("scripts/*.py")
	if err != nil {
		t.Fatal(err)
	}
	var made []call
	run := 0
	for _, path := range scripts {
		name := filepath.Base(path)
		if slices.Contains(modules, name) {
			run++
			continue
		}
		t.Run(strings.TrimSuffix(name, ".py"), func(t *testing.T) {
			s := start(t)
			s.script(name)
			made = append(made, readCalls(t, s.calls)...)
			run++
		})
	}
	if run == len(scripts) && !t.Failed() { // not with -run of one script
		covered(t, made)
	}
}

// goOnly are calls and parameters that boto3 of Debian does not know, or whose members that act it does not know
// (CpuOptions), or for which there is too little here (groups for two pages). The tests of awssim use them with the AWS
// SDK for Go.
var goOnly = map[string]bool{
	"arc-zonal-shift GetManagedResource":              true,
	"ec2 CreateFleet ReservedCapacityOptions":         true,
	"ec2 DescribeImages MaxResults":                   true,
	"ec2 DescribeImages NextToken":                    true,
	"ec2 DescribeSpotPriceHistory AvailabilityZoneId": true,
	"ec2 DescribeSecurityGroups NextToken":            true,
	"ec2 RunInstances CpuOptions":                     true,
	"sqs ReceiveMessage MessageSystemAttributeNames":  true,
}

// covered fails if a call, a parameter or a filter acts and no script has used it with success, or if no script has seen
// the call refused.
func covered(t *testing.T, made []call) {
	t.Helper()
	used, refused := map[string]bool{}, map[string]bool{}
	for _, c := range made {
		name := c.Service + " " + c.Action
		if c.Code != "OK" && c.Code != "DryRunOperation" {
			refused[name] = true
			continue
		}
		used[name] = true
		for _, param := range c.Params {
			used[name+" "+param] = true
		}
		for _, filter := range c.Filters {
			used[name+" filter "+filter] = true
		}
	}
	for _, served := range awssim.ServedCalls() {
		name := served.Service + " " + served.Action
		if goOnly[name] {
			continue
		}
		if !used[name] || !refused[name] && served.Action != "GetCallerIdentity" {
			t.Errorf("%s: no script has seen it succeed (%t) and be refused (%t)", name, used[name], refused[name])
			continue
		}
		for _, param := range served.Params {
			if !used[name+" "+param] && !goOnly[name+" "+param] {
				t.Errorf("%s: no script has used the parameter %s", name, param)
			}
		}
		for filter, path := range served.Filters {
			if path != "" && !used[name+" filter "+filter] {
				t.Errorf("%s: no script has used the filter %s", name, filter)
			}
		}
	}
}
