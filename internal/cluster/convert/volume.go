package convert

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Volumes looks up the objects behind a pod's volumes. The methods return nil if there is no such object.
type Volumes interface {
	Claim(namespace, name string) *corev1.PersistentVolumeClaim
	Volume(name string) *corev1.PersistentVolume
	// Class returns the class with the name; the empty name means the default class (see DefaultClass).
	Class(name string) *storagev1.StorageClass
}

// inTree maps plugins that were part of Kubernetes to the CSI drivers that replaced them (KEP-625).
var inTree = map[string]string{
	"kubernetes.io/aws-ebs":        "ebs.csi.aws.com",
	"kubernetes.io/gce-pd":         "pd.csi.storage.gke.io",
	"kubernetes.io/azure-disk":     "disk.csi.azure.com",
	"kubernetes.io/azure-file":     "file.csi.azure.com",
	"kubernetes.io/cinder":         "cinder.csi.openstack.org",
	"kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}

const (
	// BindCompleted is set by the volume controller when a claim is bound (Kubernetes, well-known annotations).
	BindCompleted = "pv.kubernetes.io/bind-completed"
	// NoProvisioner is the provisioner of classes with manually created volumes; no driver attaches them.
	NoProvisioner = "kubernetes.io/no-provisioner"
	// IsDefaultClass marks the class of claims without a class; the beta annotation still counts.
	IsDefaultClass     = "storageclass.kubernetes.io/is-default-class"
	isDefaultClassBeta = "storageclass.beta.kubernetes.io/is-default-class"
	// maxPlaces limits the combinations of alternatives of a pod's volumes.
	maxPlaces = 256
)

// DefaultClass returns the class of claims without a class: the newest of those marked as default, and of equally new
// ones the first by name (https://kubernetes.io/docs/concepts/storage/storage-classes/#default-storageclass). It
// returns nil if there is none.
func DefaultClass(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	var chosen *storagev1.StorageClass
	for _, class := range classes {
		if class.Annotations[IsDefaultClass] != "true" && class.Annotations[isDefaultClassBeta] != "true" {
			continue
		}
		if chosen == nil || chosen.CreationTimestamp.Before(&class.CreationTimestamp) ||
			chosen.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < chosen.Name {
			chosen = class
		}
	}
	return chosen
}

// demand holds the requirements of one volume on the node: any of the alternatives, nil for no requirement.
type demand struct {
	volume model.Volume
	// of is the name of the PersistentVolume, "" if there is none yet.
	of           string
	alternatives [][]label.Requirement
	// existing is the reason for which no new node satisfies the alternatives, nil if there is none.
	existing *model.Rejection
}

// addVolumes adds the pod's persistent volumes to its spec, with their combined requirements on the node as
// alternatives. It returns a Rejection for the first volume that cannot be used. The list of volumes is complete even
// then, because a bound pod uses them in any case.
func addVolumes(spec *model.PodSpec, pod *corev1.Pod, v *Vocabulary, around *Around) *model.Rejection {
	var demands []demand
	var first *model.Rejection
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		name, shared := claimName(pod, source)
		if name == "" || slices.ContainsFunc(spec.Volumes, func(v model.Volume) bool { return v.Claim == pod.Namespace+"/"+name }) {
			continue
		}
		d, refused := demandOf(pod, name, source, v, around)
		if refused != nil && first == nil {
			refused.Field = at("spec.volumes", i) + refused.Field
			first = refused
		}
		shared = shared && (d.volume.Exclusive || othersUse(pod, name, around))
		d.volume.Shared, d.volume.Exclusive = shared, shared && d.volume.Exclusive
		d.volume.Waits = d.volume.Waits && shared && !d.volume.Exclusive
		if d.existing != nil && spec.NoNewNode == nil {
			d.existing.Field = at("spec.volumes", i)
			spec.NoNewNode = d.existing
		}
		spec.Volumes = append(spec.Volumes, d.volume)
		demands = append(demands, d)
	}
	places, few := together(demands)
	spec.VolumeAlternatives = places
	if first == nil && !few {
		first = refuse("spec.volumes", "together they allow more than %d combinations of places; use volumes whose topologies agree", maxPlaces)
	}
	if first == nil {
		first = apart(demands)
	}
	return first
}

