package v1

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate checks what the schema of the CRD cannot express. Each error names the field, the invalid value and
// the expected one. An empty list means that nodes can be launched from the pool. The rules include those of
// the provider.
func Validate(pool *NodePool, rules LabelRules) field.ErrorList {
	template := field.NewPath("spec", "template")
	spec := template.Child("spec")
	return slices.Concat(
		validateOwnLabels(pool),
		validateLimits(pool.Spec.Limits),
		validateLabels(template.Child("metadata", "labels"), pool.Spec.Template.ObjectMeta.Labels, rules),
		validateTaints(spec, &pool.Spec.Template.Spec),
		validatePoolRequirements(spec.Child("requirements"), pool.Spec.Template.Spec.Requirements, rules),
		validateClaimSize(spec.Child("requirements"), &pool.Spec.Template, rules),
		validateEconomics(pool.Annotations),
	)
}

// ValidateBudgets checks what the schema cannot express about budgets, mainly their schedules. An error blocks
// every disruption of the pool's nodes. It does not block launches.
func ValidateBudgets(pool *NodePool) field.ErrorList {
	var errs field.ErrorList
	for i := range pool.Spec.Disruption.Budgets {
		b := &pool.Spec.Disruption.Budgets[i]
		path := field.NewPath("spec", "disruption", "budgets").Index(i)
		if _, err := b.Allowed(0); err != nil {
			errs = append(errs, field.Invalid(path.Child("nodes"), b.Nodes, err.Error()))
		}
		if _, err := b.Active(time.Unix(0, 0)); err != nil {
			errs = append(errs, field.Invalid(path.Child("schedule"), deref(b.Schedule), err.Error()))
		}
	}
	return errs
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// validateEconomics checks the annotations that configure costs and replacements.
func validateEconomics(annotations map[string]string) field.ErrorList {
	money := func(parse func(string) (float64, error)) func(string) error {
		return func(text string) error { _, err := parse(text); return err }
	}
	var errs field.ErrorList
	for _, a := range []struct {
		name  string
		check func(string) error
	}{
		{AnnotationNodeOverheadPrice, money(ParseNodePrice)},
		{AnnotationPayback, func(text string) error { _, err := ParsePayback(text); return err }},
		{AnnotationMinStay, func(text string) error { _, err := ParseMinStay(text); return err }},
		{AnnotationMovePrice, money(ParseMovePrice)},
		{AnnotationMinSaving, money(ParseMinSaving)},
		{AnnotationMaxSpotShare, func(text string) error { _, err := ParseMaxSpotShare(text); return err }},
		{AnnotationRebalance, parseRebalance},
	} {
		if text, has := annotations[a.name]; has {
			if err := a.check(text); err != nil {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(a.name), text, err.Error()))
			}
		}
	}
	return errs
}

// validateOwnLabels checks the names that become label values of claims and nodes.
func validateOwnLabels(pool *NodePool) field.ErrorList {
	class := pool.Spec.Template.Spec.NodeClassRef
	var errs field.ErrorList
	for _, name := range []struct {
		path         *field.Path
		value, label string
	}{
		{field.NewPath("metadata", "name"), pool.Name, LabelNodePool},
		{field.NewPath("spec", "template", "spec", "nodeClassRef", "name"), class.Name, NodeClassLabel(class.Group, class.Kind)},
	} {
		if len(name.value) > validation.LabelValueMaxLength {
			errs = append(errs, field.Invalid(name.path, name.value, fmt.Sprintf("must be no longer than %d characters, because it is the value of the label %s",
				validation.LabelValueMaxLength, name.label)))
		}
	}
	return errs
}

func validateLimits(limits corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(limits) {
		if amount := limits[name]; amount.Sign() < 0 {
			errs = append(errs, field.Invalid(field.NewPath("spec", "limits").Key(string(name)), amount.String(), "must not be negative; zero means that no node may be launched"))
		}
	}
	return errs
}

// claimRequirements is the maximum number of requirements of a claim that the CRD allows.
const claimRequirements = 100

// validateClaimSize rejects a pool whose claims would all have too many requirements: those of the pool, its
// labels and those that Karpenter adds. A claim has at least one requirement per key. Its pods may add keys.
func validateClaimSize(path *field.Path, template *NodeClaimTemplate, rules LabelRules) field.ErrorList {
	class := template.Spec.NodeClassRef
	keys := map[string]bool{LabelNodePool: true, LabelCapacityType: true, corev1.LabelInstanceTypeStable: true, NodeClassLabel(class.Group, class.Kind): true}
	ours := len(keys)
	for key := range template.ObjectMeta.Labels {
		keys[rules.Key(key)] = true
	}
	for _, r := range template.Spec.Requirements {
		says := r.Operator != OperatorDoesNotExist && (r.Operator != OperatorNotIn || len(r.Values) > 0)
		if key := rules.Key(r.Key); says {
			keys[key] = true
		}
	}
	if len(keys) <= claimRequirements {
		return nil
	}
	return field.ErrorList{field.Invalid(path, len(template.Spec.Requirements), fmt.Sprintf(
		"a NodeClaim may have at most %d requirements, and those of this pool would have %d: one per label that requirements or spec.template.metadata.labels name, and %d that karpenter adds; name fewer labels",
		claimRequirements, len(keys), ours))}
}

const nodePoolIsOurs = "karpenter sets this label itself; select a pool from the pod instead"

func validateLabels(path *field.Path, labels map[string]string, rules LabelRules) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(labels) {
		at := path.Key(key)
		if key == LabelNodePool {
			errs = append(errs, field.Invalid(at, labels[key], nodePoolIsOurs))
			continue
		}
		errs = append(errs, validateLabelKey(at, key, rules)...)
		errs = append(errs, validateLabelValue(at, labels[key])...)
	}
	return errs
}

