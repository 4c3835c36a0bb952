package world

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/cloud"
)

// lie is a kind of wrong reply of the cloud, for a limited time.
type lie struct {
	what string
	// salt selects the affected machines, share is their percentage; ago is how old replies are.
	salt  uint64
	share int
	ago   time.Duration
	until time.Time
}

// lieKinds are the kinds of wrong replies.
var lieKinds = []string{
	"misses",   // the list lacks machines that a lookup of the single machine finds
	"halves",   // the list ends early
	"repeats",  // the list contains machines twice, also with their state minutes ago
	"foreign",  // the list contains machines of other owners; a lookup may or may not find them
	"old",      // all replies are minutes old
	"blind",    // running machines are not found, neither in the list nor by lookup, and not terminated
	"blind",    // as above, twice as likely
	"fails",    // the list is an error
	"searches", // a lookup is an error
}

// errCloud is the error of a cloud that cannot reply.
var errCloud = errors.New("the cloud is out of order")

// lie makes the cloud give wrong replies for 1 to 20 minutes.
func (p *provider) lie(which, much int) {
	l := lie{what: lieKinds[which%len(lieKinds)], salt: uint64(which*1000 + much), share: []int{10, 30, 60, 100, 100}[much%5]}
	l.ago = time.Duration(1+much%9) * time.Minute
	l.until = p.world.Clock.now.Add(time.Minute + time.Duration(much%20)*time.Minute)
	p.lies = append(p.lies, l)
	p.world.log(fmt.Sprintf("-- the cloud %s (%d of 100, %v ago) for %v", l.what, l.share, l.ago, l.until.Sub(p.world.Clock.now)))
}

// truth ends all wrong replies.
func (p *provider) truth() {
	for i := range p.lies {
		if now := p.world.Clock.now; p.lies[i].until.Add(p.lies[i].ago).After(now) {
			p.lies[i].until, p.lies[i].ago = now, 0
		}
	}
}

// about reports whether the lie affects the machine.
func (l lie) about(id string) bool {
	h := fnv.New64a()
	fmt.Fprintln(h, l.salt, id)
	return int(h.Sum64()%100) < l.share
}

// telling returns the current lies of a kind.
func (p *provider) telling(what string) []lie {
	return slices.DeleteFunc(slices.Clone(p.lies), func(l lie) bool { return l.what != what || !l.until.After(p.world.Clock.now) })
}

// unseen reports whether the cloud does not find the machine although it exists.
func (p *provider) unseen(id string) bool {
	return slices.ContainsFunc(p.telling("blind"), func(l lie) bool { return l.about(id) })
}

// age returns how old the cloud's replies are.
func (p *provider) age() (age time.Duration) {
	for _, l := range p.telling("old") {
		age = max(age, l.ago)
	}
	return age
}

// honest reports whether, for the given time, the cloud would have reported correctly that a machine is gone.
func (p *provider) honest(lately time.Duration) bool {
	return !slices.ContainsFunc(p.lies, func(l lie) bool {
		return (l.what == "old" || l.what == "fails" || l.what == "searches") && p.world.Clock.now.Sub(l.until.Add(l.ago)) < lately
	})
}

// known returns the machines that exist or existed, and those of other owners that the cloud lists as the cluster's.
func (p *provider) known() []*machine {
	all := slices.Collect(maps.Values(p.machines))
	if len(p.lies) > 0 {
		all = append(append(all, slices.Collect(maps.Values(p.ended))...), p.foreigners()...)
	}
	slices.SortFunc(all, func(a, b *machine) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return all
}

// foreigners returns machines of other owners that the cloud lists as machines of this cluster.
func (p *provider) foreigners() []*machine {
	var all []*machine
	for _, l := range p.telling("foreign") {
		for i := range 1 + l.salt%6 {
			m := &machine{hidden: l.salt%2 == 0, Machine: cloud.Machine{ProviderID: fmt.Sprintf("foreign-%d-%d", l.salt, i),
				Claim: fmt.Sprintf("claim-of-others-%d", i), Created: p.world.config.Now.Add(-time.Hour)}}
			if !p.taken[m.ProviderID] {
				all = append(all, m)
			}
		}
	}
	return all
}

// described returns the machine as it was some time ago, and false if it did not exist then.
func (p *provider) described(m *machine, ago time.Duration) (cloud.Machine, bool) {
	then := p.world.Clock.now.Add(-ago)
	if m.Created.After(then) || !m.gone.IsZero() && !m.gone.After(then) {
		return cloud.Machine{}, false
	}
	said := m.Machine
	said.Terminating = !m.ending.IsZero() && !m.ending.After(then)
	return said, true
}

// Machine implements cloud.Provider.
func (p *provider) Machine(_ context.Context, id string) (*cloud.Machine, error) {
	if len(p.telling("searches")) > 0 {
		return nil, errCloud
	}
	for _, m := range p.known() {
		if m.ProviderID != id || m.hidden || p.unseen(id) {
			continue
		}
		if said, there := p.described(m, p.age()); there {
			return &said, nil
		}
	}
	return nil, missing(id)
}

// Machines implements cloud.Provider.
func (p *provider) Machines(context.Context) ([]cloud.Machine, error) {
	if len(p.telling("fails")) > 0 {
		return nil, errCloud
	}
	var list []cloud.Machine
	for _, m := range p.known() {
		said, there := p.described(m, p.age())
		if !there || p.unseen(m.ProviderID) || slices.ContainsFunc(p.telling("misses"), func(l lie) bool { return l.about(m.ProviderID) }) {
			continue
		}
		list = append(list, said)
		for _, l := range p.telling("repeats") {
			if before, was := p.described(m, l.ago); was && l.about(m.ProviderID) {
				list = append(list, said, before)
			}
		}
	}
	for _, l := range p.telling("halves") {
		list = list[:len(list)*(100-l.share/2)/100]
	}
	return list, nil
}

// Terminate implements cloud.Provider.
func (p *provider) Terminate(_ context.Context, id string) error {
	m := p.machines[id]
	switch {
	case p.unseen(id):
		return missing(id)
	case slices.ContainsFunc(p.foreigners(), func(f *machine) bool { return f.ProviderID == id }):
		p.taken[id] = true
	case m == nil:
		return missing(id)
	case m.ending.IsZero():
		m.ending, m.Terminating = p.world.Clock.now, true
		p.world.Clock.in(ending, func() { p.end(m) })
	}
	return nil
}
