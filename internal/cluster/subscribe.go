package cluster

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
	// RejectedChanged: the claims and nodes in Rejected have changed.
	RejectedChanged
	// PDBsChanged: a PodDisruptionBudget was created or deleted, or changed in whether it allows an eviction.
	PDBsChanged
	// OverlaysResolved: NodeOverlays were applied to the catalogs.
	OverlaysResolved
	// ReplicasAsked: a workload asks for more pods, and some of them may not exist yet.
	ReplicasAsked
)

type subscription struct {
	changes Change
	channel chan<- struct{}
}

// Subscribe returns a channel with a buffer of one that receives an element when a change of that kind has occurred
// since the last read. It is for one reader, and lives as long as the store.
func (s *Store) Subscribe(of Change) <-chan struct{} {
	to := make(chan struct{}, 1)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.subscriptions = append(s.subscriptions, subscription{of, to})
	return to
}

func (s *Store) notify(change Change) {
	for _, w := range s.subscriptions {
		if w.changes&change == 0 {
			continue
		}
		select {
		case w.channel <- struct{}{}:
		default:
		}
	}
}
