package v1alpha5

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// provisioner is one Provisioner during its translation: readProvisioner creates the pool without its class, which
// connect adds.
type provisioner struct {
	name, version string
	created       time.Time
	settings      Settings
	notes         *notes
	pool          *karpv1.NodePool

	// kubelet contains the settings for the class, nil if there are none.
	kubelet *awsv1.KubeletConfiguration
	// templateName is the name in providerRef, at refPath. inline is the cloud part of a Provisioner without a
	// reference.
	templateName, refPath string
	inline                *cloudPart
	// capacityTypes are those of spec.provider, as in v1alpha4.
	capacityTypes []string
	// foreign is a class that the Provisioner itself references.
	foreign *karpv1.NodeClassReference

	class     *awsv1.EC2NodeClass
	simulated *kwokv1alpha1.KWOKNodeClass
}

func (p *provisioner) result() Result {
	r := Result{Kind: KindProvisioner, Name: p.name, Version: p.version, Pool: p.pool, Simulated: p.simulated, Notes: p.notes.sorted()}
	if p.class != nil {
		r.Classes = []*awsv1.EC2NodeClass{p.class}
	}
	return r
}

func (w *inputSet) readProvisioner(object *unstructured.Unstructured) *provisioner {
	p := &provisioner{
		name: object.GetName(), version: meantVersion(object), created: created(object), settings: w.settings, notes: &notes{},
	}
	p.pool = &karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
	}
	fields, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		p.notes.add(Repaired, "spec", "", "is not an object; treated as empty")
	}
	spec := newSection("spec", fields, p.notes)
	p.readTemplateMetadata(spec)
	p.readTaints(spec)
	p.readDisruption(spec)
	p.readLimits(spec)
	p.readWeight(spec)
	p.kubelet = readKubelet(spec.child("kubeletConfiguration"))
	p.readCloud(spec)
	p.readRequirements(spec)
	spec.rest()
	return p
}

func (p *provisioner) readTemplateMetadata(spec *section) {
	annotations := spec.pairs("annotations")
	if len(annotations) > 0 {
		p.pool.Spec.Template.ObjectMeta.Annotations = annotations
	}
}

func (p *provisioner) readTaints(spec *section) {
	template := &p.pool.Spec.Template.Spec
	template.Taints = listOf[corev1.Taint](spec, "taints")
	template.StartupTaints = listOf[corev1.Taint](spec, "startupTaints")
	for _, list := range []struct {
		name   string
		taints []corev1.Taint
	}{{"taints", template.Taints}, {"startupTaints", template.StartupTaints}} {
		for i := range list.taints {
			if taint := &list.taints[i]; taint.Effect == "" {
				taint.Effect = corev1.TaintEffectNoSchedule
				p.notes.add(Repaired, fmt.Sprintf("spec.%s[%d].effect", list.name, i), "", "is required; set to NoSchedule")
			}
		}
	}
}

// readDisruption reads when nodes were removed: docs/migrating.md contains the table.
func (p *provisioner) readDisruption(spec *section) {
	d := &p.pool.Spec.Disruption
	empty := spec.seconds("ttlSecondsAfterEmpty")
	consolidates := false
	if consolidation := spec.child("consolidation"); consolidation != nil {
		on := consolidation.flag("enabled")
		consolidates = on != nil && *on
		consolidation.rest()
	}
	switch {
	case consolidates:
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidateWhenEmptyOrUnderutilized, seconds(0)
		p.notes.add(Carried, "spec.consolidation.enabled", "spec.disruption.consolidationPolicy",
			"empty and underutilized nodes are removed as soon as that reduces cost")
		if empty != nil {
			p.notes.add(Repaired, "spec.ttlSecondsAfterEmpty", "",
				"is mutually exclusive with consolidation, which also removes empty nodes; omitted")
		}
	case empty != nil:
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidateWhenEmpty, seconds(*empty)
		p.notes.add(Carried, "spec.ttlSecondsAfterEmpty", "spec.disruption.consolidateAfter", "nodes are removed when they have been empty for that time")
	default:
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidateWhenEmpty, never()
		p.notes.add(Defaulted, "spec.ttlSecondsAfterEmpty", "spec.disruption.consolidateAfter", "is not set, and neither is consolidation; set to Never, because empty nodes were never removed")
	}
	d.Budgets = p.budgets()
	expire := spec.seconds("ttlSecondsUntilExpired")
	if expire == nil {
		p.pool.Spec.Template.Spec.ExpireAfter = never()
		p.notes.add(Defaulted, "spec.ttlSecondsUntilExpired", "spec.template.spec.expireAfter", "is not set; set to Never, because nodes never expired")
		return
	}
	p.pool.Spec.Template.Spec.ExpireAfter = seconds(*expire)
	p.notes.add(Changed, "spec.ttlSecondsUntilExpired", "spec.template.spec.expireAfter",
		"nodes are replaced up to a tenth of this time before it ends, at most a tenth of the pool at a time, and are removed when it ends; a change applies to new nodes only")
}

// budgets returns the former limits of disruption: none for nodes that were empty or for consolidation. Nodes that
// differed from their Provisioner were replaced one by one, or not at all.
func (p *provisioner) budgets() []karpv1.Budget {
	drift := karpv1.Budget{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionDrifted}}
	reason := "a budget of 0 nodes for Drifted keeps drifted nodes, as before (featureGates.driftEnabled was off); without this budget they are replaced"
	if p.settings.Drift {
		drift.Nodes, reason = "1", "a budget of 1 node for Drifted replaces drifted nodes one at a time, as before"
	}
	p.notes.add(Defaulted, "spec", "spec.disruption.budgets", "%s", reason)
	return []karpv1.Budget{
		{Nodes: "100%", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionEmpty, karpv1.DisruptionUnderutilized}},
		drift,
	}
}

