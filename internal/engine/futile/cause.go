package futile

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// cause is what nodes of a pool have shown that their NodePool does not say: a taint, the lack of a label, or of capacity
// beside DaemonSets. It concerns the pods that cannot run on such nodes, whichever their owners are, and no others: nothing
// that one tenant's pods do can make launches for the pods of another wait.
type cause struct {
	pool string
	// taint has a key, or label is not empty, or missing is what nodes have less than their types promise: for pods of the
	// namespace, whose own DaemonSet takes it and need not run on the nodes of others, or for all if that is empty.
	taint     model.Taint
	label     string
	namespace string
	missing   []quantity.Amount
}

// scope returns the scope of the pause.
func (s *cause) scope() string {
	switch {
	case s.missing != nil:
		return s.pool + " room " + s.namespace
	case s.label != "":
		return s.pool + " label " + s.label
	}
	return model.TaintScope(s.pool, s.taint)
}

// name returns what is paused, in words.
func (s *cause) name() string {
	name := "launches from NodePool " + s.pool + " for pods "
	switch {
	case s.missing != nil:
		of := ""
		if s.namespace != "" {
			of = "of namespace " + s.namespace + " "
		}
		return name + of + "that no type has room for beside what its nodes lack"
	case s.label != "":
		return name + "that require the label " + s.label
	}
	return name + "that do not tolerate the taint " + s.taint.String()
}

// causeOf returns what a pause of the pool is about, nil if it is about an owner of pods.
func causeOf(pool string, stored pause.Pause) *cause {
	scope, missing := stored.Scope, parseAmounts(stored.Shown)
	if namespace, is := strings.CutPrefix(scope, pool+" room "); is && missing != nil {
		return &cause{pool: pool, namespace: namespace, missing: missing}
	}
	if t, is := model.TaintOfScope(pool, scope); is {
		return &cause{pool: pool, taint: t}
	}
	if key, is := strings.CutPrefix(scope, pool+" label "); is && key != "" {
		return &cause{pool: pool, label: key}
	}
	return nil
}

// concerns reports whether nodes for the pod are taken to lack what is missing.
func (s *cause) concerns(p *model.Pod) bool { return s.namespace == "" || p.Namespace == s.namespace }

// stops reports whether the pod cannot run on nodes of the types that show it.
func (s *cause) stops(snap *model.Snapshot, p *model.Pod, kinds []string) bool {
	switch {
	case s.missing != nil:
		if !s.concerns(p) {
			return false
		}
		holding, known := s.holding(snap, kinds, p.Requests)
		return known > 0 && len(holding) == 0
	case s.label != "":
		return requires(p, s.label)
	}
	_, no := model.Untolerated([]model.Taint{s.taint}, p.Tolerations)
	return no
}

// stopsAll reports whether the claim is in the pool, and for pods only that cannot run on nodes that show it.
func (s *cause) stopsAll(snap *model.Snapshot, c *plan.NewClaim) bool {
	if c.Pool != s.pool || len(c.Pods) == 0 {
		return false
	}
	kinds := c.Types()
	return !slices.ContainsFunc(c.Pods, func(p *model.Pod) bool { return !s.stops(snap, p, kinds) })
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
