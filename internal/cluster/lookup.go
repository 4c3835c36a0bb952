package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
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
