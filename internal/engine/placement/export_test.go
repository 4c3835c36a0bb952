package placement

import (
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Exports for the reference implementations ("twins"): a run's view of a rule, as plain data.

// Domains is what a rule between pods reads: by value of its key, the largest and the certain counts, and which domains
// may exist and do exist. For the hostname, Hosts has the counts by node instead.
type Domains struct {
	Key       string
	Most      map[string]int
	Sure      map[string]int
	Possible  map[string]bool
	Certain   map[string]bool
	Hosts     map[string]int
	Elsewhere int // counted under no value; always expected to be 0
}

// SpreadDomains returns what the group's i-th spread constraint reads before any placement.
func SpreadDomains(snap *model.Snapshot, g *model.Group, i int) Domains {
	return domainsOf(snap, g.Spread[i].Key, func(c *counters, r *rules) { c.compileSpread(r, g, i) })
}

// TermDomains returns what the group's i-th affinity or anti-affinity term reads.
func TermDomains(snap *model.Snapshot, g *model.Group, i int) Domains {
	return domainsOf(snap, g.Terms[i].Key, func(c *counters, r *rules) { c.compileTerm(r, g, i) })
}

// CarrierDomains returns the domains that the anti-affinity of other pods with the mark excludes for the group.
func CarrierDomains(snap *model.Snapshot, g *model.Group, mark int) Domains {
	return domainsOf(snap, snap.Marks[mark].Key, func(c *counters, r *rules) { c.compileApart(r, mark, snap.Marks[mark].Key, false) })
}

func domainsOf(snap *model.Snapshot, key string, compile func(*counters, *rules)) Domains {
	c, r := newCounters(snap, nil, &nodeSums{}), &rules{}
	compile(&c, r)
	c.fill()
	d := Domains{Key: key, Most: map[string]int{}, Sure: map[string]int{}, Possible: map[string]bool{},
		Certain: map[string]bool{}, Hosts: map[string]int{}}
	if len(c.all) == 0 {
		for _, n := range snap.Nodes {
			have := c.tallyOf(n, c.coming(n))
			if count := have.At(0); count > 0 {
				d.Hosts[n.Name] = count
			}
		}
		return d
	}
	d.read(snap.Space, c.all[0])
	return d
}

func (d *Domains) read(space *label.Space, c *counter) {
	row := space.All()
	named := 0
	for _, value := range space.Values(row, c.key) {
		atom := space.Atom(c.key, value)
		if n := c.counts[atom]; n > 0 {
			d.Most[value] = n
		}
		if n := c.sure[atom]; n > 0 {
			d.Sure[value] = n
		}
		if c.domains.Has(atom) {
			d.Possible[value] = true
		}
		if c.certain.Has(atom) {
			d.Certain[value] = true
		}
		named += c.counts[atom]
	}
	for _, n := range c.counts {
		d.Elsewhere += n
	}
	d.Elsewhere -= named
}

// ScheduleRows is Schedule, and also returns the rows of the new claims as the plan itself counts them, by claim.
func ScheduleRows(snap *model.Snapshot) (*plan.Provision, map[string]label.Row) {
	s := newScheduler(snap, &Options{}, nil).decided()
	p, rows := s.answer(), map[string]label.Row{}
	for i, b := range s.fleet.bins {
		rows[p.Claims[i].Name] = s.claims.resolved(b)
	}
	return p, rows
}

// DomainTwins returns the domains of all groups with several topology keys, and the domains that result when the whole
// product of the values is examined.
func DomainTwins(snap *model.Snapshot) (got, want [][]string) {
	s := newScheduler(snap, &Options{}, nil)
	s.fleet.open()
	s.nodes.open(s.opts, nil)
	s.queue.fill()
	names := func(list []*domain) []string {
		var all []string
		for _, d := range list {
			all = append(all, fmt.Sprint(d.atoms, d.room, d.launchable, d.price))
		}
		return all
	}
	for _, pg := range s.queue.groups {
		if len(pg.rules.pins) < 2 {
			continue
		}
		product := [][]int{nil}
		for _, key := range pg.rules.pins {
			var longer [][]int
			for atom := range s.assigner.atomsOf(pg, key).All() {
				for _, atoms := range product {
					longer = append(longer, append(slices.Clip(atoms), atom))
				}
			}
			product = longer
		}
		got, want = append(got, names(s.assigner.domains(pg))), append(want, names(s.assigner.usable(pg, product)))
	}
	return got, want
}
