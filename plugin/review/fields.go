package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Object is a Kubernetes object, or what is known of it.
type Object struct {
	// Kind and Name identify it; Name is NAMESPACE/NAME for kinds that have namespaces.
	Kind, Name string
	// Content is its JSON; nil for an object that is not there.
	Content map[string]any
	// Unknown is set for an object of which it is not known whether it is there, and what it contains.
	Unknown bool
}

// Change is a field that decides and has another value, or a whole object that is there on one side only.
type Change struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Field is its path; omitted for a whole object.
	Field string `json:"field,omitempty"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// What a whole object is on a side, and a field that is not set.
const (
	absent  = "absent"
	present = "present"
	unknown = "not read"
	unset   = "unset"
)

// Compare returns the fields that decide and differ between two objects of the same kind and name, by path.
func Compare(old, now Object) []Change {
	whole := Change{Kind: now.Kind, Name: now.Name, Old: stateOf(old), New: stateOf(now)}
	switch {
	case old.Content == nil && now.Content == nil:
		return nil
	case old.Content == nil, now.Content == nil:
		return []Change{whole}
	}
	was, is := map[string]string{}, map[string]string{}
	flatten("", deciding(old.Kind, old.Content), was)
	flatten("", deciding(now.Kind, now.Content), is)
	var list []Change
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if was[path] != is[path] {
			c := whole
			c.Field, c.Old, c.New = path, cmp.Or(was[path], unset), cmp.Or(is[path], unset)
			list = append(list, c)
		}
	}
	return list
}

func stateOf(o Object) string {
	switch {
	case o.Unknown:
		return unknown
	case o.Content == nil:
		return absent
	}
	return present
}

// flatten adds the leaves of a value by their paths. A list is one leaf whose members are sorted: the only order that
// decides is that of init containers, of which each has what the order says (afterSidecars). Members that have a name
// or a key have their own paths.
func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		if len(value) == 0 && path != "" {
			into[path] = "{}"
		}
		for key, member := range value {
			flatten(strings.TrimPrefix(path+"."+quoted(key), "."), member, into)
		}
	case []any:
		flattenList(path, value, into)
	default:
		into[path] = text(value)
	}
}

// quoted returns a key as part of a path: in brackets if it contains a separator, as names of labels do.
func quoted(key string) string {
	if strings.ContainsAny(key, "./[] ") {
		return "[" + key + "]"
	}
	return key
}

func flattenList(path string, list []any, into map[string]string) {
	by, ok := named(list)
	if !ok {
		into[path] = text(list)
		return
	}
	for name, members := range by {
		at := path + "[" + name + "]"
		if len(members) == 1 && members[0]["name"] != nil {
			flatten(at, without(members[0], "name"), into)
			continue
		}
		texts := make([]string, len(members))
		for i, m := range members {
			texts[i] = keyed(m)
		}
		slices.Sort(texts)
		into[at] = strings.Join(texts, ", ")
	}
}

// named returns the members of a list by what tells them apart: a unique name, or the key of a requirement or a taint.
func named(list []any) (map[string][]map[string]any, bool) {
	by := map[string][]map[string]any{}
	for _, member := range list {
		m, ok := member.(map[string]any)
		name, hasName := m["name"].(string)
		key, hasKey := m["key"].(string)
		switch {
		case !ok:
			return nil, false
		case hasName && by[name] == nil:
			by[name] = append(by[name], m)
		case hasKey && (only(m, "key", "operator", "values", "minValues") || only(m, "key", "value", "effect", "timeAdded")):
			by[key] = append(by[key], m)
		default:
			return nil, false
		}
	}
	return by, len(by) > 0
}

func only(m map[string]any, keys ...string) bool {
	for key := range m {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return true
}

func without(m map[string]any, key string) map[string]any {
	rest := maps.Clone(m)
	delete(rest, key)
	return rest
}

// keyed returns a requirement ("In [a b]") or a taint ("a:NoSchedule") without its key.
func keyed(m map[string]any) string {
	if m["operator"] == nil {
		return strings.TrimPrefix(fmt.Sprintf("%s:%s", text(m["value"]), text(m["effect"])), ":")
	}
	out := text(m["operator"])
	if m["values"] != nil {
		out += " " + text(m["values"])
	}
	if m["minValues"] != nil {
		out += " minValues " + text(m["minValues"])
	}
	return out
}

// text returns a value in one line: lists in brackets with sorted members, each once, maps in braces.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return strings.Join(strings.Fields(value), " ")
	case []any:
		members := make([]string, len(value))
		for i, m := range value {
			members[i] = text(m)
		}
		slices.Sort(members)
		return "[" + strings.Join(slices.Compact(members), " ") + "]"
	case map[string]any:
		var members []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			members = append(members, key+": "+text(value[key]))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	out, err := json.Marshal(value)
	if err != nil { // not of a document
		return fmt.Sprint(value)
	}
	return string(out)
}
