package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/karpenter-go/karpenter/charts"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
)

// readValueSchema returns the chart's schema. Helm checks values with the same library.
var readValueSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	const name = "values.schema.json"
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(charts.ValuesSchema()))
	if err != nil {
		return nil, fmt.Errorf("reading the schema of the chart's values: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, text); err != nil {
		return nil, fmt.Errorf("reading the schema of the chart's values: %w", err)
	}
	return compiler.Compile(name)
})

// kubernetesValues are values of which the chart names only some fields: the others are those of Kubernetes.
var kubernetesValues = []string{"strategy", "podSecurityContext", "affinity", "controller.securityContext"}

// valueNames returns the known names by the path of the value that contains them, "" for the top.
func valueNames(s *jsonschema.Schema, path string) map[string][]string {
	if len(s.Properties) == 0 || slices.Contains(kubernetesValues, path) {
		return nil
	}
	known := slices.Collect(maps.Keys(s.Properties))
	if path == "" {
		known = append(known, "global") // Helm allows it in every chart
	}
	slices.Sort(known)
	all := map[string][]string{path: known}
	for name, below := range s.Properties {
		maps.Copy(all, valueNames(below, strings.TrimPrefix(path+"."+name, ".")))
	}
	return all
}

// valueCheck notes what the chart does not know, in values with current names.
type valueCheck struct {
	*Entry
	names map[string][]string
}

// checkValues checks the values of a document.
func checkValues(entry *Entry, values any) {
	schema := checkNames(entry, values)
	if schema == nil {
		return
	}
	var wrong *jsonschema.ValidationError
	if errors.As(schema.Validate(values), &wrong) {
		noteInvalid(entry, values, wrong)
	}
}

// checkNames notes names that the chart does not know, and returns the schema.
func checkNames(entry *Entry, values any) *jsonschema.Schema {
	schema, err := readValueSchema()
	if err != nil { // the schema is part of the program, and a test reads it
		entry.note(Impossible, "", "%s", err)
		return nil
	}
	c := valueCheck{entry, valueNames(schema, "")}
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

// noteInvalid notes what the schema refuses. Values that contain a placeholder are not known yet, and required fields have
// defaults in the chart, except in members of lists.
func noteInvalid(entry *Entry, values any, wrong *jsonschema.ValidationError) {
	found := map[string]string{}
	var visit func(*jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			visit(cause)
		}
		path, value, member := valueAt(values, e.InstanceLocation)
		_, missing := e.ErrorKind.(*kind.Required)
		text, isText := value.(string)
		if len(e.Causes) == 0 && (member || !missing) && !(isText && placeholder.MatchString(text)) {
			found[path] = e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		}
	}
	visit(wrong)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		entry.note(Impossible, path, "%s; the chart refuses it", found[path])
	}
}

// valueAt returns the path of a value as notes name it, the value, and whether it is a member of a list or below one.
func valueAt(values any, location []string) (path string, value any, member bool) {
	for _, step := range location {
		switch below := values.(type) {
		case map[string]any:
			path, values = strings.TrimPrefix(path+"."+step, "."), below[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(below) {
				return path, nil, member
			}
			path, values, member = fmt.Sprintf("%s[%d]", path, i), below[i], true
		}
	}
	return path, values, member
}
