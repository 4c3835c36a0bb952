package model

import (
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// Launches in a pool pause for the pods that do not tolerate a taint which its nodes have and the NodePool does not name.
// The scope of the pause has the name of the pool and the taint, because other pods need not wait.

// PausedTaint is a pause of launches in a pool for the pods that do not tolerate the taint.
type PausedTaint struct {
	Taint Taint
	Pause pause.Pause
}

// TaintScope returns the scope of pauses of launches in the pool for the pods that do not tolerate the taint.
func TaintScope(pool string, t Taint) string { return pool + " taint " + t.String() }

// String returns the taint as kubectl writes it.
func (t Taint) String() string {
	key := t.Key
	if t.Value != "" {
		key += "=" + t.Value
	}
	return key + ":" + t.Effect.String()
}

// TaintOfScope returns the taint of a scope of pauses in the pool. It reports whether the scope has one.
func TaintOfScope(pool, scope string) (Taint, bool) {
	text, is := strings.CutPrefix(scope, pool+" taint ")
	at := strings.LastIndex(text, ":")
	if !is || at <= 0 {
		return Taint{}, false
	}
	var t Taint
	t.Key, t.Value, _ = strings.Cut(text[:at], "=")
	for _, effect := range []Effect{NoSchedule, NoExecute} {
		if text[at+1:] == effect.String() {
			t.Effect = effect
		}
	}
	return t, t.Key != "" && t.Effect != AnyEffect
}

// pausedTaints returns the taints for which launches in the pool are or were paused.
func (p *PoolSpec) pausedTaints() []PausedTaint {
	var list []PausedTaint
	for _, stored := range p.Pauses {
		if t, is := TaintOfScope(p.Name, stored.Scope); is && stored.Reason == pause.Launch {
			list = append(list, PausedTaint{t, stored})
		}
	}
	return list
}

// PausedTaints returns the taints for which launches in the pool are paused now.
func (p *PoolSpec) PausedTaints(now time.Time) []PausedTaint {
	return slices.DeleteFunc(p.pausedTaints(), func(t PausedTaint) bool { return !t.Pause.Active(now) })
}

// knownTaints returns the taints of the pool, and those that its pauses name: tolerations of both matter.
func (p *PoolSpec) knownTaints() []Taint {
	all := slices.Clip(p.Taints)
	for _, t := range p.pausedTaints() {
		all = append(all, t.Taint)
	}
	return all
}
