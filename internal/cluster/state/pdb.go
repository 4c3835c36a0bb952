package state

import (
	"reflect"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// applyPDB updates a PodDisruptionBudget. Its status changes with every pod of its workload; subscribers are notified
// only if the change may affect whether any pod can be evicted. A PodDisruptionBudget that is being deleted counts
// until it is gone, as in the eviction API.
func (s *State) applyPDB(key types.NamespacedName, e *entry) {
	pdb, _ := e.object.(*policyv1.PodDisruptionBudget)
	before, known := s.pdbs[key]
	if pdb == nil {
		if known {
			s.builder.DeletePDB(before.UID)
			delete(s.pdbs, key)
			s.notify(PDBsChanged)
		}
		return
	}
	spec := convert.PDB(pdb)
	if known && reflect.DeepEqual(before, spec) {
		return
	}
	if known && before.UID != spec.UID {
		s.builder.DeletePDB(before.UID)
	}
	s.pdbs[key] = spec
	s.builder.UpsertPDB(spec)
	if !known || !alike(before, spec) {
		s.notify(PDBsChanged)
	}
}

// alike reports whether both budgets are equal, apart from the number of allowed evictions beyond one.
func alike(a, b model.PDBSpec) bool {
	a.Allowed, b.Allowed = min(a.Allowed, 1), min(b.Allowed, 1)
	return reflect.DeepEqual(a, b)
}
