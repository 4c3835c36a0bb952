package world

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestSilentNodesTakeNoPods checks that a node whose kubelet is silent for a while becomes unreachable: a node is launched
// for a pod that waits meanwhile, and deleted pods stay. When the kubelet reports again, both have ended.
func TestSilentNodesTakeNoPods(t *testing.T) {
	p := &play{History: History{Features: []string{Lies}}, random: rand.New(rand.NewPCG(0, 0))}
	w, err := New(p.draw(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	app := p.apps[0]
	w.Scale(app, 2)
	w.Advance(5 * time.Minute)
	machines := w.provider.known()
	for _, m := range machines {
		m.muted = w.Clock.now
		w.silent(m)
	}
	w.Advance(silenceAfter + time.Second)
	pods := w.Pods()
	w.api.delete(pods[0], nil)
	w.Advance(time.Minute)
	if all, bound := w.Count(string(app.OwnerReferences[0].UID)); all != 2 || bound != 2 || len(w.provider.machines) != len(machines)+1 {
		t.Errorf("%d pods, %d on nodes, of %d machines; want 2, 2 and %d", all, bound, len(w.provider.machines), len(machines)+1)
	}
	if w.api.get(pods[0]) == nil {
		t.Error("a silent kubelet has ended a pod")
	}
	states := func() (texts []string) {
		for _, m := range machines {
			h := w.kube.hosts[m.node]
			texts = append(texts, fmt.Sprint(h.Status.Conditions[0].Status, len(h.Spec.Taints)))
		}
		return texts
	}
	for _, s := range states() {
		if s != fmt.Sprint(corev1.ConditionUnknown, 1) {
			t.Errorf("silent nodes are %v", states())
		}
	}
	for _, m := range machines {
		w.unmute(m)
	}
	w.Advance(time.Second)
	for _, s := range states() {
		if s != fmt.Sprint(corev1.ConditionTrue, 0) {
			t.Errorf("nodes that report again are %v", states())
		}
	}
	if w.api.get(pods[0]) != nil {
		t.Error("a pod that was deleted is left")
	}
}
