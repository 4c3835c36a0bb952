package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// capture holds the complete input of the engine.
type capture struct {
	Now     time.Time
	Pods    []model.PodSpec
	Nodes   []model.NodeSpec
	Pools   []model.PoolSpec
	Daemons []model.DaemonSpec
	PDBs    []model.PDBSpec
}

// captureOf returns the capture of a snapshot. A snapshot does not contain everything: pods on unknown nodes are missing,
// and volumes that no other pod can use are amounts in the requests. Neither affects decisions.
func captureOf(snapshot *model.Snapshot) *capture {
	c := &capture{Now: snapshot.Now}
	for _, p := range snapshot.Pools {
		c.Pools = append(c.Pools, *p.PoolSpec)
	}
	for _, d := range snapshot.Daemons {
		c.Daemons = append(c.Daemons, *d.DaemonSpec)
	}
	for _, d := range snapshot.DaemonsAside {
		c.Daemons = append(c.Daemons, *d.DaemonSpec)
	}
	for _, pdb := range snapshot.PDBs {
		c.PDBs = append(c.PDBs, *pdb)
	}
	for _, g := range snapshot.Groups {
		c.add(snapshot, model.Pending, g.Pods...)
	}
	c.add(snapshot, model.Pending, snapshot.Rejected...)
	for _, n := range snapshot.Nodes {
		c.Nodes = append(c.Nodes, *n.NodeSpec)
		c.add(snapshot, model.Bound, n.Pods...)
	}
	c.sort()
	return c
}

func (c *capture) add(snapshot *model.Snapshot, state model.PodState, pods ...*model.Pod) {
	for _, p := range pods {
		c.Pods = append(c.Pods, model.PodSpec{
			UID: p.UID, Namespace: p.Namespace, Name: p.Name, Created: p.Created, State: state, Node: p.Node, Nominated: p.Nominated,
			Rejected: p.Rejected, NoNewNode: p.NoNewNode, Priority: p.Priority, Requests: requestsOf(snapshot, p), Alternatives: p.Alternatives,
			VolumeAlternatives: p.VolumeAlternatives, Volumes: p.Shared, Preferred: p.Preferred, Spread: p.Spread, Terms: p.Terms,
			HostPorts: p.HostPorts, Labels: p.Labels, Tolerations: p.Tolerations, Controller: p.Controller, Daemon: p.Daemon,
			Reschedulable: p.Reschedulable, Terminating: p.Terminating, Ready: p.Ready, EvictionCost: p.EvictionCost, ProtectedUntil: p.ProtectedUntil,
		})
	}
}

// requestsOf returns the pod's requests by name.
func requestsOf(snapshot *model.Snapshot, p *model.Pod) []quantity.Amount {
	requests := make([]quantity.Amount, 0, len(p.Requests)+len(p.Unknown))
	requests = append(requests, p.Unknown...)
	for r, value := range p.Requests {
		if value != 0 && snapshot.Resources[r] != model.Unknown {
			requests = append(requests, quantity.Amount{Name: snapshot.Resources[r], Value: value})
		}
	}
	slices.SortFunc(requests, func(a, b quantity.Amount) int { return strings.Compare(a.Name, b.Name) })
	return requests
}

// sort sorts the capture, so that equal captures have equal encodings.
func (c *capture) sort() {
	slices.SortFunc(c.Pods, func(a, b model.PodSpec) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	slices.SortFunc(c.Nodes, func(a, b model.NodeSpec) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Pools, func(a, b model.PoolSpec) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.PDBs, func(a, b model.PDBSpec) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	slices.SortFunc(c.Daemons, func(a, b model.DaemonSpec) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
}

// captured returns the state at now. It converts every pod.
func (s *State) captured(now time.Time) *capture {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := &capture{Now: now.UTC().Round(0)}
	s.at = c.Now
	for _, e := range s.objects[Pods] {
		if pod, ok := e.object.(*corev1.Pod); ok {
			if spec, disposition, _ := s.pods.convertPod(pod); disposition != convert.Ignore {
				c.Pods = append(c.Pods, spec)
			}
		}
	}
	for _, spec := range s.machines.specs {
		c.Nodes = append(c.Nodes, *spec)
	}
	for name, p := range s.pools.pools {
		s.pools.sync(name)
		c.Pools = append(c.Pools, *p.synced)
	}
	for _, spec := range s.daemons.specs {
		c.Daemons = append(c.Daemons, spec)
	}
	for _, spec := range s.pdbs.specs {
		c.PDBs = append(c.PDBs, spec)
	}
	c.sort()
	return c
}
