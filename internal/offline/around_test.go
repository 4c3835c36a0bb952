package offline

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
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
