package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
)

// This file repairs common mistakes in manifests, each in one function. The result is an object in the form of its
// own version. Correct content is not changed. A repair that has to guess prefers to keep a node.

// repair is an object that is being repaired.
type repair struct {
	*document
	*Entry
	beta bool // the object is v1beta1
}

// misplaced is a field at a path that no version has, and its correct path.
type misplaced struct{ from, to string }

// misplacedFields are those of pools.
var misplacedFields = func() []misplaced {
	list := []misplaced{
		{"spec.providerRef", "spec.template.spec.nodeClassRef"},
		{"spec.template.spec.providerRef", "spec.template.spec.nodeClassRef"},
		{"spec.template.spec.nodeClass", "spec.template.spec.nodeClassRef"},
		{"spec.kubeletConfiguration", "spec.template.spec.kubelet"},
		{"spec.template.spec.kubeletConfiguration", "spec.template.spec.kubelet"},
		{"spec.metadata.labels", "spec.template.metadata.labels"},
		{"spec.metadata.annotations", "spec.template.metadata.annotations"},
		{"spec.resources.limits", "spec.limits"},
		{"spec.template.spec.resources.limits", "spec.limits"},
		{"spec.limits.resources", "spec.limits"},
	}
	for _, field := range []string{"labels", "annotations"} {
		for _, from := range []string{"spec.", "spec.template.", "spec.template.spec.", "spec.template.spec.metadata."} {
			list = append(list, misplaced{from + field, "spec.template.metadata." + field})
		}
	}
	for _, field := range []string{"requirements", "taints", "startupTaints", "nodeClassRef", "kubelet", "terminationGracePeriod"} {
		for _, from := range []string{"spec.", "spec.template.", "spec.template.metadata.", "spec.disruption."} {
			list = append(list, misplaced{from + field, "spec.template.spec." + field})
		}
	}
	for _, field := range []string{"limits", "weight", "disruption"} {
		for _, from := range []string{"spec.template.", "spec.template.spec.", "spec.disruption."} {
			if from+field != "spec.disruption.disruption" {
				list = append(list, misplaced{from + field, "spec." + field})
			}
		}
	}
	for _, field := range []string{"consolidationPolicy", "consolidateAfter", "budgets"} {
		for _, from := range []string{"spec.", "spec.template.", "spec.template.spec.", "spec.consolidation.", "spec.template.spec.disruption."} {
			list = append(list, misplaced{from + field, "spec.disruption." + field})
		}
	}
	return list
}()

// pool repairs a NodePool.
func (r *repair) pool() {
	r.clusterScoped()
	for _, field := range misplacedFields {
		r.move(field.from, field.to)
	}
	r.expiry()
	r.oldTimes()
	r.classReference()
	template := at(r.root, "spec", "template")
	r.requirements(at(template, "spec", "requirements"), "spec.template.spec.requirements")
	for _, field := range []string{"taints", "startupTaints"} {
		r.taints(at(template, "spec", field), "spec.template.spec."+field)
	}
	r.stringValues(at(template, "metadata", "labels"), "spec.template.metadata.labels")
	r.stringValues(at(template, "metadata", "annotations"), "spec.template.metadata.annotations")
	r.nodeAnnotations(at(template, "metadata", "annotations"), "spec.template.metadata.annotations")
	for _, path := range []string{"spec.disruption.consolidateAfter", "spec.disruption.expireAfter",
		"spec.template.spec.expireAfter", "spec.template.spec.terminationGracePeriod"} {
		r.duration(path)
	}
	r.policy()
	r.budgets()
	r.number("spec.weight")
	r.number("spec.replicas")
	r.amounts("spec.limits")
	spec := at(r.root, "spec", "template", "spec")
	if spec != nil && spec.Kind == yaml.MappingNode && at(spec, "requirements") == nil && !r.patch {
		set(spec, sequence(), "requirements")
		r.anew = true
		r.note(Repaired, "spec.template.spec.requirements", "is required, even if empty; set to []")
	}
}

// provisioner repairs mistakes in a Provisioner or an AWSNodeTemplate that the translation does not handle.
func (r *repair) provisioner() {
	r.requirements(r.find("spec.requirements"), "spec.requirements")
	for _, field := range []string{"taints", "startupTaints"} {
		r.taints(r.find("spec."+field), "spec."+field)
	}
	r.stringValues(r.find("spec.labels"), "spec.labels")
	r.stringValues(r.find("spec.annotations"), "spec.annotations")
	r.nodeAnnotations(r.find("spec.annotations"), "spec.annotations")
}

// find returns a value by its path with dots.
func (r *repair) find(path string) *yaml.Node { return at(r.root, strings.Split(path, ".")...) }

