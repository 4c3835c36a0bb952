package futile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// What a node has less than its type promises counts for the next choice in its pool: types are left out of claims whose
// pods they could not hold either. An amount is stored with the type that lacked it, such as cpu@c-64x: a larger type is
// taken to lack as much, as beside a DaemonSet, a smaller one a part of it in proportion to its size, as of a kernel.

// missing returns what an empty node has less for pods than its type promises: what its DaemonSets take, and what its
// type has more. kind is the name of the type.
func missing(pool *model.Pool, snap *model.Snapshot, n *model.Node) (kind string, amounts []quantity.Amount) {
	promised, known := promise(pool, n.Labels[model.LabelType])
	if !known || n.Stage < model.Initialized {
		return "", nil
	}
	kind = n.Labels[model.LabelType]
	amounts = amountsOf(snap, promised.Sub(n.Free()))
	for i := range amounts {
		amounts[i].Name += "@" + kind
	}
	return kind, amounts
}

// promise returns what the type of the pool has for pods and DaemonSets.
func promise(pool *model.Pool, kind string) (quantity.Vector, bool) {
	if pool == nil || pool.Types == nil {
		return nil, false
	}
	i := slices.IndexFunc(pool.Types.Catalog.Types, func(t model.InstanceType) bool { return t.Name == kind })
	if i < 0 {
		return nil, false
	}
	return pool.Types.Usable[i], true
}

// holding returns those of the types on which pods with the requests fit beside what is missing. known is how many
// of the types the pool has.
func (s *cause) holding(snap *model.Snapshot, kinds []string, requests quantity.Vector) (holding map[string]bool, known int) {
	holding = map[string]bool{}
	for _, kind := range kinds {
		promised, is := promise(snap.Pool(s.pool), kind)
		if !is {
			continue
		}
		if known++; requests.Add(s.lacks(snap, promised)).Fits(promised) {
			holding[kind] = true
		}
	}
	return holding, known
}

// larger returns the claim without the types that cannot hold its pods beside what is missing. If no type can, or the
// pool demands a number of types, the claim is as it was.
func (s *cause) larger(snap *model.Snapshot, c plan.NewClaim) plan.NewClaim {
	if c.Pool != s.pool || s.missing == nil || !slices.ContainsFunc(c.Pods, s.concerns) ||
		slices.ContainsFunc(c.Requirements, func(r label.Requirement) bool { return r.MinValues > 1 }) {
		return c
	}
	kinds := c.Types()
	holding, _ := s.holding(snap, kinds, requests(&c))
	if len(holding) == 0 || len(holding) == len(kinds) {
		return c
	}
	c.Options = slices.DeleteFunc(slices.Clone(c.Options), func(o plan.Option) bool { return !holding[o.Type] })
	c.Requirements = slices.Clone(c.Requirements)
	for i, r := range c.Requirements {
		if r.Key == model.LabelType && r.Operator == label.In {
			r.Values = slices.DeleteFunc(slices.Clone(r.Values), func(kind string) bool { return !holding[kind] })
			c.Requirements[i] = r
		}
	}
	return c
}

// TooSmall reports whether nodes of the claim's pool have shown that one of its types cannot hold its pods.
func TooSmall(snap *model.Snapshot, c *plan.NewClaim) bool {
	pool := snap.Pool(c.Pool)
	if pool == nil {
		return false
	}
	return slices.ContainsFunc(pool.Pauses, func(stored pause.Pause) bool {
		s := causeOf(pool.Name, stored)
		if s == nil || s.missing == nil || !stored.Remembered(snap.Now) ||
			!slices.ContainsFunc(c.Pods, s.concerns) {
			return false
		}
		holding, known := s.holding(snap, c.Types(), requests(c))
		return len(holding) < known
	})
}

// requests returns the sum of what the pods of the claim request.
func requests(c *plan.NewClaim) quantity.Vector {
	all := quantity.Vector{}
	for _, p := range c.Pods {
		all = all.Add(p.Requests)
	}
	return all
}

// raise adds to the missing amounts those of another node, each the larger of both.
func raise(a, b []quantity.Amount) []quantity.Amount {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y quantity.Amount) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(y.Value, x.Value))
	})
	return slices.CompactFunc(all, func(x, y quantity.Amount) bool { return x.Name == y.Name })
}

// amountsOf returns the positive amounts of the vector, whose numbering holds for its snapshot only.
func amountsOf(snap *model.Snapshot, v quantity.Vector) []quantity.Amount {
	var list []quantity.Amount
	for r, name := range snap.Resources {
		if value := v.At(quantity.Resource(r)); value > 0 {
			list = append(list, quantity.Amount{Name: name, Value: value})
		}
	}
	return list
}

// lacks returns what a type that promises so much is taken to lack. Resources that no pod and no type has do not matter.
func (s *cause) lacks(snap *model.Snapshot, promised quantity.Vector) quantity.Vector {
	v := make(quantity.Vector, len(snap.Resources))
	for _, a := range s.missing {
		name, kind, _ := strings.Cut(a.Name, "@")
		r := slices.Index(snap.Resources, name)
		if r < 0 {
			continue
		}
		amount, has := a.Value, promised.At(quantity.Resource(r))
		if shownBy, known := promise(snap.Pool(s.pool), kind); known {
			if of := shownBy.At(quantity.Resource(r)); has < of {
				amount = int64(float64(amount) * float64(has) / float64(of))
			}
		}
		v[r] = max(v[r], amount)
	}
	return v
}

// textOf returns the amounts as a pause stores them.
func textOf(amounts []quantity.Amount) string {
	words := make([]string, len(amounts))
	for i, a := range amounts {
		words[i] = a.Name + "=" + strconv.FormatInt(a.Value, 10)
	}
	return strings.Join(words, ",")
}

// parseAmounts reads what textOf wrote. It ignores what is not an amount: the annotation may have been edited.
func parseAmounts(text string) []quantity.Amount {
	var list []quantity.Amount
	for word := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(word, "=")
		if value, err := strconv.ParseInt(number, 10, 64); err == nil && value > 0 && value < 1<<60 {
			list = append(list, quantity.Amount{Name: name, Value: value})
		}
	}
	return list
}

// short describes of what the node has less than the pod needs, and which DaemonSet takes most of it.
func short(snap *model.Snapshot, n *model.Node, p *model.Pod) string {
	text := "its node has joined with less capacity than the pods need"
	r, is := p.Requests.FirstShort(n.Free())
	if !is || int(r) >= len(snap.Resources) {
		return text
	}
	taker, most := "", int64(0)
	takes := func(name string, amount int64) {
		if amount > most {
			taker, most = name, amount
		}
	}
	for _, d := range n.Pods {
		if d.Daemon {
			takes(ownerName(d), d.Requests.At(r))
		}
	}
	if snap.NodeOrClaim(n.Name) == n { // pods that are about to come
		for _, d := range snap.Daemons {
			if d.Admits(snap.Space, n.Row, n.Taints) {
				takes("DaemonSet "+d.Namespace+"/"+d.Name, d.Requests.At(r))
			}
		}
	}
	if taker == "" {
		return text + ": " + snap.Resources[r] + " is short"
	}
	amount := strconv.FormatInt(most, 10)
	if r == quantity.CPU {
		amount += "m"
	}
	return fmt.Sprintf("%s: %s takes %s %s of it", text, taker, amount, snap.Resources[r])
}
