package kwok

import (
	"fmt"
	"path"
	"strings"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// offeringKey identifies an offering of the catalog.
type offeringKey struct {
	instanceType string
	zone         string
	capacityType string
}

func keyOf(t *cloud.InstanceType, o *cloud.Offering) offeringKey {
	return offeringKey{instanceType: t.Name, zone: o.Zone, capacityType: o.CapacityType}
}

func (k offeringKey) String() string {
	return k.instanceType + "/" + k.zone + "/" + k.capacityType
}

// pattern matches offerings by type, zone and capacity type, each with the wildcards of path.Match.
type pattern [3]string

// parsePatterns parses patterns such as "c-*/test-zone-a/spot". Empty ones are ignored.
func parsePatterns(texts []string) ([]pattern, error) {
	var patterns []pattern
	for _, text := range texts {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		parts := strings.Split(text, "/")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q has %d parts, want type/zone/capacity-type, where * matches anything", text, len(parts))
		}
		for _, part := range parts {
			if _, err := path.Match(part, ""); err != nil || part == "" {
				return nil, fmt.Errorf("%q: the part %q cannot be read, want a name or a pattern such as c-*", text, part)
			}
		}
		patterns = append(patterns, pattern(parts))
	}
	return patterns, nil
}

func (p pattern) matches(key offeringKey) bool {
	for i, part := range [3]string{key.instanceType, key.zone, key.capacityType} {
		if ok, _ := path.Match(p[i], part); !ok {
			return false
		}
	}
	return true
}

func anyMatches(patterns []pattern, key offeringKey) bool {
	for _, p := range patterns {
		if p.matches(key) {
			return true
		}
	}
	return false
}
