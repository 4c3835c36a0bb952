package offline

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// TestUnboundClaim covers a bound claim, a claim that does not exist, and an ephemeral one.
func TestUnboundClaim(t *testing.T) {
	s := newSurroundings()
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "a", "web"
	pod.Spec.Volumes = []corev1.Volume{{Name: "plain"}, {Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = "a", "web-tmp"
	for _, c := range []struct {
		phase corev1.PersistentVolumeClaimPhase
		want  string
	}{{"", "web-tmp"}, {corev1.ClaimPending, "web-tmp"}, {corev1.ClaimBound, ""}} {
		if claim.Status.Phase = c.phase; c.phase != "" {
			s.take(claim)
		}
		if got := s.unbound(pod); got != c.want {
			t.Errorf("phase %q: %q, want %q", c.phase, got, c.want)
		}
	}
}

// TestBindClaims checks which claims of files count as bound without the annotation of the volume controller.
func TestBindClaims(t *testing.T) {
	for name, c := range map[string]struct {
		claim, volume string
		bound         bool
	}{
		"bound to each other":                {"phase: Bound", "capacity: {storage: 2Gi}, claimRef: {namespace: ns, name: c}", true},
		"written together, without a status": {"", "capacity: {storage: 2Gi}, claimRef: {namespace: ns, name: c}", true},
		"bound, the volume names no claim":   {"phase: Bound", "capacity: {storage: 2Gi}", true},
		"not bound yet, the volume is free":  {"phase: Pending", "capacity: {storage: 2Gi}", true},
		"not bound, the volume is too small": {"phase: Pending", "capacity: {storage: 1Gi}", false},
		"the volume of another claim":        {"phase: Bound", "capacity: {storage: 2Gi}, claimRef: {namespace: ns, name: d}", false},
		"a claim that has lost its volume":   {"phase: Lost", "capacity: {storage: 2Gi}, claimRef: {namespace: ns, name: c}", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := expanded(t, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: ns}\nspec: {accessModes: "+
				"[ReadWriteOnce], volumeName: v, resources: {requests: {storage: 2Gi}}}\n"+
				"status: {"+c.claim+"}\n---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {accessModes: [ReadWriteOnce], "+c.volume+"}\n")
			if got := o.around.Claim("ns", "c").Annotations[convert.BindCompleted] != ""; got != c.bound {
				t.Errorf("bound is %t, want %t", got, c.bound)
			}
		})
	}
}
