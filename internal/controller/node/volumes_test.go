package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func uses(volumes ...corev1.Volume) option {
	return func(p *corev1.Pod) { p.Spec.Volumes = volumes }
}

func ofClaim(name string) corev1.Volume {
	return corev1.Volume{Name: "v-" + name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
}

// TestClaimsInUse verifies that only pods that stay on the node keep their volumes.
func TestClaimsInUse(t *testing.T) {
	ephemeral := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	plain := corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}
	all := tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists})
	var got []string
	for _, key := range claimsInUse([]corev1.Pod{
		pod("leaving", uses(ofClaim("data"))), pod("going", terminatingFor(time.Second), uses(ofClaim("going"))),
		pod("ended", all, phase(corev1.PodSucceeded), uses(ofClaim("ended"))),
		pod("tolerant", all, uses(ofClaim("cache"), plain, ephemeral)), pod("mirror", owned("v1", "Node"), uses(ofClaim("static"))),
		pod("lost", terminatingFor(2*time.Minute), uses(ofClaim("stuck"))),
	}, until(time.Time{})) {
		got = append(got, key.String())
	}
	if diff := cmp.Diff([]string{"ns/cache", "ns/tolerant-scratch", "ns/static", "ns/stuck"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBlocking(t *testing.T) {
	attachment := func(name string, volume *string) storagev1.VolumeAttachment {
		a := storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		a.Spec.Source.PersistentVolumeName, a.Spec.Attacher = volume, "disk.csi.example.com"
		return a
	}
	got := blocking([]storagev1.VolumeAttachment{
		attachment("z", new("data")), attachment("inline", nil), attachment("empty", new("")), attachment("kept", new("cache")), attachment("a", new("more")),
	}, map[string]bool{"cache": true, "": true})
	want := "waits for VolumeAttachment a (PersistentVolume more, driver disk.csi.example.com), z (PersistentVolume data, driver " +
		"disk.csi.example.com): " +
		"until the driver detaches the volume, the VolumeAttachment is deleted, or "
	for end, deadline := range map[string]time.Time{
		"a terminationGracePeriod ends, which the NodeClaim does not have": {},
		"the drain ends at 2026-01-01T12:00:00Z":                           time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	} {
		if diff := cmp.Diff(want+end, awaits(got, deadline)); diff != "" {
			t.Error(diff)
		}
	}
	many := slices.Repeat(got, 3)
	if text := awaits(many, time.Time{}); !strings.Contains(text, "and 3 more:") {
		t.Errorf("of %d attachments: %s", len(many), text)
	}
}
