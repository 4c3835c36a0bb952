package v1alpha5

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
)

const requirementsPath = "spec.template.spec.requirements"

// requirementList collects requirements from all fields.
type requirementList struct {
	list  []karpv1.Requirement
	notes *notes
}

// in adds a requirement "one of the values" for a field, if there are values.
func (r *requirementList) in(field, key string, values ...string) {
	if values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }); len(values) == 0 {
		return
	}
	r.list = append(r.list, karpv1.Requirement{Key: key, Operator: karpv1.OperatorIn, Values: values})
	r.notes.add(Carried, field, requirementsPath, "the key is %s", key)
}

func (r *requirementList) has(keys ...string) bool {
	return slices.ContainsFunc(r.list, func(q karpv1.Requirement) bool { return slices.Contains(keys, q.Key) })
}

// readRequirements reads everything that restricts which machines are launched, and writes the former defaults
// explicitly.
func (p *provisioner) readRequirements(spec *section) {
	r := &requirementList{notes: p.notes, list: []karpv1.Requirement{}}
	p.readRequirementList(spec, r)
	r.in("spec.zones", corev1.LabelTopologyZone, spec.texts("zones")...)
	r.in("spec.instanceTypes", corev1.LabelInstanceTypeStable, spec.texts("instanceTypes")...)
	r.in("spec.architecture", corev1.LabelArchStable, spec.text("architecture"))
	r.in("spec.architectures", corev1.LabelArchStable, spec.texts("architectures")...)
	r.in("spec.operatingSystem", corev1.LabelOSStable, strings.ToLower(spec.text("operatingSystem")))
	r.in("spec.operatingSystems", corev1.LabelOSStable, spec.texts("operatingSystems")...)
	r.in("spec.provider.capacityTypes", karpv1.LabelCapacityType, p.capacityTypes...)
	p.readLabels(spec, r)
	p.writeDefaults(r)
	p.pool.Spec.Template.Spec.Requirements = r.list
}

func (p *provisioner) readRequirementList(spec *section, r *requirementList) {
	for i, item := range listOf[looseRequirement](spec, "requirements") {
		at := fmt.Sprintf("spec.requirements[%d]", i)
		requirement := karpv1.Requirement{Key: strings.TrimSpace(item.Key), Operator: karpv1.Operator(item.Operator)}
		for _, value := range item.Values {
			text, _ := scalar(value)
			requirement.Values = append(requirement.Values, text)
		}
		if p.adjust(at, &requirement) {
			r.list = append(r.list, requirement)
		}
	}
}

// looseRequirement accepts values without quotes.
type looseRequirement struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Values   []any  `json:"values"`
}

// adjust expresses a requirement in the current API. It returns false if that is impossible.
func (p *provisioner) adjust(at string, r *karpv1.Requirement) bool {
	if today, renamed := names.Label(r.Key); renamed {
		p.notes.add(Carried, at+".key", requirementsPath, "the label %s is renamed to %s", r.Key, today)
		r.Key = today
	}
	if advice := names.Gone(r.Key); advice != "" {
		p.notes.add(Impossible, at, "", "the label %s has no equivalent: %s", r.Key, advice)
		return false
	}
	if why := forbidden(r.Key); why != "" {
		p.notes.add(Impossible, at, "", "%s", why)
		return false
	}
	switch r.Operator {
	case karpv1.OperatorIn:
		if len(r.Values) == 0 {
			p.notes.add(Repaired, at, "", "operator In requires at least one value; omitted")
			return false
		}
	case karpv1.OperatorGt, karpv1.OperatorLt:
		return p.adjustBound(at, r)
	case karpv1.OperatorExists, karpv1.OperatorDoesNotExist:
		if len(r.Values) > 0 {
			p.notes.add(Repaired, at+".values", "", "operator %s allows no values; omitted", r.Operator)
			r.Values = nil
		}
	case karpv1.OperatorNotIn:
	default:
		p.notes.add(Repaired, at, "", "the operator is %q, want In, NotIn, Exists, DoesNotExist, Gt or Lt; omitted", r.Operator)
		return false
	}
	return true
}

func (p *provisioner) adjustBound(at string, r *karpv1.Requirement) bool {
	if len(r.Values) == 1 {
		if n, err := strconv.ParseInt(strings.TrimSpace(r.Values[0]), 10, 64); err == nil && n >= 0 {
			return true
		}
	}
	p.notes.add(Repaired, at, "", "operator %s requires exactly one value, an integer, 0 or more; omitted", r.Operator)
	return false
}

