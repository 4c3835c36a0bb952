package plan

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// BareClaim is a claim made from the pool's template alone, as static pools have them: for no pod in particular and
// without a list of types, so that the provider picks one. Its name is computed from the pool and what the claim is for
// (the UID of the claim that it replaces, empty for none); names that are taken are passed over, as in ClaimName.
func BareClaim(snap *model.Snapshot, pool *model.Pool, instead string, taken func(string) bool) NewClaim {
	return NewClaim{
		Name: claimName(pool.Name, []byte(pool.UID+"\nstatic\n"+instead), taken), Pool: pool.Name, PoolUID: pool.UID, PoolGeneration: pool.Generation,
		Requirements: slices.Clone(pool.Requirements), Labels: openLabels(snap, pool),
	}
}

// openLabels gives every label of the user's own that the pool requires and leaves open a value: the smallest.
func openLabels(snap *model.Snapshot, pool *model.Pool) map[string]string {
	labels := map[string]string{}
	for _, r := range pool.Requirements {
		k, known := snap.Space.Lookup(r.Key)
		if !known || r.Key == model.LabelPool || r.Key == model.LabelHostname || snap.Space.AllowsAbsent(pool.Start, k) ||
			pool.Catalogue != nil && pool.Catalogue.WellKnown[r.Key] {
			continue
		}
		if value, ok := snap.Space.Pick(pool.Start, k); ok {
			labels[r.Key] = value
		}
	}
	return labels
}
