package history

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// Hour is a part of the time.
type Hour struct {
	From time.Time `json:"from"`
	// NodeHours are those of all nodes whose times are known. Cost is in USD, Unpriced how many of the nodes have no price.
	NodeHours float64  `json:"nodeHours"`
	Cost      bill.USD `json:"cost" jsonschema:"type=number"`
	Unpriced  int      `json:"unpriced,omitempty"`
	// Saved is the sum over the commands for cost until then of the saving per hour times the time since, within the part,
	// USD.
	Saved    bill.USD `json:"saved" jsonschema:"type=number"`
	Launched int      `json:"launched"`
	Removed  int      `json:"removed"`

	nodes time.Duration
	// length is how much of the part is in the span.
	length time.Duration
}

// Hours is the answer by hour, or by day.
type Hours struct {
	Head

	Hours []*Hour `json:"hours"`
	Total Hour    `json:"total"`
}

// parts are the hours that something is known about.
type parts struct {
	from, until time.Time
	width       time.Duration
	by          map[time.Time]*Hour
}

// Hours returns what each part of the time cost, in UTC. The width is an hour or a day.
func (v *View) Hours(width time.Duration) *Hours {
	a := &Hours{Head: v.head(), Hours: []*Hour{}}
	p := &parts{width: width, by: map[time.Time]*Hour{}}
	p.from, p.until = v.span()
	for _, n := range v.past.Nodes {
		if v.has(n) {
			p.node(n)
		}
	}
	for _, c := range v.past.Commands { // those from before the time save within it
		if c.Saved != nil && v.selects(c) {
			p.each(c.Time, p.until, func(h *Hour, d time.Duration) { h.Saved += c.SavingPerHour.Over(d) })
		}
	}
	for _, h := range p.by {
		h.NodeHours = h.nodes.Hours()
		a.Hours = append(a.Hours, h)
	}
	slices.SortFunc(a.Hours, func(x, y *Hour) int { return x.From.Compare(y.From) })
	a.Total = totalOf(a.Hours)
	return a
}

func totalOf(hours []*Hour) Hour {
	var t Hour
	for _, h := range hours {
		t.nodes, t.length = t.nodes+h.nodes, t.length+h.length
		t.Cost, t.Saved = t.Cost+h.Cost, t.Saved+h.Saved
		t.Launched, t.Removed, t.Unpriced = t.Launched+h.Launched, t.Removed+h.Removed, max(t.Unpriced, h.Unpriced)
	}
	if len(hours) > 0 {
		t.From = hours[0].From
	}
	t.NodeHours = t.nodes.Hours()
	return t
}

// node adds what a node cost in each part.
func (p *parts) node(n *Node) {
	if n.Launched != nil {
		p.count(*n.Launched, func(h *Hour) { h.Launched++ })
	}
	if n.Deleted != nil && !n.failed {
		p.count(*n.Deleted, func(h *Hour) { h.Removed++ })
	}
	from, to, known := n.paid(p.until)
	if !known {
		return
	}
	p.each(from, to, func(h *Hour, d time.Duration) {
		h.nodes += d
		if n.PricePerHour == nil {
			h.Unpriced++
			return
		}
		h.Cost += n.PricePerHour.Over(d)
	})
}

func (p *parts) count(at time.Time, add func(*Hour)) {
	if !at.Before(p.from) && !at.After(p.until) {
		add(p.part(at.Truncate(p.width)))
	}
}

// each calls add for each part of a time, as far as it is in the span, with how long that is.
func (p *parts) each(from, to time.Time, add func(*Hour, time.Duration)) {
	if from.Before(p.from) {
		from = p.from
	}
	if to.After(p.until) {
		to = p.until
	}
	for at := from.Truncate(p.width); at.Before(to); at = at.Add(p.width) {
		if d := overlap(at, at.Add(p.width), from, to); d > 0 {
			add(p.part(at), d)
		}
	}
}

func (p *parts) part(at time.Time) *Hour {
	if p.by[at] == nil {
		p.by[at] = &Hour{From: at, length: overlap(at, at.Add(p.width), p.from, p.until)}
	}
	return p.by[at]
}

func overlap(a, b, from, to time.Time) time.Duration {
	if from.After(a) {
		a = from
	}
	if to.Before(b) {
		b = to
	}
	return max(0, b.Sub(a))
}
