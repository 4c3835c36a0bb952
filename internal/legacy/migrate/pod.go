package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
)

// pods replaces old names in objects that create pods, whatever their kind: a value with containers in a field spec
// is a pod or a pod template. Only names are changed, in the text, so that everything else stays as it was written.
type pods struct {
	*document
	*Entry
	honor bool // keep the meaning of safe-to-evict: "false"
}

// walk visits every value of a document.
func (p *pods) walk(node *yaml.Node, path string) {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, node.Content[i+1]
		below := under(path, name)
		if name == "spec" && at(value, "containers") != nil {
			p.spec(value, below)
			p.metadata(node, path)
			continue
		}
		p.walk(value, below)
	}
	for i, member := range members(node) {
		p.walk(member, path+"["+itoa(i)+"]")
	}
}

// spec replaces labels in the constraints of a pod on its node.
func (p *pods) spec(spec *yaml.Node, path string) {
	p.keys(at(spec, "nodeSelector"), path+".nodeSelector")
	affinity := at(spec, "affinity")
	required := at(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	for i, term := range members(required) {
		p.expressions(at(term, "matchExpressions"), path+".affinity.nodeAffinity.required["+itoa(i)+"]")
	}
	for i, term := range members(at(affinity, "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")) {
		p.expressions(at(term, "preference", "matchExpressions"), path+".affinity.nodeAffinity.preferred["+itoa(i)+"]")
	}
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		for _, term := range members(at(affinity, kind, "requiredDuringSchedulingIgnoredDuringExecution")) {
			p.label(at(term, "topologyKey"), path+".affinity."+kind)
		}
		for _, term := range members(at(affinity, kind, "preferredDuringSchedulingIgnoredDuringExecution")) {
			p.label(at(term, "podAffinityTerm", "topologyKey"), path+".affinity."+kind)
		}
	}
	for _, constraint := range members(at(spec, "topologySpreadConstraints")) {
		p.label(at(constraint, "topologyKey"), path+".topologySpreadConstraints")
	}
	p.tolerations(at(spec, "tolerations"), path+".tolerations")
}

func (p *pods) expressions(list *yaml.Node, path string) {
	for _, expression := range members(list) {
		p.label(at(expression, "key"), path)
	}
}

// keys replaces labels that are field names.
func (p *pods) keys(node *yaml.Node, path string) {
	for _, name := range fields(node) {
		today, renamed := names.Label(name)
		if now := at(node, today); !renamed || now == nil {
			p.label(node.Content[index(node, name)], path)
			continue
		} else if text(now) != text(at(node, name)) {
			p.note(Impossible, path, "the label %s is renamed to %s, which has another value; omitted; no node has both values", name, today)
		} else {
			p.note(Changed, path, "the label %s is renamed to %s, which has the same value; omitted", name, today)
		}
		take(node, name)
		p.anew = true
	}
}

// label replaces one label.
func (p *pods) label(node *yaml.Node, path string) {
	old := text(node)
	if today, renamed := names.Label(old); renamed {
		p.replace(node, today)
		p.note(Changed, path, "the label %s is renamed to %s", old, today)
	} else if why := names.Gone(old); why != "" {
		p.note(Impossible, path, "the label %s has no equivalent: %s", old, why)
	}
}

// tolerations replaces taints. The current taint of a node that is being removed has no value.
func (p *pods) tolerations(list *yaml.Node, path string) {
	for _, toleration := range members(list) {
		key := at(toleration, "key")
		today, renamed := names.Taint(text(key))
		if !renamed {
			continue
		}
		p.note(Changed, path, "the taint %s is renamed to %s, without a value", text(key), today)
		if text(at(toleration, "operator")) != "Exists" {
			take(toleration, "value")
			set(toleration, scalar("Exists"), "operator")
			key.Value = today
			p.anew = true
			continue
		}
		p.replace(key, today)
	}
}

