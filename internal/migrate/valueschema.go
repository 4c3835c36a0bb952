package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/karpenter-go/karpenter/charts"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
)

// valueSchema is the part of JSON schema that the chart's schema uses. A test fails if the chart uses more.
type valueSchema struct {
	Schema               string                  `json:"$schema"`
	Description          string                  `json:"description"`
	Type                 any                     `json:"type"` // a name or a list of names
	Enum                 []any                   `json:"enum"`
	Minimum              *float64                `json:"minimum"`
	Maximum              *float64                `json:"maximum"`
	ExclusiveMinimum     *float64                `json:"exclusiveMinimum"`
	MinLength            int                     `json:"minLength"`
	MaxProperties        *int                    `json:"maxProperties"`
	Pattern              string                  `json:"pattern"`
	Properties           map[string]*valueSchema `json:"properties"`
	AdditionalProperties *valueSchema            `json:"additionalProperties"`
	Items                *valueSchema            `json:"items"`
	// Required fields have defaults in the chart, except in members of lists.
	Required []string `json:"required"`
}

func readValueSchema() (*valueSchema, error) {
	schema := &valueSchema{}
	if err := json.Unmarshal(charts.ValuesSchema(), schema); err != nil {
		return nil, fmt.Errorf("reading the schema of the chart's values: %w", err)
	}
	schema.Properties["global"] = &valueSchema{} // Helm allows it in every chart
	return schema, nil
}

// kubernetesValues are values of which the chart names only some fields: the others are those of Kubernetes.
var kubernetesValues = []string{"strategy", "podSecurityContext", "affinity", "controller.securityContext"}

// names returns the known names by the path of the value that contains them, "" for the top.
func (s *valueSchema) names(path string) map[string][]string {
	if len(s.Properties) == 0 || slices.Contains(kubernetesValues, path) {
		return nil
	}
	all := map[string][]string{path: slices.Sorted(maps.Keys(s.Properties))}
	for name, below := range s.Properties {
		maps.Copy(all, below.names(strings.TrimPrefix(path+"."+name, ".")))
	}
	return all
}

// valueCheck notes what the chart does not know or refuses, in values with current names.
type valueCheck struct {
	*Entry
	names map[string][]string
}

// checkValues checks the values of a document.
func checkValues(entry *Entry, values any) {
	if schema := checkNames(entry, values); schema != nil {
		c := valueCheck{Entry: entry}
		c.check("", schema, values, false)
	}
}

// checkNames notes names that the chart does not know, and returns the schema.
func checkNames(entry *Entry, values any) *valueSchema {
	schema, err := readValueSchema()
	if err != nil { // the schema is part of the program, and a test reads it
		entry.note(Impossible, "", "%s", err)
		return nil
	}
	c := valueCheck{entry, schema.names("")}
	c.unknown("", values)
	return schema
}

// unknown notes names that the chart does not know.
func (c *valueCheck) unknown(path string, value any) {
	fields, isMap := value.(map[string]any)
	known, closed := c.names[path]
	if !isMap || !closed {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if slices.Contains(known, name) {
			c.unknown(at, fields[name])
			continue
		}
		if meant := c.meant(path, name); meant != "" {
			c.note(Impossible, at, "is not a value of the chart; did you mean %s?", meant)
		} else {
			c.note(Advice, at, "is not a value of the chart, and has no effect")
		}
	}
}

// meant returns the path of the known value that a name most likely stands for: one that resembles it in the same
// place, or the only one of the name in another place.
func (c *valueCheck) meant(path, name string) string {
	known := c.names[path]
	i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	near := explain.Nearest(name, known)
	if i >= 0 {
		near = known[i]
	}
	if near != "" {
		return strings.TrimPrefix(path+"."+near, ".")
	}
	var elsewhere []string
	for at, names := range c.names {
		if slices.Contains(names, name) {
			elsewhere = append(elsewhere, strings.TrimPrefix(at+"."+name, "."))
		}
	}
	if len(elsewhere) != 1 {
		return ""
	}
	return elsewhere[0]
}

// check notes values that the schema refuses. Values that contain a placeholder are not known yet.
func (c *valueCheck) check(path string, schema *valueSchema, value any, member bool) {
	if text, ok := value.(string); ok && placeholder.MatchString(text) {
		return
	}
	if problem := schema.problem(value, member); problem != "" {
		c.note(Impossible, path, "%s; the chart refuses it", problem)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := schema.Properties[name]
			if below == nil {
				below = schema.AdditionalProperties
			}
			if below != nil {
				c.check(strings.TrimPrefix(path+"."+name, "."), below, value[name], member)
			}
		}
	case []any:
		for i := range value {
			if schema.Items != nil {
				c.check(fmt.Sprintf("%s[%d]", path, i), schema.Items, value[i], true)
			}
		}
	}
}

// problem returns what is wrong with a value, apart from its parts; "" for nothing.
func (s *valueSchema) problem(value any, member bool) string {
	if types := s.types(); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isOfType(value, t) }) {
		return "is " + shownValue(value) + ", want " + strings.Join(types, " or ")
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return fmt.Sprint(e) == fmt.Sprint(value) }) {
		var allowed []string
		for _, e := range s.Enum {
			allowed = append(allowed, shownValue(e))
		}
		return "is " + shownValue(value) + ", want " + strings.Join(allowed, ", ")
	}
	switch value := value.(type) {
	case map[string]any:
		if s.MaxProperties != nil && len(value) > *s.MaxProperties {
			others := slices.DeleteFunc(s.types(), func(t string) bool { return t == "object" })
			return "is an object with fields, want " + strings.Join(others, " or ")
		}
		for _, name := range s.Required {
			if _, there := value[name]; member && !there {
				return "has no " + name
			}
		}
	case string:
		if s.Pattern != "" {
			if form, err := regexp.Compile(s.Pattern); err == nil && !form.MatchString(value) {
				return fmt.Sprintf("is %q, want a value that matches %s", value, s.Pattern)
			}
		}
		if utf8.RuneCountInString(value) < s.MinLength {
			return "is empty"
		}
	}
	return s.outOfRange(value)
}

func (s *valueSchema) outOfRange(value any) string {
	number, is := asNumber(value)
	switch {
	case !is:
	case s.Minimum != nil && number < *s.Minimum:
		return fmt.Sprintf("is %v, want %v or more", value, *s.Minimum)
	case s.Maximum != nil && number > *s.Maximum:
		return fmt.Sprintf("is %v, want %v or less", value, *s.Maximum)
	case s.ExclusiveMinimum != nil && number <= *s.ExclusiveMinimum:
		return fmt.Sprintf("is %v, want more than %v", value, *s.ExclusiveMinimum)
	}
	return ""
}

func (s *valueSchema) types() []string {
	switch types := s.Type.(type) {
	case string:
		return []string{types}
	case []any:
		var names []string
		for _, t := range types {
			names = append(names, fmt.Sprint(t))
		}
		return names
	}
	return nil
}

func isOfType(value any, name string) bool {
	number, isNumber := asNumber(value)
	switch value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	}
	return isNumber && (name == "number" || name == "integer" && number == float64(int64(number)))
}

func asNumber(value any) (float64, bool) {
	switch value := value.(type) {
	case int:
		return float64(value), true
	case int64:
		return float64(value), true
	case uint64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

// shownValue returns a value for a sentence.
func shownValue(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", value)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprint(value)
}
