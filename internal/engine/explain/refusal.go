package explain

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// longestEvent is how many bytes a Refusal has at most: the API server takes 1,024 in the note of an event, and the
// recorder may write a few words before.
const longestEvent = 900

// Clause is one reason, and the pools that give it; none when it is about the pods themselves.
type Clause struct {
	Code  plan.Code
	Pools []string
	Text  string
}

// String is the clause with its pools: "pool default: needs ...".
func (c Clause) String() string {
	switch len(c.Pools) {
	case 0:
		return c.Text
	case 1:
		return "pool " + c.Pools[0] + ": " + c.Text
	}
	return "pools " + strings.Join(c.Pools, ", ") + ": " + c.Text
}

// Refusal says why pods have no place, for the event on each of them: what is wrong with the pod itself, or each pool's
// answer. Pools that answer alike share a clause; clauses are in the order of the pools. Clauses that no event has room
// for are counted.
func Refusal(snap *model.Snapshot, r plan.Refusal) string {
	reasons := Reasons(snap, r)
	text := reasons[0]
	for i, reason := range reasons[1:] {
		if rest := len(reasons) - 1 - i; len(text)+len(reason) > longestEvent {
			return text + "; and " + count(rest, "more reason")
		}
		text += "; " + reason
	}
	return text
}

// Reasons are the clauses of a refusal as text.
func Reasons(snap *model.Snapshot, r plan.Refusal) []string {
	var texts []string
	for _, c := range Clauses(snap, r) {
		texts = append(texts, c.String())
	}
	return texts
}

// Clauses are the reasons of a refusal. There is at least one.
func Clauses(snap *model.Snapshot, r plan.Refusal) []Clause {
	if !r.Verdict.OK() || len(r.Pools) == 0 {
		return []Clause{{Code: r.Verdict.Code, Text: Verdict(snap, r.Verdict)}}
	}
	var clauses []Clause
	for i := range r.Pools {
		p := &r.Pools[i]
		text := short(snap, r, p)
		at := slices.IndexFunc(clauses, func(c Clause) bool { return c.Text == text })
		if at < 0 {
			at = len(clauses)
			clauses = append(clauses, Clause{Code: p.Verdict.Code, Text: text})
		}
		clauses[at].Pools = append(clauses[at].Pools, p.Pool)
	}
	return clauses
}

// short is a pool's answer in one clause: the rule, both sides of it, what would help, and whether it looks like a slip.
func short(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict) string {
	text := Verdict(snap, p.Verdict) + sides(snap, r, p)
	if c := helps(p); c != nil {
		text += ", but " + change(snap, *c)
	}
	if slip := slip(snap, p.Verdict); slip != "" {
		text += "; " + slip
	}
	return text
}

// helps is the nearest change that the verdict does not say already, nil if there is none.
func helps(p *plan.PoolVerdict) *plan.Change {
	for i := range p.Nearest {
		if c := &p.Nearest[i]; c.Rule.Code != p.Verdict.Code || c.Rule.Key != p.Verdict.Key || c.Rule.Resource != p.Verdict.Resource {
			return c
		}
	}
	return nil
}

// sides adds to a verdict about labels what pod and pool require of them.
func sides(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict) string {
	if len(r.Pods) == 0 {
		return ""
	}
	var parts []string
	add := func(side, key, before string, alternatives ...[]label.Requirement) {
		if text := ask(key, alternatives...); text != "" {
			parts = append(parts, side+": "+before+text)
		}
	}
	pod := r.Pods[0]
	switch p.Verdict.Code {
	case plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		if int(p.Verdict.Key) >= snap.Space.Len() {
			return ""
		}
		key := snap.Space.Name(p.Verdict.Key)
		add("pod", key, "", pod.Alternatives...)
		add("volumes", key, "", pod.VolumeAlternatives...)
		if pool := snap.Pool(p.Pool); pool != nil {
			add("pool", key, "", pool.PoolSpec.Requirements)
		}
	case plan.NoOffering:
		for _, key := range []string{model.LabelZone, model.LabelCapacityType} {
			add("pod", key, key+" ", pod.Alternatives...)
			add("volumes", key, key+" ", pod.VolumeAlternatives...)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// ask is what lists of requirements say of a key: all of a list hold, one list suffices.
func ask(key string, alternatives ...[]label.Requirement) string {
	var all []string
	for _, reqs := range alternatives {
		var parts []string
		for _, q := range reqs {
			if label.Canonical(q.Key) == key {
				parts = append(parts, requirement(q))
			}
		}
		if text := strings.Join(parts, " and "); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " or ")
}
