package offline

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

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
			if got := find[*corev1.PersistentVolumeClaim](&o.others, "ns", "c").Annotations[convert.BindCompleted] != ""; got != c.bound {
				t.Errorf("bound is %t, want %t", got, c.bound)
			}
		})
	}
}
