package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Capture holds the complete input of the engine, from which the same snapshot can be created again anywhere.
type Capture struct {
	Now     time.Time
	Pods    []model.PodSpec
	Nodes   []model.NodeSpec
	Pools   []model.PoolSpec
	Daemons []model.DaemonSpec
	PDBs    []model.PDBSpec
}

// Of returns the capture of a snapshot. A snapshot does not contain everything: pods on unknown nodes are missing,
// and volumes that no other pod can use are amounts in the requests. Neither affects decisions.
func Of(snapshot *model.Snapshot) *Capture {
	c := &Capture{Now: snapshot.Now}
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
	c.Sort()
	return c
}

func (c *Capture) add(snapshot *model.Snapshot, state model.PodState, pods ...*model.Pod) {
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
	slices.SortFunc(requests, compareAmounts)
	return requests
}

// captureVersion is incremented when older captures can no longer be read correctly.
const captureVersion = 1

// captureFile is the encoded form of a Capture: it contains each catalog once, and pools refer to it by index, -1 for
// none.
type captureFile struct {
	Version  int
	Now      time.Time
	Catalogs []*model.Catalog
	Pools    []capturedPool
	Nodes    []model.NodeSpec
	Daemons  []model.DaemonSpec
	PDBs     []model.PDBSpec
	Pods     []model.PodSpec
}

type capturedPool struct {
	model.PoolSpec
	// Catalog shadows that of the spec.
	Catalog int
}

// Sort sorts the capture, so that equal captures have equal encodings.
func (c *Capture) Sort() {
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

// Bytes sorts the capture and encodes it as JSON.
func (c *Capture) Bytes() ([]byte, error) {
	c.Sort()
	file := captureFile{Version: captureVersion, Now: c.Now, Nodes: c.Nodes, Daemons: c.Daemons, PDBs: c.PDBs, Pods: c.Pods}
	for _, pool := range c.Pools {
		place := -1
		if pool.Catalog != nil {
			if place = slices.Index(file.Catalogs, pool.Catalog); place < 0 {
				place = len(file.Catalogs)
				file.Catalogs = append(file.Catalogs, pool.Catalog)
			}
		}
		pool.Catalog = nil
		file.Pools = append(file.Pools, capturedPool{PoolSpec: pool, Catalog: place})
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("encoding a capture: %w", err)
	}
	return append(data, '\n'), nil
}

// Load decodes a capture. Pools that shared a catalog share it again.
func Load(data []byte) (*Capture, error) {
	var file captureFile
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("reading a capture: %w", err)
	}
	if file.Version != captureVersion {
		return nil, fmt.Errorf("reading a capture: its version is %d, want %d", file.Version, captureVersion)
	}
	c := &Capture{Now: file.Now, Nodes: file.Nodes, Daemons: file.Daemons, PDBs: file.PDBs, Pods: file.Pods}
	for _, pool := range file.Pools {
		switch {
		case pool.Catalog >= len(file.Catalogs) || pool.Catalog < -1:
			return nil, fmt.Errorf("reading a capture: pool %q has catalog %d, want -1 to %d", pool.Name, pool.Catalog, len(file.Catalogs)-1)
		case pool.Catalog >= 0:
			pool.PoolSpec.Catalog = file.Catalogs[pool.Catalog]
		}
		c.Pools = append(c.Pools, pool.PoolSpec)
	}
	return c, nil
}

// Builder returns a new builder with the contents of the capture.
func (c *Capture) Builder() *model.Builder {
	b := model.NewBuilder()
	for _, pool := range c.Pools {
		b.UpsertPool(pool)
	}
	for _, daemon := range c.Daemons {
		b.UpsertDaemon(daemon)
	}
	for _, pdb := range c.PDBs {
		b.UpsertPDB(pdb)
	}
	for _, node := range c.Nodes {
		b.UpsertNode(node)
	}
	for _, pod := range c.Pods {
		b.UpsertPod(pod)
	}
	return b
}

// Snapshot returns the captured state at the captured time.
func (c *Capture) Snapshot() *model.Snapshot { return c.Builder().Snapshot(c.Now) }
