package awssim

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// node is a parameter of a Query request: "Filter.1.Value.2=x" is the node Filter with the child 1, whose child Value
// has the child 2 with the value x. A nil node is an absent parameter.
type node struct {
	value    string
	children map[string]*node
	read     bool
}

func parseForm(values url.Values) *node {
	root := &node{}
	for key, list := range values {
		at := root
		for part := range strings.SplitSeq(key, ".") {
			next := at.children[part]
			if next == nil {
				next = &node{}
				if at.children == nil {
					at.children = map[string]*node{}
				}
				at.children[part] = next
			}
			at = next
		}
		at.value = list[0]
	}
	return root
}

// at returns the child of that name, or nil. A name with dots is a path.
func (n *node) at(path string) *node {
	for part := range strings.SplitSeq(path, ".") {
		if n == nil {
			return nil
		}
		n = n.children[part]
	}
	if n != nil {
		n.read = true
	}
	return n
}

// leaves calls do for each value, with its name. The numbers of lists are N.
func (n *node) leaves(name string, do func(name string, leaf *node)) {
	if len(n.children) == 0 {
		do(name, n)
	}
	for key, child := range n.children {
		if _, err := strconv.Atoi(key); err == nil {
			key = "N"
		}
		child.leaves(strings.TrimPrefix(name+"."+key, "."), do)
	}
}

func (n *node) has(path string) bool { return n.at(path) != nil }

// str returns the value of a child, and an empty string if it is absent.
func (n *node) str(path string) string {
	if child := n.at(path); child != nil {
		return child.value
	}
	return ""
}

func (n *node) boolean(path string) bool { return n.str(path) == "true" }

// integer returns the value of a child, and fallback if it is absent.
func (n *node) integer(path string, fallback int) (int, error) {
	child := n.at(path)
	if child == nil {
		return fallback, nil
	}
	i, err := strconv.Atoi(child.value)
	if err != nil {
		return 0, refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid. It must be an integer.", child.value, path)
	}
	return i, nil
}

// items returns the members of a list: the numbered children in order.
func (n *node) items(path string) []*node {
	list := n.at(path)
	if list == nil {
		return nil
	}
	var indexes []int
	for key := range list.children {
		if i, err := strconv.Atoi(key); err == nil {
			indexes = append(indexes, i)
		}
	}
	slices.Sort(indexes)
	items := make([]*node, len(indexes))
	for k, i := range indexes {
		items[k] = list.children[strconv.Itoa(i)]
	}
	return items
}

// strings returns the values of a list.
func (n *node) strings(path string) []string {
	var values []string
	for _, item := range n.items(path) {
		item.read = true
		values = append(values, item.value)
	}
	return values
}

// only rejects children that are not listed.
func (n *node) only(what string, names ...string) error {
	if n == nil {
		return nil
	}
	for name := range n.children {
		if !slices.Contains(names, name) {
			return refuse("UnknownParameter", "The parameter %s is not recognized or not simulated in %s", name, what)
		}
	}
	return nil
}

// oneOf rejects a value that is not listed. An absent value is accepted.
func (n *node) oneOf(path string, values ...string) error {
	if v := n.str(path); n.has(path) && !slices.Contains(values, v) {
		return refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid. Valid values: %s", v, path, strings.Join(values, ", "))
	}
	return nil
}

// canonical returns the request without the parts that may differ between attempts.
func canonical(values url.Values) string {
	keys := make([]string, 0, len(values))
	for key := range values {
		if key != "ClientToken" {
			keys = append(keys, fmt.Sprintf("%s=%q", key, values[key]))
		}
	}
	slices.Sort(keys)
	return strings.Join(keys, "&")
}