// apart returns a rejection that names the first two volumes that no node can use together, nil if there are none.
func apart(demands []demand) *model.Rejection {
	for i := range demands {
		for j := range demands[:i] {
			a, b := &demands[j], &demands[i]
			if key := a.conflict(b); key != "" {
				return refuse("spec.volumes", "%s requires %s In %v, %s requires %s In %v, and no node is in both; use volumes whose topologies agree",
					a.name(), key, a.values(key), b.name(), key, b.values(key))
			}
		}
	}
	return nil
}

// conflict returns the label on which all alternatives of two volumes contradict each other, "" if there is none.
func (d *demand) conflict(with *demand) string {
	key := ""
	if len(d.alternatives)*len(with.alternatives) > maxPlaces {
		return ""
	}
	for _, x := range d.alternatives {
		for _, y := range with.alternatives {
			if _, possible := merged(x, y); possible {
				return ""
			}
			for i := range x {
				if _, possible := merged(x[i:i+1], y); !possible && key == "" {
					key = x[i].Key
				}
			}
		}
	}
	return key
}

// name returns the claim and its volume.
func (d *demand) name() string {
	_, claim, _ := strings.Cut(d.volume.Claim, "/")
	if d.of == "" {
		return fmt.Sprintf("claim %q", claim)
	}
	return fmt.Sprintf("claim %q (volume %q)", claim, d.of)
}

