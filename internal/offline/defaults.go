package offline

import (
	"encoding/json"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/api/crds"
)

// schemaDefaults holds the schemas of Karpenter's kinds, by kind and version. The API server would apply their
// defaults.
type schemaDefaults map[metav1.TypeMeta]*apiextensionsv1.JSONSchemaProps

// schemas are read once for the process, and not changed.
var schemas = sync.OnceValues(newSchemaDefaults)

func newSchemaDefaults() (schemaDefaults, error) {
	definitions, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	all := schemaDefaults{}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			v := &d.Spec.Versions[i]
			all[metav1.TypeMeta{APIVersion: d.Spec.Group + "/" + v.Name, Kind: d.Spec.Names.Kind}] = v.Schema.OpenAPIV3Schema
		}
	}
	return all, nil
}

// apply sets the defaults of an object. Objects of other kinds are returned unchanged.
func (s schemaDefaults) apply(kind metav1.TypeMeta, text []byte) ([]byte, error) {
	schema := s[kind]
	if schema == nil {
		return text, nil
	}
	var object any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if err := fillIn(schema, object); err != nil {
		return nil, fmt.Errorf("filling in defaults: %w", err)
	}
	return json.Marshal(object)
}

// fillIn sets missing fields below a value, level by level
// (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting).
func fillIn(schema *apiextensionsv1.JSONSchemaProps, value any) error {
	switch value := value.(type) {
	case map[string]any:
		for name := range schema.Properties {
			property := schema.Properties[name]
			if _, given := value[name]; !given && property.Default != nil {
				var otherwise any
				if err := json.Unmarshal(property.Default.Raw, &otherwise); err != nil {
					return err
				}
				value[name] = otherwise
			}
			if err := fillIn(&property, value[name]); err != nil {
				return err
			}
		}
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			return nil
		}
		for _, member := range value {
			if err := fillIn(schema.Items.Schema, member); err != nil {
				return err
			}
		}
	}
	return nil
}
