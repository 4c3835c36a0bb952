package v1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ResourceNodes is the key of NodePoolSpec.Limits and NodePoolStatus.Resources that
// counts nodes.
const ResourceNodes corev1.ResourceName = "nodes"

// WellKnownResources are the resources that every machine has.
func WellKnownResources() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}
}

// WellKnownCapacityTypes are the values of LabelCapacityType.
func WellKnownCapacityTypes() []string {
	return []string{CapacityTypeOnDemand, CapacityTypeReserved, CapacityTypeSpot}
}

// WellKnownArchitectures are the values of the label kubernetes.io/arch.
func WellKnownArchitectures() []string { return []string{ArchitectureAMD64, ArchitectureARM64} }

// OfferingLabels are the well-known labels that belong to an offering of an instance
// type, not to the type.
func OfferingLabels() []string { return []string{corev1.LabelTopologyZone, LabelCapacityType} }

// LabelRules says which labels have a meaning that we know, which ones users may not
// touch, and which ones are other names. It is a value: CoreRules has what is true for
// every provider, With adds what one provider declares.
type LabelRules struct {
	// WellKnown labels are understood by us or by the provider. A pod may require one
	// that its pool does not mention.
	WellKnown []string
	// RestrictedDomains and their sub-domains hold labels that users may neither set
	// nor require, apart from the well-known ones.
	RestrictedDomains []string
	// Aliases maps older names of labels to today's.
	Aliases map[string]string
	// ValueAliases maps a label (by today's name) to other spellings of its values.
	ValueAliases map[string]map[string]string
}

// CoreRules are the rules that hold for every provider.
func CoreRules() LabelRules {
	return LabelRules{
		WellKnown: []string{
			LabelNodePool,
			LabelCapacityType,
			corev1.LabelTopologyZone,
			corev1.LabelTopologyRegion,
			corev1.LabelInstanceTypeStable,
			corev1.LabelArchStable,
			corev1.LabelOSStable,
			corev1.LabelWindowsBuild,
		},
		RestrictedDomains: []string{Group},
		Aliases: map[string]string{
			corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
			corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
			"beta.kubernetes.io/arch":           corev1.LabelArchStable,
			"beta.kubernetes.io/os":             corev1.LabelOSStable,
			corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
		},
	}
}

// With is the union of r and more; where both name one alias, that of more counts.
// Neither is changed, and the result shares nothing with them.
func (r LabelRules) With(more LabelRules) LabelRules {
	union := LabelRules{
		WellKnown:         sortedUnion(r.WellKnown, more.WellKnown),
		RestrictedDomains: sortedUnion(r.RestrictedDomains, more.RestrictedDomains),
		Aliases:           map[string]string{},
		ValueAliases:      map[string]map[string]string{},
	}
	for _, source := range []LabelRules{r, more} {
		maps.Copy(union.Aliases, source.Aliases)
		for key, values := range source.ValueAliases {
			if union.ValueAliases[key] == nil {
				union.ValueAliases[key] = map[string]string{}
			}
			maps.Copy(union.ValueAliases[key], values)
		}
	}
	return union
}

func sortedUnion(a, b []string) []string {
	union := slices.Concat(a, b)
	slices.Sort(union)
	return slices.Compact(union)
}

// Key is today's name of a label.
func (r LabelRules) Key(key string) string {
	if today, ok := r.Aliases[key]; ok {
		return today
	}
	return key
}

// Value is the usual spelling of a value of a label; key is today's name.
func (r LabelRules) Value(key, value string) string {
	if usual, ok := r.ValueAliases[key][value]; ok {
		return usual
	}
	return value
}

// IsWellKnown says whether the label, by today's name, is well-known.
func (r LabelRules) IsWellKnown(key string) bool { return slices.Contains(r.WellKnown, key) }

// Restriction says why users may neither set nor require the label, by today's name,
// and what they may use instead. It is empty for a label that is free.
func (r LabelRules) Restriction(key string) string {
	if r.IsWellKnown(key) {
		return ""
	}
	domain, _, hasDomain := strings.Cut(key, "/")
	for _, restricted := range r.RestrictedDomains {
		if hasDomain && (domain == restricted || strings.HasSuffix(domain, "."+restricted)) {
			return fmt.Sprintf("labels of the domain %s are set by karpenter; use a domain of your own%s", restricted, r.allowedIn(restricted))
		}
	}
	if key == corev1.LabelHostname {
		return "the label " + corev1.LabelHostname + " is not known before the node exists; use a label that describes several nodes"
	}
	return ""
}

// allowedIn lists the well-known labels of a restricted domain.
func (r LabelRules) allowedIn(restricted string) string {
	var allowed []string
	for _, key := range r.WellKnown {
		if domain, _, _ := strings.Cut(key, "/"); domain == restricted {
			allowed = append(allowed, key)
		}
	}
	if len(allowed) == 0 {
		return ""
	}
	slices.Sort(allowed)
	return " or one of " + strings.Join(allowed, ", ")
}
