package audit

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// promise holds what a claim tells the cloud: its requirements, and the labels that the node has in any case.
type promise struct {
	requirements []label.Requirement
	labels       map[string]string
	requests     []quantity.Amount
	catalog      *model.Catalog
	words        vocabulary
	// named holds the types that the requirements allow by name. It is a map because the lists are long.
	named map[string]bool
	// other holds the requirements with other keys.
	other []label.Requirement
	// open caches the values of labels that no type determines.
	open map[string][]value
	// defined holds custom labels that a pool defines and that have no value yet.
	defined map[string]bool
}

func (j *judge) promise(reqs []label.Requirement, labels map[string]string, requests []quantity.Amount, c *model.Catalog) *promise {
	p := &promise{requirements: reqs, labels: labels, requests: requests, catalog: c, words: j.words, open: map[string][]value{}}
	for _, r := range reqs {
		if r.Key != model.LabelType || r.Operator != label.In {
			p.other = append(p.other, r)
			continue
		}
		names := map[string]bool{}
		for _, name := range r.Values {
			if p.named == nil || p.named[name] {
				names[name] = true
			}
		}
		p.named = names
	}
	return p
}

// outcome is one machine that the cloud may launch for a promise.
type outcome struct {
	*promise
	kind     *model.InstanceType
	offering *model.Offering
}

// outcomes returns what the cloud may launch for the promise: types with room for the requests, and their offerings,
// that together have a value for every required label. Unavailable offerings are included: they may be available
// again at launch.
func (p *promise) outcomes() []outcome {
	if p.catalog == nil {
		return nil
	}
	var all []outcome
	for i := range p.catalog.Types {
		t := &p.catalog.Types[i]
		if p.named != nil && !p.named[t.Name] {
			continue
		}
		if _, short := amountsOf(p.requests).short(amountsOf(t.Allocatable)); short {
			continue
		}
		for k := range t.Offerings {
			o := outcome{p, t, &t.Offerings[k]}
			if o.possible() {
				all = append(all, o)
			}
		}
	}
	return all
}

func (o outcome) possible() bool {
	for _, r := range o.other {
		if key := canonical(r.Key); len(allowed(o.other, key, o.decided(key))) == 0 {
			return false
		}
	}
	return true
}

// decided returns the values that the type, the offering and the labels of the claim allow for a label. It ignores
// the requirements of the claim.
func (o outcome) decided(key string) []value {
	switch key {
	case model.LabelType:
		return just(o.kind.Name)
	case model.LabelZone:
		return just(o.offering.Zone)
	case model.LabelCapacityType:
		return just(o.offering.CapacityType)
	case model.LabelHostname:
		return o.words.unknown(key)
	case model.LabelRegistered, model.LabelInitialized:
		return just("true")
	}
	for _, reqs := range [][]label.Requirement{o.offering.Requirements, o.kind.Requirements} {
		if says(reqs, key) {
			return o.words.stated(reqs, key)
		}
	}
	return o.undecided(key)
}

// stated returns the values that requirements of a type allow, usually the single value of an In requirement.
func (w vocabulary) stated(reqs []label.Requirement, key string) []value {
	for _, r := range reqs {
		if canonical(r.Key) == key && r.Operator == label.In {
			var values []value
			for _, text := range r.Values {
				values = append(values, value{text, true})
			}
			return allowed(reqs, key, values)
		}
	}
	return allowed(reqs, key, w.everything(key))
}

// undecided returns the values of a label that only the claim can determine.
func (p *promise) undecided(key string) []value {
	if text, ok := p.labels[key]; ok {
		return just(text)
	}
	if !p.catalog.WellKnown[key] && !p.defined[key] {
		return absent
	}
	if p.open[key] == nil {
		p.open[key] = p.words.everything(key)
	}
	return p.open[key]
}

// values is the labeling of the planned node.
func (o outcome) values(key string) []value {
	return allowed(o.other, key, o.decided(key))
}

func (o outcome) String() string {
	return o.kind.Name + " in " + o.offering.Zone + " as " + o.offering.CapacityType
}
