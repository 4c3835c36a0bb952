package migrate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// Groups of nodes, from a ClusterConfig of eksctl (https://eksctl.io/usage/schema) or from nodes that are there.

func isCluster(root *yaml.Node) bool {
	return text(at(root, "kind")) == "ClusterConfig" && strings.HasPrefix(text(at(root, "apiVersion")), "eksctl.io/")
}

// clusterGroups are the groups of all ClusterConfigs, which are no manifests and are left out.
func (m *migration) clusterGroups() []*nodeGroup {
	var groups []*nodeGroup
	for _, i := range m.items {
		if !isCluster(i.root) {
			continue
		}
		i.gone = true
		i.Object = "ClusterConfig " + text(at(i.root, "metadata", "name"))
		for _, kind := range []string{"nodeGroups", "managedNodeGroups"} {
			for _, node := range members(at(i.root, kind)) {
				groups = append(groups, eksctlGroup(i, node))
			}
		}
		if len(groups) == 0 {
			i.note(Advice, "", "has no node groups: nothing is proposed")
		}
	}
	return groups
}

// eksctlGroup reads one group.
func eksctlGroup(i *item, node *yaml.Node) *nodeGroup {
	name := objectName(text(at(node, "name")))
	g := &nodeGroup{name: name, className: name, source: i, most: -1, labels: map[string]string{}, arch: "amd64"}
	g.types = slices.Concat(texts(at(node, "instanceType")), texts(at(node, "instanceTypes")), texts(at(node, "instancesDistribution", "instanceTypes")))
	g.types = slices.DeleteFunc(g.types, func(one string) bool { return one == "mixed" || one == "" })
	if len(g.types) == 0 && at(node, "instanceSelector") == nil {
		g.types = []string{"m5.large"} // eksctl's default
	}
	if slices.ContainsFunc(g.types, graviton) {
		g.arch = "arm64"
	}
	g.zones = texts(at(node, "availabilityZones"))
	for _, label := range fields(at(node, "labels")) {
		g.label(label, text(at(node, "labels", label)))
	}
	g.readTaints(at(node, "taints"))
	g.most = size(at(node, "maxSize"))
	g.capacity(node)
	g.selector(at(node, "instanceSelector"))
	g.class = g.eksctlClass(i.root, node)
	return g
}

var unnamable = regexp.MustCompile(`[^a-z0-9.-]+`)

// objectName is a group's name as an object may have it.
func objectName(group string) string {
	return strings.Trim(unnamable.ReplaceAllString(strings.ToLower(group), "-"), "-.")
}

func size(node *yaml.Node) int {
	n, err := strconv.Atoi(text(node))
	if err != nil {
		return -1
	}
	return n
}

// graviton reports whether an instance type has an ARM processor: the letter g behind the generation, or a1.
func graviton(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	generation := strings.IndexAny(family, "0123456789")
	return family == "a1" || generation >= 0 && strings.Contains(family[generation:], "g")
}

// label takes a label of the group's nodes, unless it is one that is written on nodes in any case.
func (g *nodeGroup) label(name, value string) {
	domain, _, _ := strings.Cut(name, "/")
	own := []string{"kubernetes.io", "k8s.io", "beta.kubernetes.io", "node.kubernetes.io", "topology.kubernetes.io", "failure-domain.beta.kubernetes.io",
		"eks.amazonaws.com", "alpha.eksctl.io", "k8s.amazonaws.com", "topology.k8s.aws", "topology.ebs.csi.aws.com", "karpenter.sh", "karpenter.k8s.aws",
		"node.k8s.amazonaws.com", "vpc.amazonaws.com"}
	if strings.Contains(name, "/") && slices.Contains(own, domain) || domain == "node-role.kubernetes.io" {
		return
	}
	g.labels[name] = value
}

func (g *nodeGroup) readTaints(list *yaml.Node) {
	if list != nil && list.Kind == yaml.MappingNode { // key: "value:effect"
		for _, key := range fields(list) {
			value, effect, _ := strings.Cut(text(at(list, key)), ":")
			g.taints = append(g.taints, taint(key, value, effect))
		}
		return
	}
	for _, member := range members(list) {
		g.taints = append(g.taints, taint(text(at(member, "key")), text(at(member, "value")), text(at(member, "effect"))))
	}
}

