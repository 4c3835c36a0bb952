package migrate

import (
	"regexp"

	"go.yaml.in/yaml/v3"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// taintText matches a taint in the notation of kubectl: key=value:effect, or key:effect.
var taintText = regexp.MustCompile(`^([^=:\s]+)(?:=([^=:\s]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$`)

// taints converts taints in the notation of kubectl to objects, and their values to strings.
func (r *repair) taints(list *yaml.Node, path string) {
	for i, taint := range members(list) {
		where := path + "[" + itoa(i) + "]"
		if m := taintText.FindStringSubmatch(text(taint)); m != nil {
			r.repaired(where, "is %s, want an object with key, value and effect; converted", taint.Value)
			taint.Kind, taint.Tag, taint.Style = yaml.MappingNode, "!!map", 0
			taint.Value = ""
			set(taint, scalar(m[1]), "key")
			if m[2] != "" {
				set(taint, scalar(m[2]), "value")
			}
			set(taint, scalar(m[3]), "effect")
			continue
		}
		if taint.Kind != yaml.MappingNode {
			r.note(Impossible, where, "is not a taint, want an object with key, value and effect")
			continue
		}
		if field := firstNonScalar(taint, "key", "value", "effect"); field != "" {
			r.note(Impossible, where, "is not a taint, want a string as %s", field)
			continue
		}
		if value := at(taint, "value"); quote(value) {
			r.repaired(where+".value", quotedOne, value.Value)
		}
		if key := text(at(taint, "key")); key == karpv1.TaintKeyUnregistered || key == karpv1.TaintKeyDisrupted {
			r.note(Advice, where+".key", "is %s, which the controller sets and removes itself; remove it, because a NodePool with it "+
				"is not ready", key)
		}
		if older := text(at(r.root, "kind")) == v1alpha5.KindProvisioner; !older && text(at(taint, "effect")) == "" { // for those, the translation sets NoSchedule
			r.note(Impossible, where+".effect", "is required; set it to NoSchedule, PreferNoSchedule or NoExecute")
		}
	}
}

// firstNonScalar returns the first of the fields whose value is a list or a mapping, or an empty string.
func firstNonScalar(node *yaml.Node, names ...string) string {
	for _, name := range names {
		if value := at(node, name); value != nil && value.Kind != yaml.ScalarNode {
			return name
		}
	}
	return ""
}
