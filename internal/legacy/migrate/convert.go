package migrate

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
)

// toV1 converts an object of v1beta1. The formatting is kept as far as the meaning is unchanged.
func (r *repair) toV1(expiry func(pool string) string) {
	if !r.beta {
		return
	}
	if text(at(r.root, "kind")) == "EC2NodeClass" {
		r.betaDefaults()
	}
	before, _ := wire(r.root).(map[string]any)
	groupAsVersion(before)
	after, err := v1beta1.Converter{Expiry: expiry}.ToV1(before)
	if err != nil {
		r.note(Impossible, "", "%s", err)
		return
	}
	if age, found, _ := unstructured.NestedFieldNoCopy(after, "spec", "disruption",
		"expireAfter"); found && text(at(r.root, "kind")) == "NodePool" {
		// The API accepts no pool without a template, so the conversion drops the field then. A manifest may lack a
		// template.
		unstructured.RemoveNestedField(after, "spec", "disruption", "expireAfter")
		if err := unstructured.SetNestedField(after, age, "spec", "template", "spec", "expireAfter"); err != nil {
			r.note(Impossible, "spec.template", "%s", err)
			return
		}
	}
	for _, annotation := range []string{v1beta1.AnnotationNodeClassReference, v1beta1.AnnotationUbuntu, v1beta1.AnnotationV1Beta1} {
		unstructured.RemoveNestedField(after, "metadata", "annotations", annotation)
	}
	if annotations, _, _ := unstructured.NestedMap(after, "metadata", "annotations"); len(annotations) == 0 {
		unstructured.RemoveNestedField(after, "metadata", "annotations")
	}
	r.note(Changed, "apiVersion", "is converted to %s", after["apiVersion"])
	r.describe(before, after)
	want, err := nodeOf(after)
	if err != nil {
		r.note(Impossible, "", "%s", err)
		return
	}
	if age := take(r.root, "spec", "disruption", "expireAfter"); age != nil {
		put(r.root, age, "spec", "template", "spec", "expireAfter")
	}
	kubelet := take(r.root, "spec", "template", "spec", "kubelet")
	family := at(r.root, "spec", "amiFamily")
	if at(want, "spec", "amiFamily") == nil {
		family = take(r.root, "spec", "amiFamily")
	}
	r.root, r.anew = reshape(r.root, want), true
	if kubelet != nil { // with its comments; kubelets moves it to the class
		take(r.root, "metadata", "annotations", v1beta1.AnnotationKubelet)
		prune(r.root, "metadata", "annotations")
		put(r.root, kubelet, "spec", "template", "spec", "kubelet")
	}
	if alias := at(firstOf(at(r.root, "spec", "amiSelectorTerms")), "alias"); alias != nil && family != nil {
		alias.LineComment = comments(family)
	}
	prune(r.root, "spec", "disruption")
}

// groupAsVersion writes the group of a pool's reference, which has been repaired already, in the form of v1beta1.
func groupAsVersion(pool map[string]any) {
	reference, _, _ := unstructured.NestedFieldNoCopy(pool, "spec", "template", "spec", "nodeClassRef")
	if fields, ok := reference.(map[string]any); ok && fields["group"] != nil && fields["apiVersion"] == nil {
		group, _ := fields["group"].(string)
		fields["apiVersion"] = group + "/v1beta1"
		delete(fields, "group")
	}
}

// describe adds notes on what is expressed differently now.
func (r *repair) describe(before, after map[string]any) {
	if age, found, _ := unstructured.NestedFieldNoCopy(before, "spec", "disruption", "expireAfter"); found {
		ends := ""
		if age != "Never" {
			ends = "; nodes are replaced within budgets up to a tenth of this time before it ends, and are removed when it ends"
		}
		r.note(Changed, "spec.disruption.expireAfter", "is moved to spec.template.spec.expireAfter (%v)%s", age, ends)
	}
	if policy, _, _ := unstructured.NestedString(before, "spec", "disruption", "consolidationPolicy"); policy == "WhenUnderutilized" {
		r.note(Changed, "spec.disruption.consolidationPolicy", "WhenUnderutilized is renamed to WhenEmptyOrUnderutilized")
	}
	if _, found, _ := unstructured.NestedMap(before, "spec", "template", "spec", "resources"); found {
		r.note(Changed, "spec.template.spec.resources", "has no effect; omitted")
	}
	r.describeImages(before, after)
}

func (r *repair) describeImages(before, after map[string]any) {
	family, _, _ := unstructured.NestedString(before, "spec", "amiFamily")
	terms, _, _ := unstructured.NestedSlice(before, "spec", "amiSelectorTerms")
	switch {
	case family == "Ubuntu" && len(terms) == 0:
		r.note(Impossible, "spec.amiFamily", "is Ubuntu, for which v1 has no default image; set spec.amiSelectorTerms to an image instead of %s", v1beta1.NoImage)
	case family == "Ubuntu":
		r.note(Changed, "spec.amiFamily", "is Ubuntu; set to AL2, with which instances with these images join the cluster")
	case family == string(awsv1.FamilyCustom) && len(terms) == 0:
		r.note(Impossible, "spec.amiSelectorTerms", "is required, because the family Custom has no default image")
	case family != "" && len(terms) == 0:
		now, _, _ := unstructured.NestedSlice(after, "spec", "amiSelectorTerms")
		if len(now) == 1 {
			term, _ := now[0].(map[string]any)
			r.note(Changed, "spec.amiFamily", "is converted to spec.amiSelectorTerms[0].alias (%v)", term["alias"])
		}
	}
}

