package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusals are what an API server would refuse of an object of our own kinds, or drop without a word: what violations
// finds, fields that are missing, and fields that nobody knows.
func (s schemaDefaults) refusals(object map[string]any) []error {
	kind := metav1.TypeMeta{}
	kind.APIVersion, _ = object["apiVersion"].(string)
	kind.Kind, _ = object["kind"].(string)
	schema := s[kind]
	if schema == nil {
		return []error{fmt.Errorf("apiVersion: %s has no kind %s", kind.APIVersion, kind.Kind)}
	}
	wrong, err := s.violations(kind, object)
	if err != nil {
		return []error{err}
	}
	spec := schema.Properties["spec"]
	var c schemaCheck
	c.shape("spec", &spec, object["spec"])
	return append(wrong, c.wrong...)
}

// shape compares the fields of a value, and of those below it, with its schema.
func (c *schemaCheck) shape(path string, schema *apiextensionsv1.JSONSchemaProps, value any) {
	c.checkType(path, schema, value)
	switch value := value.(type) {
	case map[string]any:
		for _, name := range schema.Required {
			if property := schema.Properties[name]; value[name] == nil && property.Default == nil {
				c.add(path+"."+name, "is missing")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			property, known := schema.Properties[name]
			switch {
			case known:
				c.shape(path+"."+name, &property, value[name])
			case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
				c.shape(path+"["+name+"]", schema.AdditionalProperties.Schema, value[name])
			case schema.XPreserveUnknownFields == nil || !*schema.XPreserveUnknownFields:
				c.add(path+"."+name, "is not known: the API server would drop it")
			}
		}
	case []any:
		for i := range value {
			if schema.Items != nil && schema.Items.Schema != nil {
				c.shape(fmt.Sprintf("%s[%d]", path, i), schema.Items.Schema, value[i])
			}
		}
	}
}

// checkType compares what kind of value stands there with what the schema asks for.
func (c *schemaCheck) checkType(path string, schema *apiextensionsv1.JSONSchemaProps, value any) {
	is := ""
	switch value := value.(type) {
	case nil:
		return
	case map[string]any:
		is = "object"
	case []any:
		is = "array"
	case string:
		is = "string"
	case bool:
		is = "boolean"
	case float64:
		is = "number"
		if value == float64(int64(value)) {
			is = "integer"
		}
	default:
		is = "integer"
	}
	switch {
	case schema.Type == "" || schema.Type == is || schema.Type == "number" && is == "integer":
	case schema.XIntOrString && (is == "integer" || is == "string"):
	default:
		article := "a"
		if strings.ContainsAny(schema.Type[:1], "aeiou") {
			article = "an"
		}
		c.add(path, "is of type %s, want %s %s", is, article, schema.Type)
	}
}
