package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// fewOfferings is the maximum number of offerings without capacity that are named.
const fewOfferings = 3

// shortage returns which offerings that the pods could use the cloud refused for lack of capacity, and when they are
// tried again, or "".
func shortage(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict) string {
	pool := snap.Pool(p.Pool)
	if p.Verdict.Code != plan.NoOffering || len(r.Pods) == 0 || pool == nil || pool.Types == nil {
		return ""
	}
	of := func(g *model.Group) bool {
		return slices.ContainsFunc(g.Pods, func(pod *model.Pod) bool { return pod.UID == r.Pods[0].UID })
	}
	at := slices.IndexFunc(snap.Groups, of)
	if at < 0 {
		return ""
	}
	group := snap.Groups[at]
	var refused refusedOfferings
	for _, row := range group.Rows {
		both := make(label.Row, len(row))
		if !snap.Space.And(both, row, pool.Start) {
			continue
		}
		types := pool.Types.Compatible(both)
		_, classes := pool.Types.Offered(both)
		for t := range types.All() {
			if group.Requests.Fits(pool.Types.Usable[t]) {
				refused.add(pool.Types, t, classes)
			}
		}
	}
	if refused.last.After(snap.Now) { // an offering that is avoided for longer than a refusal holds
		refused.last = snap.Now
	}
	return refused.text()
}

// refusedOfferings are offerings for which the cloud had no capacity.
type refusedOfferings struct {
	names []string
	// shifted are the zones that are being avoided.
	shifted []string
	// interrupted are those that are avoided because of repeated interruptions.
	interrupted []string
	// last is the newest refusal, next the first attempt that follows.
	last, next time.Time
}

// add adds the refused offerings of a type that are in the classes.
func (o *refusedOfferings) add(types *model.TypeIndex, t int, classes []int) {
	of := &types.Catalog.Types[t]
	for i := range of.Offerings {
		offering := &of.Offerings[i]
		name := of.Name + " in " + offering.Zone + " as " + offering.CapacityType
		within := func(c int) bool {
			return types.Classes[c].Zone == offering.Zone && types.Classes[c].CapacityType == offering.CapacityType
		}
		if offering.RetryAt.IsZero() || slices.Contains(o.names, name) || !slices.ContainsFunc(classes, within) {
			continue
		}
		if offering.Interruptions > 0 && !offering.ZoneShifted {
			avoided := name + " is avoided until " + offering.RetryAt.UTC().Format(time.RFC3339) + " after " +
				count(offering.Interruptions, "interruption")
			if !slices.Contains(o.interrupted, avoided) {
				o.interrupted = append(o.interrupted, avoided)
			}
			continue
		}
		if offering.ZoneShifted {
			if !slices.Contains(o.shifted, offering.Zone) {
				o.shifted = append(o.shifted, offering.Zone)
			}
			continue
		}
		o.names = append(o.names, name)
		if offering.RefusedAt.After(o.last) {
			o.last = offering.RefusedAt
		}
		if o.next.IsZero() || offering.RetryAt.Before(o.next) {
			o.next = offering.RetryAt
		}
	}
}

func (o *refusedOfferings) text() string {
	var parts []string
	if len(o.shifted) > 0 {
		parts = append(parts, "traffic is shifted away from "+strings.Join(o.shifted, ", "))
	}
	if len(o.names) > 0 {
		parts = append(parts, o.refusals())
	}
	parts = append(parts, few(o.interrupted)...)
	return strings.Join(parts, "; ")
}

func (o *refusedOfferings) refusals() string {
	return "the cloud had no capacity for " + strings.Join(few(o.names), ", ") + " at " + o.last.UTC().Format(time.RFC3339) +
		", and is asked again from " + o.next.UTC().Format(time.RFC3339) + " on"
}

// few returns the first offerings, and how many more there are.
func few(names []string) []string {
	more := len(names) - fewOfferings
	if more <= 0 {
		return names
	}
	return append(slices.Clone(names[:fewOfferings]), count(more, "other offering"))
}