// metadata replaces annotations of the pod or template whose spec was found below the node.
func (p *pods) metadata(node *yaml.Node, path string) {
	path = under(path, "metadata.annotations")
	annotations := at(node, "metadata", "annotations")
	for _, name := range fields(annotations) {
		today, renamed := names.PodAnnotation(name)
		if !renamed {
			continue
		}
		if at(annotations, today) != nil { // both are present: the new one takes precedence
			take(annotations, name)
			p.anew = true
			p.note(Changed, path, "the annotation %s is renamed to %s, which is set; omitted", name, today)
			continue
		}
		p.replace(annotations.Content[index(annotations, name)], today)
		p.note(Changed, path, "the annotation %s is renamed to %s", name, today)
	}
	value := at(annotations, karpv1.AnnotationSafeToEvict)
	if p.honor && text(value) == "false" && at(annotations, karpv1.AnnotationDoNotDisrupt) == nil {
		p.insert(annotations, karpv1.AnnotationSafeToEvict, karpv1.AnnotationDoNotDisrupt+`: "true"`)
		added := scalar("true")
		set(annotations, added, karpv1.AnnotationDoNotDisrupt)
		p.note(Changed, path, "%s: \"true\" is added, the equivalent of %s: \"false\" for the Cluster Autoscaler",
			karpv1.AnnotationDoNotDisrupt, karpv1.AnnotationSafeToEvict)
	}
}

// replace changes a scalar's value, also in the text.
func (d *document) replace(node *yaml.Node, value string) {
	d.edits = append(d.edits, edit{node.Line, node.Column, node.Value, value})
	node.Value = value
}

// insert inserts lines before a field, with its indentation.
func (d *document) insert(node *yaml.Node, before string, lines ...string) {
	name := node.Content[index(node, before)]
	indent := strings.Repeat(" ", max(name.Column-1, 0))
	d.edits = append(d.edits, edit{line: name.Line, new: indent + strings.Join(lines, "\n"+indent) + "\n"})
}

// selectorless are the kinds that require a selector for their pods.
var selectorless = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}

// workload repairs what the API server has rejected since apps/v1: an older version, and a missing selector.
func (p *pods) workload(kind string) {
	version := at(p.root, "apiVersion")
	old := []string{"extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"}
	switch {
	case slices.Contains(selectorless, kind) && slices.Contains(old, text(version)):
		p.note(Repaired, "apiVersion", "is %s, which Kubernetes 1.16 and later do not serve; set to apps/v1", text(version))
		p.replace(version, "apps/v1")
	case !slices.Contains(selectorless, kind) || text(version) != "apps/v1":
		return
	}
	spec := at(p.root, "spec")
	labels := at(spec, "template", "metadata", "labels")
	selected := at(spec, "selector", "matchLabels")
	switch {
	case at(spec, "template") == nil:
	case at(spec, "selector") == nil && !empty(labels):
		copied := clone(labels)
		block(copied)
		var lines []string
		for line := range strings.Lines(encode(copied, false)) {
			lines = append(lines, "    "+strings.TrimSuffix(line, "\n"))
		}
		p.insert(spec, "template", append([]string{"selector:", "  matchLabels:"}, lines...)...)
		set(spec, copied, "selector", "matchLabels")
		p.note(Repaired, "spec.selector", "is required; set to the labels of the template")
	case empty(labels) && !empty(selected):
		set(spec, clone(selected), "template", "metadata", "labels")
		p.anew = true
		p.note(Repaired, "spec.template.metadata.labels", "is required; set to the labels of the selector")
	case at(spec, "selector") == nil:
		app := mapping()
		set(app, scalar(text(at(p.root, "metadata", "name"))), "app")
		set(spec, clone(app), "selector", "matchLabels")
		set(spec, app, "template", "metadata", "labels")
		p.anew = true
		p.note(Repaired, "spec.selector", "is required; set to the label app, which is added to the template")
	}
}

// selectorValues quotes values of node selectors that YAML does not parse as strings: the API server would reject the
// pod.
func (p *pods) selectorValues(node *yaml.Node) {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, node.Content[i+1]
		if (name == "nodeSelector" || name == "annotations" || name == "labels" || name == "matchLabels") && value.Kind == yaml.MappingNode {
			for _, key := range fields(value) {
				if label := at(value, key); quote(label) {
					p.edits = append(p.edits, quoted(label))
					p.note(Repaired, name+"."+key, quotedOne, label.Value)
				}
			}
			continue
		}
		p.selectorValues(value)
	}
	for _, member := range members(node) {
		p.selectorValues(member)
	}
}

// quote converts a number, a boolean or a date to a string, and reports whether it was one.
func quote(node *yaml.Node) bool {
	if node == nil || node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		return false
	}
	if node.Tag == "!!str" && (node.Style != 0 || !ambiguous.MatchString(node.Value)) {
		return false
	}
	node.Tag, node.Style = "!!str", yaml.DoubleQuotedStyle
	return true
}

// quoted returns the edit that quotes a value.
func quoted(node *yaml.Node) edit {
	return edit{node.Line, node.Column, node.Value, `"` + node.Value + `"`}
}
