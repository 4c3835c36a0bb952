package convert

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Representation: most requirements are on labels that everybody may use and have values that nobody doubts. The rules of
// the API cost regular expressions and paths for each of them; these few loops over bytes cost neither. Invariant: what
// is plain, karpv1.ValidateRequirements has nothing against; what is not plain is asked there, so that one place says
// what is wrong.

// plain reports whether the requirement is right beyond doubt.
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

// constrained are the labels of which not every value will do.
var constrained = map[string]bool{karpv1.LabelCapacityType: true}

// free reports whether users may require the label.
func (v *Vocabulary) free(key string) bool { return v.wellKnown[key] || v.Rules.Restriction(key) == "" }

// maxName is the length of names and values, maxPrefix that of a DNS subdomain (Kubernetes, qualified names).
const maxName, maxPrefix = 63, 253

func plainKey(key string) bool {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	return name != "" && plainValue(name) && (!prefixed || plainDomain(prefix))
}

// plainValue is true for the empty value, and for letters and digits with marks only inside.
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

// plainDomain is true for lower-case labels with dots between.
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
