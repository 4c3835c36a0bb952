package futile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// launchMemory is how long a launch is remembered.
const launchMemory = time.Hour

// launch is a claim that was launched. It may count for the owners of its pods, and for what its node shows of the pool.
// Its pods and their owners may be gone: a CronJob replaces its Job each minute.
type launch struct {
	claim, uid, pool string
	generation       int64
	at               time.Time
	// pods are the UIDs of its pods. scopes are the owners for which it is not judged yet, each with a description of the
	// preemption of one of its pods; and the causes that it is a trial of.
	pods   map[string]bool
	scopes map[string]string
	// node is the name of its node, and stage the latest one that it was observed in. seen is the node as it last was, joined
	// and not being deleted.
	node  string
	stage model.Stage
	seen  *model.Node
	// kind is the type of the node, and missing what the node has less than that promises.
	kind    string
	missing []quantity.Amount
	// used: a pod has run on its node. counted: what the node shows has been counted.
	used, counted bool
}

// current returns the claim's node, nil if it is gone.
func (m *launch) current(snap *model.Snapshot) *model.Node {
	n := snap.Claim(m.claim)
	if n == nil || m.uid != "" && n.ClaimUID != m.uid {
		return nil
	}
	return n
}

// observe updates the launch from its claim.
func (m *launch) observe(snap *model.Snapshot) {
	n := m.current(snap)
	if n == nil {
		return
	}
	m.uid, m.node, m.stage, m.used = n.ClaimUID, n.Name, max(m.stage, n.Stage), m.used || runsPods(n)
	if n.Stage >= model.Registered && !n.Deleting {
		m.seen = n
		m.kind, m.missing = missing(snap.Pool(m.pool), snap, n)
	}
}

// lost reports whether the claim is gone and has not become a node, as when the cloud has no capacity.
func (m *launch) lost(snap *model.Snapshot) bool {
	return m.stage < model.Registered && m.current(snap) == nil
}

// removed updates the launch from its node, if it is that, as it was before its removal began.
func (m *launch) removed(n *model.NodeSpec) {
	if n.Claim != m.claim || m.uid != "" && n.ClaimUID != m.uid {
		return
	}
	m.uid, m.node, m.stage = n.ClaimUID, n.Name, max(m.stage, n.Stage)
	if m.seen == nil && n.Stage >= model.Registered {
		m.seen = &model.Node{NodeSpec: n}
	}
}

// countsForPool reports whether what its node shows may still be counted: of a node that no pod has run on, and that was
// launched from the pool as it is.
func (m *launch) countsForPool(snap *model.Snapshot) bool {
	pool := snap.Pool(m.pool)
	switch {
	case m.used || m.counted || pool == nil:
		return false
	case m.generation != 0 && pool.Generation != 0 && m.generation != pool.Generation:
		return false
	}
	return m.seen != nil || m.uid == "" || m.current(snap) != nil
}

// cause returns why the pod, which is planned onto the claim, could not run on the launch's node, nil if the node has
// nothing to show.
func (m *launch) cause(snap *model.Snapshot, c *plan.NewClaim, p *model.Pod) *cause {
	n := m.seen
	if n == nil || !m.countsForPool(snap) {
		return nil
	}
	if now := m.current(snap); now != nil && (now.Disrupted || now.Command != "") {
		return nil // it counts when it is gone: its removal may be given up
	}
	for _, t := range n.Taints {
		s := &cause{pool: m.pool, taint: t}
		if t.Effect != model.PreferNoSchedule && !ofOneNode(t) && s.stops(snap, p, nil) {
			return s
		}
	}
	if len(p.Alternatives) == 1 {
		for _, r := range p.Alternatives[0] {
			if lacks(n, p, r.Key) {
				return &cause{pool: m.pool, label: r.Key}
			}
		}
	}
	s := &cause{pool: m.pool, missing: m.missing}
	if slices.ContainsFunc(n.Pods, func(d *model.Pod) bool { return d.Daemon && d.Namespace == p.Namespace }) {
		s.namespace = p.Namespace
	}
	if m.missing != nil && slices.Contains(c.Types(), m.kind) && s.stops(snap, p, []string{m.kind}) {
		return s
	}
	return nil
}

// outcome reports whether the launch is over for the owner, now that another one is planned for its pod, and why it was
// futile. used are the nodes that get pods by the plan. That a pod takes the room of a buffer is what the room is for.
func (m *launch) outcome(snap *model.Snapshot, used map[string]bool, scope string, pod *model.Pod) (why string, over bool) {
	n, buffer, unfitting := m.current(snap), pod.Virtual == model.VirtualBuffer, ""
	if m.seen != nil {
		unfitting = mismatch(m.seen, pod)
	}
	switch {
	case m.scopes[scope] != "":
		return m.scopes[scope], true
	case buffer && m.used:
		return "", true
	case n != nil && (runsPods(n) || used[n.Name] || used[n.Claim] || !n.Deleting && n.Stage < model.Registered):
		return "", false
	case buffer && unfitting != "": // also while a command removes it as empty
		return unfitting, true
	case n != nil && !n.Deleting && (n.Disrupted || n.Command != ""):
		return "", false
	case n != nil && !n.Deleting:
		return unfit(snap, n, pod), true
	case m.expired(snap):
		return "its expireAfter ended it before any of the pods had run for a minute", true
	case m.stage < model.Launched:
		return "", n == nil
	case unfitting != "":
		return unfitting, true
	case m.stage >= model.Registered:
		return "its node was removed before any of the pods had run on it for a minute", true
	}
	return "its node never registered", true
}

// expired reports whether the claim has reached the expireAfter of its pool.
func (m *launch) expired(snap *model.Snapshot) bool {
	pool := snap.Pool(m.pool)
	return pool != nil && pool.ExpireAfter != nil && snap.Now.Sub(m.at) >= *pool.ExpireAfter
}

// unfit explains why a node that has joined cannot run the pod, as far as that is evident.
func unfit(snap *model.Snapshot, n *model.Node, p *model.Pod) string {
	if why := mismatch(n, p); why != "" {
		return why
	}
	if !p.Requests.Fits(n.Free()) {
		return short(snap, n, p)
	}
	return "its node has joined and remains empty, and the pods are planned onto another node"
}

// mismatch returns which taint or label of the node keeps the pod away, "" for none. The taint of nodes that are being
// removed says nothing.
func mismatch(n *model.Node, p *model.Pod) string {
	taints := slices.DeleteFunc(slices.Clone(n.Taints), func(t model.Taint) bool { return strings.HasPrefix(t.Key, "karpenter.sh/") })
	if taint, refused := model.Untolerated(taints, p.Tolerations); refused {
		return fmt.Sprintf("its node has the taint %s, which the pods do not tolerate: add it to startupTaints of the "+
			"NodePool if it is removed automatically, or a toleration to the pods", taint)
	}
	if len(p.Alternatives) == 1 {
		for _, r := range p.Alternatives[0] {
			if lacks(n, p, r.Key) {
				return fmt.Sprintf("its node lacks the label %s, which the pods require", r.Key)
			}
		}
	}
	return ""
}

// runsPods reports whether pods run on the node, other than those of DaemonSets.
func runsPods(n *model.Node) bool {
	return slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !p.Daemon })
}
