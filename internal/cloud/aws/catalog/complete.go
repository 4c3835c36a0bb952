package catalog

import "slices"

// Complete adds to types that EC2 has described what EC2 does not say: the branch interfaces, the network bandwidth of all
// cards together, and the embedded prices. For a type that the file does not know, the bandwidth is the sum of its cards
// and there are no branch interfaces. The types given are not changed.
func (c *Catalogue) Complete(live []Type) []Type {
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
