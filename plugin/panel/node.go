package panel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Obstacle is something that keeps a node from being removed for being underutilized.
type Obstacle struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Pods are the pods that it is about, as NAMESPACE/NAME; none if it is about the node or its pool. PDB is their
	// PodDisruptionBudget.
	Pods []string `json:"pods,omitempty"`
	PDB  string   `json:"podDisruptionBudget,omitempty"`
}

// Obstacles returns all that keeps the node. Pods that one PodDisruptionBudget keeps are one obstacle, whose message is that
// of the first.
func Obstacles(snap *model.Snapshot, n *model.Node) []Obstacle {
	list := []Obstacle{}
	for _, v := range guard.New(snap).Obstacles(n) {
		o := obstacleOf(snap, v)
		at := slices.IndexFunc(list, func(other Obstacle) bool { return o.PDB != "" && o.Code == other.Code && o.PDB == other.PDB })
		if at < 0 {
			list = append(list, o)
			continue
		}
		list[at].Pods = append(list[at].Pods, o.Pods...)
	}
	return list
}

func obstacleOf(snap *model.Snapshot, v plan.Verdict) Obstacle {
	o := Obstacle{Code: explain.Code(v.Code), Message: explain.Verdict(snap, v)}
	if v.Holder != nil {
		o.Pods, o.PDB = []string{v.Holder.Pod}, v.Holder.PDB
	}
	return o
}

// Text returns the obstacle in a line.
func (o *Obstacle) Text() string {
	switch more := len(o.Pods) - 1; {
	case more > 1:
		return fmt.Sprintf("%s, nor of %d more of its pods here", o.Message, more)
	case more == 1:
		return o.Message + ", nor of " + o.Pods[1]
	}
	return o.Message
}

// Pods returns the pods of the node, the largest first. workload returns the controller of a pod in words.
func Pods(snap *model.Snapshot, n *model.Node, workload func(*model.Pod) string) []view.PodDetail {
	list := make([]view.PodDetail, 0, len(n.Pods))
	for _, p := range n.Pods {
		list = append(list, Pod(snap, n, p, workload(p)))
	}
	slices.SortFunc(list, func(a, b view.PodDetail) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Key, b.Key))
	})
	return list
}

// Pod returns what is known of a pod. The node is nil for a pod without one.
func Pod(snap *model.Snapshot, n *model.Node, p *model.Pod, workload string) view.PodDetail {
	d := view.PodDetail{Key: p.Key(), Workload: workload, Priority: p.Priority, CPU: p.Requests.At(quantity.CPU),
		Memory: p.Requests.At(quantity.Memory), State: stateOf(p)}
	for r := quantity.Resource(0); int(r) < len(snap.Resources); r++ {
		if amount := p.Requests.At(r); amount > 0 && r != quantity.Pods {
			d.Requests = append(d.Requests, snap.Resources[r]+" "+explain.Quantity(snap.Resources[r], amount))
		}
	}
	for key, value := range p.Labels {
		d.Labels = append(d.Labels, key+"="+value)
	}
	slices.Sort(d.Labels)
	if n == nil {
		return d
	}
	d.Node = n.Name
	for _, r := range []quantity.Resource{quantity.CPU, quantity.Memory} {
		if usable := n.Usable.At(r); usable > 0 {
			d.Share = max(d.Share, float64(p.Requests.At(r))/float64(usable))
		}
	}
	for _, v := range eviction.Refusals(snap, p) {
		v.Node = n.Name
		d.Keeps = append(d.Keeps, explain.Verdict(snap, v))
	}
	return d
}

// stateOf says what is special about a pod, "" for one that moves when its node is removed.
func stateOf(p *model.Pod) string {
	switch {
	case p.Terminating:
		return "terminating"
	case p.Daemon:
		return "ends with its node"
	case !p.Ready && p.Node != "":
		return "not ready"
	}
	return ""
}
