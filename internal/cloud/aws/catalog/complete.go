package catalog

import "slices"

// Complete adds data that EC2 does not report to types that EC2 has described: the branch interfaces, the network
// bandwidth of all cards together, and the embedded prices. For a type that is not in the file, the bandwidth is the
// sum of its cards and there are no branch interfaces. The given types are not modified.
func (c *Catalog) Complete(live []Type) []Type {
	completed := slices.Clone(live)
	for i := range completed {
		t := &completed[i]
		known, found := c.Type(t.Name)
		if !found {
			t.BaselineMbps = t.CardMbps * max(1, t.Cards)
			continue
		}
		t.BranchENIs, t.BaselineMbps, t.Prices = known.BranchENIs, known.BaselineMbps, known.Prices
	}
	return completed
}
