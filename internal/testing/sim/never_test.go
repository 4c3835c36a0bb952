package sim

import (
	"strings"
	"testing"
	"time"
)

// TestNodesThatNeverRegister checks that launches are delayed when nodes never register. Each claim is deleted after
// 15 minutes, and without pauses 32 machines would be launched in eight hours. With them the intervals
// between launches grow. When machines join again the pod runs on the second node, because the first shows how large
// the daemon is.
func TestNodesThatNeverRegister(t *testing.T) {
	w := loopOfLaunches(1, false)
	w.calm, w.cloud.strange = true, 1000
	for w.failure == nil && w.next(epoch.Add(8*time.Hour)) {
	}
	switch launched := len(w.cloud.ledger); {
	case w.failure != nil:
		t.Errorf("w.failure is %v, want nil, ), want 12 to 20\n%s", w.failure, strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
	case launched < 12:
		t.Errorf("launched is %v, want at least 12, ), want 12 to 20\n%s", launched, strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
	case launched > 20:
		t.Errorf("launched is %v, want at most 20, ), want 12 to 20\n%s", launched, strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
	}
	w.cloud.strange = 0
	for w.failure == nil && w.next(epoch.Add(10*time.Hour)) {
	}
	if w.failure != nil {
		t.Fatal(w.failure)
	}
	for _, p := range w.api.pods() {
		if !p.daemon && p.node == "" {
			t.Errorf("pod %s does not run two hours after machines join again", p.name)
		}
	}
}

// TestNodesThatNeverRegisterForRecreatedPods checks the same for a pod that is replaced every five minutes: when a
// claim is deleted, the pod that it was launched for is gone, and a successor waits for it.
func TestNodesThatNeverRegisterForRecreatedPods(t *testing.T) {
	for seed := range uint64(4) {
		w := loopOfLaunches(seed, false)
		w.calm, w.cloud.strange = true, 1000
		every := time.Duration(2+3*seed) * time.Minute
		var recreate func()
		recreate = func() {
			w.recreate(w.setting.apps[0])
			w.after(every, recreate)
		}
		w.after(every, recreate)
		for w.failure == nil && w.next(epoch.Add(8*time.Hour)) {
		}
		switch launched := len(w.cloud.ledger); {
		case w.failure != nil:
			t.Errorf("replaced every %v: w.failure is %v, want nil, ), want 12 to 20\n%s", every, w.failure,
				strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
		case launched < 12:
			t.Errorf("replaced every %v: launched is %v, want at least 12, ), want 12 to 20\n%s", every, launched,
				strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
		case launched > 20:
			t.Errorf("replaced every %v: launched is %v, want at most 20, ), want 12 to 20\n%s", every, launched,
				strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
		}
	}
}
