package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Missing is an object that others refer to and that is not among the files, and what the answer assumes in its place.
type Missing struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Assumed completes the sentence that begins with the object.
	Assumed string `json:"assumed"`
}

// Gaps are what an answer lacks.
type Gaps struct {
	// Incomplete lists the kinds that the user may not read, and how the answer differs without them.
	Incomplete []capture.Denied `json:"incomplete,omitempty"`
	// Missing lists the objects that are not among the files, and what is assumed in their place.
	Missing []Missing `json:"missing,omitempty"`
}

func (o *remarks) gaps() Gaps { return Gaps{Incomplete: o.denied, Missing: o.missing} }

// What is assumed of a missing object, so that pods wait for nothing but a node. A volume stays in the zone in which
// pods use it.
const (
	assumedClass     = "taken as one whose volumes are made where their pods run"
	assumedClaim     = "taken as bound to a volume that "
	assumedVolume    = "taken as one that "
	assumedPriority  = "taken as one of the value 0"
	assumedRuntime   = "taken as one without overhead, node selector and tolerations"
	assumedNamespace = "taken as one without labels"
	assumedCSINode   = "taken as one without limits of attached volumes"
)

// assumeMissing adds what pods refer to and files leave out, and records what it assumes, once for each object. A
// cluster is whole: what it does not have does not exist.
func (o *completion) assumeMissing() {
	if o.whole {
		return
	}
	zones, claims := o.zonesOfClaims(), false
	for _, p := range o.pods {
		if !finished(p.object) {
			claims = o.assumeOf(&p.object.ObjectMeta, &p.object.Spec, zones) || claims
		}
	}
	for _, d := range o.daemons {
		o.assumeClasses(&d.object.Spec.Template.ObjectMeta, &d.object.Spec.Template.Spec)
	}
	if len(o.buffers.objects) > 0 {
		for _, name := range slices.Sorted(maps.Keys(o.buffers.referents)) {
			object := o.buffers.referents[name]
			if shape, err := room.ShapeOf(object); err == nil {
				o.assumeOf(&metav1.ObjectMeta{Namespace: object.GetNamespace()}, &shape.Template.Spec, zones)
			}
		}
	}
	for _, n := range o.nodes {
		if claims && find[*storagev1.CSINode](&o.others, "", n.object.Name) == nil {
			o.lack("CSINode", n.object.Name, assumedCSINode)
		}
	}
	o.assumeNamespaces()
	slices.SortStableFunc(o.missing, func(a, b Missing) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
}

// forbidden returns why admission would refuse a pod of a file in the cluster that was read, nil if it would not.
func (o *Manifests) forbidden(p sourced[*corev1.Pod]) *model.Rejection {
	spec := &p.object.Spec
	if !o.whole || p.live || p.object.ResourceVersion != "" || !waiting(p.object) {
		return nil
	}
	_, known := o.priorities[spec.PriorityClassName]
	if name := spec.PriorityClassName; name != "" && !known && !o.lacks("priorityclasses.scheduling.k8s.io") {
		return &model.Rejection{Field: "spec.priorityClassName", Reason: fmt.Sprintf("no PriorityClass with name %s was found", name)}
	}
	name := or(spec.RuntimeClassName, "")
	if name != "" && o.others.RuntimeClass(name) == nil && !o.lacks("runtimeclasses.node.k8s.io") {
		return &model.Rejection{Field: "spec.runtimeClassName", Reason: fmt.Sprintf("RuntimeClass %q not found", name)}
	}
	return nil
}

// zonesOfClaims returns the zone of the nodes on which pods use a claim, by namespace and name; "" for several.
func (o *objects) zonesOfClaims() map[string]string {
	zones, of := map[string]string{}, map[string]string{}
	for _, n := range o.nodes {
		zones[n.object.Name] = n.object.Labels[corev1.LabelTopologyZone]
	}
	for _, p := range o.pods {
		zone := zones[p.object.Spec.NodeName]
		for i := range p.object.Spec.Volumes {
			name := claimOfVolume(p.object.Name, &p.object.Spec.Volumes[i])
			if name == "" || zone == "" || finished(p.object) {
				continue
			}
			if before, known := of[p.object.Namespace+"/"+name]; known && before != zone {
				zone = ""
			}
			of[p.object.Namespace+"/"+name] = zone
		}
	}
	return of
}

// claimOfVolume returns the name of the claim of a pod's volume, "" for other volumes.
func claimOfVolume(pod string, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod + "-" + v.Name
	}
	return ""
}

