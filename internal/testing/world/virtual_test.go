package world

import (
	"math/rand/v2"
	"testing"
	"time"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// TestVirtualPods checks that nodes are launched for pods that do not exist: those of a buffer, and those that a ReplicaSet
// asks for.
func TestVirtualPods(t *testing.T) {
	p := &play{History: History{Features: []string{Buffers, Replicas}}, random: rand.New(rand.NewPCG(1, 1))}
	w, err := New(p.draw(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p.World = w
	buffer := listOf[*autoscalingv1beta1.CapacityBuffer](w.api)[0]
	wants := func(n int32) {
		edit(w.api, buffer, func(o *autoscalingv1beta1.CapacityBuffer) { o.Spec.Replicas = &n })
		w.Advance(time.Hour)
		if err := p.buffersHold(); err != nil || (n > 0) != (len(w.provider.machines) > 0) {
			t.Errorf("a buffer of %d: %v, %d machines", n, err, len(w.provider.machines))
		}
	}
	wants(40)
	wants(3)
	wants(0)
	app := p.apps[0]
	w.Scale(app, 1)
	w.Advance(time.Hour)
	bought := len(w.claims())
	w.ask(app, 100) // its controller does not react
	w.Advance(20 * time.Second)
	if len(w.Pods()) != 1 || len(w.claims()) == bought {
		t.Errorf("%d pods, %d claims; want 1 and more than %d", len(w.Pods()), len(w.claims()), bought)
	}
	w.Advance(time.Hour)
	if len(w.claims()) != bought {
		t.Errorf("%d claims for pods that do not come, want %d", len(w.claims()), bought)
	}
}
