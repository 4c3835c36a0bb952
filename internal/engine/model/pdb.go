package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// UpsertPDB adds or replaces the PodDisruptionBudget.
func (b *Builder) UpsertPDB(spec PDBSpec) {
	b.version++
	b.pdbs[spec.UID] = &spec
	b.freezer.pdbsDirty = true
}

// DeletePDB removes the PodDisruptionBudget.
func (b *Builder) DeletePDB(uid string) {
	if _, known := b.pdbs[uid]; known {
		b.version++
		delete(b.pdbs, uid)
		b.freezer.pdbsDirty = true
	}
}

func (f *freezer) freezePDBs(s *Snapshot) {
	if !f.pdbsDirty {
		return
	}
	f.pdbsDirty = false
	s.PDBs = make([]*PDBSpec, 0, len(f.from.pdbs))
	for _, pdb := range f.from.pdbs {
		s.PDBs = append(s.PDBs, pdb)
	}
	slices.SortFunc(s.PDBs, comparePDBs)
	s.guards = make(map[guardKey][]*PDBSpec, len(s.PDBs))
	for _, pdb := range s.PDBs {
		for _, key := range guardKeys(pdb) {
			s.guards[key] = append(s.guards[key], pdb)
		}
	}
}

// guardKey is a label that pods must have for some PodDisruptionBudgets to select them. Without Label and Value it is
// for those that require no specific value. There are as many PodDisruptionBudgets as workloads, and they are looked
// up for every pod.
type guardKey struct{ Namespace, Label, Value string }

func guardKeys(pdb *PDBSpec) []guardKey {
	for _, r := range pdb.Selector.Requirements {
		if r.Operator != label.In {
			continue
		}
		keys := make([]guardKey, 0, len(r.Values))
		for _, value := range r.Values {
			if key := (guardKey{pdb.Namespace, r.Key, value}); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		return keys
	}
	return []guardKey{{Namespace: pdb.Namespace}}
}

func comparePDBs(a, b *PDBSpec) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

// PDBsOf returns the PodDisruptionBudgets that select the pod, by name.
func (s *Snapshot) PDBsOf(p *Pod) []*PDBSpec {
	if len(s.PDBs) == 0 {
		return nil
	}
	selected := selecting(nil, s.guards[guardKey{Namespace: p.Namespace}], p)
	for key, value := range p.Labels {
		selected = selecting(selected, s.guards[guardKey{p.Namespace, key, value}], p)
	}
	if len(selected) > 1 {
		slices.SortFunc(selected, comparePDBs)
	}
	return selected
}

func selecting(selected, among []*PDBSpec, p *Pod) []*PDBSpec {
	for _, pdb := range among {
		if pdb.Selector.Selects(p.Namespace, p.Labels) {
			selected = append(selected, pdb)
		}
	}
	return selected
}
