package migrate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file reads node groups of a ClusterConfig of eksctl (https://schema.eksctl.io). Fields that a group does not
// set have eksctl's defaults, not those of a pool or a class: for example a disk of 80 GiB. Every field of a group is
// read, or has an entry in eksctl_fields.go.

func isCluster(root *yaml.Node) bool {
	return text(at(root, "kind")) == "ClusterConfig" && strings.HasPrefix(text(at(root, "apiVersion")), "eksctl.io/")
}

// clusterGroups returns the groups of all ClusterConfigs. Those are not manifests and are omitted from the output.
func (m *migration) clusterGroups() []*nodeGroup {
	var groups []*nodeGroup
	names := map[string]string{} // by NodePool, the names of groups as written
	first := ""
	for _, i := range m.items {
		if !isCluster(i.root) {
			continue
		}
		i.gone = true
		name := text(at(i.root, "metadata", "name"))
		i.Object = "ClusterConfig " + name
		switch {
		case first == "":
			first = name
		case name != first:
			i.note(Impossible, "metadata.name", "differs from the cluster %s in the same input; migrate one cluster at a time", first)
		}
		before := len(groups)
		for _, kind := range []string{"nodeGroups", "managedNodeGroups"} {
			for n, node := range members(at(i.root, kind)) {
				if i.named(kind+"["+itoa(n)+"]", text(at(node, "name")), names) {
					e := eksctlGroup{options: m.options, item: i, node: node, managed: kind == "managedNodeGroups"}
					groups = append(groups, e.read())
				}
			}
		}
		if len(groups) == before {
			i.note(Advice, "", "contains no node groups; no NodePool is proposed")
		}
	}
	return groups
}

// named reports whether a group of a ClusterConfig has a name that results in a unique NodePool, and adds a note if
// it has not.
func (i *item) named(path, written string, names map[string]string) bool {
	name := objectName(written)
	other, again := names[name]
	switch {
	case name == "":
		i.note(Impossible, path, "has no name that is valid for a NodePool; no NodePool is proposed")
	case again:
		i.note(Impossible, path, "is named %s, which results in NodePool %s, as for the group %s; no NodePool is proposed; rename the group",
			written, name, other)
	default:
		names[name] = written
		return true
	}
	return false
}

// eksctlGroup is one group during its migration.
type eksctlGroup struct {
	*nodeGroup
	*item
	options Options
	node    *yaml.Node
	managed bool
}

func (e *eksctlGroup) read() *nodeGroup {
	written := text(at(e.node, "name"))
	e.nodeGroup = newNodeGroup(written, e.item)
	g := e.nodeGroup
	g.className = g.name
	e.instanceTypes()
	g.zones = texts(at(e.node, "availabilityZones"))
	e.capacity()
	e.allLabels(written)
	e.readTaints()
	g.least, g.most = size(at(e.node, "minSize")), size(at(e.node, "maxSize"))
	if seconds := size(at(e.node, "maxInstanceLifetime")); seconds > 0 {
		g.lifetime = strconv.Itoa(seconds) + "s"
	}
	e.eksctlClass()
	e.wrongFields()
	e.otherFields()
	return g
}

var unnamable = regexp.MustCompile(`[^a-z0-9.-]+`)

// objectName returns a group's name in a form that is valid for an object.
func objectName(group string) string {
	return strings.Trim(unnamable.ReplaceAllString(strings.ToLower(group), "-"), "-.")
}

// size returns a number, or -1 if it is absent.
func size(node *yaml.Node) int {
	n, err := strconv.Atoi(text(node))
	if err != nil {
		return -1
	}
	return n
}

func (e *eksctlGroup) field(path ...string) *yaml.Node { return at(e.node, path...) }

func (e *eksctlGroup) isTrue(path ...string) bool { return text(at(e.node, path...)) == "true" }

// allLabels adds the group's labels, and those that eksctl and EKS set on its nodes.
func (e *eksctlGroup) allLabels(written string) {
	g := e.nodeGroup
	g.made["alpha.eksctl.io/nodegroup-name"] = written
	g.made["alpha.eksctl.io/cluster-name"] = text(at(e.root, "metadata", "name"))
	spot := slices.Contains(g.capacityTypes, "spot")
	if e.managed {
		g.made["eks.amazonaws.com/nodegroup"] = written
		g.made["eks.amazonaws.com/capacityType"] = map[bool]string{true: "SPOT", false: "ON_DEMAND"}[spot]
	} else {
		g.made["node-lifecycle"] = map[bool]string{true: "spot", false: "on-demand"}[spot]
	}
	for _, name := range fields(e.field("labels")) {
		if e.field("labels", name).Kind != yaml.ScalarNode {
			continue // wrongFields reports it
		}
		g.label(name, text(e.field("labels", name)))
		if value, requirement := g.ofRequirement(name); requirement && value != text(e.field("labels", name)) {
			g.remark(Impossible, "labels["+name+"]", "is %s; omitted, because the requirements of the NodePool determine this label",
				text(e.field("labels", name)))
		}
	}
}

// ofRequirement returns the value of a label on the pool's nodes that follows from its requirements, if it is a
// single value.
func (g *nodeGroup) ofRequirement(name string) (value string, one bool) {
	if labelKindOf(name) != nodeLabel {
		return "", false
	}
	all := map[string][]string{"kubernetes.io/arch": g.archs, "node.kubernetes.io/instance-type": g.types,
		"topology.kubernetes.io/zone": g.zones, "karpenter.sh/capacity-type": g.capacityTypes}[name]
	if len(all) != 1 {
		return "", false
	}
	return all[0], true
}

// effects lists the effects of taints.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// readTaints reads a list, or key: "value:effect", where value and colon are optional.
func (e *eksctlGroup) readTaints() {
	add := func(key, value, effect string) {
		if key == "" || !slices.Contains(effects, effect) {
			e.remark(Impossible, "taints", "contains %s, want a key and one of the effects %s; omitted",
				taintName(key, value, effect), strings.Join(effects, ", "))
			return
		}
		e.taints = append(e.taints, taint(key, value, effect))
	}
	list := e.field("taints")
	for _, key := range fields(list) {
		value, effect, found := strings.Cut(text(at(list, key)), ":")
		if !found {
			value, effect = "", value
		}
		add(key, value, effect)
	}
	for _, member := range members(list) {
		add(text(at(member, "key")), text(at(member, "value")), text(at(member, "effect")))
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

// capacity reads the capacity types of the group.
func (e *eksctlGroup) capacity() {
	e.capacityTypes = []string{"on-demand"}
	if e.isTrue("spot") {
		e.capacityTypes = []string{"spot"}
	}
	base, share := size(e.field("instancesDistribution", "onDemandBaseCapacity")),
		size(e.field("instancesDistribution", "onDemandPercentageAboveBaseCapacity"))
	if share >= 0 && share < 100 {
		e.capacityTypes = []string{"spot"}
		if base > 0 || share > 0 {
			e.remark(Advice, "instancesDistribution", "a NodePool has no share of on-demand instances; this one launches spot instances; "+
				"for the base, add a NodePool with karpenter.sh/capacity-type on-demand and limits")
		}
	}
	for _, name := range fields(e.field("instancesDistribution")) {
		if why := distribution[name]; why != "" {
			e.remark(Advice, "instancesDistribution."+name, "is %s; %s", text(e.field("instancesDistribution", name)), why)
		}
	}
}
