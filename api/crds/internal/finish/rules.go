package main

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// A rule completes one schema within the root schema of a kind.
type rule func(root *schema) error

// rulesOf maps each kind to its rules.
var rulesOf = map[string][]rule{
	"NodePool": {
		at("spec.template.metadata.labels", labelValues),
		at("spec.template.metadata.labels", providerLabels),
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
	"NodeOverlay": {
		at("status.conditions", conditions),
	},
	"CapacityBuffer": {
		at("status.conditions", conditions),
	},
	"KWOKNodeClass": {
		at("status.conditions", conditions),
	},
	"EC2NodeClass": {
		at("status.conditions", conditions),
	},
	"Provisioner": {
		keepUnknown,
		at("status.conditions", conditions),
	},
	"AWSNodeTemplate": {
		keepUnknown,
		at("status.conditions", conditions),
	},
}

// alsoServed lists, by kind, versions that are served without conversion and with the schema of the stored
// version. Those of CapacityBuffer and CapacityQuota are in the Cluster Autoscaler's definitions, too: its manifests
// are accepted, and so is this definition where it has stored objects of that version.
var alsoServed = map[string][]string{"Provisioner": {"v1alpha3", "v1alpha4"}, "CapacityBuffer": {"v1alpha1"}, "CapacityQuota": {"v1alpha1"}}

// serveAlso adds these versions, once. Nothing is converted between them, because they share one schema.
func serveAlso(definition *apiextensionsv1.CustomResourceDefinition, names []string) {
	stored := definition.Spec.Versions[len(definition.Spec.Versions)-1]
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	for _, name := range names {
		older := *stored.DeepCopy()
		older.Name, older.Storage = name, false
		versions = append(versions, older)
	}
	definition.Spec.Versions = append(versions, stored)
}

// keepUnknown preserves fields that the schema does not declare.
func keepUnknown(root *schema) error {
	root.XPreserveUnknownFields = new(true)
	return nil
}

// Patterns of Kubernetes names: a qualified name with an optional DNS subdomain as its prefix, and a label
// value, which may be empty.
const (
	qualifiedName = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	labelValue    = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
)

// Patterns of quantities: the one that controller-gen writes, and the one that is accepted. Parsing an exponent
// of ten digits practically never ends. Exponents that are not integers are no valid quantities for Kubernetes
// either.
const (
	anyQuantity     = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	boundedQuantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,3}))?$`
	longestQuantity = 64
)

// quantities bounds every quantity of a schema.
func quantities(s *schema) error {
	if s.XIntOrString && (s.Pattern == anyQuantity || s.Pattern == boundedQuantity) {
		s.Pattern, s.MaxLength = boundedQuantity, new(int64(longestQuantity))
	}
	for name, child := range s.Properties {
		if err := quantities(&child); err != nil {
			return err
		}
		s.Properties[name] = child
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		if err := quantities(s.AdditionalProperties.Schema); err != nil {
			return err
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		return quantities(s.Items.Schema)
	}
	return nil
}

// A provider has a label domain in which users may require only some keys. If guardsLabels is set, the template
// of a pool can also set only these keys.
type provider struct {
	domain       string
	guardsLabels bool
	keys         []string
}

var providers = []provider{
	{"karpenter.kwok.sh", false, []string{"kwoknodeclass", "instance-cpu", "instance-memory", "instance-family", "instance-size"}},
	{"karpenter.k8s.aws", true, []string{
		"ec2nodeclass", "instance-tenancy", "capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
		"instance-encryption-in-transit-supported", "nitro-sandbox", "instance-category", "instance-hypervisor", "instance-family",
		"instance-generation", "instance-local-nvme", "instance-size", "instance-cpu", "instance-cpu-manufacturer",
		"instance-cpu-sustained-clock-speed-mhz", "instance-memory", "instance-ebs-bandwidth", "instance-network-bandwidth",
		"instance-gpu-name", "instance-gpu-manufacturer", "instance-gpu-count", "instance-gpu-memory", "instance-accelerator-name",
		"instance-accelerator-manufacturer", "instance-accelerator-count", "instance-capability-flex", "placement-group-id",
		"placement-group-partition",
	}},
}

// at returns the rule that applies change to the schema at a dotted path of properties.
func at(path string, change rule) rule {
	return func(root *schema) error {
		if err := edit(root, strings.Split(path, "."), change); err != nil {
			return fmt.Errorf("at %s: %w", path, err)
		}
		return nil
	}
}

// edit applies change to the named descendant. Properties are values in a map, so each modified one is written
// back.
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

// reasonMayBeEmpty accepts conditions of claims without a reason or a message, which older versions wrote.
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
			require(s, provider.permits("self"), fmt.Sprintf("of the domain %s only %s can be required", provider.domain, strings.Join(provider.keys, ", ")))
		}
		return nil
	})(item)
}

func providerLabels(s *schema) error {
	for _, provider := range providers {
		if provider.guardsLabels {
			require(s, "self.all(x, "+provider.permits("x")+")", fmt.Sprintf("of the domain %s only %s can be set", provider.domain, strings.Join(provider.keys, ", ")))
		}
	}
	return nil
}

// permits returns a CEL expression that is true if the variable is not a key of the provider's domain, or is
// one that users may set.
func (p provider) permits(variable string) string {
	var allowed []string
	for _, key := range p.keys {
		allowed = append(allowed, "'"+p.domain+"/"+key+"'")
	}
	return fmt.Sprintf("%s in [%s] || !%s.matches('^[^/]*%s(/|$)')", variable, strings.Join(allowed, ", "), variable, strings.ReplaceAll(p.domain, ".", "[.]"))
}

// require adds a validation rule, once.
func require(s *schema, rule, message string) {
	limit := apiextensionsv1.ValidationRule{Rule: rule, Message: message}
	if !slices.Contains(s.XValidations, limit) {
		s.XValidations = append(s.XValidations, limit)
	}
}

func apply(s *schema, steps []rule) error {
	for _, step := range steps {
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}
