package awssim

import (
	"encoding/base64"
	"slices"
	"strings"
)

// filter is a Filter of a Describe call: one of the values must match. "*" stands for any characters, "?" for one.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Filter.html
type filter struct {
	name   string
	values []string
}

func filtersOf(n *node) ([]filter, error) {
	var filters []filter
	for _, item := range n.items("Filter") {
		f := filter{item.str("Name"), item.strings("Value")}
		switch {
		case f.name == "":
			return nil, refuse("InvalidParameterValue", "The filter 'null' is invalid")
		case len(f.values) == 0:
			return nil, refuse("InvalidParameterValue", "The filter '%s' has no values", f.name)
		case len(f.values) > 200:
			return nil, refuse("FilterLimitExceeded", "The maximum number of filter values specified on a single call is 200")
		}
		filters = append(filters, f)
	}
	return filters, nil
}

// facts returns the values of an object for a filter, and whether the filter exists.
type facts func(name string) (values []string, known bool)

// matches reports whether all filters match. An unknown filter is an error.
func matches(filters []filter, of facts) (bool, error) {
	all := true
	for _, f := range filters {
		values, known := of(f.name)
		if !known {
			return false, refuse("InvalidParameterValue", "The filter '%s' is invalid", f.name)
		}
		if !slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(f.values, func(pattern string) bool { return wildcard(pattern, v) })
		}) {
			all = false
		}
	}
	return all, nil
}

// keep returns the items that match.
func keep[T any](filters []filter, items []T, of func(T) facts) ([]T, error) {
	var kept []T
	for _, item := range items {
		ok, err := matches(filters, of(item))
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

// wildcard matches like EC2's filters. It is quadratic in the worst case, but patterns are short.
func wildcard(pattern, s string) bool {
	star, mark, i, j := -1, 0, 0, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '*':
			star, mark = j, i
			j++
		case j < len(pattern) && (pattern[j] == '?' || pattern[j] == s[i]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[j:], "*") == ""
}

// tagFacts returns the values for the filters on tags, which all resources have.
func tagFacts(tags map[string]string, name string) ([]string, bool) {
	if key, ok := strings.CutPrefix(name, "tag:"); ok {
		if v, ok := tags[key]; ok {
			return []string{v}, true
		}
		return nil, true
	}
	if name == "tag-key" {
		var keys []string
		for key := range tags {
			keys = append(keys, key)
		}
		return keys, true
	}
	return nil, false
}

// pages describes the paging of an action: the limits of MaxResults, and the default page size.
type pages struct{ least, most, usual int }

// cut returns one page of items, which are sorted by their keys, and the token of the next.
func cut[T any](c *Cloud, n *node, p pages, items []T, key func(T) string) ([]T, string, error) {
	size, err := n.integer("MaxResults", p.usual)
	if err != nil {
		return nil, "", err
	}
	if n.has("MaxResults") && (size < p.least || size > p.most) {
		return nil, "", refuse("InvalidParameterValue",
			"Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.", size, p.least, p.most)
	}
	if c.opts.PageSize > 0 {
		size = min(size, c.opts.PageSize)
	}
	slices.SortStableFunc(items, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if c.oddPages {
		token, err := base64.URLEncoding.DecodeString(n.str("NextToken"))
		if err != nil {
			return nil, "", refuse("InvalidPaginationToken", "The specified pagination token is not valid: %s", n.str("NextToken"))
		}
		page, next := oddPage(items, string(token), size, key)
		return page, base64.URLEncoding.EncodeToString([]byte(next)), nil
	}
	if token := n.str("NextToken"); token != "" {
		last, err := base64.URLEncoding.DecodeString(token)
		if err != nil || !strings.HasPrefix(string(last), "page:") {
			return nil, "", refuse("InvalidPaginationToken", "The specified pagination token is not valid: %s", token)
		}
		after := strings.TrimPrefix(string(last), "page:")
		for len(items) > 0 && key(items[0]) <= after {
			items = items[1:]
		}
	}
	if len(items) <= size {
		return items, "", nil
	}
	return items[:size], base64.URLEncoding.EncodeToString([]byte("page:" + key(items[size-1]))), nil
}
