package convert

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Vocabulary defines the meaning of labels in this cluster, and the node classes of the provider. It does not change
// after NewVocabulary.
type Vocabulary struct {
	// Rules are those of the core and of the provider.
	Rules karpv1.LabelRules
	// Classes are the kinds of the provider's node classes.
	Classes []schema.GroupKind
	// Protection defines which annotations protect pods and nodes. It may be set before the vocabulary is used.
	Protection karpv1.ProtectionRules
	// Pods says for which pods no node is launched. It may be set likewise.
	Pods PodRules
	// Selection says which pools and claims are this controller's. It may be set likewise.
	Selection karpv1.Selection

	wellKnown map[string]bool
	// reservation is the label for the ID of a capacity reservation, empty if the provider has none.
	reservation string
	// unsupported topology keys and provisioners of storage classes.
	unsupportedTopology     []string
	unsupportedProvisioners []string
}

// NewVocabulary returns the core's vocabulary, including the names from before v1, and that which a provider
// declares.
func NewVocabulary(declared cloud.Declared, classes ...schema.GroupKind) *Vocabulary {
	more := karpv1.LabelRules{
		WellKnown:         declared.WellKnown,
		RestrictedDomains: declared.Restricted,
		Aliases:           declared.Aliases,
		ValueAliases:      declared.ValueAliases,
	}
	if declared.ReservationKey != "" {
		more.WellKnown = append(slices.Clone(more.WellKnown), declared.ReservationKey)
	}
	v := &Vocabulary{
		Rules: karpv1.CoreRules().With(karpv1.LabelRules{Aliases: names.Aliases()}).With(more), Classes: classes, wellKnown: map[string]bool{}, reservation: declared.ReservationKey,
		unsupportedTopology: declared.UnsupportedTopology, unsupportedProvisioners: declared.UnsupportedProvisioners,
	}
	for _, key := range v.Rules.WellKnown {
		v.wellKnown[key] = true
	}
	return v
}

// Owns reports whether the provider owns node classes of the kind.
func (v *Vocabulary) Owns(group, kind string) bool {
	return slices.Contains(v.Classes, schema.GroupKind{Group: group, Kind: kind})
}

// requirement returns a requirement with the current key and values. It returns false if the operator is unknown.
func (v *Vocabulary) requirement(key, operator string, values []string) (label.Requirement, bool) {
	op, ok := label.ParseOperator(operator)
	key = v.Rules.Key(key)
	return label.Requirement{Key: key, Operator: op, Values: v.values(key, values)}, ok
}

// values returns the canonical values of a label with its current key. The result shares nothing with values.
func (v *Vocabulary) values(key string, values []string) []string {
	if len(values) == 0 {
		return nil
	}
	usual := make([]string, len(values))
	for i, value := range values {
		usual[i] = v.Rules.Value(key, value)
	}
	return usual
}

// labels returns requirements for exactly these label values, by key.
func (v *Vocabulary) labels(labels map[string]string) []label.Requirement {
	reqs := make([]label.Requirement, 0, len(labels))
	for _, key := range sortedKeys(labels) {
		today := v.Rules.Key(key)
		reqs = append(reqs, label.Requirement{Key: today, Operator: label.In, Values: []string{v.Rules.Value(today, labels[key])}})
	}
	return reqs
}

// api converts the requirements of a pool or a claim; field is the name of their list. It also rejects what the CRD's
// schema forbids, because objects may be older than the schema.
func (v *Vocabulary) api(field string, requirements []karpv1.Requirement) ([]label.Requirement, *model.Rejection) {
	reqs := make([]label.Requirement, 0, len(requirements))
	for i, r := range requirements {
		req, ok := v.requirement(r.Key, string(r.Operator), r.Values)
		if !ok {
			return nil, &model.Rejection{
				Field:  fmt.Sprintf("%s[%d].operator", field, i),
				Reason: fmt.Sprintf("%q is not an operator; use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", r.Operator),
			}
		}
		if r.MinValues != nil {
			req.MinValues = *r.MinValues
		}
		reqs = append(reqs, req)
	}
	return reqs, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
