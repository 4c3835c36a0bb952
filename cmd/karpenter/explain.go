package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/cli"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// explanation holds the flags of the verb.
type explanation struct {
	live          liveOptions
	instanceTypes string
	output        string
	policy        policy
}

func newExplainPodCommand() *cobra.Command {
	var e explanation
	command := &cobra.Command{
		Use:     "pod [NAMESPACE/]NAME",
		Aliases: []string{"pods", "po"},
		Short:   "Say where a pod of a live cluster would go, or why nowhere",
		Long: `Reads the cluster once, decides as the controller would, and says what becomes of one pod: the node it goes to, one
that exists, one on its way or a new one with its type, zone and price; or which constraint of which pool leaves it
without a place, and what would help. A pod that is named without a namespace is in that of --namespace, else in that of
the kubeconfig's context. Nothing is changed.`,
		Example: "  karpenter explain pod default/web-0\n  karpenter explain pod web-0 -n shop -o json\n  karpenter explain pod/web-0",
		Args:    oneName("the pod as NAMESPACE/NAME, or NAME and --namespace"),
		RunE: func(command *cobra.Command, arguments []string) error {
			return e.run(command.Context(), bareName(command, arguments[0]), command.OutOrStdout())
		},
	}
	e.addFlags(command.Flags())
	e.live.addNamespace(command.Flags(), "namespace of the pod (default: that of the kubeconfig's context)")
	return command
}

func (e *explanation) addFlags(flags *pflag.FlagSet) {
	e.live.addFlags(flags)
	flags.StringVar(&e.instanceTypes, "instance-types", "", "file of instance types and prices (default: those of the cloud provider)")
	flags.StringVarP(&e.output, "output", "o", "text", "text or json")
	e.policy.addFlags(flags)
}

// podOutcome is the result for a pod.
type podOutcome struct {
	Pod string `json:"pod"`
	// Outcome is Bound, Done, Ignored, ExistingNode, NodeInFlight, NewNode or NoPlace.
	Outcome string `json:"outcome"`
	// Node is the node that the pod is on or planned for; a claim while there is no node.
	Node string `json:"node,omitempty"`
	// NewNode is the node to be launched.
	NewNode *newNode `json:"newNode,omitempty"`
	// Reasons are why the pod is unschedulable, or why it is ignored.
	Reasons []reason `json:"reasons,omitempty"`
	// Refusal is the complete tree of the reasons.
	Refusal *explain.Refused `json:"refusal,omitempty"`
	// PriceSource is the source and the date of a new node's price; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`

	tree string
}

func (e *explanation) run(ctx context.Context, name string, out io.Writer) error {
	namespace, _, full := strings.Cut(name, "/")
	switch {
	case !full:
		name = e.live.home() + "/" + name
	case e.live.namespace != "" && namespace != e.live.namespace:
		return cli.UsageErrorf("pod %s is not in --namespace %s: give one of them", name, e.live.namespace)
	}
	w, err := e.world(ctx)
	if err != nil {
		return err
	}
	pod := w.podOf(name)
	if pod == nil {
		return fmt.Errorf("there is no pod %s%s", name, w.podsLike(name))
	}
	return e.print(w.decide(e.policy.options(), 1).outcome(pod), out)
}

// world reads the cluster once.
func (e *explanation) world(ctx context.Context) (*world, error) { return e.worldAt(ctx, time.Now()) }

// worldAt reads the cluster as of a time.
func (e *explanation) worldAt(ctx context.Context, now time.Time) (*world, error) {
	if e.output != "text" && e.output != "json" {
		return nil, cli.UsageErrorf("--output is %q, want text or json", e.output)
	}
	if err := errors.Join(e.live.check(), e.policy.check()); err != nil {
		return nil, err
	}
	o, err := newObjects()
	if err != nil {
		return nil, err
	}
	if err := e.live.read(ctx, o, e.instanceTypes); err != nil {
		return nil, err
	}
	return newWorld(o, now.UTC().Format(time.RFC3339), e.policy)
}

// print writes the result for an object in the format that the flags select.
func (e *explanation) print(outcome interface{ text() string }, out io.Writer) error {
	if e.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", " ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(outcome)
	}
	_, err := io.WriteString(out, outcome.text())
	return err
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
func (d *decision) outcome(pod *corev1.Pod) *podOutcome {
	outcome := &podOutcome{Pod: key(pod)}
	if why, idle := d.told.ignores(outcome.Pod); idle {
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
func (d *decision) find(pod *corev1.Pod, outcome *podOutcome) {
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
			n := d.newNode(c, shelves{})
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
func (t *told) ignores(pod string) (plan.Verdict, bool) {
	for _, p := range t.idle {
		if p.pod == pod {
			return p.why, true
		}
	}
	return plan.Verdict{}, false
}

func (o *podOutcome) refuse(snap *model.Snapshot, r plan.Refusal) {
	tree := explain.RefusedOf(snap, r)
	tree.Pods = nil
	o.Outcome, o.Reasons, o.Refusal, o.tree = "NoPlace", reasonsOf(snap, r), &tree, explain.Tree(snap, r)
}

func (o *podOutcome) text() string {
	switch o.Outcome {
	case "Bound":
		return fmt.Sprintf("pod %s is on node %s\n", o.Pod, o.Node)
	case "Done":
		return fmt.Sprintf("pod %s is over\n", o.Pod)
	case "ExistingNode":
		return fmt.Sprintf("pod %s goes to node %s, which is there\n", o.Pod, o.Node)
	case "NodeInFlight":
		return fmt.Sprintf("pod %s goes to %s, a node that is bought already and on its way\n", o.Pod, o.Node)
	case "NewNode":
		n := o.NewNode
		return fmt.Sprintf("pod %s needs a new node: %s of pool %s in %s as %s for %.4f USD per hour, with %s; %s would do there\n%s",
			o.Pod, n.InstanceType, n.NodePool, n.Zone, n.CapacityType, n.PricePerHour, cli.Plural(len(n.Pods), "pod"), cli.Plural(len(n.InstanceTypes), "type"), pricesAre(o.PriceSource))
	}
	verb := "has no place"
	if o.Outcome == "Ignored" {
		verb = "is left alone"
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
