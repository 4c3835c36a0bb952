package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// longestEvent is the maximum length of a Refusal in bytes: the API server accepts 1,024 in the note of an event, and
// the recorder may add a short prefix.
const longestEvent = 900

// manyPools is the maximum number of pools that a clause lists by name.
const manyPools = 8

// Clause is one reason and the pools that it applies to; Pools is empty if the reason is about the pods themselves or
// about nodes.
type Clause struct {
	Code  plan.Code
	Pools []string
	Text  string
	// of is the verdict that the clause renders, of the first of the pools; nil if there is none.
	of *plan.PoolVerdict
}

// String returns the clause with its pools: "pool default: needs ...".
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

// Refusal returns why pods are unschedulable, for the event on each of them: a problem of the pod itself, or the
// verdict of each pool, the closest pool first. Pools with equal verdicts share a clause; if more than a few differ
// only in the pool's requirements, they share one too. Clauses that do not fit into an event are counted.
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

// Reasons returns the clauses of a refusal as text.
func Reasons(snap *model.Snapshot, r plan.Refusal) []string {
	var texts []string
	for _, c := range Clauses(snap, r) {
		texts = append(texts, c.String())
	}
	return texts
}

// Clauses returns the reasons of a refusal, the closest first, those of nodes last. There is at least one.
func Clauses(snap *model.Snapshot, r plan.Refusal) []Clause {
	var clauses []Clause
	if !r.Verdict.OK() || len(r.Pools) == 0 {
		clauses = append(clauses, Clause{Code: r.Verdict.Code, Text: own(snap, r)})
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

// fewAlike is the number of clauses of the same rule above which an event folds them.
const fewAlike = 2

// fold merges the clauses that differ only in the requirements of the pool.
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

// short returns the verdict of a pool in one clause: the rule, the requirements of both sides, the change that would
// help, and hints about typing mistakes.
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

// said returns the verdict of a pool without the change that would help: the rule, or all labels that do not match,
// with the pod's requirements on each and, if ofPool is set, the pool's.
func said(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict, ofPool bool) string {
	pool := ""
	if ofPool {
		pool = p.Pool
	}
	if p.Verdict.Code == plan.NoCompatibleInstanceTypes && pool != "" {
		return noTypes(snap, pool, p.Verdict)
	}
	if text := sharedClaims(snap, r, p.Verdict); text != "" {
		return text
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

// sharedClaims returns the text of a verdict about pods that are kept together because they share claims whose volumes do
// not exist yet; "" for any other verdict. Such a rule is not in the pods' own specs.
func sharedClaims(snap *model.Snapshot, r plan.Refusal, v plan.Verdict) string {
	if v.Code != plan.AffinityUnmet || len(r.Pods) == 0 {
		return ""
	}
	pod, key := r.Pods[0], operands{snap, v}.label()
	own := func(t model.Term) bool {
		return label.Canonical(t.Key) == key && !t.Anti && t.Required() && !t.Together
	}
	if slices.ContainsFunc(pod.Terms, own) {
		return ""
	}
	var claims []string
	for _, volume := range pod.Shared {
		if volume.Waits {
			_, name, _ := strings.Cut(volume.Claim, "/")
			claims = append(claims, strconv.Quote(name))
		}
	}
	if len(claims) == 0 {
		return ""
	}
	return "the pods share claim " + and(claims) + ", whose volume does not exist yet and may be limited to one zone: " +
		"all of them are planned in one zone, and other rules exclude it for these pods"
}

// mismatch returns one text for several labels with the same problem.
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
		return "no value of " + list + " satisfies both pod and pool"
	}
	return "no type satisfies the requirements on " + list
}

// and joins the members of a list with commas and "and".
func and(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// own returns the verdict about the pods themselves. Where requirements contradict each other, it has both sides, because
// volumes have requirements too.
func own(snap *model.Snapshot, r plan.Refusal) string {
	if r.Verdict.Code != plan.PodContradiction || len(r.Pods) == 0 || len(r.Pods[0].VolumeAlternatives) == 0 {
		return Verdict(snap, r.Verdict)
	}
	return "the requirements of the pod and its volumes leave no value for " + operands{snap, r.Verdict}.key() + sides(snap, r, "", r.Verdict)
}

// helps returns the nearest change that the verdict does not already state, nil if there is none.
func helps(p *plan.PoolVerdict) *plan.Change {
	for i := range p.Nearest {
		if c := &p.Nearest[i]; c.Rule.Code != p.Verdict.Code || c.Rule.Key != p.Verdict.Key || c.Rule.Resource != p.Verdict.Resource {
			return c
		}
	}
	return nil
}

// sides returns the requirements of the pod on the label of a verdict and, if a pool is given, those of the pool.
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
	case plan.PodContradiction, plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		key := operands{snap, v}.label()
		if key == "" {
			return ""
		}
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

// ask returns the requirements on a key as text: all of a list must hold, one list suffices.
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