func taint(key, value, effect string) *yaml.Node {
	node := mapping()
	set(node, scalar(key), "key")
	if value != "" {
		set(node, scalar(value), "value")
	}
	set(node, scalar(effect), "effect")
	return node
}

// capacity is how the group's machines are bought.
func (g *nodeGroup) capacity(node *yaml.Node) {
	g.capacityType = "on-demand"
	if text(at(node, "spot")) == "true" {
		g.capacityType = "spot"
	}
	mixed := at(node, "instancesDistribution")
	if mixed == nil {
		return
	}
	base, share := size(at(mixed, "onDemandBaseCapacity")), size(at(mixed, "onDemandPercentageAboveBaseCapacity"))
	if share >= 0 && share < 100 {
		g.capacityType = "spot"
		if base > 0 || share > 0 {
			g.remarks = append(g.remarks, Note{Advice, "instancesDistribution", "a share of on-demand machines cannot be said of one pool: this one buys spot; make a second one with karpenter.sh/capacity-type on-demand and limits for the base"})
		}
	}
}

// selector makes requirements of eksctl's instanceSelector.
func (g *nodeGroup) selector(node *yaml.Node) {
	for field, key := range map[string]string{"vCPUs": awsv1.LabelInstanceCPU, "gpus": awsv1.LabelInstanceGPUCount} {
		if value := text(at(node, field)); value != "" && value != "0" {
			g.requirements = append(g.requirements, requirement(key, "In", value))
		}
	}
	slices.SortFunc(g.requirements, func(a, b *yaml.Node) int { return strings.Compare(text(at(a, "key")), text(at(b, "key"))) })
	if value, found := strings.CutSuffix(strings.TrimSuffix(text(at(node, "memory")), "B"), "Gi"); found || value != "" {
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
			g.requirements = append(g.requirements, requirement(awsv1.LabelInstanceMemory, "In", strconv.Itoa(n*1024)))
		}
	}
	if text(at(node, "cpuArchitecture")) == "arm64" {
		g.arch = "arm64"
	}
}

// eksctlClass is the class of a group: the subnets and security groups are those that eksctl makes for the cluster.
func (g *nodeGroup) eksctlClass(cluster, node *yaml.Node) *yaml.Node {
	name := text(at(cluster, "metadata", "name"))
	class := mapping()
	role := text(at(node, "iam", "instanceRoleName"))
	if arn := text(at(node, "iam", "instanceRoleARN")); role == "" && arn != "" {
		role = arn[strings.LastIndexByte(arn, '/')+1:]
	}
	profile := text(at(node, "iam", "instanceProfileARN"))
	switch {
	case role != "":
		set(class, scalar(role), "role")
	case profile != "":
		set(class, scalar(profile[strings.LastIndexByte(profile, '/')+1:]), "instanceProfile")
	default:
		set(class, scalar("KarpenterNodeRole-"+name), "role")
		g.remarks = append(g.remarks, Note{Advice, "iam", "the role of the group is made by eksctl under a name that is not in the file: KarpenterNodeRole-" + name + " is named here; make it, or put the right name"})
	}
	g.eksctlImage(class, node)
	g.eksctlNetwork(class, node, name)
	g.eksctlDisk(class, node)
	for _, tag := range fields(at(node, "tags")) {
		if !strings.HasPrefix(tag, "k8s.io/cluster-autoscaler/") && !strings.HasPrefix(tag, awsv1.TagClusterPrefix) {
			set(class, scalar(text(at(node, "tags", tag))), "tags", tag)
		}
	}
	if n := size(at(node, "maxPodsPerNode")); n > 0 {
		set(class, integer(int64(n)), "kubelet", "maxPods")
	}
	for _, field := range []string{"preBootstrapCommands", "overrideBootstrapCommand", "ssh", "launchTemplate", "kubeletExtraConfig", "additionalVolumes", "placement", "efaEnabled"} {
		if at(node, field) != nil {
			g.remarks = append(g.remarks, Note{Impossible, field, "is not carried over: see spec.userData, spec.kubelet, spec.blockDeviceMappings and spec.placementGroupSelector of the EC2NodeClass"})
		}
	}
	return class
}

