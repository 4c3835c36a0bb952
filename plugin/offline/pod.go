package offline

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/history"
)

// PodOutcome is the result for a pod.
type PodOutcome struct {
	Pod string `json:"pod"`
	// Outcome is Bound, Done, Ignored, ExistingNode, NodeInFlight, NewNode or NoPlace.
	Outcome string `json:"outcome"`
	// Node is the node that the pod is on or planned for; a claim while there is no node.
	Node string `json:"node,omitempty"`
	// NewNode is the node to be launched.
	NewNode *NewNode `json:"newNode,omitempty"`
	// Reasons are why the pod is unschedulable, or why it is ignored.
	Reasons []Reason `json:"reasons,omitempty"`
	// Refusal is the complete tree of the reasons.
	Refusal *explain.Refused `json:"refusal,omitempty"`
	// Refused is why the controller launches no such node at present, by its newest event about the pod.
	Refused string `json:"refused,omitempty"`
	// PriceSource is the source and the date of a new node's price; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	// Past is what a log of the controller says of the pod.
	Past []history.PodStage `json:"past,omitempty"`
	Gaps

	tree string
}

// ExplainPod decides, and returns the result for a pod, named NAMESPACE/NAME.
func (o *Manifests) ExplainPod(p *Policy, name string) (*PodOutcome, error) {
	pod := o.podOf(name)
	if pod == nil {
		return nil, fmt.Errorf("there is no pod %s%s", name, o.podsLike(name))
	}
	outcome := o.Decide(p, 1).outcome(pod)
	outcome.Gaps = o.gaps()
	return outcome, nil
}

func (o *objects) podOf(name string) *corev1.Pod {
	for _, p := range o.pods {
		if key(p.object) == name {
			return p.object
		}
	}
	return nil
}

// outcome returns the pod's result in the decision.
func (d *Decision) outcome(pod *corev1.Pod) *PodOutcome {
	outcome := &PodOutcome{Pod: key(pod)}
	if why, idle := d.from.ignores(outcome.Pod); idle {
		outcome.Outcome, outcome.Reasons = "Ignored", reasonsOf(d.snap, plan.Refusal{Verdict: why})
		return outcome
	}
	if !waiting(pod) {
		if outcome.Outcome = "Done"; pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			outcome.Outcome, outcome.Node = "Bound", pod.Spec.NodeName
		}
		return outcome
	}
	d.find(pod, outcome)
	return outcome
}

// find sets the pod's result from the plan.
func (d *Decision) find(pod *corev1.Pod, outcome *PodOutcome) {
	has := func(pods []*model.Pod) bool {
		return slices.ContainsFunc(pods, func(p *model.Pod) bool { return p.UID == string(pod.UID) })
	}
	for _, n := range d.plan.Placed {
		if has(n.Pods) {
			if outcome.Outcome, outcome.Node = "ExistingNode", n.Node; d.inFlight(n.Node) {
				outcome.Outcome = "NodeInFlight"
			}
			return
		}
	}
	for i := range d.plan.Claims {
		if c := &d.plan.Claims[i]; has(c.Pods) {
			n := d.newNode(c, priceTables{})
			outcome.Outcome, outcome.Node, outcome.NewNode, outcome.PriceSource = "NewNode", n.Name, &n, d.source
			return
		}
	}
	for _, r := range d.plan.Refused {
		if has(r.Pods) {
			outcome.refuse(d.snap, r)
			return
		}
	}
	// A pod that opted out is not even rejected.
	for _, p := range d.snap.Rejected {
		if p.UID == string(pod.UID) && p.Rejected != nil {
			outcome.refuse(d.snap, plan.Refusal{Verdict: plan.Verdict{Code: plan.PodInvalid, Rejection: p.Rejected}})
			outcome.Outcome = "Ignored"
		}
	}
}

// ignores returns why a pod needs no node from Karpenter, if so.
func (m *mirror) ignores(pod string) (plan.Verdict, bool) {
	for _, p := range m.idle {
		if p.pod == pod {
			return p.why, true
		}
	}
	return plan.Verdict{}, false
}

