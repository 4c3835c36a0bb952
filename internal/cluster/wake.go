package cluster

// Change says coarsely what changed.
type Change uint8

// The changes that one can wait for.
const (
	// PodsPending: a pod began to wait for a node, or lost the one we had nominated.
	PodsPending Change = 1 << iota
	// PodsMoved: a pod came to a node, began to leave, or left.
	PodsMoved
	// NodesChanged: a node or claim came, went, or changed in what matters to planning.
	NodesChanged
	// PoolsChanged: a pool, its catalogue or a DaemonSet changed in what matters to planning.
	PoolsChanged
	// NodesLost: a node or claim went, began to leave (plan.Leaving), or has to leave sooner: pods that run there, or were
	// planned onto it, need another place.
	NodesLost
	// AsideChanged: what Aside lists of claims and nodes has changed.
	AsideChanged
	// PDBsChanged: a PodDisruptionBudget came, went, or changed in whether it allows an eviction.
	PDBsChanged
)

type wake struct {
	of Change
	to chan<- struct{}
}

// Subscribe returns a channel that has an element in it when something of that kind has changed since it was last
// read. It is for one reader, and lives as long as the store.
func (s *Store) Subscribe(of Change) <-chan struct{} {
	to := make(chan struct{}, 1)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.wakes = append(s.wakes, wake{of, to})
	return to
}

func (s *Store) wake(change Change) {
	for _, w := range s.wakes {
		if w.of&change == 0 {
			continue
		}
		select {
		case w.to <- struct{}{}:
		default:
		}
	}
}