// eksctlImage is the alias of the group's family of images.
func (g *nodeGroup) eksctlImage(class, node *yaml.Node) {
	families := map[string]string{"": "al2023", "AmazonLinux2023": "al2023", "AmazonLinux2": "al2", "Bottlerocket": "bottlerocket",
		"WindowsServer2019CoreContainer": "windows2019", "WindowsServer2019FullContainer": "windows2019", "WindowsServer2022CoreContainer": "windows2022", "WindowsServer2022FullContainer": "windows2022"}
	written := text(at(node, "amiFamily"))
	alias, known := families[written]
	if !known {
		alias = "al2023"
		g.remarks = append(g.remarks, Note{Impossible, "amiFamily", written + " has no alias: al2023@latest is named; for other images see spec.amiSelectorTerms"})
	}
	if strings.HasPrefix(alias, "windows") {
		g.os = "windows"
	}
	term := mapping()
	if id := text(at(node, "ami")); strings.HasPrefix(id, "ami-") {
		families := map[string]string{"al2": "AL2", "al2023": "AL2023", "bottlerocket": "Bottlerocket", "windows2019": "Windows2019", "windows2022": "Windows2022"}
		set(class, scalar(families[alias]), "amiFamily")
		set(term, scalar(id), "id")
	} else {
		set(term, scalar(alias+"@latest"), "alias")
	}
	set(class, sequence(term), "amiSelectorTerms")
}

// eksctlNetwork selects the subnets of the group, and the security groups of the cluster.
func (g *nodeGroup) eksctlNetwork(class, node *yaml.Node, cluster string) {
	subnets, groups := sequence(), sequence()
	for _, id := range texts(at(node, "subnets")) {
		term := mapping()
		if strings.HasPrefix(id, "subnet-") {
			set(term, scalar(id), "id")
		} else {
			set(term, scalar(id), "tags", "Name")
		}
		subnets.Content = append(subnets.Content, term)
	}
	if len(subnets.Content) == 0 {
		term := mapping()
		set(term, scalar(cluster), "tags", "alpha.eksctl.io/cluster-name")
		role := "kubernetes.io/role/elb"
		if text(at(node, "privateNetworking")) == "true" {
			role = "kubernetes.io/role/internal-elb"
		}
		set(term, scalar("1"), "tags", role)
		subnets.Content = append(subnets.Content, term)
	}
	term := mapping()
	set(term, scalar("owned"), "tags", awsv1.TagClusterPrefix+cluster)
	groups.Content = append(groups.Content, term)
	for _, id := range texts(at(node, "securityGroups", "attachIDs")) {
		term := mapping()
		set(term, scalar(id), "id")
		groups.Content = append(groups.Content, term)
	}
	set(class, subnets, "subnetSelectorTerms")
	set(class, groups, "securityGroupSelectorTerms")
}

// eksctlDisk is the root volume, if the file says something of it.
func (g *nodeGroup) eksctlDisk(class, node *yaml.Node) {
	if at(node, "volumeSize") == nil && at(node, "volumeType") == nil && at(node, "volumeEncrypted") == nil {
		return
	}
	disk := mapping()
	device := "/dev/xvda"
	switch {
	case text(at(node, "amiFamily")) == "Bottlerocket":
		device = "/dev/xvdb" // what is for pods; the system has /dev/xvda
	case g.os == "windows":
		device = "/dev/sda1"
	}
	set(disk, scalar(device), "deviceName")
	set(disk, scalar(strconv.Itoa(max(size(at(node, "volumeSize")), 20))+"Gi"), "ebs", "volumeSize")
	if size(at(node, "volumeSize")) < 0 {
		set(disk, scalar("80Gi"), "ebs", "volumeSize") // eksctl's default
	}
	kind := text(at(node, "volumeType"))
	if kind == "" {
		kind = "gp3"
	}
	set(disk, scalar(kind), "ebs", "volumeType")
	if text(at(node, "volumeEncrypted")) == "true" {
		set(disk, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}, "ebs", "encrypted")
	}
	if key := text(at(node, "volumeKmsKeyID")); key != "" {
		set(disk, scalar(key), "ebs", "kmsKeyID")
	}
	for _, field := range []struct{ from, to string }{{"volumeIOPS", "iops"}, {"volumeThroughput", "throughput"}} {
		if n := size(at(node, field.from)); n > 0 {
			set(disk, integer(int64(n)), "ebs", field.to)
		}
	}
	set(class, sequence(disk), "blockDeviceMappings")
}

