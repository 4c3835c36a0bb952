package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/karpenter-go/karpenter/api/crds"
)

// Refusal is one reason why an object is not accepted.
type Refusal struct {
	Field   string // path, such as spec.template.spec.requirements[0]; empty for the whole object
	Problem string // the problem and its correction, phrased to follow the name of the field
}

// Server checks objects of this project's kinds, one at a time. It is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	versions map[metav1.TypeMeta]*apiextensionsv1.JSONSchemaProps
	kinds    map[metav1.TypeMeta]*kind
	// namespaced holds the kinds whose objects have a namespace.
	namespaced map[metav1.TypeMeta]bool
	// stored holds the versions in which objects are stored, if that needs no webhook.
	stored map[metav1.TypeMeta]string
}

// New returns a Server with the definitions in api/crds. An error means that a generated file is broken.
func New() (*Server, error) {
	definitions, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	s := &Server{versions: map[metav1.TypeMeta]*apiextensionsv1.JSONSchemaProps{}, kinds: map[metav1.TypeMeta]*kind{},
		namespaced: map[metav1.TypeMeta]bool{}, stored: map[metav1.TypeMeta]string{}}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			v := &d.Spec.Versions[i]
			name := metav1.TypeMeta{APIVersion: d.Spec.Group + "/" + v.Name, Kind: d.Spec.Names.Kind}
			s.versions[name] = v.Schema.OpenAPIV3Schema
			s.namespaced[name] = d.Spec.Scope == apiextensionsv1.NamespaceScoped
			if converted := d.Spec.Conversion; converted == nil || converted.Strategy == apiextensionsv1.NoneConverter {
				s.stored[name] = d.Spec.Group + "/" + storedVersion(d)
			}
		}
	}
	return s, nil
}

func storedVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	return d.Spec.Versions[slices.IndexFunc(d.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })].Name
}

// Create returns the reasons why the object, given as decoded JSON, could not be created, ordered by the names of the
// fields. The result is empty if the object could be created. Create does not modify the object.
func (s *Server) Create(object map[string]any) ([]Refusal, error) {
	_, refusals, err := s.Admit(object)
	return refusals, err
}

// Admit also returns the object as it would be stored: without a status, with its defaults, and in the stored version,
// unless a webhook converts to that. It is nil if it cannot be read.
func (s *Server) Admit(object map[string]any) (stored map[string]any, refusals []Refusal, err error) {
	name := metav1.TypeMeta{}
	name.APIVersion, _ = object["apiVersion"].(string)
	name.Kind, _ = object["kind"].(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kind(name)
	if err != nil {
		return nil, nil, err
	}
	if k == nil {
		return nil, []Refusal{{"apiVersion", fmt.Sprintf("%s has no kind %s", name.APIVersion, name.Kind)}}, nil
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, []Refusal{{"", "has values that are not valid JSON"}}, nil
	}
	if err := utiljson.Unmarshal(encoded, &stored); err != nil { // integers become int64, as on a server
		return nil, nil, fmt.Errorf("reading what was encoded: %w", err)
	}
	refusals = k.create(stored)
	if version := s.stored[name]; version != "" {
		stored["apiVersion"] = version
	}
	return stored, refusals, nil
}

// kind is one version of a kind with its compiled schema and rules.
type kind struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
	namespaced bool
}

// kind returns the kind with the given name, compiled on first use, or nil if the kind is unknown.
func (s *Server) kind(name metav1.TypeMeta) (*kind, error) {
	if k := s.kinds[name]; k != nil || s.versions[name] == nil {
		return k, nil
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s.versions[name], &internal, nil); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", name.Kind, err)
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", name.Kind, err)
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("reading the defaults of %s: %w", name.Kind, err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", name.Kind, err)
	}
	k := &kind{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit), s.namespaced[name]}
	s.kinds[name] = k
	return k, nil
}

// create runs the steps of a server, which complete the object, and collects their findings.
func (k *kind) create(object map[string]any) []Refusal {
	delete(object, "status") // the status of a new object is ignored
	found := readMetadata(object, k.namespaced)
	unknown := pruning.PruneWithOptions(object, k.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		found.add(path, "unknown field; kubectl apply rejects it, and the API server drops it for other clients")
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.structural)
	defaulting.Default(object, k.structural)
	// A client sends objects without a namespace to its own.
	inNamespace := k.namespaced && found.meta.GetNamespace() != ""
	wrong := apivalidation.ValidateObjectMeta(found.meta, inNamespace, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	wrong = append(wrong, validation.ValidateCustomResource(nil, object, k.schema)...)
	wrong = append(wrong, objectmeta.Validate(nil, object, k.structural, false)...)
	wrong = append(wrong, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	for _, err := range wrong {
		found.refuse(err)
	}
	for _, err := range k.broken(object) {
		if len(wrong) > 0 && strings.Contains(err.Detail, " evaluating rule: ") {
			continue // the rule cannot be evaluated because of a problem that is already reported
		}
		for _, path := range k.failingMembers(object, err) {
			found.add(path, ruleWords(err, path))
		}
	}
	slices.SortFunc(found.refusals, func(a, b Refusal) int { // schemas are visited in map order
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Problem, b.Problem))
	})
	return found.refusals
}

// broken returns the rules that do not hold.
func (k *kind) broken(object map[string]any) field.ErrorList {
	wrong, _ := k.rules.Validate(context.Background(), nil, k.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return wrong
}
