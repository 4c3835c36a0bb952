package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file handles the fields of a group that are not about its types, labels, taints, sizes or class. The list of
// fields is that of eksctl's schema (https://schema.eksctl.io, NodeGroup and ManagedNodeGroup).

// readFields are migrated, with a note where a part of them is not.
var readFields = []string{
	"name", "amiFamily", "ami", "releaseVersion", "instanceType", "instanceTypes", "instancesDistribution",
	"instanceSelector", "availabilityZones", "labels", "taints",
	"minSize", "maxSize", "maxInstanceLifetime", "spot", "iam", "tags", "subnets", "privateNetworking", "securityGroups",
	"maxPodsPerNode", "clusterDNS",
	"kubeletExtraConfig", "disableIMDSv1", "disablePodIMDS", "enableDetailedMonitoring", "instanceName", "instancePrefix",
	"volumeSize", "volumeType", "volumeName", "volumeEncrypted", "volumeKmsKeyID", "volumeIOPS", "volumeThroughput", "additionalVolumes",
}

// idleFields are about Auto Scaling groups, stacks and their updates, which pools do not have.
var idleFields = []string{"desiredCapacity", "asgMetricsCollection", "asgSuspendProcesses", "propagateASGTags",
	"containerRuntime", "status"}

// otherFields are not migrated.
var otherFields = map[string]Note{
	"preBootstrapCommands": {Outcome: Impossible,
		Text: "are not carried over: write them into spec.userData of the EC2NodeClass (a shell script for Amazon Linux; Bottlerocket runs none)"},
	"overrideBootstrapCommand": {Outcome: Impossible,
		Text: "is not carried over: machines of the family are told to join by themselves; what is special goes into spec.userData and spec.kubelet of the EC2NodeClass"},
	"launchTemplate": {Outcome: Impossible,
		Text: "is not carried over: say its image, user data, security groups, role, disks and metadata options in the EC2NodeClass"},
	"bottlerocket": {Outcome: Impossible,
		Text: "is not carried over: write its settings as TOML ([settings.kubernetes] ...) into spec.userData of the EC2NodeClass"},
	"ssh": {Outcome: Impossible,
		Text: "is not carried over: machines have no key; use AWS Systems Manager with the right policy in the role, or add a key by spec.userData"},
	"placement": {Outcome: Impossible,
		Text: "is not carried over: spec.placementGroupSelector of the EC2NodeClass is accepted, but not acted on yet"},
	"capacityReservation": {Outcome: Impossible,
		Text: "is not carried over: spec.capacityReservationSelectorTerms of the EC2NodeClass are accepted, but not acted on yet"},
	"instanceMarketOptions": {Outcome: Impossible, Text: "is not carried over: capacity blocks are not launched"},
	"efaEnabled": {Outcome: Impossible,
		Text: "is not carried over: nodes have EFA when pods ask for vpc.amazonaws.com/efa, or by spec.networkInterfaces of the EC2NodeClass"},
	"outpostARN":     {Outcome: Impossible, Text: "is not carried over: no node is launched on Outposts"},
	"localZones":     {Outcome: Impossible, Text: "is not carried over: no node is launched in Local Zones"},
	"enclaveEnabled": {Outcome: Impossible, Text: "is not carried over: machines have no Nitro Enclaves"},
	"targetGroupARNs": {Outcome: Impossible,
		Text: "is not carried over: no node is registered with a target group by us; the AWS Load Balancer Controller does it for Services and Ingresses"},
	"classicLoadBalancerNames": {Outcome: Impossible,
		Text: "is not carried over: no node is registered with a load balancer by us; Services of type LoadBalancer do it"},
	"cpuCredits": {Outcome: Advice,
		Text: "is not carried over: the account's default for T types holds (aws ec2 modify-default-credit-specification)"},
	"ebsOptimized": {Outcome: Advice, Text: "is not carried over: types of today are so by themselves"},
	"updateConfig": {Outcome: Advice,
		Text: "is how many nodes EKS replaces at a time: spec.disruption.budgets of the NodePool say it"},
	"nodeRepairConfig": {Outcome: Advice,
		Text: "is not carried over: nodes that are unhealthy are replaced with the feature gate NodeRepair"},
}

// distribution contains notes on fields of instancesDistribution, except the types and the shares.
var distribution = map[string]string{
	"maxPrice":               "there is no maximum price: spot is launched where it is cheapest, and never costs more than on demand; limits of the NodePool bound the cost",
	"spotAllocationStrategy": "spot is launched by price and capacity (price-capacity-optimized)",
	"spotInstancePools":      "spot is launched by price and capacity of all types that the pool may have",
	"capacityRebalance":      "notices of interruptions are acted on if there is a queue (settings.interruptionQueue of the chart); recommendations to rebalance are told only",
}

// within contains the fields of a group's objects, and of the members of its lists.
var within = map[string][]string{
	"iam": {"attachPolicy", "attachPolicyARNs", "instanceProfileARN", "instanceRoleARN",
		"instanceRoleName", "instanceRolePermissionsBoundary", "withAddonPolicies"},
	"instancesDistribution": {"capacityRebalance", "instanceTypes", "maxPrice", "onDemandBaseCapacity",
		"onDemandPercentageAboveBaseCapacity", "spotAllocationStrategy", "spotInstancePools"},
	"instanceSelector": {"allow", "cpuArchitecture", "deny", "gpus", "memory", "neuron_devices", "vCPUs"},
	"securityGroups":   {"attachIDs", "withLocal", "withShared"},
	"additionalVolumes": {"snapshotID", "volumeEncrypted", "volumeIOPS", "volumeKmsKeyID", "volumeName",
		"volumeSize", "volumeThroughput", "volumeType"},
	"taints": {"key", "value", "effect"},
}

