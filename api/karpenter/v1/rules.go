package v1

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ResourceNodes is the key of NodePoolSpec.Limits and NodePoolStatus.Resources for the number of nodes.
const ResourceNodes corev1.ResourceName = "nodes"

// WellKnownResources returns the resources that every machine has.
func WellKnownResources() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}
}

// WellKnownCapacityTypes returns the values of LabelCapacityType.
func WellKnownCapacityTypes() []string {
	return []string{CapacityTypeOnDemand, CapacityTypeReserved, CapacityTypeSpot}
}

// WellKnownArchitectures returns the values of the label kubernetes.io/arch.
func WellKnownArchitectures() []string { return []string{ArchitectureAMD64, ArchitectureARM64} }

// LabelRules defines which labels are well-known, which ones users may not set, and which ones are aliases.
// CoreRules returns the rules of all providers. With adds the rules of one provider.
type LabelRules struct {
	// WellKnown lists the labels that Karpenter or the provider interprets. A pod may require such a label even
	// if its pool does not mention it.
	WellKnown []string
	// RestrictedDomains and their subdomains hold labels that users may neither set nor require, except the
	// well-known ones.
	RestrictedDomains []string
	// Aliases maps older names of labels to their current names.
	Aliases map[string]string
	// ValueAliases maps a label (by its current name) to other spellings of its values.
	ValueAliases map[string]map[string]string
}

// CoreRules returns the rules that apply to every provider.
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

// With returns the union of r and more. If both define an alias, that of more applies. It modifies neither, and
// the result shares no memory with them.
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

// Key returns the current name of a label.
func (r LabelRules) Key(key string) string {
	if today, ok := r.Aliases[key]; ok {
		return today
	}
	return key
}

// Value returns the canonical spelling of a label's value. key is the current name of the label.
func (r LabelRules) Value(key, value string) string {
	if usual, ok := r.ValueAliases[key][value]; ok {
		return usual
	}
	return value
}

// IsWellKnown reports whether the label, by its current name, is well-known.
func (r LabelRules) IsWellKnown(key string) bool { return slices.Contains(r.WellKnown, key) }

// Restriction returns why users may neither set nor require the label, by its current name, and which labels
// they may use instead. It returns "" for a label without restrictions.
func (r LabelRules) Restriction(key string) string {
	if r.IsWellKnown(key) {
		return ""
	}
	domain, _, hasDomain := strings.Cut(key, "/")
	for _, restricted := range r.RestrictedDomains {
		if hasDomain && (domain == restricted || strings.HasSuffix(domain, "."+restricted)) {
			return fmt.Sprintf("labels of the domain %s are set by karpenter; use a domain of your own%s", restricted, r.allowedIn(restricted, key))
		}
	}
	if key == corev1.LabelHostname {
		return "the label " + corev1.LabelHostname + " is not known before the node exists; use a label that describes several nodes"
	}
	return ""
}

// mostKeys is the maximum number of labels that a message lists.
const mostKeys = 4

// allowedIn lists the well-known labels of a restricted domain, for a message: of many the ones that resemble the key.
func (r LabelRules) allowedIn(restricted, key string) string {
	var allowed []string
	for _, known := range r.WellKnown {
		if domain, _, _ := strings.Cut(known, "/"); domain == restricted {
			allowed = append(allowed, known)
		}
	}
	slices.Sort(allowed)
	switch few := Resembling(key, allowed); {
	case len(allowed) == 0:
		return ""
	case len(few) == len(allowed):
		return " or one of " + strings.Join(few, ", ")
	default:
		return fmt.Sprintf(" or one of its %d labels, such as %s", len(allowed), strings.Join(few, ", "))
	}
}

// Resembling returns all names if they are few enough for a message, else the ones that resemble the given one most.
func Resembling(name string, all []string) []string {
	if len(all) <= mostKeys {
		return all
	}
	nearest := slices.Clone(all)
	slices.SortStableFunc(nearest, func(a, b string) int { return cmp.Compare(resemblance(b, name), resemblance(a, name)) })
	return nearest[:mostKeys]
}

// resemblance is the number of equal characters at the start and at the end of two keys, in relation to their length.
func resemblance(a, b string) float64 {
	least, most := min(len(a), len(b)), max(len(a), len(b))
	start, end := 0, 0
	for start < least && a[start] == b[start] {
		start++
	}
	for end < least-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return float64(start+end) / float64(most)
}