// values returns the values of a label that the alternatives require, sorted.
func (d *demand) values(key string) []string {
	var values []string
	for _, reqs := range d.alternatives {
		for _, r := range reqs {
			if r.Key == key && r.Operator == label.In {
				values = append(values, r.Values...)
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// claimName returns the claim of a volume, and whether other pods may use it. Claims of a StatefulSet's template and
// of generic ephemeral volumes belong to one pod.
func claimName(pod *corev1.Pod, source *corev1.Volume) (string, bool) {
	switch {
	case source.Ephemeral != nil:
		return pod.Name + "-" + source.Name, false
	case source.PersistentVolumeClaim != nil:
		name := source.PersistentVolumeClaim.ClaimName
		return name, controllerOf(pod).Kind != "StatefulSet" || !strings.HasSuffix(name, "-"+pod.Name)
	}
	return "", false
}

// othersUse reports whether another pod uses the claim too, or whether that is unknown. A claim of one pod need not
// be distinguished from those of its siblings, whatever the kind of their controller.
func othersUse(pod *corev1.Pod, name string, around *Around) bool {
	return around.Users == nil || slices.ContainsFunc(around.Users(pod.Namespace, name), func(other *corev1.Pod) bool {
		return other.UID != pod.UID && dispositionOf(other) != Ignore
	})
}

func demandOf(pod *corev1.Pod, name string, source *corev1.Volume, v *Vocabulary, around *Around) (demand, *model.Rejection) {
	d := demand{volume: model.Volume{Claim: pod.Namespace + "/" + name}}
	var claim *corev1.PersistentVolumeClaim
	if around.Volumes != nil {
		claim = around.Volumes.Claim(pod.Namespace, name)
	}
	switch {
	case claim == nil && around.Volumes != nil && source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil:
		return d.unbound(source.Ephemeral.VolumeClaimTemplate.Spec.StorageClassName, v, around)
	case claim == nil && source.Ephemeral != nil:
		return d, refuse(".ephemeral", "claim %q does not exist yet", name)
	case claim == nil:
		return d, refuse(".persistentVolumeClaim.claimName", "claim %q does not exist in namespace %s; create it", name, pod.Namespace)
	}
	d.volume.Exclusive = slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod)
	d, refused := d.ofClaim(claim, v, around)
	if wrong := refuseClaim(pod, claim, source, around); wrong != nil {
		return d, wrong
	}
	return d, refused
}

// refuseClaim returns a rejection if the pod cannot use the claim, regardless of its volume.
func refuseClaim(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, source *corev1.Volume, around *Around) *model.Rejection {
	switch {
	case claim.DeletionTimestamp != nil:
		return refuse("", "claim %q is being deleted", claim.Name)
	case claim.Status.Phase == corev1.ClaimLost:
		return refuse("", "claim %q has lost its volume", claim.Name)
	case source.Ephemeral != nil && !ownedBy(claim, pod):
		return refuse(".ephemeral", "claim %q was not created for this pod; rename the pod or delete the claim", claim.Name)
	}
	if !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) || around.Users == nil {
		return nil
	}
	first := pod
	for _, other := range around.Users(claim.Namespace, claim.Name) {
		if other.UID != pod.UID && dispositionOf(other) != Ignore && before(other, first) {
			first = other
		}
	}
	// Which of several pending pods gets a claim depends on which of them can be placed: the plan decides.
	if _, shared := claimName(pod, source); first != pod && (first.Spec.NodeName != "" || !shared) {
		return refuse("", "claim %q is ReadWriteOncePod and pod %s has it", claim.Name, first.Name)
	}
	return nil
}

// before reports whether a has precedence over b for a claim that only one pod may use: bound pods first, then by
// age, then by name.
func before(a, b *corev1.Pod) bool {
	if bound := a.Spec.NodeName != ""; bound != (b.Spec.NodeName != "") {
		return bound
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

func ownedBy(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	for i := range claim.OwnerReferences {
		if o := &claim.OwnerReferences[i]; o.Controller != nil && *o.Controller && o.Kind == "Pod" && o.UID == pod.UID {
			return true
		}
	}
	return false
}

// ofClaim adds the requirements of the volume of a claim, or of the class that will provision it.
func (d demand) ofClaim(claim *corev1.PersistentVolumeClaim, v *Vocabulary, around *Around) (demand, *model.Rejection) {
	class := claim.Spec.StorageClassName
	if beta, has := claim.Annotations[corev1.BetaStorageClassAnnotation]; has {
		class = &beta
	}
	switch {
	case claim.Spec.VolumeName == "":
		d, refused := d.unbound(class, v, around)
		return d.provisioning(claim), refused
	case claim.Annotations[BindCompleted] == "" && !madeFor(around.Volumes.Volume(claim.Spec.VolumeName), claim):
		return d, refuse("", "claim %q names volume %q and is not bound to it yet", claim.Name, claim.Spec.VolumeName)
	}
	return d.bound(around.Volumes.Volume(claim.Spec.VolumeName), claim, v, around)
}

// madeFor reports whether the volume refers to the claim: then they are being bound, which takes a moment, and pods
// keep their places meanwhile.
func madeFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv != nil && claim.UID != "" && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
}

func refuse(field, format string, arguments ...any) *model.Rejection {
	return &model.Rejection{Field: field, Reason: fmt.Sprintf(format, arguments...)}
}

// bound adds the requirements of an existing volume: the node must be where it can be attached.
func (d demand) bound(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, v *Vocabulary, around *Around) (demand, *model.Rejection) {
	if pv == nil {
		return d, refuse("", "volume %q of claim %q does not exist", claim.Spec.VolumeName, claim.Name)
	}
	d.of, d.volume.Driver = pv.Name, driverOf(&pv.Spec.PersistentVolumeSource)
	d.alternatives = crossed(v.zonesOf(pv), v.affinityOf(pv))
	if pv.DeletionTimestamp != nil {
		return d, refuse("", "volume %q of claim %q is being deleted", pv.Name, claim.Name)
	}
	hosts, some := hostsOf(d.alternatives)
	if !some {
		return d, nil
	}
	slices.Sort(hosts)
	names := firstNames(slices.Compact(hosts))
	if !slices.ContainsFunc(hosts, func(host string) bool { return around.Host != nil && around.Host(host) }) {
		return d, refuse("", "volume %q of claim %q can be used on node %s only, and no node has this hostname; if the node is gone for good, "+
			"delete the claim and the volume, so that a new volume is made", pv.Name, claim.Name, names)
	}
	d.existing = refuse("", "volume %q of claim %q can be used on node %s only, and a new node does not help", pv.Name, claim.Name, names)
	return d, nil
}

// firstNames returns the first three names, and the number of the others.
func firstNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// hostsOf returns the hostnames that the alternatives require, and whether each of them requires some.
func hostsOf(alternatives [][]label.Requirement) ([]string, bool) {
	var hosts []string
	for _, reqs := range alternatives {
		at := slices.IndexFunc(reqs, func(r label.Requirement) bool {
			return r.Key == model.LabelHostname && r.Operator == label.In && len(r.Values) > 0
		})
		if at < 0 {
			return nil, false
		}
		hosts = append(hosts, reqs[at].Values...)
	}
	return hosts, len(hosts) > 0
}

// selectedNode names the node for which the volume of a claim is being provisioned. kube-scheduler sets it when it has
// chosen a node, and accepts only that node until the claim is bound or the provisioner removes the annotation
// (https://kubernetes.io/docs/reference/labels-annotations-taints/#volume-kubernetes-io-selected-node).
const selectedNode = "volume.kubernetes.io/selected-node"

// provisioning adds the requirement of a volume that is being provisioned for a node.
func (d demand) provisioning(claim *corev1.PersistentVolumeClaim) demand {
	node := claim.Annotations[selectedNode]
	if node == "" {
		return d
	}
	d.alternatives = crossed(d.alternatives, [][]label.Requirement{{{Key: model.FieldName, Operator: label.In, Values: []string{node}}}})
	d.existing = refuse("", "the volume of claim %q is being provisioned for node %q (annotation %s), and kube-scheduler accepts no other node",
		claim.Name, node, selectedNode)
	return d
}

// driverOf returns the CSI driver that attaches a volume; empty if none does.
func driverOf(source *corev1.PersistentVolumeSource) string {
	switch {
	case source.CSI != nil:
		return source.CSI.Driver
	case source.AWSElasticBlockStore != nil:
		return inTree["kubernetes.io/aws-ebs"]
	case source.GCEPersistentDisk != nil:
		return inTree["kubernetes.io/gce-pd"]
	case source.AzureDisk != nil:
		return inTree["kubernetes.io/azure-disk"]
	case source.AzureFile != nil:
		return inTree["kubernetes.io/azure-file"]
	case source.Cinder != nil:
		return inTree["kubernetes.io/cinder"]
	case source.VsphereVolume != nil:
		return inTree["kubernetes.io/vsphere-volume"]
	}
	return ""
}

// zonesOf returns the zone and region labels of a volume as requirements; kube-scheduler respects them (plugin
// VolumeZone). Several values are separated by two underscores.
func (v *Vocabulary) zonesOf(pv *corev1.PersistentVolume) [][]label.Requirement {
	var reqs []label.Requirement
	for _, key := range []string{
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	} {
		if value := pv.Labels[key]; value != "" {
			req, _ := v.requirement(key, "In", strings.Split(value, "__"))
			reqs = append(reqs, req)
		}
	}
	if reqs == nil {
		return nil
	}
	return [][]label.Requirement{reqs}
}

// affinityOf returns the node affinity of a volume: the terms of which any one suffices. A term without expressions
// and fields selects no node.
func (v *Vocabulary) affinityOf(pv *corev1.PersistentVolume) [][]label.Requirement {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var alternatives [][]label.Requirement
	for i := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		if term := &pv.Spec.NodeAffinity.Required.NodeSelectorTerms[i]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			alternatives = append(alternatives, v.term(term))
		}
	}
	if alternatives == nil {
		return [][]label.Requirement{{matchesNothing(model.LabelHostname)}}
	}
	return alternatives
}

// unbound adds the requirements of a volume that is provisioned when its pod has a node. A claim without a class uses
// the default class; an empty class name means no class.
func (d demand) unbound(name *string, v *Vocabulary, around *Around) (demand, *model.Rejection) {
	_, claim, _ := strings.Cut(d.volume.Claim, "/")
	if name != nil && *name == "" {
		return d, refuse("", "claim %q is not bound and has no storage class; create a volume for it", claim)
	}
	asked := ""
	if name != nil {
		asked = *name
	}
	class := around.Volumes.Class(asked)
	switch {
	case class == nil && asked == "":
		return d, refuse("", "claim %q is not bound, names no storage class, and the cluster has no default one", claim)
	case class == nil:
		return d, refuse("", "storage class %q of claim %q does not exist", asked, claim)
	}
	d.volume.Driver = class.Provisioner
	if csi, was := inTree[class.Provisioner]; was {
		d.volume.Driver = csi
	} else if class.Provisioner == NoProvisioner {
		d.volume.Driver = ""
	}
	return d.ofClass(class, claim, v, around)
}

// ofClass adds the requirements of a class on the location of its volumes.
func (d demand) ofClass(class *storagev1.StorageClass, claim string, v *Vocabulary, around *Around) (demand, *model.Rejection) {
	switch {
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate:
		return d, refuse("", "claim %q waits for a volume (volumeBindingMode Immediate of storage class %q)", claim, class.Name)
	case slices.Contains(v.unsupportedProvisioners, class.Provisioner) || slices.Contains(v.unsupportedProvisioners, d.volume.Driver):
		return d, refuse("", "storage class %q of claim %q has the provisioner %s, whose volumes the cloud's nodes cannot use", class.Name, claim, class.Provisioner)
	}
	d.volume.Waits = around.Everywhere == nil || !around.Everywhere(d.volume.Driver)
	for _, term := range class.AllowedTopologies {
		if len(term.MatchLabelExpressions) == 0 {
			continue // selects no node
		}
		var reqs []label.Requirement
		for _, e := range term.MatchLabelExpressions {
			if slices.Contains(v.unsupportedTopology, e.Key) {
				return d, refuse("", "storage class %q of claim %q has allowedTopologies by %s, which the cloud's nodes do not carry", class.Name, claim, e.Key)
			}
			req, _ := v.requirement(e.Key, "In", e.Values)
			reqs = append(reqs, req)
		}
		d.alternatives = append(d.alternatives, reqs)
	}
	if len(class.AllowedTopologies) > 0 && d.alternatives == nil {
		d.alternatives = [][]label.Requirement{{matchesNothing(model.LabelHostname)}}
	}
	return d, nil
}

// together returns the combined requirements of the volumes: every consistent combination of their alternatives or,
// if there is none, a contradictory one. It returns false if there are too many.
func together(demands []demand) ([][]label.Requirement, bool) {
	var places [][]label.Requirement
	var asked [][][]label.Requirement
	for _, d := range demands {
		same := func(b [][]label.Requirement) bool { return slices.EqualFunc(b, d.alternatives, equalRequirements) }
		if len(d.alternatives) == 0 || slices.ContainsFunc(asked, same) {
			continue // equal requirements count once
		}
		asked = append(asked, d.alternatives)
		if len(places)*len(d.alternatives) > maxPlaces*maxPlaces {
			return nil, false
		}
		if places = crossed(places, d.alternatives); len(places) > maxPlaces {
			return nil, false
		}
	}
	return places, true
}

// crossed returns every combination of the alternatives, without duplicates. An empty list of alternatives requires
// nothing.
func crossed(a, b [][]label.Requirement) [][]label.Requirement {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b)
	}
	var pairs [][]label.Requirement
	for _, x := range a {
		for _, y := range b {
			pair, possible := merged(x, y)
			known := func(p []label.Requirement) bool { return equalRequirements(p, pair) }
			if possible && !slices.ContainsFunc(pairs, known) {
				pairs = append(pairs, pair)
			}
		}
	}
	if pairs == nil {
		return [][]label.Requirement{slices.Concat(a[0], b[0])}
	}
	return pairs
}

// merged returns the conjunction of both lists; two In requirements of one key become their intersection. It returns
// false if the intersection is empty.
func merged(x, y []label.Requirement) ([]label.Requirement, bool) {
	all := slices.Clone(x)
	for _, req := range y {
		at := slices.IndexFunc(all, func(r label.Requirement) bool {
			return r.Key == req.Key && r.Operator == label.In && req.Operator == label.In
		})
		if at < 0 {
			all = append(all, req)
			continue
		}
		shared := slices.DeleteFunc(slices.Clone(all[at].Values), func(value string) bool { return !slices.Contains(req.Values, value) })
		if len(shared) == 0 {
			return nil, false
		}
		all[at].Values = shared
	}
	return all, true
}

func equalRequirements(a, b []label.Requirement) bool {
	return slices.EqualFunc(a, b, func(x, y label.Requirement) bool {
		return x.Key == y.Key && x.Operator == y.Operator && slices.Equal(x.Values, y.Values)
	})
}
