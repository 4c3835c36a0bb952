package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits for the rows of DaemonSets. A DaemonSet costs rows like a pod, and so do its values. Below the limits, every
// DaemonSet is admitted. Above them, the cheapest are admitted first, within the share of their namespace and of the
// whole cluster. The others are set aside: their values are not mentioned, and their pods are not expected on new nodes.

// The limits for the DaemonSets of a namespace are those for the pods of one controller, and the limits for all
// DaemonSets those for the pods of a namespace.
func daemonShares(d *daemonRecord) []share {
	return []share{
		{"namespace/" + d.spec.Namespace, "the DaemonSets of namespace " + d.spec.Namespace, mostOfController},
		{"", "all DaemonSets", mostOfNamespace},
	}
}

// AsideDaemon is a DaemonSet that is not considered, because of what its rows would cost.
type AsideDaemon struct {
	*DaemonSpec
	Why *Rejection
}

// weigh computes the cost of a DaemonSet.
func (d *daemonRecord) weigh() {
	d.terms = max(1, len(d.spec.Alternatives)) - 1
	for _, reqs := range d.spec.Alternatives {
		for _, r := range reqs {
			d.values += max(1, len(r.Values))
		}
	}
	d.between = max(0, len(d.spec.Terms)-fewBetween)
}

// admitDaemons decides which DaemonSets have rows.
func (b *Builder) admitDaemons() {
	if !b.daemonsChanged {
		return
	}
	b.daemonsChanged = false
	var all cost
	for _, d := range b.daemons {
		all = all.plus(d.cost)
	}
	if !all.exceeds(mostOfController) {
		for _, d := range b.daemons {
			b.turnDaemon(d, nil)
		}
		return
	}
	order := slices.SortedFunc(maps.Values(b.daemons), func(c, d *daemonRecord) int {
		return cmp.Or(cmp.Compare(c.sum(), d.sum()), strings.Compare(c.spec.UID, d.spec.UID))
	})
	taken, seen := map[string]cost{}, newSeen()
	for _, d := range order {
		costs := cost{terms: d.terms, between: d.between}
		for _, reqs := range d.spec.Alternatives {
			for _, r := range reqs {
				costs.values += seen.unseenValues(r)
			}
		}
		shares := daemonShares(d)
		exceeded := slices.IndexFunc(shares, func(to share) bool { return taken[to.key].plus(costs).exceeds(to.most) })
		if exceeded >= 0 {
			b.turnDaemon(d, shares[exceeded].daemonRefusal())
			continue
		}
		for _, reqs := range d.spec.Alternatives {
			for _, r := range reqs {
				seen.seeValues(r)
			}
		}
		for _, to := range shares {
			taken[to.key] = taken[to.key].plus(costs)
		}
		b.turnDaemon(d, nil)
	}
}

// turnDaemon admits the DaemonSet, or sets it aside if there is a reason to.
func (b *Builder) turnDaemon(d *daemonRecord, why *Rejection) {
	if why == nil && !d.mentioned {
		b.mention(d.spec.Alternatives...)
	}
	if why != nil && d.mentioned {
		b.unmentioned = fewMentions + 1 // its values make every row longer
	}
	if (why == nil) != (d.aside == nil) {
		d.frozen, b.daemonsDirty = nil, true
	}
	d.mentioned, d.aside = why == nil, why
}

func (s share) daemonRefusal() *Rejection {
	return &Rejection{Unsupported: true, Field: "spec.template.spec.affinity", Reason: fmt.Sprintf("too many alternatives, values or "+
		"terms of pod affinity: %s may have %d terms, %d values that no other names, and %d terms of pod affinity beyond %d for each, and "+
		"those with the fewest come first; its pods are not expected on new nodes",
		s.of, s.most.terms, s.most.values, s.most.between, fewBetween)}
}
