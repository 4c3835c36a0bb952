package migrate

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// This file determines which labels of a group's nodes the nodes of its pool get, and the effect on the pods in the
// input.

// labelKind determines the handling of a label of a group's nodes.
type labelKind int

const (
	userLabel      labelKind = iota // a user set it for pods to select: the pool gets it
	componentLabel                  // eksctl, EKS or a daemon sets it: the pool gets it if pods require it
	nodeLabel                       // every node has it anyway, or it is a requirement of the pool
	rejectedLabel                   // the API server rejects it in a pool
)

// These are label domains, and labels, by the component that sets them.
var (
	ofNodes = []string{
		"kubernetes.io/arch", "kubernetes.io/os", "kubernetes.io/hostname", "beta.kubernetes.io", "topology.kubernetes.io",
		"failure-domain.beta.kubernetes.io",
		"node.kubernetes.io/instance-type", "node.kubernetes.io/windows-build", "k8s.io", "topology.k8s.aws",
		"topology.ebs.csi.aws.com", "alpha.eksctl.io/instance-id",
		karpv1.LabelCapacityType,
	}
	ofComponents = []string{
		"eks.amazonaws.com", "alpha.eksctl.io", "vpc.amazonaws.com", "node.k8s.amazonaws.com", "kops.k8s.io",
		"node.kubernetes.io/instancegroup", "cloud.google.com",
		"kubernetes.azure.com", "feature.node.kubernetes.io", "node-lifecycle",
	}
	labelRules = karpv1.CoreRules().With(karpv1.LabelRules{RestrictedDomains: []string{awsv1.Group}})
)

func labelKindOf(name string) labelKind {
	domain, _, _ := strings.Cut(name, "/")
	of := func(list []string) bool {
		return slices.Contains(list, name) || domain != name && slices.Contains(list, domain)
	}
	switch {
	case of(ofNodes):
		return nodeLabel
	case of(ofComponents):
		return componentLabel
	case labelRules.Restriction(name) != "":
		return rejectedLabel
	}
	return userLabel
}

// label adds a label of the group's nodes.
func (g *nodeGroup) label(name, value string) {
	switch labelKindOf(name) {
	case userLabel:
		g.labels[name] = value
	case componentLabel:
		g.made[name] = value
	case rejectedLabel:
		g.refused[name] = value
	}
}

// selection is a constraint of a pod in the input on a label of its node.
type selection struct {
	object, key string
	values      []string // empty: any value
}

type selections []selection

// selections returns those of all pods and pod templates in the input.
func (m *migration) selections() selections {
	var all selections
	for _, i := range m.items {
		if i.root != nil {
			all.walk(i.root, i.Object)
		}
	}
	return all
}

func (s *selections) walk(node *yaml.Node, object string) {
	for _, name := range fields(node) {
		value := at(node, name)
		if name == "spec" && at(value, "containers") != nil {
			s.spec(value, object)
			continue
		}
		s.walk(value, object)
	}
	for _, member := range members(node) {
		s.walk(member, object)
	}
}

func (s *selections) spec(spec *yaml.Node, object string) {
	add := func(key string, values ...string) {
		if key != "" {
			*s = append(*s, selection{object, key, values})
		}
	}
	for _, key := range fields(at(spec, "nodeSelector")) {
		add(key, text(at(spec, "nodeSelector", key)))
	}
	affinity := at(spec, "affinity", "nodeAffinity")
	terms := slices.Clone(members(at(affinity, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")))
	for _, preferred := range members(at(affinity, "preferredDuringSchedulingIgnoredDuringExecution")) {
		terms = append(terms, at(preferred, "preference"))
	}
	for _, term := range terms {
		for _, expression := range members(at(term, "matchExpressions")) {
			add(text(at(expression, "key")), texts(at(expression, "values"))...)
		}
	}
	for _, constraint := range members(at(spec, "topologySpreadConstraints")) {
		add(text(at(constraint, "topologyKey")))
	}
}

// of returns the objects whose pods require or avoid a label.
func (s selections) of(key, value string) []string {
	var objects []string
	for _, one := range s {
		if one.key == key && (len(one.values) == 0 || slices.Contains(one.values, value)) && !slices.Contains(objects, one.object) {
			objects = append(objects, one.object)
		}
	}
	return objects
}

// carry adds the labels that other components set on the group's nodes to the pool as far as pods require them, and
// reports labels that no pool can have.
func (g *nodeGroup) carry(selected selections) {
	for _, name := range slices.Sorted(maps.Keys(g.made)) {
		if by := selected.of(name, g.made[name]); len(by) > 0 {
			g.labels[name] = g.made[name]
			g.remark(Advice, "labels["+name+"]", "another component sets it on the nodes of the group, and pods use it (%s); added to the NodePool; "+
				"it is better to use a label that you define, or karpenter.sh/nodepool", some(by))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.refused)) {
		effect := "no pod in the input uses it"
		if by := selected.of(name, g.refused[name]); len(by) > 0 {
			effect = "pods that use it (" + some(by) + ") match no node of the NodePool"
		}
		g.remark(Impossible, "labels["+name+"]", "%s; omitted; %s; add another label to spec.template.metadata.labels, and use it in the pods",
			labelRules.Restriction(name), effect)
	}
	for _, name := range slices.Sorted(maps.Keys(g.seenLabels)) {
		g.missed(name, selected)
	}
}

// missed handles a label of the group's nodes that the pool does not have. The pool gets it if pods require it and
// all nodes of the group have it. Otherwise the label is reported, if pods require it or a user set it.
func (g *nodeGroup) missed(name string, selected selections) {
	if _, carried := g.labels[name]; carried || g.refused[name] != "" {
		return
	}
	var by []string
	for _, value := range slices.Sorted(maps.Keys(g.seenLabels[name])) {
		for _, object := range selected.of(name, value) {
			addOnce(&by, object)
		}
	}
	value, all := g.common(name)
	switch {
	case len(by) > 0 && all && labelKindOf(name) != rejectedLabel:
		g.labels[name] = value
		g.remark(Advice, "labels["+name+"]", "all nodes of the group have it, but the ClusterConfig does not contain it, and pods use it (%s); "+
			"added to the NodePool", some(by))
	case len(by) > 0:
		g.remark(Impossible, "labels["+name+"]", "nodes of the group have it (%s), but the NodePool does not, and pods use it (%s); "+
			"add it to spec.template.metadata.labels of the NodePool for these pods", g.spread(name), some(by))
	case labelKindOf(name) == userLabel && g.class == nil:
		g.remark(Advice, "labels["+name+"]", "differs between the nodes of the group (%s); omitted; if pods use it, create a NodePool for each value",
			g.spread(name))
	case labelKindOf(name) == userLabel:
		g.remark(Advice, "labels["+name+"]", "nodes of the group have it (%s), but the ClusterConfig does not contain it; omitted",
			g.spread(name))
	}
}