// betaDefaults writes the defaults of v1beta1 explicitly where those of v1 differ.
func (r *repair) betaDefaults() {
	for _, option := range []struct{ name, value string }{{"httpEndpoint", awsv1.Enabled}, {"httpProtocolIPv6", awsv1.Disabled},
		{"httpTokens", awsv1.HTTPTokensRequired}} {
		if at(r.root, "spec", "metadataOptions", option.name) == nil && at(r.root, "spec", "metadataOptions") != nil {
			set(r.root, scalar(option.value), "spec", "metadataOptions", option.name)
		}
	}
	const hops = "spec.metadataOptions.httpPutResponseHopLimit"
	if r.find(hops) == nil && !r.patch {
		set(r.root, integer(2), strings.Split(hops, ".")...)
		r.note(Defaulted, hops, "is not set; set to 2, the default of v1beta1; with 1, the default of v1, pods get no tokens")
	}
}

// wire returns a value as decoded from JSON: integers are int64.
func wire(node *yaml.Node) any {
	encoded, err := json.Marshal(plain(node))
	if err != nil {
		return nil // values that YAML has and JSON does not have (.inf, .nan) are not valid in the API
	}
	var value any
	if utiljson.Unmarshal(encoded, &value) != nil {
		return nil
	}
	return value
}

// expiry returns the expireAfter of a pool in the input.
func (m *migration) expiry(pool string) string {
	for _, i := range m.items {
		if i.is(karpv1.Group, "NodePool") && i.name == pool {
			for _, path := range [][]string{{"spec", "template", "spec", "expireAfter"}, {"spec", "disruption", "expireAfter"}} {
				if age := text(at(i.root, path...)); age != "" {
					return age
				}
			}
			return "720h"
		}
	}
	return ""
}

// translate creates pools and classes from all Provisioners and AWSNodeTemplates together.
func (m *migration) translate() {
	var items []*item
	var objects []*unstructured.Unstructured
	for _, i := range m.items {
		if !i.is(karpv1.Group, v1alpha5.KindProvisioner) && !i.is(awsv1.Group, v1alpha5.KindAWSNodeTemplate) {
			continue
		}
		content, ok := wire(i.root).(map[string]any)
		if !ok {
			i.note(Impossible, "", "contains values that are not valid JSON")
			continue
		}
		items, objects = append(items, i), append(objects, &unstructured.Unstructured{Object: content})
	}
	for n, result := range v1alpha5.Translate(objects, m.legacySettings()) {
		items[n].translated(result)
	}
}

// outcomes maps the effects of package v1alpha5 to outcomes of this package.
var outcomes = map[v1alpha5.Effect]Outcome{v1alpha5.Carried: Changed, v1alpha5.Defaulted: Defaulted,
	v1alpha5.Repaired: Repaired, v1alpha5.Changed: Changed, v1alpha5.Impossible: Impossible}

// translated replaces an older object by its results.
func (i *item) translated(result v1alpha5.Result) {
	before := Entry{Notes: slices.Clone(i.Notes)}
	for _, n := range result.Notes {
		if before.impossibleAt(n.Field) {
			continue
		}
		reason := n.Reason
		switch {
		case n.To == "":
		case n.Effect == v1alpha5.Carried || n.Effect == v1alpha5.Changed:
			reason = "is converted to " + n.To + "; " + reason
		default:
			reason += " (in " + n.To + ")"
		}
		i.note(outcomes[n.Effect], n.Field, "%s", reason)
	}
	old := i.root
	inline := take(old, "spec", "provider")
	var results []*document
	if result.Pool != nil {
		result.Pool.SetGroupVersionKind(karpv1.GroupVersion.WithKind("NodePool"))
		results = append(results, i.become(old, result.Pool, relocatePool))
	}
	for n, class := range result.Classes {
		class.SetGroupVersionKind(awsv1.GroupVersion.WithKind("EC2NodeClass"))
		from := inline
		switch {
		case result.Pool == nil && n == 0:
			from = old
		case inline != nil && n == 0:
			from = mapping()
			put(from, inline, "spec")
		default:
			from = nil
		}
		results = append(results, i.become(from, class, relocateClass))
	}
	if result.Simulated != nil {
		results = append(results, i.become(nil, result.Simulated, nil))
	}
	i.gone = true
	i.after = append(results, i.after...)
}

