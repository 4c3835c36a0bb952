package convert

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Representation: most requirements use unrestricted labels and obviously valid values. The API's validation costs
// regular expressions and paths for each of them; these loops over bytes avoid that cost. Invariant:
// karpv1.ValidateRequirements accepts everything that is plain. Everything else is validated there, so that errors
// come from one place.

// plain reports whether the requirement is certainly valid.
func (v *Vocabulary) plain(key string, operator corev1.NodeSelectorOperator, values ...string) bool {
	key = v.Rules.Key(key)
	if key == corev1.LabelHostname || !plainKey(key) || slices.ContainsFunc(values, func(s string) bool { return !plainValue(s) }) {
		return false
	}
	switch operator {
	case corev1.NodeSelectorOpIn:
		return len(values) > 0 && !constrained[key] && v.free(key)
	case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return v.free(key)
	}
	return false
}

// constrained holds the labels that do not accept every value.
var constrained = map[string]bool{karpv1.LabelCapacityType: true}

// free reports whether users may require the label.
func (v *Vocabulary) free(key string) bool { return v.wellKnown[key] || v.Rules.Restriction(key) == "" }

// maxName is the maximum length of names and values, maxPrefix that of a DNS subdomain (Kubernetes, qualified names).
const maxName, maxPrefix = 63, 253

func plainKey(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	return name != "" && plainValue(name) && (!prefixed || plainDomain(prefix))
}

// plainValue reports whether s is empty, or consists of letters and digits with '-', '_' and '.' only inside.
func plainValue(s string) bool {
	if len(s) > maxName {
		return false
	}
	for i := range len(s) {
		inside := i > 0 && i < len(s)-1
		if c := s[i]; !alphanumeric(c) && !(inside && (c == '-' || c == '_' || c == '.')) {
			return false
		}
	}
	return true
}

// plainDomain reports whether s consists of lowercase labels separated by dots.
func plainDomain(s string) bool {
	if s == "" || len(s) > maxPrefix {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part != strings.ToLower(part) || !plainValue(part) || strings.Contains(part, "_") {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
