package plan

import "github.com/karpenter-go/karpenter/internal/engine/model"

// Use returns what limits count for the claim.
func (c *NewClaim) Use(snap *model.Snapshot) model.Use {
	return snap.Use(c.FutureSpec(snap), c.Types())
}

// Charge adds the claim to the ledger, one of the snapshot's accounts, or returns the verdict of the limit that does
// not admit it.
func (c *NewClaim) Charge(snap *model.Snapshot, ledger model.Ledger) Verdict {
	use := c.Use(snap)
	if v := LimitVerdict(ledger, use); !v.OK() {
		return v
	}
	ledger.Charge(use)
	return Verdict{}
}

// LimitVerdict returns the verdict of the first limit that does not admit the use.
func LimitVerdict(ledger model.Ledger, use model.Use) Verdict {
	short, found := ledger.Shortage(use)
	if !found {
		return Verdict{}
	}
	switch quota := ledger.Quota(short.Account); {
	case quota != nil:
		return Verdict{Code: QuotaReached, Quota: quota.Name, Name: short.Name, Need: short.Need, Have: short.Left()}
	case short.Name == model.ResourceNodes:
		return Verdict{Code: NodeLimitReached, Have: short.Limit}
	}
	return Verdict{Code: LimitReached, Resource: short.Resource, Need: short.Need, Have: short.Left()}
}
