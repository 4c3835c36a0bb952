package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// TestPDBs checks that a snapshot has the current PodDisruptionBudgets of a pod, that a recreated one replaces the
// old one, and that deleting one does not affect others.
func TestPDBs(t *testing.T) {
	s := newState(Config{})
	s.Saw(objecttest.Node(t, "n", "n1", "1", "", ""))
	pod := objecttest.Pod(t, "p", "p1", "1", "n")
	pod.Labels = map[string]string{"app": "b"}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.Saw(pod)
	allowed := func() map[string]int64 {
		of := map[string]int64{}
		snap := s.Snapshot(start)
		for _, p := range snap.Node("n").Pods {
			if !p.Ready {
				t.Errorf("pod %s is not ready", p.Key())
			}
			for _, pdb := range snap.PDBsOf(p) {
				of[pdb.Name] = pdb.Allowed
			}
		}
		return of
	}
	expect := func(what string, want map[string]int64) {
		t.Helper()
		if diff := cmp.Diff(want, allowed()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s.Saw(objecttest.PDB(t, "a", "a1", "1", "disruptionsAllowed: 1"))
	expect("of others", map[string]int64{})
	b := objecttest.PDB(t, "b", "b1", "2", "disruptionsAllowed: 0")
	s.Saw(b)
	expect("of its own", map[string]int64{"b": 0})
	again := objecttest.PDB(t, "b", "b2", "3", "disruptionsAllowed: 2")
	lost(s, b)
	s.Saw(again)
	expect("made anew", map[string]int64{"b": 2})
	leaving := objecttest.PDB(t, "b", "b2", "4", "disruptionsAllowed: 2")
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: start}, []string{"x"}
	s.Saw(leaving)
	expect("while it is being deleted", map[string]int64{"b": 2})
	if c := s.captured(start); len(c.PDBs) != 2 || c.PDBs[1].Allowed != 2 {
		t.Errorf("captured %+v", c.PDBs)
	}
	lost(s, leaving)
	expect("gone", map[string]int64{})
}
