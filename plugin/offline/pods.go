package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Selection selects pods of a namespace, "" for all, and of a workload: a Deployment, StatefulSet,
// ReplicaSet, Job or CronJob.
type Selection struct {
	Namespace string
	// Kind and Name are empty for the pods of all workloads, and of none.
	Kind, Name string
}

// PodsOutcome is the result for the pending pods of a selection.
type PodsOutcome struct {
	// Pending is the number of pods that are neither on a node nor finished, and Total that of all.
	Pending int         `json:"pending"`
	Total   int         `json:"total"`
	Groups  []*PodGroup `json:"groups"`
	Gaps

	of Selection
	// Wide names all pods of each group in the text.
	Wide bool `json:"-"`
}

// PodGroup is a set of pods with the same result: that of the first.
type PodGroup struct {
	Count int      `json:"count"`
	Pods  []string `json:"pods"`
	*PodOutcome
}

// ExplainPods decides, and returns the results for the pending pods of the selection.
func (o *Manifests) ExplainPods(p *Policy, of Selection) (*PodsOutcome, error) {
	tops := o.topsOf(of.Kind)
	details := &PodsOutcome{Groups: []*PodGroup{}, Gaps: o.gaps(), of: of}
	pending := map[string]bool{}
	var others, elsewhere []string
	for _, s := range o.pods {
		pod := s.object
		if of.Namespace != "" && pod.Namespace != of.Namespace {
			if kind, name := workloadOfPod(pod, of.Kind, tops); of.Kind != "" && kind == of.Kind && name == of.Name &&
				!slices.Contains(elsewhere, pod.Namespace) {
				elsewhere = append(elsewhere, pod.Namespace)
			}
			continue
		}
		if kind, name := workloadOfPod(pod, of.Kind, tops); of.Kind != "" && (kind != of.Kind || name != of.Name) {
			if kind == of.Kind {
				others = append(others, name)
			}
			continue
		}
		if details.Total++; waiting(pod) {
			pending[key(pod)] = true
		}
	}
	if details.Pending = len(pending); details.Total == 0 && of.Kind != "" {
		return nil, fmt.Errorf("there is no pod of %s %s/%s%s", of.Kind, of.Namespace, of.Name, inNamespaces(of, elsewhere, others))
	}
	if details.Pending > 0 {
		o.Decide(p, 1).group(pending, details)
	}
	return details, nil
}

// inNamespaces completes the error that a workload has no pods: with the namespaces of workloads of its name, or a
// similar name in its namespace.
func inNamespaces(of Selection, namespaces, others []string) string {
	if len(namespaces) == 0 {
		return didYouMean(of.Name, others)
	}
	slices.Sort(namespaces)
	for i, namespace := range namespaces {
		namespaces[i] = namespace + "/" + of.Name
	}
	return "; there is " + fewNames(namespaces)
}

// middles are the kinds between a workload and its pods: a Deployment controls ReplicaSets, a CronJob Jobs.
var middles = map[string]string{"Deployment": "ReplicaSet", "CronJob": "Job"}

// topsOf returns the workloads of a kind that control ReplicaSets or Jobs, by the namespaces and names of those. Without
// the permission to list them, it derives the names of the workloads from theirs.
func (o *Manifests) topsOf(kind string) map[string]string {
	switch {
	case kind == "Deployment" && o.lacks("replicasets.apps"):
		return o.namedBy("ReplicaSet", deploymentOf)
	case kind == "CronJob" && o.lacks("jobs.batch"):
		return o.namedBy("Job", func(_ *corev1.Pod, job string) string { return cronJobOf(job) })
	}
	of := map[string]string{}
	for _, w := range o.workloads {
		if owner := metav1.GetControllerOfNoCopy(&w.meta); owner != nil && owner.Kind == kind && w.kind == middles[kind] {
			of[w.meta.Namespace+"/"+w.meta.Name] = owner.Name
		}
	}
	return of
}

// namedBy returns what topsOf does without ReplicaSets or Jobs: from the names of those.
func (o *objects) namedBy(kind string, top func(pod *corev1.Pod, name string) string) map[string]string {
	of := map[string]string{}
	for _, p := range o.pods {
		if owner := metav1.GetControllerOfNoCopy(p.object); owner != nil && owner.Kind == kind {
			of[p.object.Namespace+"/"+owner.Name] = top(p.object, owner.Name)
		}
	}
	return of
}

