package state

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Change is a set of kinds of changes.
type Change uint16

// The changes that a subscriber can wait for.
const (
	// PodsPending: a pod became pending, or lost the nomination by this controller.
	PodsPending Change = 1 << iota
	// PodsMoved: a pod was bound to a node, began to terminate, or was deleted.
	PodsMoved
	// NodesChanged: a node or claim was created or deleted, or a change of it affects planning.
	NodesChanged
	// PoolsChanged: a change of a pool, its catalog, a CapacityQuota or a DaemonSet affects planning.
	PoolsChanged
	// NodesLost: a node or claim was deleted, is being removed (plan.Leaving), or must be removed sooner: pods that
	// run on it, or were planned onto it, need another place.
	NodesLost
	// RejectedChanged: the claims, nodes and DaemonSets in Rejected have changed.
	RejectedChanged
	// PDBsChanged: a PodDisruptionBudget was created or deleted, or changed in whether it allows an eviction.
	PDBsChanged
	// OverlaysResolved: NodeOverlays were applied to the catalogs. The state does not know when; its owner does.
	OverlaysResolved
	// ReplicasAsked: a workload asks for more pods, and some of them may not exist yet.
	ReplicasAsked
	// PoolSpecsChanged: a pool was created or deleted, or its spec changed, so that its catalog may be another.
	PoolSpecsChanged
	// OverlaysChanged: a NodeOverlay was created, changed or deleted.
	OverlaysChanged
	// NodesNominated: a node must not be disrupted until some later time. Commands that would remove it are given up, and
	// no launch is another one.
	NodesNominated
)

// News is what has happened to a State since it was drained.
type News struct {
	Changes Change
	// Departed are pods that were on a node and have ended or are being preempted (convert.Departed). A pod may occur more
	// than once.
	Departed []*corev1.Pod
	// Removed are the nodes whose removal has begun, as they were before it.
	Removed []model.NodeSpec
	// Rejected holds the number of rejected objects of the kinds for which it has changed.
	Rejected map[string]int
	// Uncreated are workloads whose virtual pods were removed, because they create no pods.
	Uncreated []Uncreated
	// Wake is the time from which Advance changes something, zero for never.
	Wake time.Time
}

// Uncreated is a workload that does not create the pods that it asked for. Until then none are planned for it.
type Uncreated struct {
	Kind  string
	Name  types.NamespacedName
	Why   string
	Until time.Time
}

// Drain returns the news since it was last called. An owner that has no use for them need not call it.
func (s *State) Drain() News {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	news := s.news
	news.Rejected, s.rejected.changed = s.rejected.changed, nil
	s.news = News{}
	return news
}

// wake sets Wake to a time that is earlier.
func (n *News) wake(at time.Time) {
	if n.Wake.IsZero() || at.Before(n.Wake) {
		n.Wake = at
	}
}

func (b *base) notify(change Change) { b.news.Changes |= change }
