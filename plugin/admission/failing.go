package admission

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// failingMembers returns the paths of the members that break a rule about a list, or about a mapping with free names. A
// member is at fault if the rule fails with that member alone and holds without any member. If this identifies no
// member, failingMembers returns the path of the rule.
func (k *kind) failingMembers(object map[string]any, err *field.Error) []string {
	whole := []string{err.Field}
	p := place{object: object, schema: k.structural}
	if !p.follow(err.Field) {
		return whole
	}
	breaks := func(with any) bool {
		p.replace(with)
		defer p.replace(p.value)
		return slices.ContainsFunc(k.broken(object), func(other *field.Error) bool { return other.Field == err.Field && other.Detail == err.Detail })
	}
	var found []string
	switch value := p.value.(type) {
	case []any:
		if p.schema.Items == nil || breaks([]any{}) {
			return whole
		}
		for i, member := range value {
			if breaks([]any{member}) {
				found = append(found, fmt.Sprintf("%s[%d]", err.Field, i))
			}
		}
	case map[string]any:
		if p.schema.AdditionalProperties == nil || breaks(map[string]any{}) {
			return whole
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if breaks(map[string]any{name: value[name]}) {
				found = append(found, fmt.Sprintf("%s[%s]", err.Field, name))
			}
		}
	}
	if len(found) == 0 {
		return whole
	}
	return found
}

// place is a value within an object, its schema, and a function that replaces the value.
type place struct {
	object  map[string]any
	schema  *schema.Structural
	value   any
	replace func(any)
}

// step matches one part of a path: a field, or the index or name of a member in brackets.
var step = regexp.MustCompile(`^(?:\.?([^.\[\]]+)|\[([^\]]*)\])`)

// follow descends along a path and reports whether the path ends at a value.
func (p *place) follow(path string) bool {
	p.value = p.object
	for path != "" {
		m := step.FindStringSubmatch(path)
		if m == nil || !p.down(m[1]+m[2]) {
			return false
		}
		path = strings.TrimPrefix(path, m[0])
	}
	return p.replace != nil
}

// down descends to a member: a field, or an item of a list. It returns false if there is no such member.
func (p *place) down(name string) bool {
	switch value := p.value.(type) {
	case map[string]any:
		below, known := p.schema.Properties[name]
		switch {
		case known:
			p.schema = &below
		case p.schema.AdditionalProperties != nil && p.schema.AdditionalProperties.Structural != nil:
			p.schema = p.schema.AdditionalProperties.Structural
		default:
			return false
		}
		p.value, p.replace = value[name], func(other any) { value[name] = other }
		return p.value != nil
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(value) || p.schema.Items == nil {
			return false
		}
		p.schema = p.schema.Items
		p.value, p.replace = value[i], func(other any) { value[i] = other }
		return true
	}
	return false
}
