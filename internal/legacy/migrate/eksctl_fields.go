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

// otherFields are not migrated. The texts continue "is not migrated; ".
var otherFields = map[string]Note{
	"preBootstrapCommands": {Outcome: Impossible,
		Text: "add the commands to spec.userData of the EC2NodeClass (a shell script for Amazon Linux; Bottlerocket runs no scripts)"},
	"overrideBootstrapCommand": {Outcome: Impossible,
		Text: "instances of a known family join the cluster without it; move other settings to spec.userData and spec.kubelet of the EC2NodeClass"},
	"launchTemplate": {Outcome: Impossible,
		Text: "set its image, user data, security groups, role, disks and metadata options in the EC2NodeClass"},
	"bottlerocket": {Outcome: Impossible,
		Text: "write the settings as TOML ([settings.kubernetes] ...) to spec.userData of the EC2NodeClass"},
	"ssh": {Outcome: Impossible,
		Text: "instances have no SSH key; use AWS Systems Manager with the required policy in the role, or add a key in spec.userData"},
	"placement": {Outcome: Impossible,
		Text: "set spec.placementGroupSelector of the EC2NodeClass to the placement group"},
	"capacityReservation": {Outcome: Impossible,
		Text: "select the reservation in spec.capacityReservationSelectorTerms of the EC2NodeClass, and add reserved to " +
			"karpenter.sh/capacity-type in the NodePool"},
	"instanceMarketOptions": {Outcome: Impossible,
		Text: "select the capacity block in spec.capacityReservationSelectorTerms of the EC2NodeClass, and set " +
			"karpenter.sh/capacity-type to reserved in the NodePool"},
	"efaEnabled": {Outcome: Impossible,
		Text: "nodes have EFA if pods request vpc.amazonaws.com/efa, or if spec.networkInterfaces of the EC2NodeClass contains it"},
	"outpostARN":     {Outcome: Impossible, Text: "nodes on Outposts are not supported"},
	"localZones":     {Outcome: Impossible, Text: "nodes in Local Zones are not supported"},
	"enclaveEnabled": {Outcome: Impossible, Text: "Nitro Enclaves are not supported"},
	"targetGroupARNs": {Outcome: Impossible,
		Text: "the controller registers no nodes with target groups; the AWS Load Balancer Controller registers them for Services and Ingresses"},
	"classicLoadBalancerNames": {Outcome: Impossible,
		Text: "the controller registers no nodes with load balancers; a Service of type LoadBalancer registers them"},
	"cpuCredits": {Outcome: Advice,
		Text: "the default of the account for T instance types applies (aws ec2 modify-default-credit-specification)"},
	"ebsOptimized": {Outcome: Advice, Text: "current instance types are EBS-optimized by default"},
	"updateConfig": {Outcome: Advice,
		Text: "spec.disruption.budgets of the NodePool limits how many nodes are replaced at a time"},
	"nodeRepairConfig": {Outcome: Advice, Text: "the feature gate NodeRepair replaces unhealthy nodes"},
}

// distribution contains notes on fields of instancesDistribution, except the types and the shares.
var distribution = map[string]string{
	"maxPrice": "a NodePool has no maximum price; spot instances are launched where they are cheapest, " +
		"at most at the on-demand price; limits of the NodePool bound the cost",
	"spotAllocationStrategy": "spot instances are launched by price and capacity (price-capacity-optimized)",
	"spotInstancePools":      "spot instances are launched by price and capacity, of all instance types that the NodePool allows",
	"capacityRebalance": "the controller handles interruption notices if a queue is set (settings.interruptionQueue of the chart); " +
		"it only reports rebalance recommendations",
}

// nestedFields are those of a group's objects, and of the members of its lists.
var nestedFields = map[string][]string{
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
		if known := nestedFields[field]; known != nil && field != "taints" {
			e.unknownIn(field, value, known)
		}
		for n, member := range members(value) {
			if known := nestedFields[field]; known != nil {
				e.unknownIn(field+"["+itoa(n)+"]", member, known)
			}
		}
	}
	for _, field := range []string{"labels", "tags"} {
		for _, name := range fields(e.field(field)) {
			if value := e.field(field, name); value.Kind != yaml.ScalarNode {
				e.wrong(field+"["+name+"]", value, "a string")
			}
		}
	}
}

// unknownIn adds notes on fields of an object within the group that are unknown or cannot be parsed.
func (e *eksctlGroup) unknownIn(path string, object *yaml.Node, known []string) {
	for _, field := range fields(object) {
		if !slices.Contains(known, field) && !empty(at(object, field)) {
			e.remark(Impossible, path+"."+field, "unknown field; omitted")
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
			want = "an integer"
		case slices.Contains(objects, field) && value.Kind != yaml.MappingNode:
			want = "an object"
		case slices.Contains(booleans, field) && text(value) != "true" && text(value) != "false":
			want = "true or false"
		case slices.Contains(words, field) && value.Kind != yaml.ScalarNode:
			want = "a string"
		case path == "" && field == "taints" && value.Kind == yaml.ScalarNode:
			want = "a list or an object"
		}
		if want != "" {
			e.wrong(under(path, field), value, want)
		}
	}
}

func (e *eksctlGroup) wrong(path string, value *yaml.Node, want string) {
	e.remark(Impossible, path, "is %s, want %s; ignored", strings.TrimSpace(encode(value, false)), want)
}

// otherFields adds notes on what is not migrated. Disabled switches need no note.
func (e *eksctlGroup) otherFields() {
	for _, field := range fields(e.node) {
		value := e.field(field)
		note, known := otherFields[field]
		switch {
		case slices.Contains(readFields, field), slices.Contains(idleFields, field), empty(value),
			value.Kind == yaml.ScalarNode && slices.Contains([]string{"", "false"}, value.Value):
		case field == "ssh" && text(at(value, "allow")) != "true":
		case known:
			e.remark(note.Outcome, field, "is not migrated; %s", note.Text)
			e.special = e.special || note.Outcome == Impossible
		default:
			e.remark(Impossible, field, "unknown field of a node group; omitted")
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
				"unknown field of spec.kubelet of the EC2NodeClass; omitted; on AL2023, set it in a NodeConfig in spec.userData (spec.kubelet.config)")
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
