package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// Lookups return the current state of an object, including this controller's own writes, or nil if there is none. The
// objects belong to the store: callers must copy an object before changing it.

// Pod returns a pod.
func (s *Store) Pod(key client.ObjectKey) *corev1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pod, _ := s.now(ref{pods, key}).(*corev1.Pod)
	return pod
}

// Node returns a node.
func (s *Store) Node(name string) *corev1.Node {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.node(name)
}

// Claim returns a claim, of any provider.
func (s *Store) Claim(name string) *karpv1.NodeClaim {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.claim(name)
}

// Pool returns a pool, of any provider.
func (s *Store) Pool(name string) *karpv1.NodePool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pool, _ := s.now(ref{pools, client.ObjectKey{Name: name}}).(*karpv1.NodePool)
	return pool
}

// Capture returns the state at now, for replay. It converts every pod.
func (s *Store) Capture(now time.Time) *convert.Capture {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := &convert.Capture{Now: now.UTC().Round(0)}
	s.at = c.Now
	for _, e := range s.objects[pods] {
		if pod, ok := e.now().(*corev1.Pod); ok {
			if spec, disposition, _ := s.convertPod(pod); disposition != convert.Ignore {
				c.Pods = append(c.Pods, spec)
			}
		}
	}
	for _, spec := range s.machines.specs {
		c.Nodes = append(c.Nodes, spec)
	}
	for name, p := range s.pools {
		s.syncPool(name)
		c.Pools = append(c.Pools, *p.synced)
	}
	for _, spec := range s.daemons {
		c.Daemons = append(c.Daemons, spec)
	}
	for _, spec := range s.pdbs {
		c.PDBs = append(c.PDBs, spec)
	}
	c.Sort()
	return c
}
