package cluster

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// TestEntry covers which of the watch and the own writes takes precedence. A step is one event about a claim; the
// outcome is its version, "-" if there is none, with "!" if it is being deleted.
func TestEntry(t *testing.T) {
	at := func(uid, version, more string) client.Object { return objecttest.Claim(t, "c", uid, version, "", more) }
	const held = "finalizers: [karpenter.sh/termination]"
	const leaving = "deletionTimestamp: '2026-11-20T09:00:00Z'"
	see := func(obj client.Object) func(*entry) { return func(e *entry) { e.see(obj) } }
	lose := func(obj client.Object) func(*entry) { return func(e *entry) { e.lose(obj.GetUID()) } }
	write := func(obj client.Object) func(*entry) { return func(e *entry) { e.write(obj, start) } }
	remove := func(obj client.Object) func(*entry) { return func(e *entry) { e.remove(obj, start) } }
	decide := func(obj client.Object) func(*entry) { return func(e *entry) { e.decide(obj, start) } }
	tests := []struct {
		name  string
		steps []func(*entry)
		want  string
		// settled says that no own write is pending.
		settled bool
	}{
		{"created by us", []func(*entry){write(at("1", "10", ""))}, "10", false},
		{"and shown", []func(*entry){write(at("1", "10", "")), see(at("1", "10", ""))}, "10", true},
		{"and shown at a later version", []func(*entry){write(at("1", "10", "")), see(at("1", "12", ""))}, "12", true},
		{"changed by us, an older version is shown", []func(*entry){see(at("1", "8", "")), write(at("1", "10", "")), see(at("1", "9", ""))},
			"10", false},
		{"versions are numbers, not words", []func(*entry){see(at("1", "9", "")), write(at("1", "10", ""))}, "10", false},
		{"the watch was faster", []func(*entry){see(at("1", "12", "")), write(at("1", "10", ""))}, "12", true},
		{"writes in the wrong order", []func(*entry){write(at("1", "11", "")), write(at("1", "10", ""))}, "11", false},
		{"shown to be gone", []func(*entry){see(at("1", "8", "")), write(at("1", "10", "")), lose(at("1", "10", ""))}, "-", true},
		{"created anew by us before the old one is shown to be gone",
			[]func(*entry){see(at("1", "8", "")), write(at("2", "10", "")), lose(at("1", "9", ""))}, "10", false},
		{"created anew by another, our write is about the old one", []func(*entry){write(at("1", "10", "")), see(at("2", "12", ""))}, "12", true},
		{"created anew by us, the watch still shows the old one", []func(*entry){write(at("2", "10", "")), see(at("1", "9", ""))}, "10", false},
		{"deleted by us, finalizer", []func(*entry){see(at("1", "8", held)), remove(at("1", "8", held))}, "8!", false},
		{"and an older version is shown", []func(*entry){see(at("1", "8", held)), remove(at("1", "8", held)), see(at("1", "9", held))},
			"8!", false},
		{"and shown", []func(*entry){see(at("1", "8", held)), remove(at("1", "8", held)), see(at("1", "9", held+", "+leaving))}, "9!", true},
		{"deleted by us, no finalizer", []func(*entry){see(at("1", "8", "")), remove(at("1", "8", ""))}, "-", false},
		{"and shown to be gone", []func(*entry){see(at("1", "8", "")), remove(at("1", "8", "")), lose(at("1", "8", ""))}, "-", true},
		{"and created anew by another", []func(*entry){see(at("1", "8", "")), remove(at("1", "8", "")), see(at("2", "12", ""))}, "12", true},
		{"deletion that was shown before", []func(*entry){see(at("1", "9", held+", "+leaving)), remove(at("1", "8", held))}, "9!", true},
		{"deletion of the one before", []func(*entry){see(at("2", "12", "")), remove(at("1", "8", ""))}, "12", true},
		{"last finalizer removed by us", []func(*entry){see(at("1", "8", held+", "+leaving)), write(at("1", "9", leaving))}, "-", false},
		{"a write from before our deletion comes late",
			[]func(*entry){see(at("1", "8", held)), remove(at("1", "8", held)), write(at("1", "9", held))}, "8!", false},
		{"a live read finds a later version", []func(*entry){write(at("1", "10", "")), decide(at("1", "12", ""))}, "12", false},
		{"a live read finds what is shown", []func(*entry){see(at("1", "8", "")), remove(at("1", "8", "")), decide(at("1", "8", ""))}, "8", true},
		{"a live read finds nothing: the ghost", []func(*entry){write(at("1", "10", "")), decide(nil)}, "-", true},
		{"a live read finds nothing, the watch is behind", []func(*entry){see(at("1", "8", "")), write(at("1", "10", "")), decide(nil)},
			"-", false},
		{"and catches up", []func(*entry){see(at("1", "8", "")), write(at("1", "10", "")), decide(nil), lose(at("1", "11", ""))}, "-", true},
		{"a version that cannot be compared: the watch wins", []func(*entry){write(at("1", "10", "")), see(at("1", "x", ""))}, "x", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := &entry{}
			for _, step := range test.steps {
				step(e)
			}
			got := "-"
			if obj := e.now(); obj != nil {
				got = obj.GetResourceVersion()
				if obj.GetDeletionTimestamp() != nil {
					got += "!"
				}
			}
			if got != test.want || (e.own == nil) != test.settled {
				t.Errorf("got %s, settled %t; want %s, %t", got, e.own == nil, test.want, test.settled)
			}
		})
	}
}

func TestRemovedPodStaysMarked(t *testing.T) {
	e := &entry{}
	pod := objecttest.Pod(t, "p", "1", "8", "node-1")
	e.see(pod)
	switch {
	case !e.remove(pod, time.Now()):
		t.Errorf("e.remove(pod, time.Now()) is false")
	case e.now() == nil:
		t.Errorf("e.now() is nil")
	case e.now().GetDeletionTimestamp() == nil:
		t.Errorf("e.now().GetDeletionTimestamp() is nil, the pod is %v", e.now())
	}
	if pod.DeletionTimestamp != nil {
		t.Error("the watch's object was changed")
	}
}
