package guard

import (
	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// evictable returns the first refusing verdict of the node's pods.
func (g *Guard) evictable(n *model.Node) plan.Verdict {
	for _, p := range n.Pods {
		if v := eviction.Allowed(g.snap, p); !v.OK() {
			v.Node = n.Name
			return v
		}
	}
	return plan.Verdict{}
}

// protected returns the first pod of the node that do-not-disrupt protects now, nil if there is none.
func (g *Guard) protected(n *model.Node) *model.Pod {
	for _, p := range n.Pods {
		if p.ProtectedUntil.After(g.snap.Now) {
			return p
		}
	}
	return nil
}
