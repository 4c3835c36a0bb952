package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// This file derives node groups from existing nodes. Those of a ClusterConfig are read in eksctl.go.

// nodeGroup is a set of instances with the same configuration.
type nodeGroup struct {
	name, className string
	written         string   // its name at its source
	clouds          []string // its names in the cloud, from --nodes
	source          *item
	types, zones    []string
	archs           []string
	os              string
	capacityTypes   []string
	labels          map[string]string // of the pool's nodes
	made            map[string]string // set by other components on the group's nodes; the pool gets those that pods require
	refused         map[string]string // those that no pool can have
	taints          []*yaml.Node
	least, most     int        // numbers of nodes; -1 unknown
	weight          int        // from the priorities of the expander; 0: none
	special         bool       // its class has to be completed manually
	lifetime        string     // of a node; empty: Never
	class           *yaml.Node // spec of its EC2NodeClass, nil if unknown
	requirements    []*yaml.Node
	remarks         []Note

	nodes      int                       // number of nodes in the input
	kept       []string                  // those that the Cluster Autoscaler must not remove
	seenLabels map[string]map[string]int // how many of them have a label, by name and value
	seenTaints map[string]int            // how many have a taint, by key=value:effect
	taintOf    map[string]*yaml.Node
}

func newNodeGroup(written string, source *item) *nodeGroup {
	return &nodeGroup{
		name: objectName(written), written: written, source: source, least: -1, most: -1, labels: map[string]string{},
		made: map[string]string{}, refused: map[string]string{},
		seenLabels: map[string]map[string]int{}, seenTaints: map[string]int{}, taintOf: map[string]*yaml.Node{},
	}
}

// remark adds a note on a field of the group.
func (g *nodeGroup) remark(outcome Outcome, field, format string, arguments ...any) {
	g.remarks = append(g.remarks, Note{outcome, field, fmt.Sprintf(format, arguments...)})
}

// groupLabels are the labels with the name of a node's group, by cloud.
var groupLabels = []string{"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kops.k8s.io/instancegroup",
	"node.kubernetes.io/instancegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"}

// nodeGroups returns the unknown groups of the nodes in the input, and counts the nodes of known groups.
func (m *migration) nodeGroups(known []*nodeGroup) []*nodeGroup {
	byName := map[string]*nodeGroup{}
	for _, g := range known {
		byName[g.name] = g
	}
	var found []*nodeGroup
	var ungrouped []string
	for _, i := range m.items {
		if i.kind != "Node" || i.apiVersion != "v1" {
			continue
		}
		written := groupOfNode(i.root)
		name := objectName(written)
		switch {
		case at(i.root, "metadata", "labels", "karpenter.sh/nodepool") != nil, withoutOwner(i.root):
			continue
		case name == "":
			ungrouped = append(ungrouped, i.name)
			continue
		}
		g := byName[name]
		if g == nil {
			g = newNodeGroup(written, m.origin(i))
			g.className = m.onlyClass()
			byName[name], found = g, append(found, g)
		}
		if g.written != written {
			g.source.note(Impossible, written, "results in the same NodePool name as the group %s; no NodePool is proposed; write one", g.written)
			continue
		}
		g.see(i.root)
		if !slices.Contains(known, g) {
			g.seeMore(i.root, m.passing)
		}
	}
	for _, g := range slices.Concat(known, found) {
		g.protect()
	}
	for _, g := range found {
		g.settle()
		if g.className == "" {
			g.remark(Advice, "", "Node objects do not contain subnets, security groups, images, disks and role; "+
				"write the EC2NodeClass default (kubectl explain ec2nodeclass.spec), or add the ClusterConfig of eksctl to the input")
		}
	}
	m.scaler.withoutGroup(ungrouped)
	return found
}

// withoutGroup reports nodes without a group.
func (a *autoscaler) withoutGroup(names []string) {
	if len(names) > 0 {
		a.source.note(Advice, "", "%s without a label of a node group such as %s (%s); no NodePool is proposed for such nodes",
			plural(len(names), "node"), groupLabels[0], some(names))
	}
}