// assumeOf adds what a pod refers to. It reports whether the pod has a claim.
func (o *completion) assumeOf(meta *metav1.ObjectMeta, spec *corev1.PodSpec, zones map[string]string) bool {
	o.assumeClasses(meta, spec)
	some := false
	for i := range spec.Volumes {
		if name := claimOfVolume(meta.Name, &spec.Volumes[i]); name != "" {
			some = true
			o.assumeVolume(meta, &spec.Volumes[i], zones[meta.Namespace+"/"+name])
		}
	}
	return some
}

// lack records a missing object.
func (o *remarks) lack(kind, name, assumed string) {
	o.missing = append(o.missing, Missing{Kind: kind, Name: name, Assumed: assumed})
}

// assumeClasses adds the classes that admission needs for a pod that is not stored yet.
func (o *completion) assumeClasses(meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	if name := spec.PriorityClassName; name != "" && spec.Priority == nil {
		if _, known := o.priorities[name]; !known {
			o.priorities[name] = 0
			o.lack("PriorityClass", name, assumedPriority)
		}
	}
	if name := spec.RuntimeClassName; name != nil && *name != "" && meta.ResourceVersion == "" && o.others.RuntimeClass(*name) == nil {
		o.others.take(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: *name}})
		o.lack("RuntimeClass", *name, assumedRuntime)
	}
}

// assumeVolume adds the claim, the class and the volume of a pod's volume. zone is where pods use it, "" if that is not
// known.
func (o *completion) assumeVolume(pod *metav1.ObjectMeta, v *corev1.Volume, zone string) {
	name := claimOfVolume(pod.Name, v)
	claim := find[*corev1.PersistentVolumeClaim](&o.others, pod.Namespace, name)
	if claim != nil {
		o.assumeBehind(claim, zone)
		return
	}
	claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}
	if v.Ephemeral == nil {
		o.lack("PersistentVolumeClaim", key(claim), assumedClaim+usable(nil, zone))
		o.bindAssumed(claim, nil, zone)
		o.others.take(claim)
		return
	}
	if v.Ephemeral.VolumeClaimTemplate == nil || pod.UID == "" {
		return
	}
	controller := true
	claim.Spec = *v.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy()
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &controller}}
	if o.assumeBehind(claim, zone); claim.Spec.VolumeName != "" {
		o.others.take(claim)
	}
}

// assumeBehind adds the volume that a claim names, or its class and, if that makes none for the pod, its volume.
func (o *completion) assumeBehind(claim *corev1.PersistentVolumeClaim, zone string) {
	switch {
	case claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimLost:
		return
	case claim.Spec.VolumeName != "":
		if find[*corev1.PersistentVolume](&o.others, "", claim.Spec.VolumeName) == nil {
			o.lack("PersistentVolume", claim.Spec.VolumeName, assumedVolume+usable(nil, zone))
			o.bindAssumed(claim, nil, zone)
		}
		return
	}
	asked := claim.Spec.StorageClassName
	if beta, has := claim.Annotations[corev1.BetaStorageClassAnnotation]; has {
		asked = &beta
	}
	var class *storagev1.StorageClass
	if asked == nil || *asked != "" {
		class = o.classOrAssumed(or(asked, ""))
		if waitsForPod(class) && class.Provisioner != convert.NoProvisioner {
			return
		}
	}
	o.lack("PersistentVolume", "of PersistentVolumeClaim "+key(claim), assumedVolume+usable(class, zone))
	o.bindAssumed(claim, class, zone)
}

