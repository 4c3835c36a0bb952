package v1

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// TagPlaceholders are the names that a value of spec.tags may have between {{ and }}: of the pool, of the class and of
// the cluster. There is none for the claim: claims that are launched together share their tags.
var TagPlaceholders = []string{"nodepool", "nodeclass", "cluster"}

var tagPlaceholder = regexp.MustCompile(`\{\{ *([^{}]*?) *\}\}`)

// ResolvedTags returns spec.tags with the placeholders replaced. Other text in braces stays as it is. Without a pool,
// tags that need its name are left out: the resource does not belong to one pool. The result is never nil.
func (c *EC2NodeClass) ResolvedTags(pool, cluster string) map[string]string {
	tags := map[string]string{}
	values := map[string]string{"nodepool": pool, "nodeclass": c.Name, "cluster": cluster}
	for key, text := range c.Spec.Tags {
		complete := true
		resolved := tagPlaceholder.ReplaceAllStringFunc(text, func(found string) string {
			value, known := values[tagPlaceholder.FindStringSubmatch(found)[1]]
			if !known {
				return found
			}
			complete = complete && value != ""
			return value
		})
		if complete {
			tags[key] = resolved
		}
	}
	return tags
}

// UnknownPlaceholders returns what looks like placeholders in spec.tags and is none, such as {{nodeclaim}}, sorted.
func (c *EC2NodeClass) UnknownPlaceholders() []string {
	unknown := map[string]bool{}
	for _, text := range c.Spec.Tags {
		for _, found := range tagPlaceholder.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(TagPlaceholders, found[1]) {
				unknown[strings.Clone(found[0])] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(unknown))
}