// These are the expected types of fields whose values are read, in a group and in its objects.
var (
	numbers = []string{
		"minSize", "maxSize", "maxInstanceLifetime", "maxPodsPerNode", "volumeSize", "volumeIOPS", "volumeThroughput",
		"onDemandBaseCapacity", "onDemandPercentageAboveBaseCapacity",
	}
	objects  = []string{"labels", "tags", "iam", "instancesDistribution", "instanceSelector", "securityGroups", "kubeletExtraConfig"}
	booleans = []string{"spot", "privateNetworking", "disableIMDSv1", "disablePodIMDS", "enableDetailedMonitoring",
		"volumeEncrypted", "withLocal", "withShared"}
	words = []string{
		"amiFamily", "ami", "releaseVersion", "clusterDNS", "instanceName", "instancePrefix", "volumeType", "volumeName",
		"volumeKmsKeyID", "snapshotID",
		"instanceRoleName", "instanceRoleARN", "instanceProfileARN",
	}
)

// wrongFields adds notes on fields that cannot be parsed, for example in a template with placeholders. They count as
// absent. It also reports unknown fields of objects within the group.
func (e *eksctlGroup) wrongFields() {
	e.wrongIn("", e.node)
	for _, field := range fields(e.node) {
		value := e.field(field)
		if known := within[field]; known != nil && field != "taints" {
			e.strangeIn(field, value, known)
		}
		for n, member := range members(value) {
			if known := within[field]; known != nil {
				e.strangeIn(field+"["+itoa(n)+"]", member, known)
			}
		}
	}
	for _, field := range []string{"labels", "tags"} {
		for _, name := range fields(e.field(field)) {
			if value := e.field(field, name); value.Kind != yaml.ScalarNode {
				e.wrong(field+"["+name+"]", value, "a text")
			}
		}
	}
}

// strangeIn adds notes on fields of an object within the group that are unknown or cannot be parsed.
func (e *eksctlGroup) strangeIn(path string, object *yaml.Node, known []string) {
	for _, field := range fields(object) {
		if !slices.Contains(known, field) && !empty(at(object, field)) {
			e.remark(Impossible, path+"."+field, "is no field that is known here, and is left out")
		}
	}
	e.wrongIn(path, object)
}

func (e *eksctlGroup) wrongIn(path string, object *yaml.Node) {
	for _, field := range fields(object) {
		value, want := at(object, field), ""
		switch {
		case empty(value):
		case slices.Contains(numbers, field) && size(value) < 0:
			want = "a whole number"
		case slices.Contains(objects, field) && value.Kind != yaml.MappingNode:
			want = "an object with fields"
		case slices.Contains(booleans, field) && text(value) != "true" && text(value) != "false":
			want = "true or false"
		case slices.Contains(words, field) && value.Kind != yaml.ScalarNode:
			want = "a text"
		case path == "" && field == "taints" && value.Kind == yaml.ScalarNode:
			want = "a list, or an object with fields"
		}
		if want != "" {
			e.wrong(under(path, field), value, want)
		}
	}
}

func (e *eksctlGroup) wrong(path string, value *yaml.Node, want string) {
	e.remark(Impossible, path, "is %s, want %s: it counts as not written", strings.TrimSpace(encode(value, false)), want)
}

// otherFields adds notes on what is not migrated. Disabled switches need no note.
func (e *eksctlGroup) otherFields() {
	for _, field := range fields(e.node) {
		value := e.field(field)
		note, told := otherFields[field]
		switch {
		case slices.Contains(readFields, field), slices.Contains(idleFields, field), empty(value),
			value.Kind == yaml.ScalarNode && slices.Contains([]string{"", "false"}, value.Value):
		case field == "ssh" && text(at(value, "allow")) != "true":
		case told:
			e.remark(note.Outcome, field, "%s", note.Text)
			e.special = e.special || note.Outcome == Impossible
		default:
			e.remark(Impossible, field, "is no field of a node group that is known here, and is left out")
		}
	}
}

// kubeletFields are those of the kubelet's configuration that an EC2NodeClass has.
var kubeletFields = []string{
	"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod",
	"evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota",
}

// kubeletSettings reads the kubelet settings that an EC2NodeClass supports.
func (e *eksctlGroup) kubeletSettings() {
	extra := e.field("kubeletExtraConfig")
	for _, field := range fields(extra) {
		value := clone(at(extra, field))
		if !slices.Contains(kubeletFields, field) {
			e.special = true
			e.remark(Impossible, "kubeletExtraConfig."+field,
				"is no field of spec.kubelet of the EC2NodeClass: on AL2023, a NodeConfig in spec.userData takes it (spec.kubelet.config)")
			continue
		}
		block(value)
		for _, name := range fields(value) { // amounts are strings
			quote(at(value, name))
		}
		set(e.class, value, "kubelet", field)
	}
	if n := size(e.field("maxPodsPerNode")); n > 0 {
		set(e.class, integer(int64(n)), "kubelet", "maxPods")
	}
	if address := text(e.field("clusterDNS")); address != "" {
		set(e.class, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle, Content: []*yaml.Node{scalar(address)}},
			"kubelet", "clusterDNS")
	}
}