// groupLabels name the group that a node is of, cloud by cloud.
var groupLabels = []string{"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kops.k8s.io/instancegroup", "node.kubernetes.io/instancegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"}

// nodeGroups are the groups of the nodes in the input, those of known groups completed.
func (m *migration) nodeGroups(known []*nodeGroup) []*nodeGroup {
	byName := map[string]*nodeGroup{}
	for _, g := range known {
		byName[g.name] = g
	}
	var found []*nodeGroup
	for _, i := range m.items {
		if i.kind != "Node" || i.apiVersion != "v1" {
			continue
		}
		labels := at(i.root, "metadata", "labels")
		name := ""
		for _, label := range groupLabels {
			if name == "" {
				name = text(at(labels, label))
			}
		}
		if name == "" || at(labels, "karpenter.sh/nodepool") != nil {
			continue
		}
		name = objectName(name)
		g := byName[name]
		if g == nil {
			source := i
			if m.scaler.item != nil {
				source = m.scaler.item
			}
			g = &nodeGroup{name: name, source: source, most: -1, className: m.onlyClass()}
			byName[name], found = g, append(found, g)
		}
		g.nodes++
		if !slices.Contains(known, g) {
			g.see(i.root)
		}
	}
	for _, g := range found {
		if g.className == "" {
			g.remarks = append(g.remarks, Note{Advice, "", "nodes do not say which subnets, security groups, images and role their machines have: write the EC2NodeClass default (kubectl explain ec2nodeclass.spec), or give the ClusterConfig of eksctl"})
		}
	}
	return found
}

// onlyClass is the one EC2NodeClass of the input.
func (m *migration) onlyClass() string {
	name := ""
	for _, i := range m.items {
		if i.is(awsv1.Group, "EC2NodeClass") {
			if name != "" {
				return ""
			}
			name = i.name
		}
	}
	return name
}

// see takes in one node: types and zones add up, labels and taints are those that all nodes have.
func (g *nodeGroup) see(node *yaml.Node) {
	labels := at(node, "metadata", "labels")
	g.arch, g.os = text(at(labels, "kubernetes.io/arch")), text(at(labels, "kubernetes.io/os"))
	addOnce(&g.types, text(at(labels, "node.kubernetes.io/instance-type")))
	addOnce(&g.zones, text(at(labels, "topology.kubernetes.io/zone")))
	if strings.EqualFold(text(at(labels, "eks.amazonaws.com/capacityType")), "SPOT") || text(at(labels, "node-lifecycle")) == "spot" {
		g.capacityType = "spot"
	}
	seen := nodeGroup{labels: map[string]string{}}
	for _, name := range fields(labels) {
		seen.label(name, text(at(labels, name)))
	}
	for _, member := range members(at(node, "spec", "taints")) {
		if key := text(at(member, "key")); !strings.HasPrefix(key, "node.kubernetes.io/") && !strings.HasPrefix(key, "ToBeDeletedByClusterAutoscaler") && !strings.HasPrefix(key, "DeletionCandidateOfClusterAutoscaler") {
			seen.taints = append(seen.taints, taint(key, text(at(member, "value")), text(at(member, "effect"))))
		}
	}
	if g.nodes == 1 {
		g.labels, g.taints = seen.labels, seen.taints
		return
	}
	maps.DeleteFunc(g.labels, func(name, value string) bool { return seen.labels[name] != value })
	g.taints = slices.DeleteFunc(g.taints, func(t *yaml.Node) bool {
		return !slices.ContainsFunc(seen.taints, func(other *yaml.Node) bool { return same(t, other) })
	})
}

func addOnce(list *[]string, value string) {
	if value != "" && !slices.Contains(*list, value) {
		*list = append(*list, value)
		slices.Sort(*list)
	}
}
