package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// longestEvent is how many bytes a Refusal has at most: the API server takes 1,024 in the note of an event, and the
// recorder may write a few words before.
const longestEvent = 900

// manyPools is how many pools of a clause are named.
const manyPools = 8

// Clause is one reason, and the pools that give it; none when it is about the pods themselves or about nodes.
type Clause struct {
	Code  plan.Code
	Pools []string
	Text  string
	// of is the answer that it renders, of the first of the pools; nil where there is none.
	of *plan.PoolVerdict
}

// String is the clause with its pools: "pool default: needs ...".
func (c Clause) String() string {
	switch n := len(c.Pools); {
	case n == 0:
		return c.Text
	case n == 1:
		return "pool " + c.Pools[0] + ": " + c.Text
	case n > manyPools:
		return "pools " + strings.Join(c.Pools[:manyPools], ", ") + " and " + strconv.Itoa(n-manyPools) + " more: " + c.Text
	}
	return "pools " + strings.Join(c.Pools, ", ") + ": " + c.Text
}

// Refusal says why pods have no place, for the event on each of them: what is wrong with the pod itself, or each pool's
// answer, the pool that came closest first. Pools that answer alike share a clause; where more than a few differ in their
// own side only, they share one too. Clauses that no event has room for are counted.
func Refusal(snap *model.Snapshot, r plan.Refusal) string {
	clauses := fold(snap, r, Clauses(snap, r))
	text := clauses[0].String()
	for i, c := range clauses[1:] {
		next := c.String()
		if rest := len(clauses) - 1 - i; len(text)+len(next) > longestEvent {
			return text + "; and " + count(rest, "more reason")
		}
		text += "; " + next
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

// Clauses are the reasons of a refusal, the closest first, those of nodes last. There is at least one.
func Clauses(snap *model.Snapshot, r plan.Refusal) []Clause {
	var clauses []Clause
	if !r.Verdict.OK() || len(r.Pools) == 0 {
		clauses = append(clauses, Clause{Code: r.Verdict.Code, Text: Verdict(snap, r.Verdict)})
	}
	for _, p := range closest(snap, r.Pools) {
		text := short(snap, r, p)
		at := slices.IndexFunc(clauses, func(c Clause) bool { return c.Text == text })
		if at < 0 {
			at = len(clauses)
			clauses = append(clauses, Clause{Code: p.Verdict.Code, Text: text, of: p})
		}
		clauses[at].Pools = append(clauses[at].Pools, p.Pool)
	}
	return append(clauses, nodeClauses(snap, r)...)
}

// fewAlike is up to how many clauses of the same rule are written one by one in an event.
const fewAlike = 2

// fold makes one clause of those that say the same and differ only in what the pool has.
func fold(snap *model.Snapshot, r plan.Refusal, clauses []Clause) []Clause {
	stem := func(c Clause) string {
		if c.of == nil {
			return c.Text
		}
		return said(snap, r, c.of, false)
	}
	alike := map[string]int{}
	for _, c := range clauses {
		alike[stem(c)]++
	}
	var folded []Clause
	for _, c := range clauses {
		text := stem(c)
		if alike[text] <= fewAlike {
			folded = append(folded, c)
			continue
		}
		at := slices.IndexFunc(folded, func(f Clause) bool { return f.Text == text })
		if at < 0 {
			at = len(folded)
			folded = append(folded, Clause{Code: c.Code, Text: text})
		}
		folded[at].Pools = append(folded[at].Pools, c.Pools...)
	}
	return folded
}

// short is a pool's answer in one clause: the rule, both sides of it, what would help, and whether it looks like a slip.
func short(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict) string {
	text := said(snap, r, p, true)
	if c := helps(p); c != nil {
		text += ", but " + change(snap, *c)
	}
	for _, hint := range hints(snap, r, p) {
		text += "; " + hint
	}
	return text
}

// said is a pool's answer without what would help: the rule, or all labels that do not match, with what the pod requires
// of each and, if wanted, what the pool has.
func said(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict, ofPool bool) string {
	pool := ""
	if ofPool {
		pool = p.Pool
	}
	if p.Verdict.Code == plan.PoolBarren && pool != "" {
		return barren(snap, pool, p.Verdict)
	}
	if len(p.Also) == 0 {
		return Verdict(snap, p.Verdict) + sides(snap, r, pool, p.Verdict)
	}
	labels := map[plan.Code][]string{}
	for _, v := range append([]plan.Verdict{p.Verdict}, p.Also...) {
		name := strings.TrimPrefix(operands{snap, v}.key(), "label ")
		labels[v.Code] = append(labels[v.Code], name+sides(snap, r, pool, v))
	}
	var parts []string
	for _, code := range []plan.Code{plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded} {
		if names := labels[code]; len(names) > 0 {
			parts = append(parts, mismatch(code, names))
		}
	}
	return strings.Join(parts, ", and ")
}

// mismatch says of several labels what is wrong with all of them.
func mismatch(code plan.Code, labels []string) string {
	noun, them, are := "labels ", "them", "are"
	if len(labels) == 1 {
		noun, them, are = "label ", "it", "is"
	}
	list := noun + and(labels)
	switch code {
	case plan.LabelUndefined:
		return list + " " + are + " required, and the pool does not define " + them
	case plan.LabelExcluded:
		return "no value of " + list + " suits both sides"
	}
	return "no type has what is required of " + list
}

// and joins the members of a list as prose does.
func and(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
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

// sides adds to a verdict about labels what the pod requires of them and, if one is named, the pool.
func sides(snap *model.Snapshot, r plan.Refusal, poolName string, v plan.Verdict) string {
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
	switch v.Code {
	case plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		if int(v.Key) >= snap.Space.Len() {
			return ""
		}
		key := snap.Space.Name(v.Key)
		add("pod", key, "", pod.Alternatives...)
		add("volumes", key, "", pod.VolumeAlternatives...)
		if pool := snap.Pool(poolName); pool != nil {
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