// workloadOfPod returns the workload that controls the pod, or the one of the kind that controls that.
func workloadOfPod(pod *corev1.Pod, want string, tops map[string]string) (kind, name string) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return "", ""
	}
	if of := tops[pod.Namespace+"/"+owner.Name]; owner.Kind == middles[want] && of != "" {
		return want, of
	}
	return owner.Kind, owner.Name
}

// group adds the results for pods, by name, to o: unschedulable ones first.
func (d *Decision) group(pending map[string]bool, o *PodsOutcome) {
	at := map[string]*PodGroup{}
	add := func(names []string, outcome *PodOutcome) {
		names = slices.DeleteFunc(names, func(name string) bool { return !pending[name] })
		if len(names) == 0 {
			return
		}
		same := outcome.Node + outcome.Text()
		g := at[same]
		if g == nil {
			g = &PodGroup{PodOutcome: outcome}
			outcome.Pod = names[0]
			at[same], o.Groups = g, append(o.Groups, g)
		}
		g.Pods = append(g.Pods, names...)
		g.Count = len(g.Pods)
	}
	for _, r := range d.plan.Refused {
		outcome := &PodOutcome{}
		outcome.refuse(d.snap, r)
		add(podKeys(r.Pods), outcome)
	}
	prices := priceTables{}
	for i := range d.plan.Claims {
		n := d.newNode(&d.plan.Claims[i], prices)
		add(podKeys(d.plan.Claims[i].Pods), &PodOutcome{Outcome: "NewNode", Node: n.Name, NewNode: &n, PriceSource: d.source})
	}
	for _, n := range d.plan.Placed {
		outcome := &PodOutcome{Outcome: "ExistingNode", Node: n.Node}
		if d.inFlight(n.Node) {
			outcome.Outcome = "NodeInFlight"
		}
		add(podKeys(n.Pods), outcome)
	}
	for _, p := range d.ignored() {
		add([]string{p.pod}, &PodOutcome{Outcome: "Ignored", Reasons: reasonsOf(d.snap, plan.Refusal{Verdict: p.why})})
	}
}

// Names returns the pods as `kubectl get -o name` does.
func (o *PodsOutcome) Names() []string {
	var names []string
	for _, g := range o.Groups {
		for _, pod := range g.Pods {
			_, name, _ := strings.Cut(pod, "/")
			names = append(names, "pod/"+name)
		}
	}
	return names
}

// outcomes are the results of pending pods, in words.
var outcomes = []struct{ outcome, words string }{
	{"NoPlace", "unschedulable"}, {"NewNode", "for new nodes"}, {"NodeInFlight", "for nodes that are being launched"},
	{"ExistingNode", "for existing nodes"}, {"Ignored", "ignored"},
}

// Text returns a paragraph for each group, and a line of totals.
func (o *PodsOutcome) Text() string { return o.paragraphs() + incomplete(o.Incomplete) }

func (o *PodsOutcome) paragraphs() string {
	if o.Pending == 0 {
		return o.nonePending()
	}
	var b strings.Builder
	counts := map[string]int{}
	prices := ""
	for _, g := range o.Groups {
		counts[g.Outcome] += g.Count
		text := g.result()
		prices = cmp.Or(prices, g.prices())
		if g.Count > 1 {
			text = strings.Replace(text, "pod "+g.Pod+" ", fmt.Sprintf("pod %s (and %d like it) ", g.Pod, g.Count-1), 1)
		}
		b.WriteString(text)
		if o.Wide && g.Count > 1 {
			fmt.Fprintf(&b, "  pods: %s\n", strings.Join(g.Pods, " "))
		}
		b.WriteByte('\n')
	}
	var parts []string
	for _, kind := range outcomes {
		if n := counts[kind.outcome]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.words))
		}
	}
	fmt.Fprintf(&b, "%s: %s\n", plural(o.Pending, "pending pod"), cmp.Or(strings.Join(parts, ", "), "not decided about"))
	return b.String() + prices
}

func (o *PodsOutcome) nonePending() string {
	switch {
	case o.of.Kind != "":
		return fmt.Sprintf("no pod is pending of %s %s/%s, which has %s\n", o.of.Kind, o.of.Namespace, o.of.Name, plural(o.Total, "pod"))
	case o.of.Namespace != "":
		return fmt.Sprintf("no pod is pending in namespace %s\n", o.of.Namespace)
	}
	return "no pod is pending\n"
}