// move moves a field to its correct path, and merges it with an existing value.
func (r *repair) move(from, to string) {
	if r.find(from) == nil {
		return
	}
	source, target := strings.Split(from, "."), strings.Split(to, ".")
	if from == "spec.limits.resources" && r.find("spec.limits.resources").Kind != yaml.MappingNode {
		return
	}
	value := take(r.root, source...)
	r.anew = true
	prune(r.root, source[:len(source)-1]...)
	if empty(value) {
		return
	}
	existing := r.find(to)
	switch {
	case empty(existing):
		put(r.root, value, target...)
		r.note(Repaired, from, "unknown field; moved to %s", to)
	case existing.Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode:
		for _, member := range value.Content {
			if !slices.ContainsFunc(existing.Content, func(other *yaml.Node) bool { return same(member, other) }) {
				existing.Content = append(existing.Content, member)
			}
		}
		r.note(Repaired, from, "unknown field; its items are added to %s", to)
	case existing.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
		for _, name := range fields(value) {
			if at(existing, name) == nil {
				put(existing, take(value, name), name)
			}
		}
		r.note(Repaired, from, "unknown field; merged into %s, whose own fields take precedence", to)
	default:
		r.note(Repaired, from, "unknown field; omitted, because %s is set", to)
	}
}

// expiry moves expireAfter to its path in the object's version.
func (r *repair) expiry() {
	target := "spec.template.spec.expireAfter"
	wrong := []string{"spec.expireAfter", "spec.template.expireAfter", "spec.disruption.expireAfter"}
	if r.beta {
		target, wrong[2] = wrong[2], target
	}
	for _, from := range wrong {
		r.move(from, target)
	}
	r.move("spec.ttlSecondsUntilExpired", target)
	r.move("spec.template.spec.ttlSecondsUntilExpired", target)
}

// oldTimes handles the fields of Provisioners about the removal of nodes.
func (r *repair) oldTimes() {
	for _, place := range []string{"spec", "spec.template.spec", "spec.disruption"} {
		after := take(r.root, append(strings.Split(place, "."), "ttlSecondsAfterEmpty")...)
		enabled := take(r.root, append(strings.Split(place, "."), "consolidation")...)
		if after == nil && enabled == nil {
			continue
		}
		r.anew = true
		policy := string(karpv1.ConsolidateWhenEmpty)
		if text(at(enabled, "enabled")) == "true" {
			policy = string(karpv1.ConsolidateWhenEmptyOrUnderutilized)
			if r.beta {
				policy = "WhenUnderutilized"
			}
		} else if after == nil {
			after = scalar(karpv1.Never)
		}
		if r.find("spec.disruption.consolidationPolicy") == nil {
			set(r.root, scalar(policy), "spec", "disruption", "consolidationPolicy")
		}
		if after != nil && r.find("spec.disruption.consolidateAfter") == nil {
			put(r.root, after, "spec", "disruption", "consolidateAfter")
		}
		r.note(Repaired, place, "ttlSecondsAfterEmpty and consolidation are fields of Provisioners; converted to spec.disruption")
	}
}

// classReference completes the reference to the node class, and replaces its version by a group.
func (r *repair) classReference() {
	path := "spec.template.spec.nodeClassRef"
	reference := r.find(path)
	if reference == nil || reference.Tag == "!!null" {
		if r.find("spec.template.spec") != nil && !r.patch {
			r.note(Impossible, path, "is required; set it to the node class")
		}
		return
	}
	if reference.Kind == yaml.ScalarNode {
		name := clone(reference)
		*reference = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		set(reference, name, "name")
		r.repaired(path, "is %s, want an object with group, kind and name; converted", name.Value)
	}
	if kind := at(reference, "kind"); text(kind) == "AWSNodeTemplate" {
		kind.Value = "EC2NodeClass"
		r.repaired(path+".kind", "is AWSNodeTemplate, want EC2NodeClass")
	}
	if at(reference, "kind") == nil {
		set(reference, scalar("EC2NodeClass"), "kind")
		r.completed(path+".kind", "EC2NodeClass")
	}
	take(reference, "namespace")
	group := "karpenter.k8s.aws"
	if text(at(reference, "kind")) == "KWOKNodeClass" {
		group = "karpenter.kwok.sh"
	}
	if version := take(reference, "apiVersion"); version != nil {
		if before, _, found := strings.Cut(text(version), "/"); found && before != "" {
			group = before
		}
		if at(reference, "group") == nil {
			set(reference, scalar(group), "group")
		}
		at(reference, "group").LineComment = joinComments(at(reference, "group").LineComment, comments(version))
		r.anew = true
		if r.beta {
			r.note(Changed, path+".apiVersion", "is renamed to group, without the version")
		} else {
			r.note(Repaired, path+".apiVersion", "unknown field in v1; moved to group, without the version")
		}
	}
	if g := at(reference, "group"); g == nil {
		set(reference, scalar(group), "group")
		r.completed(path+".group", group)
	} else if before, _, found := strings.Cut(text(g), "/"); found {
		r.repaired(path+".group", "is %s, want a group without a version; set to %s", g.Value, before)
		g.Value = before
	}
}

