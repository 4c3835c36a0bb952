package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
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

// Cheapest returns the cheapest available offering that the claim admits, of equals the type with the first name:
// what a provider that chooses by list price launches for a claim without options. It returns false if there is none.
func (c *NewClaim) Cheapest(snap *model.Snapshot) (best Option, found bool) {
	pool := snap.Pool(c.Pool)
	if pool == nil || pool.Types == nil {
		return Option{}, false
	}
	x, names := pool.Types, c.Types()
	// The space does not contain the names of types, nor values that no object has: excluding these excludes nothing.
	requirements := slices.DeleteFunc(slices.Clone(c.Requirements), func(r label.Requirement) bool {
		return r.Key == model.LabelType || r.Operator == label.NotIn && !snap.Space.Mentioned(r)
	})
	if slices.ContainsFunc(requirements, func(r label.Requirement) bool { return !snap.Space.Mentioned(r) }) {
		return Option{}, false
	}
	row, _, _ := snap.Space.Template(func(key string) bool { return x.Catalog.WellKnown[key] }, requirements)
	model.PinCommitment(snap.Space, row, "")
	_, classes := x.Offered(row)
	compatible := x.Compatible(row)
	for t := range pool.Eligible.All() {
		name, class := x.Catalog.Types[t].Name, x.Cheapest(t, classes)
		if class < 0 || !compatible.Has(t) || names != nil && !slices.Contains(names, name) {
			continue
		}
		o := Option{Type: name, Zone: x.Classes[class].Zone, CapacityType: x.Classes[class].CapacityType, Price: x.Classes[class].Price[t]}
		if !found || cmp.Or(cmp.Compare(o.Price, best.Price), strings.Compare(o.Type, best.Type)) < 0 {
			best, found = o, true
		}
	}
	return best, found
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
