package model

import (
	"cmp"
	"slices"
	"strings"
)

// UpsertPDB adds the PodDisruptionBudget or replaces what was known of it.
func (b *Builder) UpsertPDB(spec PDBSpec) {
	b.version++
	b.pdbs[spec.UID] = &spec
	b.pdbsDirty = true
}

// DeletePDB forgets the PodDisruptionBudget.
func (b *Builder) DeletePDB(uid string) {
	if _, known := b.pdbs[uid]; known {
		b.version++
		delete(b.pdbs, uid)
		b.pdbsDirty = true
	}
}

func (b *Builder) freezePDBs(s *Snapshot) {
	if !b.pdbsDirty {
		return
	}
	b.pdbsDirty = false
	s.PDBs = make([]*PDBSpec, 0, len(b.pdbs))
	for _, pdb := range b.pdbs {
		s.PDBs = append(s.PDBs, pdb)
	}
	slices.SortFunc(s.PDBs, comparePDBs)
}

func comparePDBs(a, b *PDBSpec) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

// PDBsOf are the PodDisruptionBudgets that select the pod, by name.
func (s *Snapshot) PDBsOf(p *Pod) []*PDBSpec {
	at, _ := slices.BinarySearchFunc(s.PDBs, p.Namespace, func(pdb *PDBSpec, namespace string) int {
		return strings.Compare(pdb.Namespace, namespace)
	})
	var selected []*PDBSpec
	for ; at < len(s.PDBs) && s.PDBs[at].Namespace == p.Namespace; at++ {
		if s.PDBs[at].Selector.Selects(p.Namespace, p.Labels) {
			selected = append(selected, s.PDBs[at])
		}
	}
	return selected
}
