package discovery

import (
	"maps"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// query holds the filters of one Describe call: all of them must match.
type query struct {
	filters []filter
	owners  []string // for images only
}

// filter matches if one of the values does.
type filter struct {
	name   string
	values []string
}

// tagFilters match resources with all of the tags. The value * matches any value.
func tagFilters(tags map[string]string) []filter {
	filters := make([]filter, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if tags[key] == "*" {
			filters = append(filters, filter{"tag-key", []string{key}})
		} else {
			filters = append(filters, filter{"tag:" + key, []string{tags[key]}})
		}
	}
	return filters
}

// mentioned returns the query for all resources that one of the values names, and none without values.
func mentioned(name string, values []string) []query {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	return []query{{filters: []filter{{name, slices.Compact(values)}}}}
}

func (q query) ec2() []ec2types.Filter {
	filters := make([]ec2types.Filter, len(q.filters))
	for i := range q.filters {
		filters[i] = ec2types.Filter{Name: &q.filters[i].name, Values: q.filters[i].values}
	}
	return filters
}

// asksFor reports whether a resource with that ID and those tags matches the query. of has the values for filters on
// other fields. EC2 has applied the filters already, but an endpoint that ignores filters would return foreign
// resources.
func (q query) asksFor(of map[string]string, tags []ec2types.Tag) bool {
	for _, f := range q.filters {
		matches := false
		if key, byTag := strings.CutPrefix(f.name, "tag:"); byTag {
			matches = slices.ContainsFunc(tags, func(t ec2types.Tag) bool { return value(t.Key) == key && call.MatchesAny(f.values, value(t.Value)) })
		} else if f.name == "tag-key" {
			matches = slices.ContainsFunc(tags, func(t ec2types.Tag) bool { return call.MatchesAny(f.values, value(t.Key)) })
		} else {
			matches = call.MatchesAny(f.values, of[f.name])
		}
		if !matches {
			return false
		}
	}
	return true
}

// value returns what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