// origin returns the item after which the pool of a node's group is printed.
func (m *migration) origin(node *item) *item {
	if m.scaler.item != nil {
		return m.scaler.item
	}
	return node
}

func groupOfNode(node *yaml.Node) string {
	for _, label := range groupLabels {
		if name := text(at(node, "metadata", "labels", label)); name != "" {
			return name
		}
	}
	return ""
}

// withoutOwner reports whether a node belongs to no group: Fargate, or the control plane.
func withoutOwner(node *yaml.Node) bool {
	labels := at(node, "metadata", "labels")
	return text(at(labels, "eks.amazonaws.com/compute-type")) == "fargate" || at(labels,
		"node-role.kubernetes.io/control-plane") != nil || at(labels, "node-role.kubernetes.io/master") != nil
}

// some returns the first three names of a list.
func some(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}

// onlyClass returns the only EC2NodeClass in the input.
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

// passing reports whether a taint is temporary: by the prefix of its key, or by a flag of the Cluster Autoscaler.
func (m *migration) passing(key string) bool {
	temporary := slices.Concat(m.scaler.flags["startup-taint"], m.scaler.flags["ignore-taint"], m.scaler.flags["status-taint"])
	return slices.Contains(temporary, key) || slices.ContainsFunc(passingTaints, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

var passingTaints = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler",
	"DeletionCandidateOfClusterAutoscaler",
	"ignore-taint.cluster-autoscaler.kubernetes.io/", "startup-taint.cluster-autoscaler.kubernetes.io/",
	"status-taint.cluster-autoscaler.kubernetes.io/"}

// see counts one node with its labels.
func (g *nodeGroup) see(node *yaml.Node) {
	labels := at(node, "metadata", "labels")
	g.nodes++
	if text(at(node, "metadata", "annotations", karpv1.AnnotationScaleDownDisabled)) == "true" {
		g.kept = append(g.kept, text(at(node, "metadata", "name")))
	}
	for _, name := range fields(labels) {
		if labelKindOf(name) != nodeLabel {
			if g.seenLabels[name] == nil {
				g.seenLabels[name] = map[string]int{}
			}
			g.seenLabels[name][text(at(labels, name))]++
		}
	}
}

// seeMore adds the data of one node to a group that is only known from nodes: types, zones, architectures and
// capacity types.
func (g *nodeGroup) seeMore(node *yaml.Node, passing func(taint string) bool) {
	labels := at(node, "metadata", "labels")
	g.os = text(at(labels, "kubernetes.io/os"))
	addOnce(&g.archs, text(at(labels, "kubernetes.io/arch")))
	addOnce(&g.types, text(at(labels, "node.kubernetes.io/instance-type")))
	addOnce(&g.zones, text(at(labels, "topology.kubernetes.io/zone")))
	capacity := "on-demand"
	if strings.EqualFold(text(at(labels, "eks.amazonaws.com/capacityType")), "SPOT") || text(at(labels, "node-lifecycle")) == "spot" {
		capacity = "spot"
	}
	addOnce(&g.capacityTypes, capacity)
	for _, member := range members(at(node, "spec", "taints")) {
		key, value, effect := text(at(member, "key")), text(at(member, "value")), text(at(member, "effect"))
		if !passing(key) {
			name := taintName(key, value, effect)
			g.seenTaints[name]++
			g.taintOf[name] = taint(key, value, effect)
		}
	}
}

// protect reports nodes that the Cluster Autoscaler must not remove. If all nodes of the group are such, the NodePool's are
// too.
func (g *nodeGroup) protect() {
	const annotation = karpv1.AnnotationScaleDownDisabled + ": \"true\""
	switch {
	case len(g.kept) == 0:
	case g.keptAlways():
		g.remark(Changed, "", "all nodes have %s; the nodes of the NodePool get its equivalent %s: \"true\"", annotation,
			karpv1.AnnotationDoNotDisrupt)
	default:
		g.remark(Advice, "", "%d of %s have %s (%s); annotate nodes with %s: \"true\" to keep them, or the pods for which they are kept",
			len(g.kept), plural(g.nodes, "node"), annotation, some(g.kept), karpv1.AnnotationDoNotDisrupt)
	}
}

// keptAlways reports whether the Cluster Autoscaler must not remove any node of the group.
func (g *nodeGroup) keptAlways() bool { return len(g.kept) > 0 && len(g.kept) == g.nodes }

func taintName(key, value, effect string) string {
	if value != "" {
		key += "=" + value
	}
	return key + ":" + effect
}

// settle adds the labels and taints that all of the group's nodes have, and reports taints that only some have.
func (g *nodeGroup) settle() {
	for _, name := range slices.Sorted(maps.Keys(g.seenLabels)) {
		if value, all := g.common(name); all {
			g.label(name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.seenTaints)) {
		if g.seenTaints[name] == g.nodes {
			g.taints = append(g.taints, g.taintOf[name])
		} else {
			g.remark(Advice, "taints", "%s is on %d of %s of the group; omitted; add it to spec.template.spec.taints if all nodes of the NodePool need it",
				name, g.seenTaints[name], plural(g.nodes, "node"))
		}
	}
	if len(g.capacityTypes) > 1 {
		g.remark(Advice, "capacityType",
			"the group has spot and on-demand nodes; the NodePool allows both, and launches the cheapest")
	}
}

// common returns the value that a label has on all nodes of the group.
func (g *nodeGroup) common(name string) (value string, all bool) {
	for value, n := range g.seenLabels[name] {
		if n == g.nodes {
			return value, true
		}
	}
	return "", false
}

// spread describes how many nodes have which value of a label.
func (g *nodeGroup) spread(name string) string {
	var parts []string
	without := g.nodes
	for _, value := range slices.Sorted(maps.Keys(g.seenLabels[name])) {
		n := g.seenLabels[name][value]
		without -= n
		parts = append(parts, fmt.Sprintf("%q on %d", value, n))
	}
	if without > 0 {
		parts = append(parts, fmt.Sprintf("none on %d", without))
	}
	return strings.Join(parts, ", ")
}

// sizes reports the minimum and maximum sizes of the groups, in one line per source. A pool only has a maximum.
func sizes(groups []*nodeGroup) {
	for n, first := range groups {
		if slices.ContainsFunc(groups[:n], func(g *nodeGroup) bool { return g.source == first.source }) {
			continue
		}
		var least, unset, unknown []string
		for _, g := range groups[n:] {
			switch {
			case g.source != first.source:
				continue
			case g.most < 0 && g.class != nil:
				unset = append(unset, g.name)
			case g.most < 0:
				unknown = append(unknown, g.name)
			}
			if g.least > 0 {
				least = append(least, g.name+" "+itoa(g.least))
			}
		}
		if len(least) > 0 {
			first.source.note(Advice, "minSize", "a NodePool has no minimum size (groups: %s); nodes are removed when no pod needs them; "+
				"to keep nodes, add a NodePool with spec.replicas and the feature gate StaticCapacity, or reserve capacity with pods of low priority",
				strings.Join(least, ", "))
		}
		if len(unset) > 0 {
			first.source.note(Advice, "maxSize", "is not set for %s; the NodePool has no limit, whereas eksctl keeps such a group at its initial size; "+
				"set spec.limits.nodes", strings.Join(unset, ", "))
		}
		if len(unknown) > 0 {
			first.source.note(Advice, "maxSize", "no flag --nodes sets the maximum size of %s; the NodePool has no limit; set spec.limits.nodes",
				strings.Join(unknown, ", "))
		}
	}
}

func addOnce(list *[]string, value string) {
	if value != "" && !slices.Contains(*list, value) {
		*list = append(*list, value)
		slices.Sort(*list)
	}
}
