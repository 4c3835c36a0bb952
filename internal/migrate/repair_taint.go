package migrate

import (
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/karpenter-go/karpenter/internal/legacy"
)

// taintText is a taint as kubectl writes it: key=value:effect, or key:effect.
var taintText = regexp.MustCompile(`^([^=:\s]+)(?:=([^=:\s]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$`)

// taints makes objects of taints that are written as kubectl does, and texts of their values.
func (r *repair) taints(list *yaml.Node, path string) {
	for i, taint := range members(list) {
		where := path + "[" + itoa(i) + "]"
		if m := taintText.FindStringSubmatch(text(taint)); m != nil {
			taint.Kind, taint.Tag, taint.Style = yaml.MappingNode, "!!map", 0
			taint.Value = ""
			set(taint, scalar(m[1]), "key")
			if m[2] != "" {
				set(taint, scalar(m[2]), "value")
			}
			set(taint, scalar(m[3]), "effect")
			r.repaired(where, "is an object with key, value and effect")
			continue
		}
		if taint.Kind != yaml.MappingNode {
			r.note(Impossible, where, "is no taint, want an object with key, value and effect")
			continue
		}
		if field := unscalar(taint, "key", "value", "effect"); field != "" {
			r.note(Impossible, where, "is no taint: its %s must be a text", field)
			continue
		}
		if quote(at(taint, "value")) {
			r.repaired(where+".value", "is a text, in quotes")
		}
		if older := text(at(r.root, "kind")) == legacy.KindProvisioner; !older && text(at(taint, "effect")) == "" { // of those, NoSchedule is made
			r.note(Impossible, where+".effect", "is missing: NoSchedule, PreferNoSchedule or NoExecute")
		}
	}
}

// unscalar is the first of the fields that has a list or a mapping for its value; empty if none has.
func unscalar(node *yaml.Node, names ...string) string {
	for _, name := range names {
		if value := at(node, name); value != nil && value.Kind != yaml.ScalarNode {
			return name
		}
	}
	return ""
}
