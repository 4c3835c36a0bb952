package main

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// A rule completes one schema of a kind's root schema.
type rule func(root *schema) error

// rulesOf says which rules a kind gets.
var rulesOf = map[string][]rule{
	"NodePool": {
		at("spec.template.metadata.labels", labelValues),
		at("spec.template.spec.taints", taints),
		at("spec.template.spec.startupTaints", taints),
		at("spec.template.spec.requirements", providerKeys),
		at("status.conditions", conditions),
	},
	"NodeClaim": {
		at("spec.taints", taints),
		at("spec.startupTaints", taints),
		at("spec.requirements", providerKeys),
		at("status.conditions", conditions),
		at("status.conditions", reasonMayBeEmpty),
	},
	"KWOKNodeClass": {
		at("status.conditions", conditions),
	},
}

// Patterns of Kubernetes' names: a qualified name with an optional DNS subdomain in
// front, and a label value, which may be empty.
const (
	qualifiedName = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	labelValue    = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
)

// providers are the label domains of cloud providers, with the keys of each that users
// may require.
var providers = []struct {
	domain string
	keys   []string
}{
	{"karpenter.kwok.sh", []string{"kwoknodeclass", "instance-cpu", "instance-memory", "instance-family", "instance-size"}},
}

// at is the rule that applies change to the schema at a dotted path of properties.
func at(path string, change rule) rule {
	return func(root *schema) error {
		if err := edit(root, strings.Split(path, "."), change); err != nil {
			return fmt.Errorf("at %s: %w", path, err)
		}
		return nil
	}
}

// edit applies change to the named descendant; properties are values in a map, so each
// changed one is put back.
func edit(s *schema, path []string, change rule) error {
	if len(path) == 0 {
		return change(s)
	}
	child, ok := s.Properties[path[0]]
	if !ok {
		return fmt.Errorf("there is no property %q", path[0])
	}
	if err := edit(&child, path[1:], change); err != nil {
		return err
	}
	s.Properties[path[0]] = child
	return nil
}

func items(s *schema) (*schema, error) {
	if s.Items == nil || s.Items.Schema == nil {
		return nil, fmt.Errorf("not a list")
	}
	return s.Items.Schema, nil
}

func labelValues(s *schema) error {
	if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
		return fmt.Errorf("not a map")
	}
	s.AdditionalProperties.Schema.MaxLength = new(int64(63))
	s.AdditionalProperties.Schema.Pattern = labelValue
	return nil
}

func taints(s *schema) error {
	item, err := items(s)
	if err != nil {
		return err
	}
	item.Description = "A taint keeps pods that do not tolerate it off the node."
	item.Required = []string{"effect", "key"}
	steps := []rule{
		at("key", func(s *schema) error {
			s.Description = "Key of the taint, such as example.com/dedicated."
			s.MinLength = new(int64(1))
			s.Pattern = qualifiedName
			return nil
		}),
		at("value", func(s *schema) error {
			s.Description = "Value of the taint, which a toleration may ask for."
			s.Pattern = labelValue
			return nil
		}),
		at("effect", func(s *schema) error {
			s.Description = "Effect on pods that do not tolerate the taint."
			s.Enum = nil
			for _, effect := range []string{"NoSchedule", "PreferNoSchedule", "NoExecute"} {
				s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + effect + `"`)})
			}
			return nil
		}),
		at("timeAdded", func(s *schema) error {
			s.Description = "TimeAdded is when the taint was put on the node."
			return nil
		}),
	}
	return apply(item, steps)
}

func conditions(s *schema) error {
	item, err := items(s)
	if err != nil {
		return err
	}
	item.Description = "A condition is one observed aspect of the object."
	return nil
}

// reasonMayBeEmpty accepts conditions of claims that older versions wrote without a
// reason or a message.
func reasonMayBeEmpty(s *schema) error {
	item, err := items(s)
	if err != nil {
		return err
	}
	item.Required = []string{"lastTransitionTime", "status", "type"}
	return at("reason", func(s *schema) error {
		s.Description = "Reason is one word in CamelCase for why the condition last changed."
		s.MinLength = nil
		s.Pattern = `^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$`
		return nil
	})(item)
}

func providerKeys(s *schema) error {
	item, err := items(s)
	if err != nil {
		return err
	}
	return at("key", func(s *schema) error {
		for _, provider := range providers {
			var allowed []string
			for _, key := range provider.keys {
				allowed = append(allowed, "'"+provider.domain+"/"+key+"'")
			}
			limit := apiextensionsv1.ValidationRule{
				Rule:    fmt.Sprintf("self in [%s] || !self.matches('^[^/]*%s(/|$)')", strings.Join(allowed, ", "), strings.ReplaceAll(provider.domain, ".", "[.]")),
				Message: fmt.Sprintf("of the domain %s only %s can be required", provider.domain, strings.Join(provider.keys, ", ")),
			}
			if !slices.Contains(s.XValidations, limit) {
				s.XValidations = append(s.XValidations, limit)
			}
		}
		return nil
	})(item)
}

func apply(s *schema, steps []rule) error {
	for _, step := range steps {
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}
