package futile

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// shown is what nodes of a pool have shown that their NodePool does not say: a taint, or the lack of a label. It concerns
// the pods that cannot run on such nodes, whichever their owners are, and no others: nothing that one tenant's pods do can
// make launches for the pods of another wait.
type shown struct {
	pool string
	// taint has a key, or label is not empty.
	taint model.Taint
	label string
}

// scope returns the scope of the pause.
func (s *shown) scope() string {
	if s.label != "" {
		return s.pool + " label " + s.label
	}
	return model.TaintScope(s.pool, s.taint)
}

// name returns what is paused, in words.
func (s *shown) name() string {
	name := "launches from NodePool " + s.pool + " for pods that "
	if s.label != "" {
		return name + "require the label " + s.label
	}
	return name + "do not tolerate the taint " + s.taint.String()
}

// shownOf returns what a pause of the pool is about, nil if it is about an owner of pods.
func shownOf(pool, scope string) *shown {
	if t, is := model.TaintOfScope(pool, scope); is {
		return &shown{pool: pool, taint: t}
	}
	if key, is := strings.CutPrefix(scope, pool+" label "); is && key != "" {
		return &shown{pool: pool, label: key}
	}
	return nil
}

// stops reports whether the pod cannot run on nodes that show it.
func (s *shown) stops(p *model.Pod) bool {
	if s.label != "" {
		return requires(p, s.label)
	}
	_, no := model.Untolerated([]model.Taint{s.taint}, p.Tolerations)
	return no
}

// stopsAll reports whether the claim is in the pool, and for pods only that cannot run on nodes that show it.
func (s *shown) stopsAll(c *plan.NewClaim) bool {
	return c.Pool == s.pool && len(c.Pods) > 0 && !slices.ContainsFunc(c.Pods, func(p *model.Pod) bool { return p.Node != "" || !s.stops(p) })
}

// cause returns why the pod, which is planned onto a new node of the pool, could not run on the node, nil if the node has
// nothing to show.
func cause(n *model.Node, p *model.Pod) *shown {
	for _, t := range n.Taints {
		s := &shown{pool: n.Pool, taint: t}
		if t.Effect != model.PreferNoSchedule && !ofOneNode(t) && s.stops(p) {
			return s
		}
	}
	if len(p.Alternatives) == 1 {
		for _, r := range p.Alternatives[0] {
			if lacks(n, p, r.Key) {
				return &shown{pool: n.Pool, label: r.Key}
			}
		}
	}
	return nil
}

// ofOneNode reports whether the taint says something of one node: that it is not ready, short of disk, or cordoned.
func ofOneNode(t model.Taint) bool {
	domain, _, _ := strings.Cut(t.Key, "/")
	return domain == "karpenter.sh" || domain == "node.kubernetes.io" || domain == "node.cloudprovider.kubernetes.io"
}

// requires reports whether the pod requires a value of the label.
func requires(p *model.Pod, key string) bool {
	return len(p.Alternatives) == 1 && slices.ContainsFunc(p.Alternatives[0], func(r label.Requirement) bool {
		return r.Key == key && r.Operator == label.In
	})
}

// lacks reports whether the node lacks a label that the pod requires.
func lacks(n *model.Node, p *model.Pod, key string) bool {
	_, has := n.Labels[key]
	return !has && requires(p, key)
}