func (r *repair) repaired(path, format string, arguments ...any) {
	r.anew = true
	r.note(Repaired, path, format, arguments...)
}

// completed adds a note about a field that was not set, and is set to the default of v1beta1.
func (r *repair) completed(path, value string) {
	r.anew = true
	if r.beta {
		r.note(Defaulted, path, "is not set; set to %s, the default of v1beta1", value)
	} else {
		r.note(Repaired, path, "is required; set to %s, the default of v1beta1", value)
	}
}

// These are the messages of repairs of the type of a value.
const (
	listOfOne = "is an object, want a list; converted to a list of one item"
	quotedOne = "is %s, want a string; quoted"
)

// operators lists the valid operators.
var operators = []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}

// requirements repairs a list of requirements.
func (r *repair) requirements(list *yaml.Node, path string) {
	if list != nil && list.Kind == yaml.MappingNode && len(list.Content) > 0 { // one requirement instead of the list, or key: values
		member := clone(list)
		*list = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{member}}
		r.repaired(path, listOfOne)
	}
	for i, requirement := range members(list) {
		r.requirement(requirement, path+"["+itoa(i)+"]")
	}
}

func (r *repair) requirement(requirement *yaml.Node, path string) {
	if key := at(requirement, "key"); key != nil {
		if today, renamed := names.Label(key.Value); renamed && today != karpv1.LabelNodePool {
			r.anew = true
			r.note(Changed, path+".key", "the label %s is renamed to %s", key.Value, today)
			key.Value = today
		} else if why := names.Gone(key.Value); why != "" {
			r.note(Impossible, path+".key", "the label %s has no equivalent: %s", key.Value, why)
		}
	}
	if operator := at(requirement, "operator"); operator != nil && !slices.Contains(operators, operator.Value) {
		for _, known := range operators {
			if strings.EqualFold(known, operator.Value) {
				r.repaired(path+".operator", "is %s, want %s", operator.Value, known)
				operator.Value = known
			}
		}
	}
	if value := take(requirement, "value"); value != nil && at(requirement, "values") == nil {
		put(requirement, value, "values")
		r.repaired(path+".value", "unknown field; moved to values, a list")
	}
	if at(requirement, "operator") == nil && at(requirement, "values") != nil {
		set(requirement, scalar("In"), "operator")
		r.repaired(path+".operator", "is required; set to In, because values is set")
	}
	if values := at(requirement, "values"); values != nil && values.Kind == yaml.ScalarNode && values.Tag != "!!null" {
		member := clone(values)
		member.LineComment = ""
		*values = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{member}, LineComment: values.LineComment}
		r.repaired(path+".values", "is %s, want a list; converted to a list of one item", member.Value)
	}
	for _, value := range members(at(requirement, "values")) {
		if quote(value) {
			r.repaired(path+".values", "contains values that are not strings; quoted")
		}
	}
	r.capacityTypes(requirement, path)
}

// capacityTypes repairs the spelling of capacity types.
func (r *repair) capacityTypes(requirement *yaml.Node, path string) {
	if text(at(requirement, "key")) != karpv1.LabelCapacityType {
		return
	}
	for _, value := range members(at(requirement, "values")) {
		written := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(value.Value))
		today := map[string]string{"ondemand": karpv1.CapacityTypeOnDemand, "spot": karpv1.CapacityTypeSpot,
			"reserved": karpv1.CapacityTypeReserved}[written]
		if today != "" && today != value.Value {
			r.repaired(path+".values", "contains %s, want %s", value.Value, today)
			value.Value = today
		}
	}
}

// stringValues converts a mapping's values to strings.
func (r *repair) stringValues(node *yaml.Node, path string) {
	for _, name := range fields(node) {
		if value := at(node, name); quote(value) {
			r.repaired(path+"."+name, quotedOne, value.Value)
		}
	}
}

// nodeAnnotations replaces old names of node annotations.
func (r *repair) nodeAnnotations(node *yaml.Node, path string) {
	for _, name := range fields(node) {
		if today, renamed := names.NodeAnnotation(name); renamed {
			value := take(node, name)
			if at(node, today) == nil {
				put(node, value, today)
			}
			r.anew = true
			r.note(Changed, path, "the annotation %s is renamed to %s", name, today)
		}
	}
}

// clusterScoped removes the namespace of a cluster-scoped object.
func (r *repair) clusterScoped() {
	if take(r.root, "metadata", "namespace") != nil {
		r.repaired("metadata.namespace", "is not allowed; omitted, because the kind %s is cluster-scoped", text(at(r.root, "kind")))
	}
}