func validateLabelKey(path *field.Path, key string, rules LabelRules) field.ErrorList {
	errs := validateName(path, key)
	if why := rules.Restriction(key); why != "" {
		errs = append(errs, field.Invalid(path, key, why))
	}
	return errs
}

// validateName checks a Kubernetes qualified name: an optional DNS subdomain and a slash, then at most 63
// characters.
func validateName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a name such as example.com/team or team")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

func validateLabelValue(path *field.Path, value string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

// validateTaints checks both lists together, because a node cannot have two taints with the same key and
// effect.
func validateTaints(spec *field.Path, template *NodeClaimTemplateSpec) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := map[identity]*field.Path{}
	check := func(list *field.Path, taints []corev1.Taint) {
		for i, taint := range taints {
			at := list.Index(i)
			errs = append(errs, validateTaint(at, taint)...)
			id := identity{taint.Key, taint.Effect}
			if first, ok := seen[id]; ok {
				errs = append(errs, field.Invalid(at, taint.Key+":"+string(taint.Effect),
					fmt.Sprintf("%s has the same key and effect; each pair may occur once in taints and startupTaints together", first)))
				continue
			}
			seen[id] = at
		}
	}
	check(spec.Child("taints"), template.Taints)
	check(spec.Child("startupTaints"), template.StartupTaints)
	return errs
}

func validateTaint(path *field.Path, taint corev1.Taint) field.ErrorList {
	errs := validateName(path.Child("key"), taint.Key)
	if taint.Key == TaintKeyDisrupted || taint.Key == TaintKeyUnregistered {
		errs = append(errs, field.Invalid(path.Child("key"), taint.Key, "karpenter sets and removes this taint itself; use a key of your own"))
	}
	errs = append(errs, validateLabelValue(path.Child("value"), taint.Value)...)
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule}
	if !slices.Contains(effects, taint.Effect) {
		errs = append(errs, field.NotSupported(path.Child("effect"), taint.Effect, effects[1:]))
	}
	return errs
}

func validatePoolRequirements(path *field.Path, requirements []Requirement, rules LabelRules) field.ErrorList {
	errs := ValidateRequirements(path, requirements, rules)
	for i, r := range requirements {
		if rules.Key(r.Key) == LabelNodePool {
			errs = append(errs, field.Invalid(path.Index(i).Child("key"), r.Key, nodePoolIsOurs))
		}
	}
	return errs
}

// ValidateRequirements checks the requirements of a pool, of a claim, or of a pod's node selector and required
// node affinity (RequirementOf). Errors contain the given path of the list.
func ValidateRequirements(path *field.Path, requirements []Requirement, rules LabelRules) field.ErrorList {
	var errs field.ErrorList
	for i, r := range requirements {
		at := path.Index(i)
		r.Key = rules.Key(r.Key)
		errs = append(errs, validateLabelKey(at.Child("key"), r.Key, rules)...)
		for j, value := range r.Values {
			errs = append(errs, validateLabelValue(at.Child("values").Index(j), value)...)
		}
		wrong := validateOperator(at, r)
		if len(wrong) == 0 {
			wrong = validateKnownValues(at, r)
		}
		errs = append(errs, wrong...)
	}
	return errs
}

func validateOperator(path *field.Path, r Requirement) field.ErrorList {
	switch r.Operator {
	case OperatorNotIn, OperatorExists, OperatorDoesNotExist:
		return nil
	case OperatorIn:
		return validateIn(path, r)
	case OperatorGt, OperatorLt, OperatorGte, OperatorLte:
		return validateBound(path, r)
	}
	return field.ErrorList{field.NotSupported(path.Child("operator"), r.Operator, []Operator{
		OperatorIn, OperatorNotIn, OperatorExists, OperatorDoesNotExist, OperatorGt, OperatorLt, OperatorGte, OperatorLte,
	})}
}

func validateIn(path *field.Path, r Requirement) field.ErrorList {
	if len(r.Values) == 0 {
		return field.ErrorList{field.Required(path.Child("values"), "operator In needs at least one value")}
	}
	if r.MinValues != nil && len(r.Values) < *r.MinValues {
		return field.ErrorList{field.Invalid(path.Child("minValues"), *r.MinValues,
			fmt.Sprintf("must not be greater than the number of values, which is %d", len(r.Values)))}
	}
	return nil
}

func validateBound(path *field.Path, r Requirement) field.ErrorList {
	want := fmt.Sprintf("operator %s needs exactly one value, an integer that is zero or greater", r.Operator)
	if len(r.Values) != 1 {
		return field.ErrorList{field.Invalid(path.Child("values"), r.Values, want)}
	}
	if n, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil || n < 0 {
		return field.ErrorList{field.Invalid(path.Child("values").Index(0), r.Values[0], want)}
	}
	return nil
}

// validateKnownValues checks In requirements on labels whose values are all known. Unknown values beside a
// known one are allowed. The operator is already validated.
func validateKnownValues(path *field.Path, r Requirement) field.ErrorList {
	if r.Key != LabelCapacityType || r.Operator != OperatorIn {
		return nil
	}
	known := WellKnownCapacityTypes()
	valid := map[string]bool{}
	for _, value := range r.Values {
		if slices.Contains(known, value) {
			valid[value] = true
		}
	}
	if len(valid) == 0 {
		return field.ErrorList{field.Invalid(path.Child("values"), r.Values, "must include at least one of "+strings.Join(known, ", "))}
	}
	if r.MinValues != nil && len(valid) < *r.MinValues {
		return field.ErrorList{field.Invalid(path.Child("minValues"), *r.MinValues,
			fmt.Sprintf("must not be greater than the number of values among %s, which is %d", strings.Join(known, ", "), len(valid)))}
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
