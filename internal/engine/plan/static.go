package plan

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// StaticClaim returns a claim made from the pool's template alone, for static pools. It is for no particular pod and
// lists no types, so the provider chooses one. Its name is computed from the pool and from instead, the UID of the
// claim it replaces (empty for none). Names for which taken returns true are skipped, as in ClaimName.
func StaticClaim(snap *model.Snapshot, pool *model.Pool, instead string, taken func(string) bool) NewClaim {
	return NewClaim{
		Name: claimName(pool.PoolSpec, []byte(pool.UID+"\nstatic\n"+instead), taken), Pool: pool.Name,
		PoolUID: pool.UID, PoolGeneration: pool.Generation,
		Requirements: slices.Clone(pool.Requirements), Labels: openLabels(snap, pool),
	}
}

// openLabels returns a value, the smallest, for every custom label that the pool requires without a fixed value.
func openLabels(snap *model.Snapshot, pool *model.Pool) map[string]string {
	labels := map[string]string{}
	for _, r := range pool.Requirements {
		k, known := snap.Space.Lookup(r.Key)
		if !known || r.Key == model.LabelPool || model.OnEveryNode(r.Key) || snap.Space.AllowsAbsent(pool.Start, k) ||
			pool.Catalog != nil && pool.Catalog.WellKnown[r.Key] {
			continue
		}
		if value, ok := snap.Space.Pick(pool.Start, k); ok {
			labels[r.Key] = value
		}
	}
	return labels
}
