package audit

import (
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Problem is a rule that a plan breaks.
type Problem struct {
	// Kind names the rule in one word, for counting.
	Kind string
	// Object is the pod, node, claim or pool that it is about.
	Object string
	// Text says what is wrong, for people.
	Text string
}

// String is "Kind Object: Text".
func (p Problem) String() string { return p.Kind + " " + p.Object + ": " + p.Text }

// Provision returns what is wrong with a plan for the pending pods of the snapshot, nothing when it is right. Problems
// come in the order of the plan.
func Provision(snap *model.Snapshot, p *plan.Provision) []Problem {
	j := &judge{snap: snap, words: vocabularyOf(snap, p), remembered: map[*plan.NewClaim][]outcome{}, fits: map[string]bool{}}
	j.everyPodOnce(p)
	for _, placed := range p.Placed {
		j.placement(placed)
	}
	j.claims(p.Claims)
	j.exclusive(p)
	j.together(p)
	j.turns(p)
	return j.problems
}

// judge is one audit.
type judge struct {
	snap     *model.Snapshot
	words    vocabulary
	problems []Problem
	// remembered are the outcomes of the claims, because they are asked for twice.
	remembered map[*plan.NewClaim][]outcome
	// fits remembers which pools could take which pods.
	fits map[string]bool
	// topology keys of all rules between pods, once they are asked for.
	topology []string
}

// exclusive: a claim that only one pod may use gets one, unless a bound pod has it.
func (j *judge) exclusive(p *plan.Provision) {
	has := map[string]string{}
	for _, n := range j.snap.Nodes {
		for _, pod := range n.Pods {
			for _, v := range pod.Shared {
				has[v.Claim] = pod.Key()
			}
		}
	}
	for _, pod := range j.staying(p) {
		for _, v := range pod.Shared {
			has[v.Claim] = pod.Key()
		}
	}
	for _, pod := range p.Order {
		for _, v := range pod.Shared {
			if v.Exclusive && has[v.Claim] != "" {
				j.blame("exclusive", pod.Key(), "is to use claim %s, which %s has", v.Claim, has[v.Claim])
			}
			has[v.Claim] = pod.Key()
		}
	}
}

func (j *judge) blame(kind, object, format string, args ...any) {
	j.problems = append(j.problems, Problem{Kind: kind, Object: object, Text: fmt.Sprintf(format, args...)})
}

// everyPodOnce: each pending pod has one answer, pods that must not be placed are refused, and nobody else is there.
func (j *judge) everyPodOnce(p *plan.Provision) {
	answers := map[string][]string{}
	answer := func(where string, pods []*model.Pod) {
		for _, pod := range pods {
			answers[pod.UID] = append(answers[pod.UID], where)
		}
	}
	for _, c := range p.Claims {
		answer("claim "+c.Name, c.Pods)
	}
	for _, n := range p.Placed {
		answer("node "+n.Node, n.Pods)
	}
	for _, r := range p.Refused {
		answer("refused", r.Pods)
		j.reasons(r)
	}
	asked := 0
	for _, g := range j.snap.Groups {
		for _, pod := range g.Pods {
			asked++
			if n := len(answers[pod.UID]); n != 1 {
				j.blame("answers", pod.Key(), "has %d answers, want one: %v", n, answers[pod.UID])
			}
		}
	}
	for _, pod := range j.snap.Rejected {
		got := answers[pod.UID]
		switch {
		case pod.Rejected.Silent && len(got) == 0:
			continue
		case len(got) != 1 || got[0] != "refused":
			j.blame("rejected", pod.Key(), "is not to be placed (%s), and the plan says %v", pod.Rejected.Reason, got)
		}
		asked++
	}
	if len(answers) > asked {
		j.blame("stranger", "plan", "answers %d pods, of which only %d asked", len(answers), asked)
	}
}

func (j *judge) reasons(r plan.Refusal) {
	if len(r.Pods) == 0 {
		j.blame("reason", "refusal", "is of no pod")
		return
	}
	if r.Verdict.OK() && len(r.Pools) == 0 {
		j.blame("reason", r.Pods[0].Key(), "is refused without a reason")
	}
	for _, p := range r.Pools {
		if p.Verdict.OK() {
			j.blame("reason", r.Pods[0].Key(), "is refused, though pool %s has nothing against it", p.Pool)
		}
	}
}

// amounts are resources by name.
type amounts map[string]int64

func amountsOf(list []quantity.Amount) amounts {
	a := amounts{}
	for _, x := range list {
		a[x.Name] += x.Value
	}
	return a
}

func (a amounts) add(b amounts) {
	for name, value := range b {
		a[name] += value
	}
}

// short returns a resource of which more than nothing is asked and more than there is. Of volumes there are any number
// where nobody says how many.
func (a amounts) short(have amounts) (string, bool) {
	worst, found := "", false
	for name, value := range a {
		if _, said := have[name]; !said && model.IsVolumeResource(name) {
			continue
		}
		if value > 0 && value > have[name] && (!found || name < worst) {
			worst, found = name, true
		}
	}
	return worst, found
}

// requests of the pods together.
func (j *judge) requests(pods []*model.Pod) amounts {
	sum := amounts{}
	for _, pod := range pods {
		for r, value := range pod.Requests {
			if value != 0 {
				sum[j.snap.Resources[r]] += value
			}
		}
	}
	return sum
}

// volumes counts the claims that pods share, each once on a node, by the resource that counts the driver's volumes.
// What a pod has for itself is among its requests.
func volumes(pods []*model.Pod) amounts {
	sum, seen := amounts{}, map[string]bool{}
	for _, pod := range pods {
		for _, v := range pod.Shared {
			if v.Driver != "" && !seen[v.Claim] {
				seen[v.Claim] = true
				sum[model.VolumeResource(v.Driver)]++
			}
		}
	}
	return sum
}

// lives reports whether a node with the labels is one that the pod accepts and its volumes can be attached to.
func lives(pod *model.Pod, labels labelling) bool {
	return accepts(pod.Alternatives, labels) && accepts(pod.VolumeAlternatives, labels)
}

// untolerated returns a taint that keeps the pod away.
func untolerated(taints []model.Taint, tolerations []model.Toleration) (model.Taint, bool) {
	for _, taint := range taints {
		if taint.Effect == model.PreferNoSchedule {
			continue
		}
		tolerated := false
		for _, t := range tolerations {
			effect := t.Effect == model.AnyEffect || t.Effect == taint.Effect
			key := t.Key == taint.Key || t.Key == "" && t.Exists
			value := t.Exists || t.Value == taint.Value
			tolerated = tolerated || effect && key && value
		}
		if !tolerated {
			return taint, true
		}
	}
	return model.Taint{}, false
}

// shapes are the different pods among the pods: what is alike need be asked once.
func shapes(pods []*model.Pod) []*model.Pod {
	var different []*model.Pod
	seen := map[string]bool{}
	for _, pod := range pods {
		if !seen[pod.Signature] {
			seen[pod.Signature] = true
			different = append(different, pod)
		}
	}
	return different
}

// labelling says which values a label of a node may have. It never returns none.
type labelling func(key string) []value

// accepts reports whether, whatever the node's labels turn out to be, one and the same alternative is satisfied.
func accepts(alternatives [][]label.Requirement, labels labelling) bool {
	if len(alternatives) == 0 {
		return true
	}
	for _, reqs := range alternatives {
		if everyValue(reqs, labels) {
			return true
		}
	}
	return false
}

func everyValue(reqs []label.Requirement, labels labelling) bool {
	for _, r := range reqs {
		for _, v := range labels(canonical(r.Key)) {
			if !allows(r, v) {
				return false
			}
		}
	}
	return true
}

// mayAdmit reports whether the node's labels may turn out to satisfy one of the alternatives. Several requirements of
// one key must be met by one value.
func mayAdmit(alternatives [][]label.Requirement, labels labelling) bool {
	if len(alternatives) == 0 {
		return true
	}
	for _, reqs := range alternatives {
		if meets(reqs, labels) {
			return true
		}
	}
	return false
}

func meets(reqs []label.Requirement, labels labelling) bool {
	for _, r := range reqs {
		if len(allowed(reqs, canonical(r.Key), labels(canonical(r.Key)))) == 0 {
			return false
		}
	}
	return true
}

// daemonsFor sums what the daemons will ask for that may come to a node with the taints and labels; there are those
// that have come already, by UID.
func (j *judge) daemonsFor(taints []model.Taint, labels labelling, there map[string]bool) amounts {
	sum := amounts{}
	for _, d := range j.snap.Daemons {
		if there[d.UID] {
			continue
		}
		if _, no := untolerated(taints, d.DaemonSpec.Tolerations); no {
			continue
		}
		if mayAdmit(d.DaemonSpec.Alternatives, labels) {
			sum.add(amountsOf(d.DaemonSpec.Requests))
		}
	}
	return sum
}
