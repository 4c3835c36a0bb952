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

// Volumes looks up what stands behind a pod's volumes. Each answers nil when there is no such object.
type Volumes interface {
	Claim(namespace, name string) *corev1.PersistentVolumeClaim
	Volume(name string) *corev1.PersistentVolume
	// Class of the name; the empty name asks for the default class.
	Class(name string) *storagev1.StorageClass
}

// inTree are the drivers that took over from plugins that were part of Kubernetes (KEP-625).
var inTree = map[string]string{
	"kubernetes.io/aws-ebs":        "ebs.csi.aws.com",
	"kubernetes.io/gce-pd":         "pd.csi.storage.gke.io",
	"kubernetes.io/azure-disk":     "disk.csi.azure.com",
	"kubernetes.io/azure-file":     "file.csi.azure.com",
	"kubernetes.io/cinder":         "cinder.csi.openstack.org",
	"kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}

// bindCompleted is set by the volume controller when a claim is bound (Kubernetes, well-known annotations).
const bindCompleted = "pv.kubernetes.io/bind-completed"

// demand is what one volume asks of the node: any of the alternatives, nil for nothing.
type demand struct {
	volume       model.Volume
	alternatives [][]label.Requirement
}

// volumes converts the pod's persistent volumes (core specification 3.3, 3.7): what they are, and what they demand of
// the node together, as alternatives that may each hold alone.
func volumes(pod *corev1.Pod, v *Vocabulary, around *Around) ([]model.Volume, [][]label.Requirement, *model.Rejection) {
	var list []model.Volume
	var together [][]label.Requirement
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		name, shared := claimName(pod, source)
		if name == "" {
			continue
		}
		d, refused := demandOf(pod, name, source, v, around)
		if refused != nil {
			refused.Field = at("spec.volumes", i) + refused.Field
			return nil, nil, refused
		}
		d.volume.Shared = shared
		list = append(list, d.volume)
		together = cross(together, d.alternatives)
	}
	return list, together, nil
}

// claimName is the claim behind a volume, and whether other pods may use it. Claims of a StatefulSet's template and of
// generic ephemeral volumes belong to one pod.
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

func demandOf(pod *corev1.Pod, name string, source *corev1.Volume, v *Vocabulary, around *Around) (demand, *model.Rejection) {
	d := demand{volume: model.Volume{Claim: pod.Namespace + "/" + name}}
	if around.Volumes == nil {
		return d, refuse(".persistentVolumeClaim.claimName", "claim %q does not exist", name)
	}
	claim := around.Volumes.Claim(pod.Namespace, name)
	if claim == nil {
		if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
			return d.unbound(source.Ephemeral.VolumeClaimTemplate.Spec.StorageClassName, v, around)
		}
		return d, refuse(".persistentVolumeClaim.claimName", "claim %q does not exist in namespace %s", name, pod.Namespace)
	}
	switch {
	case claim.DeletionTimestamp != nil:
		return d, refuse("", "claim %q is being deleted", name)
	case claim.Status.Phase == corev1.ClaimLost:
		return d, refuse("", "claim %q has lost its volume", name)
	case claim.Spec.VolumeName == "":
		return d.unbound(claim.Spec.StorageClassName, v, around)
	case claim.Annotations[bindCompleted] == "":
		return d, refuse("", "claim %q names volume %q and is not bound to it yet", name, claim.Spec.VolumeName)
	}
	return d.bound(around.Volumes.Volume(claim.Spec.VolumeName), claim, v)
}

func refuse(field, format string, arguments ...any) *model.Rejection {
	return &model.Rejection{Field: field, Reason: fmt.Sprintf(format, arguments...)}
}

// bound is what a volume that exists demands: to be where it can be attached.
func (d demand) bound(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, v *Vocabulary) (demand, *model.Rejection) {
	if pv == nil || pv.DeletionTimestamp != nil {
		return d, refuse("", "volume %q of claim %q does not exist or is being deleted", claim.Spec.VolumeName, claim.Name)
	}
	switch {
	case pv.Spec.CSI != nil:
		d.volume.Driver = pv.Spec.CSI.Driver
	case pv.Spec.AWSElasticBlockStore != nil:
		d.volume.Driver = inTree["kubernetes.io/aws-ebs"]
	}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return d, nil
	}
	// A volume on a node's own disk dies with the node; its hostname says where it was, not where the pod must go.
	local := pv.Spec.Local != nil || pv.Spec.HostPath != nil
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		var reqs []label.Requirement
		for _, e := range term.MatchExpressions {
			if req := v.expression(e); !local || req.Key != model.LabelHostname {
				reqs = append(reqs, req)
			}
		}
		d.alternatives = append(d.alternatives, reqs)
	}
	return d, nil
}

// unbound is what a volume demands that is made when its pod has a node.
func (d demand) unbound(name *string, v *Vocabulary, around *Around) (demand, *model.Rejection) {
	asked := ""
	if name != nil {
		asked = *name
	}
	class := around.Volumes.Class(asked)
	switch {
	case class == nil && asked == "":
		return d, refuse("", "claim %q is not bound, names no storage class, and the cluster has no default one", d.volume.Claim)
	case class == nil:
		return d, refuse("", "storage class %q of claim %q does not exist", asked, d.volume.Claim)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate:
		return d, refuse("", "claim %q waits for a volume (volumeBindingMode Immediate of storage class %q)", d.volume.Claim, class.Name)
	}
	d.volume.Driver = class.Provisioner
	if csi, was := inTree[class.Provisioner]; was {
		d.volume.Driver = csi
	}
	for _, term := range class.AllowedTopologies {
		var reqs []label.Requirement
		for _, e := range term.MatchLabelExpressions {
			if req, ok := v.requirement(e.Key, "In", e.Values); ok {
				reqs = append(reqs, req)
			}
		}
		d.alternatives = append(d.alternatives, reqs)
	}
	return d, nil
}

// cross is every pair of alternatives as one. No alternatives demand nothing. Pairs that contradict each other are found
// out when they are encoded.
func cross(a, b [][]label.Requirement) [][]label.Requirement {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	pairs := make([][]label.Requirement, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			pairs = append(pairs, slices.Concat(x, y))
		}
	}
	return pairs
}
