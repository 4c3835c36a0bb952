package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// LimitOutcome is a limit of a pool, and how much of it its nodes use.
type LimitOutcome struct {
	Resource string `json:"resource"`
	Used     string `json:"used"`
	Limit    string `json:"limit"`
	// Reached means that no further node fits, of any instance type of the pool. LeastNode is the amount of the smallest
	// type, if the limit is not used up.
	Reached   bool   `json:"reached,omitempty"`
	LeastNode string `json:"leastNode,omitempty"`

	share float64
}

// limitsOf returns the limits of the pool, the one of which most is used first.
func limitsOf(snap *model.Snapshot, pool *model.Pool) []LimitOutcome {
	return limitList(snap.Ledger.Lines(snap.Ledger.Own(pool.Name)...), func(r quantity.Resource) (int64, bool) {
		return leastOf(snap, pool, pool.Start, r)
	})
}

// limitList returns limits, the one of which most is used first. leastOf returns the least amount that a further node has,
// if that is known.
func limitList(lines []model.Line, leastOf func(quantity.Resource) (int64, bool)) []LimitOutcome {
	var list []LimitOutcome
	for _, line := range lines {
		least, known := int64(1), true
		if line.Name != model.ResourceNodes {
			least, known = leastOf(line.Resource)
		}
		l := LimitOutcome{Resource: line.Name, Used: explain.Quantity(line.Name, line.Used), Limit: explain.Quantity(line.Name, line.Limit)}
		if l.Reached = line.Left() == 0; known {
			l.Reached = least > line.Left()
		}
		if l.Reached && line.Left() > 0 {
			l.LeastNode = explain.Quantity(line.Name, least)
		}
		if line.Limit > 0 {
			l.share = float64(line.Used) / float64(line.Limit)
		} else if line.Used > 0 || l.Reached {
			l.share = 1
		}
		list = append(list, l)
	}
	slices.SortStableFunc(list, compareLimits)
	return list
}

// compareLimits orders limits that are reached first, then by share.
func compareLimits(a, b LimitOutcome) int {
	if a.Reached != b.Reached {
		if a.Reached {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.share, a.share)
}

// leastOf returns the least amount that an eligible instance type of the pool with labels of the row has, or its least
// price, and whether there are such types.
func leastOf(snap *model.Snapshot, pool *model.Pool, row label.Row, r quantity.Resource) (least int64, known bool) {
	if pool.Types == nil {
		return 0, false
	}
	row = slices.Clone(row)
	model.PinCommitment(snap.Space, row, "") // limits count the list price
	_, classes := pool.Types.Offered(row)
	compatible := pool.Types.Compatible(row)
	for t := range pool.Eligible.All() {
		if !compatible.Has(t) {
			continue
		}
		amount := pool.Types.Total[t].At(r)
		if snap.Resources[r] == model.ResourceUSD {
			class := pool.Types.Cheapest(t, classes)
			if class < 0 {
				continue
			}
			amount = pool.Types.Classes[class].Price[t]
		}
		if !known || amount < least {
			least, known = amount, true
		}
	}
	return least, known
}

// atLimit returns which limit prevents any launch, "" for none.
func atLimit(limits []LimitOutcome) string {
	if len(limits) == 0 || !limits[0].Reached {
		return ""
	}
	l := &limits[0]
	text := fmt.Sprintf("its nodes use %s of the limit of %s %s", l.Used, l.Limit, unitName(l.Resource))
	if l.LeastNode != "" {
		text += ", and its smallest instance type has " + l.LeastNode
	}
	return text
}

// unitName returns what a limit counts: "of cpu", but "nodes".
func unitName(resource string) string {
	if resource == model.ResourceNodes {
		return resource
	}
	return "of " + resource
}

// writeLimits prints the limits of a pool.
func writeLimits(b *strings.Builder, limits []LimitOutcome) {
	if why := atLimit(limits); why != "" {
		fmt.Fprintf(b, "  is at its limit: %s; no further node is launched\n", why)
	}
	if len(limits) > 0 {
		fmt.Fprintf(b, "  limits: %s\n", limitParts(limits))
	}
}

// limitParts returns each limit with what is used of it.
func limitParts(limits []LimitOutcome) string {
	parts := make([]string, len(limits))
	for i := range limits {
		l := &limits[i]
		parts[i] = fmt.Sprintf("%s %s of %s (%s)", l.Resource, l.Used, l.Limit, strconv.FormatFloat(100*l.share, 'f', 0, 64)+"%")
	}
	return strings.Join(parts, ", ")
}