// forbidden returns why neither labels nor requirements of a pool can have the key, or an empty string if they can.
func forbidden(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case key == corev1.LabelHostname:
		return "the label " + key + " is unknown until the node exists; use a label that several nodes share"
	case key == karpv1.LabelNodePool || key == names.LabelProvisioner:
		return "only the controller sets the label " + karpv1.LabelNodePool
	case key == karpv1.LabelCapacityType:
	case domain == karpv1.Group || strings.HasSuffix(domain, "."+karpv1.Group):
		return "only the controller sets labels of the domain " + karpv1.Group
	case (domain == awsv1.Group || strings.HasSuffix(domain, "."+awsv1.Group)) && !slices.Contains(awsv1.WellKnownLabels(), key):
		return "unknown label " + key
	}
	return ""
}

// readLabels reads labels of nodes, which contained AWS settings in v1alpha3.
func (p *provisioner) readLabels(spec *section, r *requirementList) {
	labels := spec.pairs("labels")
	kept := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := "spec.labels[" + key + "]"
		today, renamed := names.Label(key)
		switch {
		case key == names.LabelCapacityType:
			r.in(at, karpv1.LabelCapacityType, labels[key])
		case slices.Contains(classLabels[:], key):
			if p.settings.Kwok {
				p.notes.add(Changed, at, "", "applies to AWS only, and nodes are simulated; omitted")
			} else if p.version != V1Alpha3 {
				p.notes.add(Impossible, at, "", "the label %s has no equivalent: %s", key, names.Gone(key))
			}
		case names.Gone(key) != "":
			p.notes.add(Impossible, at, "", "the label %s has no equivalent: %s", key, names.Gone(key))
		case forbidden(today) != "":
			p.notes.add(Impossible, at, "", "%s", forbidden(today))
		case renamed:
			kept[today] = labels[key]
			p.notes.add(Carried, at, "spec.template.metadata.labels", "the label %s is renamed to %s", key, today)
		default:
			kept[key] = labels[key]
		}
	}
	if len(kept) > 0 {
		p.pool.Spec.Template.ObjectMeta.Labels = kept
	}
}

// sizeLabels lists the labels that distinguish machines by size. Without any of them, v1alpha5 only launched medium
// sizes.
var sizeLabels = [...]string{
	corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, awsv1.LabelInstanceFamily, awsv1.LabelInstanceCategory, awsv1.LabelInstanceGeneration,
}

// writeDefaults writes the former defaults for labels without requirements.
func (p *provisioner) writeDefaults(r *requirementList) {
	labels := p.pool.Spec.Template.ObjectMeta.Labels
	isSet := func(keys ...string) bool {
		return r.has(keys...) || slices.ContainsFunc(keys, func(key string) bool { return labels[key] != "" })
	}
	add := func(requirement karpv1.Requirement, reason string) {
		r.list = append(r.list, requirement)
		p.notes.add(Defaulted, "spec.requirements", requirementsPath, "%s: %s", requirement.Key, reason)
	}
	one := func(value string, keys ...string) {
		if !isSet(keys...) {
			add(karpv1.Requirement{Key: keys[0], Operator: karpv1.OperatorIn, Values: []string{value}}, "is not set; set to "+value+", the former default")
		}
	}
	one("linux", corev1.LabelOSStable, "beta.kubernetes.io/os")
	one(karpv1.ArchitectureAMD64, corev1.LabelArchStable, "beta.kubernetes.io/arch")
	one(karpv1.CapacityTypeOnDemand, karpv1.LabelCapacityType)
	if p.settings.Kwok || isSet(sizeLabels[:]...) {
		return
	}
	if p.version == V1Alpha3 || p.version == V1Alpha4 {
		const reason = "no instance type is set; set to the former default: all instance types except metal types and types with GPUs or accelerators"
		add(karpv1.Requirement{Key: awsv1.LabelInstanceGPUCount, Operator: karpv1.OperatorDoesNotExist}, reason)
		add(karpv1.Requirement{Key: awsv1.LabelInstanceAcceleratorCount, Operator: karpv1.OperatorDoesNotExist}, reason)
		add(karpv1.Requirement{Key: awsv1.LabelInstanceHypervisor, Operator: karpv1.OperatorIn, Values: []string{"nitro", "xen"}}, reason)
		return
	}
	const reason = "no instance type, family, category or generation is set; set to the former default: categories c, m and r of generation 3 and later"
	add(karpv1.Requirement{Key: awsv1.LabelInstanceCategory, Operator: karpv1.OperatorIn, Values: []string{"c", "m", "r"}}, reason)
	add(karpv1.Requirement{Key: awsv1.LabelInstanceGeneration, Operator: karpv1.OperatorGt, Values: []string{"2"}}, reason)
}
