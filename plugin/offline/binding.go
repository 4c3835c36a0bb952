package offline

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// bindClaims does what the volume controller does within seconds with claims of files: each gets the volume that names
// it, the one that it names, or the smallest of the others that satisfies it. Claims that are written together with
// their volumes show none of this
// (https://kubernetes.io/docs/concepts/storage/persistent-volumes/#binding).
func (o *completion) bindClaims() {
	slices.SortFunc(o.volumeClaims, func(a, b *corev1.PersistentVolumeClaim) int { return strings.Compare(key(a), key(b)) })
	var open []*corev1.PersistentVolumeClaim
	for _, claim := range o.volumeClaims {
		switch {
		case claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimLost:
		case claim.Spec.VolumeName == "":
			open = append(open, claim)
		default:
			o.bindNamed(claim)
		}
	}
	volumes := o.others.freeVolumes()
	for _, claim := range open {
		if volume := o.others.matching(claim, volumes); volume != nil {
			bind(claim, find[*corev1.PersistentVolume](&o.others, "", volume.Name))
			volumes = slices.DeleteFunc(volumes, func(v *corev1.PersistentVolume) bool { return v == volume })
		}
	}
}

// bindNamed binds a claim to the volume that it names, if that is its own or may become its own.
func (o *completion) bindNamed(claim *corev1.PersistentVolumeClaim) {
	bound := claim.Status.Phase == corev1.ClaimBound
	if volume := find[*corev1.PersistentVolume](&o.others, "", claim.Spec.VolumeName); volume != nil {
		switch ref := volume.Spec.ClaimRef; {
		case ref != nil:
			bound = ref.Namespace == claim.Namespace && ref.Name == claim.Name && volume.Status.Phase != corev1.VolumeReleased
		case !bound:
			bound = o.others.matching(claim, []*corev1.PersistentVolume{available(volume)}) != nil
		}
		if bound {
			bind(claim, volume)
		}
	}
	if bound {
		markBound(claim)
	}
}

func bind(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume.Status.Phase, claim.Spec.VolumeName = corev1.VolumeBound, volume.Name
	markBound(claim)
}

func markBound(claim *corev1.PersistentVolumeClaim) {
	claim.Annotations = with(claim.Annotations, map[string]string{convert.BindCompleted: "yes"})
	claim.Status.Phase = corev1.ClaimBound
}

// freeVolumes returns copies of the volumes that are not bound, as the volume controller would have completed them: by
// name.
func (s *others) freeVolumes() []*corev1.PersistentVolume {
	var free []*corev1.PersistentVolume
	for _, v := range all[*corev1.PersistentVolume](s) {
		if v.Status.Phase == "" || v.Status.Phase == corev1.VolumePending || v.Status.Phase == corev1.VolumeAvailable {
			free = append(free, available(v))
		}
	}
	slices.SortFunc(free, func(a, b *corev1.PersistentVolume) int { return strings.Compare(a.Name, b.Name) })
	return free
}

// available returns a copy of a volume of files with the phase that the volume controller sets. A manifest of a claim
// has no UID that the volume could repeat.
func available(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	v := volume.DeepCopy()
	v.Status.Phase = corev1.VolumeAvailable
	if v.Spec.ClaimRef != nil {
		v.Spec.ClaimRef.UID = ""
	}
	return v
}

// matching returns the volume that the volume controller or, of classes without a provisioner, kube-scheduler would
// choose; nil for none. A claim whose volume is made for its pod gets only a volume that names it.
func (s *others) matching(claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) *corev1.PersistentVolume {
	claim = claim.DeepCopy()
	if claim.Spec.StorageClassName == nil {
		if class := s.class(""); class != nil {
			claim.Spec.StorageClassName = &class.Name
		}
	}
	fitting := slices.DeleteFunc(slices.Clone(volumes),
		func(v *corev1.PersistentVolume) bool { return !volumehelpers.CheckAccessModes(claim, v) })
	class := find[*storagev1.StorageClass](s, "", volumehelpers.GetPersistentVolumeClaimClass(claim))
	delayed := class != nil && waitsForPod(class) && class.Provisioner != convert.NoProvisioner && claim.Spec.VolumeName == ""
	volume, err := volumehelpers.FindMatchingVolume(claim, fitting, nil, nil, delayed, true)
	if err != nil { // an invalid selector selects nothing
		return nil
	}
	return volume
}

func waitsForPod(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}
