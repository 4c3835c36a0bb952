package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/compat/admission"
)

// violations returns the errors of the API server about an object of Karpenter's kinds: values that are out of range,
// have the wrong format, are not allowed, too many or too long. Missing fields, and rules across fields, are checked
// by karpv1.Validate.
func (s schemaDefaults) violations(kind metav1.TypeMeta, object any) ([]error, error) {
	schema := s[kind]
	if schema == nil {
		return nil, nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	spec := schema.Properties["spec"]
	var c schemaCheck
	c.check("spec", &spec, plain["spec"])
	return c.wrong, nil
}

// schemaCheck collects errors.
type schemaCheck struct{ wrong []error }

func (c *schemaCheck) add(path, format string, arguments ...any) {
	c.wrong = append(c.wrong, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, arguments...)))
}

// check compares a value and its fields with their schema.
func (c *schemaCheck) check(path string, schema *apiextensionsv1.JSONSchemaProps, value any) {
	c.checkEnum(path, schema, value)
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if property, known := schema.Properties[name]; known {
				c.check(path+"."+name, &property, value[name])
			} else if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
				c.check(path+"["+name+"]", schema.AdditionalProperties.Schema, value[name])
			}
		}
	case []any:
		if schema.MaxItems != nil && int64(len(value)) > *schema.MaxItems {
			c.add(path, "has %s, want at most %d", plural(len(value), "member"), *schema.MaxItems)
		}
		for i := range value {
			if schema.Items != nil && schema.Items.Schema != nil {
				c.check(fmt.Sprintf("%s[%d]", path, i), schema.Items.Schema, value[i])
			}
		}
	case float64:
		c.checkNumber(path, schema, value)
	case string:
		c.checkText(path, schema, value)
	}
}

func (c *schemaCheck) checkEnum(path string, schema *apiextensionsv1.JSONSchemaProps, value any) {
	if len(schema.Enum) == 0 || value == nil {
		return
	}
	var allowed []string
	for _, choice := range schema.Enum {
		var is any
		if json.Unmarshal(choice.Raw, &is) == nil && is == value {
			return
		}
		allowed = append(allowed, strings.Trim(string(choice.Raw), `"`))
	}
	c.add(path, "is %q, want %s", fmt.Sprint(value), strings.Join(allowed, ", "))
}

func (c *schemaCheck) checkNumber(path string, schema *apiextensionsv1.JSONSchemaProps, value float64) {
	low, high := schema.Minimum, schema.Maximum
	is := strconv.FormatFloat(value, 'f', -1, 64)
	switch {
	case low != nil && high != nil && (value < *low || value > *high):
		c.add(path, "is %s, want %v to %v", is, *low, *high)
	case low != nil && value < *low:
		c.add(path, "is %s, want %v or more", is, *low)
	case high != nil && value > *high:
		c.add(path, "is %s, want %v or less", is, *high)
	}
}

func (c *schemaCheck) checkText(path string, schema *apiextensionsv1.JSONSchemaProps, value string) {
	if schema.MaxLength != nil && int64(len([]rune(value))) > *schema.MaxLength {
		c.add(path, "is %d characters long, want at most %d", len([]rune(value)), *schema.MaxLength)
		return
	}
	if schema.Pattern == "" {
		return
	}
	if form, err := regexp.Compile(schema.Pattern); err == nil && !form.MatchString(value) {
		c.add(path, "is %q, want %s", value, cmp.Or(admission.Form(schema.Pattern), "what matches "+schema.Pattern))
	}
}
