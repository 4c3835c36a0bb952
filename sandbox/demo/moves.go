package demo

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// peak is the maximum number of nodes of a pool that were leaving at the same time, and its maximum number of nodes.
type peak struct{ leaving, nodes int }

// watchLeaving starts recording peaks.
func (h *history) watchLeaving() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peaks = map[string]peak{}
	h.lookAtPeaks()
}

func (h *history) peak(pool string) peak {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.peaks[pool]
}

// lookAtPeaks updates the peaks by the nodes that are leaving now. The caller holds the lock.
func (h *history) lookAtPeaks() {
	if h.peaks == nil {
		return
	}
	now := map[string]peak{}
	for _, claim := range h.claims {
		pool := claim.Labels[karpv1.LabelNodePool]
		p := now[pool]
		p.nodes++
		if h.leaves(claim) {
			p.leaving++
		}
		now[pool] = p
	}
	for pool, p := range now {
		was := h.peaks[pool]
		h.peaks[pool] = peak{max(was.leaving, p.leaving), max(was.nodes, p.nodes)}
	}
}

// leaves reports whether the claim is being deleted, or its node is cordoned. A node whose machine is being
// terminated no longer counts, as in budgets. The caller holds the lock.
func (h *history) leaves(claim *karpv1.NodeClaim) bool {
	if claim.Condition(karpv1.ConditionInstanceTerminating).IsTrue() {
		return false
	}
	if claim.DeletionTimestamp != nil {
		return true
	}
	for uid, node := range h.nodes {
		if _, cordoned := h.seen[nodeCordoned][uid]; cordoned && node.Name == claim.Status.NodeName {
			return len(nodeStages(node, false)) > 0
		}
	}
	return false
}

// leavingNow returns the number of nodes that are being removed and of claims that are being launched.
func (h *history) leavingNow() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, claim := range h.claims {
		if h.leaves(claim) {
			n++
		}
	}
	return n
}

func (h *history) runningNow() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, pod := range h.pods {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// since returns when objects reached the stage, excluding those before from.
func (h *history) since(s stage, from time.Time) span {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out span
	for _, at := range h.seen[s] {
		if at.Before(from) {
			continue
		}
		if out.count == 0 || at.Before(out.first) {
			out.first = at
		}
		if out.count == 0 || at.After(out.last) {
			out.last = at
		}
		out.count++
	}
	return out
}

// moves describes pods that had to be restarted.
type moves struct {
	count   int
	pending int           // of them, pods that were unschedulable at first
	longest time.Duration // from creation to running
}

// restarts returns the moves of the pods that were created since from.
func (h *history) restarts(from time.Time) moves {
	h.mu.Lock()
	defer h.mu.Unlock()
	var m moves
	for uid, created := range h.seen[podCreated] {
		if created.Before(from) {
			continue
		}
		m.count++
		if _, pending := h.seen[podPending][uid]; pending {
			m.pending++
		}
		if running, ok := h.at(podRunning, uid); ok {
			m.longest = max(m.longest, running.Sub(created))
		}
	}
	return m
}

func (h *history) at(s stage, uid types.UID) (time.Time, bool) {
	at, ok := h.seen[s][uid]
	return at, ok
}
