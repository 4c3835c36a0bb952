package awssim

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// filterTable says for each filter of a call where its values are in an item of the answer: the elements from the item
// to the value, as in the tags of the answer's structs. A filter therefore selects by what the answer shows. An element
// that no item has selects nothing, which is right for what EC2 omits, such as the kernel of an HVM image. The value
// noFact is for a filter that AWS documents and for which the simulation has no fact: it is refused.
type filterTable map[string]string

const noFact = ""

// tagFilters are the filters that every resource with tags has. tagFacts evaluates them.
var tagFilters = filterTable{"tag": "tagSet>item", "tag-key": "tagSet>item>key"}

// with returns the table with more filters.
func (t filterTable) with(more filterTable) filterTable {
	all := filterTable{}
	for _, table := range []filterTable{t, more} {
		for name, path := range table {
			all[name] = path
		}
	}
	return all
}

// under returns the table for items that contain these items in an element.
func (t filterTable) under(element string) filterTable {
	all := filterTable{}
	for name, path := range t {
		if path != noFact {
			path = element + ">" + path
		}
		all[name] = path
	}
	return all
}

// check refuses a filter that AWS does not document for the call, and one that is not simulated, whether or not there is
// an item that it could select.
func (t filterTable) check(name string) error {
	if key, ok := strings.CutPrefix(name, "tag:"); ok && key != "" {
		name = "tag"
	} else if name == "tag" {
		name = "tag:"
	}
	path, known := t[name]
	switch {
	case !known:
		return refuse("InvalidParameterValue", "The filter '%s' is invalid", name)
	case path == noFact:
		return refuse("InvalidParameterValue", "The filter '%s' is not simulated", name)
	}
	return nil
}

// checkFilters refuses the first filter that the action does not have.
func (m method) checkFilters(r *request) error {
	if m.filters == nil {
		return nil
	}
	for _, item := range r.form.items("Filter") {
		if name := item.str("Name"); name != "" {
			if err := m.filters.check(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// facts returns the values of an item for the filters of the call: of its tags, or where the call's table says in what
// the answer would show of it. build makes that, at most once.
func (r *request) facts(tags map[string]string, build func() any) facts {
	var item *reflect.Value
	return func(name string) ([]string, bool) {
		if values, ok := tagFacts(tags, name); ok {
			return values, true
		}
		if item == nil {
			v := reflect.ValueOf(build())
			item = &v
		}
		path, known := r.filters[name]
		return elements(*item, path), known
	}
}

// elements returns the texts of the elements at a path in the XML of a value.
func elements(v reflect.Value, path string) []string {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Slice:
		var texts []string
		for k := range v.Len() {
			texts = append(texts, elements(v.Index(k), path)...)
		}
		return texts
	case path == "":
		return []string{scalar(v)}
	case v.Kind() != reflect.Struct:
		return nil
	}
	var texts []string
	for k := range v.NumField() {
		tag := strings.Split(v.Type().Field(k).Tag.Get("xml"), ",")
		if tag[0] == "" || slices.Contains(tag[1:], "omitempty") && v.Field(k).IsZero() {
			continue
		}
		if rest, ok := strings.CutPrefix(path+">", tag[0]+">"); ok {
			texts = append(texts, elements(v.Field(k), strings.TrimSuffix(rest, ">"))...)
		}
	}
	return texts
}

// scalar returns a value as encoding/xml writes it.
func scalar(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return ""
}
