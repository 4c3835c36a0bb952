package aws

import (
	"fmt"
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// Feature is a use of AWS that has permissions of its own.
type Feature struct {
	// Name is what it is in a sentence, and the name of its row in docs/aws.md.
	Name string
	// Setting is what turns it on. Empty: it is always on.
	Setting string
	// Statement is the id of its statement in docs/aws-iam-policy-optional.json, and the switch of deploy/aws that
	// allows it. Empty: docs/aws-iam-policy.json allows it.
	Statement string
	// Actions are the actions that it needs besides those of the features above, in IAM notation, sorted.
	Actions []string

	on func(*examination) bool
}

// Features returns the uses of AWS. Every action that the code calls belongs to one of them. A new one has a row here,
// its actions in one of the two policies, a way to try each action in examine_rights.go, and a row in docs/aws.md; tests
// compare them with each other and with the calls in the code.
func Features() []Feature {
	always := func(*examination) bool { return true }
	return []Feature{
		{Name: "launches", on: always, Actions: []string{
			"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:CreateTags", "ec2:DeleteLaunchTemplate", "ec2:RunInstances",
			"ec2:TerminateInstances", "iam:PassRole"}},
		{Name: "discovery", on: always, Actions: []string{
			"ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
			"ec2:DescribeInstances", "ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory",
			"ec2:DescribeSubnets", "eks:DescribeCluster", "ssm:GetParameter"}},
		{Name: "status of volumes", on: always, Actions: []string{"ec2:DescribeVolumeStatus"}},
		{Name: "instance profiles", Setting: "spec.role of a class, without --isolated-vpc", on: (*examination).makesProfiles,
			Actions: []string{"iam:AddRoleToInstanceProfile", "iam:CreateInstanceProfile", "iam:DeleteInstanceProfile",
				"iam:GetInstanceProfile", "iam:ListInstanceProfiles", "iam:RemoveRoleFromInstanceProfile", "iam:TagInstanceProfile"}},
		{Name: "on-demand prices", Setting: "no --isolated-vpc", on: (*examination).readsPrices, Actions: []string{"pricing:GetProducts"}},
		{Name: "interruption notices", Setting: "--interruption-queue",
			on:      func(e *examination) bool { return e.opts.Queue != "" },
			Actions: []string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}},
		{Name: "capacity reservations", Setting: "spec.capacityReservationSelectorTerms of a class, and the gate ReservedCapacity",
			on: (*examination).usesReservations, Actions: []string{"ec2:DescribeCapacityReservations"}},
		{Name: "zonal shift", Setting: "--enable-zonal-shift", Statement: "ZonalShift",
			on: func(e *examination) bool { return e.opts.ZonalShift }, Actions: []string{"arc-zonal-shift:GetManagedResource"}},
		{Name: "placement groups", Setting: "spec.placementGroupSelector of a class", on: (*examination).usesPlacement,
			Actions: []string{"ec2:DescribePlacementGroups"}},
		{Name: "commitments", Setting: "--commitments-from-aws", Statement: "Commitments",
			on:      func(e *examination) bool { return e.opts.Commitments != nil },
			Actions: []string{"ec2:DescribeReservedInstances", "savingsplans:DescribeSavingsPlanRates", "savingsplans:DescribeSavingsPlans"}},
		{Name: "doctor's check of the role of spot", Setting: "a NodePool that allows spot", Actions: []string{"iam:GetRole"},
			on: func(e *examination) bool { return !e.opts.IsolatedVPC && slices.ContainsFunc(e.pools, allowsSpot) }},
	}
}

// makesProfiles reports whether the controller makes instance profiles for roles of classes.
func (e *examination) makesProfiles() bool {
	byRole := func(c awsv1.EC2NodeClass) bool { return c.Spec.InstanceProfile == nil }
	return !e.opts.IsolatedVPC && (len(e.classes) == 0 || slices.ContainsFunc(e.classes, byRole))
}

// usesReservations reports whether a class selects capacity reservations.
func (e *examination) usesReservations() bool {
	terms := func(c awsv1.EC2NodeClass) bool { return len(c.Spec.CapacityReservationSelectorTerms) > 0 }
	return !e.opts.OpenReservations && slices.ContainsFunc(e.classes, terms)
}

// usesPlacement reports whether a class selects a placement group.
func (e *examination) usesPlacement() bool {
	return slices.ContainsFunc(e.classes, func(c awsv1.EC2NodeClass) bool { return c.Spec.PlacementGroupSelector != nil })
}

func (e *examination) readsPrices() bool { return !e.opts.IsolatedVPC && e.opts.Clients.Pricing != nil }

// featureOf returns the feature that needs an action.
func featureOf(action string) Feature {
	for _, f := range Features() {
		if slices.Contains(f.Actions, action) {
			return f
		}
	}
	return Feature{Name: "the controller", on: func(*examination) bool { return true }}
}

// need says what an action is needed for, in a sentence.
func (f Feature) need() string {
	if f.Setting == "" {
		return "for " + f.Name
	}
	return fmt.Sprintf("for %s (%s)", f.Name, f.Setting)
}

// fix says how to allow the feature's actions.
func (f Feature) fix() string {
	if f.Statement == "" {
		return roleFix
	}
	return fmt.Sprintf("allow the statement %s of docs/aws-iam-policy-optional.json for the controller's role "+
		"(with deploy/aws: the switch %[1]s), or turn the feature off: %s", f.Statement, f.Setting)
}
