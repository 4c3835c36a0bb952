package state

import (
	"reflect"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// pdbs holds the PodDisruptionBudgets.
type pdbs struct {
	*base
	specs map[types.NamespacedName]model.PDBSpec
}

// apply updates a PodDisruptionBudget. Its status changes with every pod of its workload; subscribers are notified
// only if the change may affect whether any pod can be evicted. A PodDisruptionBudget that is being deleted counts
// until it is gone, as in the eviction API.
func (p *pdbs) apply(key types.NamespacedName, e *entry) {
	pdb, _ := e.object.(*policyv1.PodDisruptionBudget)
	before, known := p.specs[key]
	if pdb == nil {
		if known {
			p.builder.DeletePDB(before.UID)
			delete(p.specs, key)
			p.notify(PDBsChanged)
		}
		return
	}
	spec := convert.PDB(pdb)
	if known && reflect.DeepEqual(before, spec) {
		return
	}
	if known && before.UID != spec.UID {
		p.builder.DeletePDB(before.UID)
	}
	p.specs[key] = spec
	p.builder.UpsertPDB(spec)
	if !known || !alike(before, spec) {
		p.notify(PDBsChanged)
	}
}

// alike reports whether both budgets are equal, apart from the number of allowed evictions beyond one.
func alike(a, b model.PDBSpec) bool {
	a.Allowed, b.Allowed = min(a.Allowed, 1), min(b.Allowed, 1)
	return reflect.DeepEqual(a, b)
}
