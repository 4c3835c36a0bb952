package audit

import (
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Problem is a violation of a rule by a plan.
type Problem struct {
	// Kind names the rule in one word, for counting.
	Kind string
	// Object is the name of the pod, node, claim or pool with the problem.
	Object string
	// Text describes what is wrong.
	Text string
}

// String returns "Kind Object: Text".
func (p Problem) String() string { return p.Kind + " " + p.Object + ": " + p.Text }

// Provision returns the problems of a plan for the pending pods of the snapshot, in the order of the plan. It returns
// nil if the plan is correct.
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
	j.virtual(p)
	return j.problems
}

// judge holds the state of one audit.
type judge struct {
	snap     *model.Snapshot
	words    vocabulary
	problems []Problem
	// remembered caches the outcomes of each claim, because they are read twice.
	remembered map[*plan.NewClaim][]outcome
	// fits caches which pools can hold which pods.
	fits map[string]bool
	// topology holds the keys of all rules between pods. It is filled on first use.
	topology []string
	// quotaUse is what the nodes and the claims of the plan use of each quota, by name.
	quotaUse map[string]*account
}

// exclusive checks that a claim that only one pod may use (ReadWriteOncePod) is given to one pod only, and to none if
// a bound pod uses it.
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

// everyPodOnce checks that each pending pod has exactly one result, that pods that must not be placed are refused,
// and that the plan contains no other pods.
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

// amounts maps a resource name to its amount.
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

// short returns the first resource, by name, whose requested amount is positive and exceeds the available amount. A
// volume resource for which no limit is given is unlimited.
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

// requests returns the sum of the requests of the pods.
func (j *judge) requests(pods []*model.Pod) amounts {
	sum := amounts{}
	for _, pod := range pods {
		for r, value := range pod.Requests {
			if value != 0 && j.snap.Resources[r] != model.Unknown {
				sum[j.snap.Resources[r]] += value
			}
		}
		for _, a := range pod.Unknown {
			sum[a.Name] += a.Value
		}
	}
	return sum
}

// uses returns what the pods use on the node. Those that run there use less than their successors request if they were
// resized.
func (j *judge) uses(n *model.Node) amounts {
	sum := j.requests(n.Pods)
	for _, pod := range n.Pods {
		if pod.Node != n.Name {
			continue
		}
		use := make(quantity.Vector, len(j.snap.Resources))
		pod.AddUse(use, 1)
		for r, value := range pod.Requests {
			if j.snap.Resources[r] != model.Unknown {
				sum[j.snap.Resources[r]] -= value - use[r]
			}
		}
	}
	return sum
}

// volumes counts the shared volumes of the pods, each once per node, by the resource that counts the volumes of the
// driver. Volumes that a pod does not share are part of its requests.
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

// admits reports whether the pod and its volumes accept a node with the labels.
func admits(pod *model.Pod, labels labeling) bool {
	return accepts(pod.Alternatives, labels) && accepts(pod.VolumeAlternatives, labels)
}

// untolerated returns a taint that the tolerations do not tolerate. It ignores taints with the effect
// PreferNoSchedule.
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

// signatureOf returns a text that is equal for pods that only their labels distinguish.
func signatureOf(pod *model.Pod) string {
	if len(pod.Tolerations) == 0 {
		return pod.Signature
	}
	return pod.Signature + canonicalText(pod.Tolerations)
}

// shapes returns one pod for each distinct signature. Identical pods need only one check.
func shapes(pods []*model.Pod) []*model.Pod {
	var different []*model.Pod
	seen := map[string]bool{}
	for _, pod := range pods {
		if signature := signatureOf(pod); !seen[signature] {
			seen[signature] = true
			different = append(different, pod)
		}
	}
	return different
}

// labeling returns the values that a label of a node may have. The result is never empty: a missing label is a value
// too.
type labeling func(key string) []value

// accepts reports whether one alternative is satisfied whatever values the labels of the node take.
func accepts(alternatives [][]label.Requirement, labels labeling) bool {
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

func everyValue(reqs []label.Requirement, labels labeling) bool {
	for _, r := range reqs {
		for _, v := range labels(canonical(r.Key)) {
			if !allows(r, v) {
				return false
			}
		}
	}
	return true
}

// mayAdmit reports whether the labels of the node can take values that satisfy one of the alternatives. Several
// requirements with the same key must be met by one value.
func mayAdmit(alternatives [][]label.Requirement, labels labeling) bool {
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

func meets(reqs []label.Requirement, labels labeling) bool {
	for _, r := range reqs {
		if len(allowed(reqs, canonical(r.Key), labels(canonical(r.Key)))) == 0 {
			return false
		}
	}
	return true
}

// daemonsFor returns the sum of the requests of the daemons that may run on a node with the taints and labels. It
// skips daemons that already run there; there holds their UIDs.
func (j *judge) daemonsFor(taints []model.Taint, labels labeling, there map[string]bool) amounts {
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