// become returns a document with the content of the object, in the formatting of the value from which it is created.
func (i *item) become(from *yaml.Node, object any, relocate func(*yaml.Node)) *document {
	want, err := nodeOf(object)
	if err != nil {
		i.note(Impossible, "", "%s", err)
		return &document{gone: true}
	}
	clean(want)
	for _, path := range [][]string{{"spec", "template", "spec", "expireAfter"}, {"spec", "disruption", "consolidateAfter"}} {
		if d, err := time.ParseDuration(text(at(want, path...))); err == nil && d >= time.Hour {
			at(want, path...).Value = span(d)
		}
	}
	i.Became = append(i.Became, text(at(want, "kind"))+" "+text(at(want, "metadata", "name")))
	if from == nil {
		reorder(want, []string{"apiVersion", "kind", "metadata", "spec"})
		return &document{root: want, anew: true, text: i.text}
	}
	for _, field := range []string{"labels", "annotations"} { // the object's own metadata is kept
		if own := at(from, "metadata", field); !empty(own) {
			for _, name := range fields(own) {
				if at(want, "metadata", field, name) == nil {
					set(want, clone(at(own, name)), "metadata", field, name)
				}
			}
		}
	}
	relocate(from)
	root := reshape(from, want)
	reorder(root, []string{"apiVersion", "kind", "metadata", "spec"})
	for _, path := range [][]string{{"spec"}, {"spec", "template"}, {"spec", "template", "spec"}, {"spec", "disruption"}} {
		reorder(at(root, path...), fields(at(want, path...)))
	}
	return &document{root: root, anew: true, text: i.text}
}

// relocatePool moves the fields of a Provisioner to the paths of a NodePool, so that their comments are kept.
func relocatePool(root *yaml.Node) {
	for _, move := range []misplaced{
		{"labels", "template.metadata.labels"}, {"annotations", "template.metadata.annotations"},
		{"providerRef", "template.spec.nodeClassRef"}, {"taints", "template.spec.taints"}, {"startupTaints", "template.spec.startupTaints"},
		{"requirements", "template.spec.requirements"}, {"ttlSecondsUntilExpired", "template.spec.expireAfter"},
		{"consolidation", "disruption.consolidationPolicy"}, {"ttlSecondsAfterEmpty", "disruption.consolidateAfter"},
		{"limits.resources", "limits"},
	} {
		value := take(root, append([]string{"spec"}, strings.Split(move.from, ".")...)...)
		if value == nil {
			continue
		}
		if move.from == "limits.resources" {
			take(root, "spec", "limits")
		}
		if move.from == "consolidation" {
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", HeadComment: value.HeadComment,
				LineComment: joinComments(value.LineComment, comments(at(value, "enabled")))}
		}
		put(root, value, append([]string{"spec"}, strings.Split(move.to, ".")...)...)
	}
	for _, list := range []struct{ field, key string }{
		{"zones", "topology.kubernetes.io/zone"}, {"instanceTypes", "node.kubernetes.io/instance-type"}, {"architectures", "kubernetes.io/arch"},
		{"architecture", "kubernetes.io/arch"}, {"operatingSystems", "kubernetes.io/os"}, {"operatingSystem", "kubernetes.io/os"},
	} {
		value := take(root, "spec", list.field)
		if value == nil {
			continue
		}
		one := mapping()
		one.HeadComment, value.HeadComment = value.HeadComment, ""
		set(one, scalar(list.key), "key")
		set(one, scalar("In"), "operator")
		if value.Kind == yaml.ScalarNode {
			one.Content[1].LineComment, value.LineComment = value.LineComment, ""
			value = sequence(value)
		}
		set(one, value, "values")
		set(root, sequence(append(members(at(root, "spec", "template", "spec", "requirements")), one)...), "spec",
			"template", "spec", "requirements")
	}
}

// relocateClass moves the fields of an AWSNodeTemplate to the paths of an EC2NodeClass.
func relocateClass(root *yaml.Node) {
	for _, kind := range []string{"subnet", "securityGroup", "ami"} {
		value := take(root, "spec", kind+"Selector")
		if value == nil {
			continue
		}
		term, head := mapping(), value.HeadComment
		value.HeadComment = ""
		set(term, value, "tags")
		terms := sequence(term)
		terms.HeadComment = head
		put(root, terms, "spec", kind+"SelectorTerms")
	}
}

// clean removes zero values that Go's encoding writes. Empty lists may have a meaning.
func clean(node *yaml.Node) {
	take(node, "status")
	take(node, "metadata", "creationTimestamp")
	cleanBelow(at(node, "spec"))
}

func cleanBelow(node *yaml.Node) {
	for _, name := range fields(node) {
		below := at(node, name)
		cleanBelow(below)
		if below.Kind == yaml.MappingNode && len(below.Content) == 0 {
			take(node, name)
		}
	}
	for _, member := range members(node) {
		cleanBelow(member)
	}
}

// reorder sorts fields. Those that are not in the order come first.
func reorder(node *yaml.Node, order []string) {
	names := fields(node)
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	content := make([]*yaml.Node, 0, len(names)*2)
	for _, name := range names {
		at := index(node, name)
		content = append(content, node.Content[at], node.Content[at+1])
	}
	if node != nil {
		node.Content = content
	}
}