func (o *PodOutcome) refuse(snap *model.Snapshot, r plan.Refusal) {
	tree := explain.RefusedOf(snap, r)
	tree.Pods = nil
	o.Outcome, o.Reasons, o.Refusal, o.tree = "NoPlace", reasonsOf(snap, r), &tree, explain.Tree(snap, r)
}

// Names returns the pod as `kubectl get -o name` does.
func (o *PodOutcome) Names() []string {
	_, name, _ := strings.Cut(o.Pod, "/")
	return []string{"pod/" + name}
}

// Text returns the outcome as the lines that explain prints.
func (o *PodOutcome) Text() string {
	return o.result() + o.prices() + incomplete(o.Incomplete) + history.Stages(o.Past)
}

// prices returns the line about the source of a new node's price, "" without one.
func (o *PodOutcome) prices() string {
	if o.Outcome != "NewNode" {
		return ""
	}
	return pricesAre(o.PriceSource)
}

// result returns the lines about the pod.
func (o *PodOutcome) result() string {
	switch o.Outcome {
	case "Bound":
		return fmt.Sprintf("pod %s is on node %s\n", o.Pod, o.Node)
	case "Done":
		return fmt.Sprintf("pod %s has finished\n", o.Pod)
	case "ExistingNode":
		return fmt.Sprintf("pod %s fits on node %s, which exists\n", o.Pod, o.Node)
	case "NodeInFlight":
		return fmt.Sprintf("pod %s waits for %s, a node that is being launched\n", o.Pod, o.Node)
	case "NewNode":
		n := o.NewNode
		text := fmt.Sprintf("pod %s needs a new node: %s of pool %s in %s as %s for %.4f USD per hour, with %s; %s would fit\n",
			o.Pod, n.InstanceType, n.NodePool, n.Zone, n.CapacityType, n.PricePerHour, plural(len(n.Pods), "pod"),
			plural(len(n.InstanceTypes), "type"))
		if o.Refused != "" {
			text += "  the controller could not launch one: " + o.Refused + "\n"
		}
		return text
	}
	verb := "cannot be scheduled"
	if o.Outcome == "Ignored" {
		verb = "is ignored"
	}
	if o.tree == "" {
		var reasons []string
		for _, r := range o.Reasons {
			reasons = append(reasons, r.Message)
		}
		return fmt.Sprintf("pod %s %s: %s\n", o.Pod, verb, strings.Join(reasons, "; "))
	}
	return fmt.Sprintf("pod %s %s\n  %s\n", o.Pod, verb, strings.ReplaceAll(strings.TrimSpace(o.tree), "\n", "\n  "))
}

// mostNamed is the maximum number of pods that an error names.
const mostNamed = 3

// podsLike completes the error that a pod does not exist: with pods of a workload of the name, a pod of the name in
// another namespace, or a pod with a similar name.
func (o *objects) podsLike(name string) string {
	namespace, bare, _ := strings.Cut(name, "/")
	var ofWorkload, elsewhere, near []string
	for _, p := range o.pods {
		switch pod := p.object; {
		case pod.Namespace == namespace && strings.HasPrefix(pod.Name, bare+"-"):
			ofWorkload = append(ofWorkload, pod.Name)
		case pod.Name == bare:
			elsewhere = append(elsewhere, key(pod))
		case pod.Namespace == namespace:
			near = append(near, pod.Name)
		}
	}
	for _, list := range [][]string{ofWorkload, elsewhere, near} {
		slices.Sort(list)
	}
	switch {
	case len(ofWorkload) > 0:
		return "; pods whose names begin so: " + fewNames(ofWorkload)
	case len(elsewhere) > 0:
		return "; there is " + fewNames(elsewhere)
	}
	return didYouMean(bare, near)
}

func fewNames(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:mostNamed], ", ") + " and " + plural(len(names)-mostNamed, "other")
}
