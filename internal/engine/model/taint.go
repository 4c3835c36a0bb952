package model

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Effect is the effect of a taint.
type Effect uint8

// The effects of a taint. AnyEffect only appears in tolerations.
const (
	AnyEffect Effect = iota
	NoSchedule
	PreferNoSchedule
	NoExecute
)

// String returns the effect in the spelling of the API.
func (e Effect) String() string {
	return [...]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}[e]
}

// Taint repels pods without a matching toleration.
type Taint struct {
	Key    string
	Value  string
	Effect Effect
}

// Toleration matches taints. An empty Key with Exists matches every key, AnyEffect every effect.
type Toleration struct {
	Key    string
	Exists bool
	Value  string
	Effect Effect
}

// Tolerates reports whether the toleration matches the taint (Kubernetes API, Toleration).
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != AnyEffect && t.Effect != taint.Effect {
		return false
	}
	if t.Key == "" {
		return t.Exists
	}
	return t.Key == taint.Key && (t.Exists || t.Value == taint.Value)
}

// Untolerated returns the first taint that prevents a pod with the tolerations from running on a node. It ignores
// PreferNoSchedule.
func Untolerated(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, taint := range taints {
		if taint.Effect != PreferNoSchedule && !tolerates(tolerations, taint) {
			return taint, true
		}
	}
	return Taint{}, false
}

// Avoided returns the first PreferNoSchedule taint that the tolerations do not match.
func Avoided(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, taint := range taints {
		if taint.Effect == PreferNoSchedule && !tolerates(tolerations, taint) {
			return taint, true
		}
	}
	return Taint{}, false
}

func tolerates(tolerations []Toleration, taint Taint) bool {
	for _, t := range tolerations {
		if t.Tolerates(taint) {
			return true
		}
	}
	return false
}

// Tolerations matter by the taints of nodes and pools that they match. So the taints that exist are numbered, and pods
// that differ only in tolerations of others are in one group.

// taintUse counts the nodes and pools that have each taint.
type taintUse struct {
	counts map[Taint]int
	// list holds the taints, sorted, unless it is out of date.
	list      []Taint
	outOfDate bool
}

// add counts the taints of a node or pool, once more or once less.
func (u *taintUse) add(by int, taints []Taint) {
	for _, t := range taints {
		before := u.counts[t]
		u.outOfDate = u.outOfDate || before == 0 || before+by == 0
		if u.counts[t] = before + by; before+by == 0 {
			delete(u.counts, t)
		}
	}
}

// noticeTaints lists the taints that exist, and regroups the pods if they are others than before.
func (f *freezer) noticeTaints() {
	u := &f.shared.taints
	if !u.outOfDate {
		return
	}
	u.outOfDate = false
	list := slices.SortedFunc(maps.Keys(u.counts), func(a, b Taint) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	if !slices.Equal(list, u.list) {
		u.list = list
		f.forgetGroups()
	}
}

// tolerated returns which of the taints the tolerations match: the indexes, encoded.
func tolerated(taints []Taint, tolerations []Toleration) string {
	if len(tolerations) == 0 {
		return ""
	}
	var key []byte
	for i, taint := range taints {
		if tolerates(tolerations, taint) {
			key = binary.AppendUvarint(key, uint64(i))
		}
	}
	return string(key)
}

// tolerations returns tolerations of exactly these taints; it reverts tolerated.
func tolerations(taints []Taint, tolerated string) []Toleration {
	var list []Toleration
	for key := []byte(tolerated); len(key) > 0; {
		i, length := binary.Uvarint(key)
		list = append(list, Toleration{Key: taints[i].Key, Value: taints[i].Value, Effect: taints[i].Effect})
		key = key[length:]
	}
	return list
}

func appendTolerations(to []byte, tolerations []Toleration) []byte {
	to = binary.AppendUvarint(to, uint64(len(tolerations)))
	for _, t := range tolerations {
		to = appendText(to, t.Key)
		to = appendText(to, t.Value)
		to = append(to, byte(t.Effect))
		to = appendBool(to, t.Exists)
	}
	return to
}