// seconds returns a duration of the API. A value beyond the range of time.Duration means never.
func seconds(n int64) karpv1.NillableDuration {
	if n > math.MaxInt64/int64(time.Second) {
		return never()
	}
	d := karpv1.DurationOf(time.Duration(n) * time.Second)
	d.Raw = []byte(strconv.Quote(strconv.FormatInt(n, 10) + "s"))
	return d
}

// never returns the value in the form in which it is read back.
func never() karpv1.NillableDuration {
	return karpv1.NillableDuration{Raw: []byte(strconv.Quote(karpv1.Never))}
}

func (p *provisioner) readLimits(spec *section) {
	list := corev1.ResourceList{}
	limits := p.limitSection(spec, "limits", list)
	if limits == nil {
		p.setLimits(list)
		return
	}
	if resources := p.limitSection(limits, "resources", list); resources != nil {
		p.addLimits(list, resources)
	}
	for _, name := range slices.Sorted(maps.Keys(limits.values)) {
		if limits.seen[name] {
			continue
		}
		if amount, ok := amountOf(limits.value(name)); ok {
			list[corev1.ResourceName(name)] = amount
			p.notes.add(Repaired, limits.at(name), "spec.limits."+name, "belongs under limits.resources; treated as limits.resources")
		} else {
			p.nothing(list, limits.at(name), name, limits.values[name])
		}
	}
	p.setLimits(list)
}

func (p *provisioner) setLimits(list corev1.ResourceList) {
	if len(list) > 0 {
		p.pool.Spec.Limits = list
	}
}

// limitSection returns a map of limits. A value of another type becomes a limit of zero for cpu, a resource that
// every node has.
func (p *provisioner) limitSection(of *section, name string, list corev1.ResourceList) *section {
	value := of.values[name]
	if _, isMap := value.(map[string]any); isMap || value == nil {
		return of.child(name)
	}
	of.seen[name] = true
	p.nothing(list, of.at(name), string(corev1.ResourceCPU), value)
	return nil
}

// nothing sets a limit of zero in place of one that cannot be parsed: without a limit, the costs could exceed the
// intended ones.
func (p *provisioner) nothing(list corev1.ResourceList, at, name string, value any) {
	list[corev1.ResourceName(name)] = resource.MustParse("0")
	p.notes.add(Impossible, at, "spec.limits."+name,
		"is %s, want a quantity such as \"1000\" or 100Gi; set to 0, so no node is launched until it is corrected", show(value))
}

func (p *provisioner) addLimits(list corev1.ResourceList, resources *section) {
	for _, name := range slices.Sorted(maps.Keys(resources.values)) {
		amount, ok := amountOf(resources.value(name))
		if !ok {
			p.nothing(list, resources.at(name), name, resources.values[name])
			continue
		}
		list[corev1.ResourceName(name)] = amount
	}
	if len(list) > 0 {
		p.notes.add(Carried, resources.path, "spec.limits", "limits the sum of the nodes' capacity")
	}
}

func amountOf(value any) (resource.Quantity, bool) {
	text, ok := scalar(value)
	if !ok {
		return resource.Quantity{}, false
	}
	amount, err := karpv1.ParseQuantity(strings.TrimSpace(text))
	return amount, err == nil && amount.Sign() >= 0
}

// leastWeight and mostWeight are the bounds of the weights of pools.
const leastWeight, mostWeight = 1, 100

func (p *provisioner) readWeight(spec *section) {
	weight := spec.whole("weight")
	if weight == nil || *weight == 0 {
		return
	}
	within := int32(min(max(*weight, leastWeight), mostWeight))
	if int64(within) != *weight {
		p.notes.add(Repaired, "spec.weight", "spec.weight", "is %d, want %d to %d; set to %d", *weight, leastWeight, mostWeight, within)
	}
	p.pool.Spec.Weight = &within
}

// refer sets the class of the pool.
func (p *provisioner) refer(class string) {
	p.pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: class}
}

// own gives the Provisioner its own class, created from a cloud part and its kubelet settings.
func (p *provisioner) own(name string, cloud *cloudPart) {
	p.refer(name)
	p.class = cloud.class(name, p.kubelet, p.settings)
	to := "EC2NodeClass " + name + " spec.kubelet"
	switch {
	case p.kubelet == nil:
	case p.class == nil:
		p.notes.add(Impossible, "spec.kubeletConfiguration", "",
			"belongs to the node class, which cannot be created; set spec.kubelet of EC2NodeClass %q", name)
	default:
		p.notes.add(Carried, "spec.kubeletConfiguration", to, "kubelet settings belong to the node class")
	}
	if p.inline == cloud && p.class != nil {
		p.restrict(cloud.restrictions, name)
	}
}

// simulate gives the Provisioner its own class of simulated machines.
func (p *provisioner) simulate() {
	p.pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: p.name}
	p.simulated = &kwokv1alpha1.KWOKNodeClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: kwokv1alpha1.GroupVersion.String(), Kind: kwokv1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
	}
	if p.kubelet != nil {
		p.notes.add(Changed, "spec.kubeletConfiguration", "", "simulated nodes have no kubelet; omitted")
	}
}

// restrict adds the requirements that followed from tags of images.
func (p *provisioner) restrict(restrictions []karpv1.Requirement, class string) {
	for _, r := range restrictions {
		spec := &p.pool.Spec.Template.Spec
		spec.Requirements = append(spec.Requirements, r)
		p.notes.add(Changed, "spec.requirements", "spec.template.spec.requirements",
			"%s is a tag of the images that class %s selects, and restricted nodes; added as a requirement of the NodePool", r.Key, class)
	}
}