// classOrAssumed returns the class of the name, the default class for "", or one that makes volumes where pods run.
func (o *completion) classOrAssumed(name string) *storagev1.StorageClass {
	if class := o.others.class(name); class != nil {
		return class
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, VolumeBindingMode: &mode}
	if name == "" {
		class.Name, class.Annotations = "(default)", map[string]string{convert.IsDefaultClass: "true"}
	}
	o.others.take(class)
	o.lack("StorageClass", class.Name, assumedClass)
	return class
}

// bindAssumed binds a claim to a volume that is assumed: in the zone, or where its class makes volumes.
func (o *completion) bindAssumed(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, zone string) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: cmp.Or(claim.Spec.VolumeName, "of "+key(claim))}}
	if class != nil && class.Provisioner != convert.NoProvisioner {
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner}
	}
	if terms := placesOf(class, zone); len(terms) > 0 {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	o.others.take(volume)
	bind(claim, volume)
}

// placesOf returns the terms by which nodes can use a volume; none for all nodes.
func placesOf(class *storagev1.StorageClass, zone string) []corev1.NodeSelectorTerm {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	if zone != "" {
		return []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{in(corev1.LabelTopologyZone, zone)}}}
	}
	if class == nil {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for _, topology := range class.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, e := range topology.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, in(e.Key, e.Values...))
		}
		terms = append(terms, term)
	}
	return terms
}

// usable says where a volume that is assumed can be used.
func usable(class *storagev1.StorageClass, zone string) string {
	switch {
	case zone != "":
		return "nodes of zone " + zone + " can use, where it is used"
	case class != nil && len(class.AllowedTopologies) > 0:
		return "nodes of the allowedTopologies of StorageClass " + class.Name + " can use"
	}
	return "any node can use"
}

// assumeNamespaces records the namespaces whose labels a pod's rules ask for.
func (o *completion) assumeNamespaces() {
	asked := slices.ContainsFunc(o.pods, func(p sourced[*corev1.Pod]) bool {
		return waiting(p.object) && asksForNamespaces(p.object.Spec.Affinity)
	})
	if !asked {
		return
	}
	for _, p := range o.pods {
		if name := p.object.Namespace; o.others.addNamespace(name) {
			o.lack("Namespace", name, assumedNamespace)
		}
	}
}

// asksForNamespaces reports whether a term selects namespaces by other labels than their names.
func asksForNamespaces(a *corev1.Affinity) bool {
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
	}
	if a != nil && a.PodAffinity != nil {
		add(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a != nil && a.PodAntiAffinity != nil {
		add(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		if t.NamespaceSelector == nil {
			return false
		}
		for name := range t.NamespaceSelector.MatchLabels {
			if name != corev1.LabelMetadataName {
				return true
			}
		}
		return slices.ContainsFunc(t.NamespaceSelector.MatchExpressions,
			func(e metav1.LabelSelectorRequirement) bool { return e.Key != corev1.LabelMetadataName })
	})
}

// mostMissing is how many missing objects of a kind have a line each.
const mostMissing = 10

// missingLines returns a line for each missing object. Many of a kind with the same assumption share one.
func (o *remarks) missingLines() []string {
	type group struct{ kind, assumed string }
	names := map[group][]string{}
	var order []group
	for _, m := range o.missing {
		g := group{m.Kind, m.Assumed}
		if names[g] == nil {
			order = append(order, g)
		}
		names[g] = append(names[g], m.Name)
	}
	var lines []string
	for _, g := range order {
		if list := names[g]; len(list) > mostMissing {
			lines = append(lines, fmt.Sprintf("%s %s are not among the files: each %s", g.kind, fewNames(list), g.assumed))
			continue
		}
		for _, name := range names[g] {
			lines = append(lines, fmt.Sprintf("%s %s is not among the files: %s", g.kind, name, g.assumed))
		}
	}
	return lines
}
