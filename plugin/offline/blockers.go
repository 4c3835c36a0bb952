package offline

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// blocker is what keeps nodes, and the change that lifts it; nil if nothing does.
type blocker struct {
	view.Blocker
	lift *Change
	// kept are the verdicts that it causes; the first of a node counts it.
	kept  []disruption.Kept
	nodes map[string]bool
}

// savings are the blockers, and which of their savings are computed. What is computed is kept.
type savings struct {
	mu sync.Mutex // guards the elements of the list
	// turn has an entry while savings are computed.
	turn chan struct{}
	list func() []blocker
}

// savingsAtOnce is how many savings are computed at the same time, if there are as many processors. Each has a snapshot of its
// own, which takes about 100 MiB with 5,000 nodes.
const savingsAtOnce = 4

// Savings returns what keeps nodes with the price of these nodes, the highest first, and by how much the fleet at rest is
// cheaper without each. It computes savings in this order, and stops when that took longer than a time; a further call goes
// on. It ends early with the context. tell is given what is known after each.
func (o *Overview) Savings(ctx context.Context, longest time.Duration, tell func(*view.Savings)) (*view.Savings, error) {
	s := &o.saved
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list := s.list()
	base, err := o.Plan(ctx, nil)
	if err != nil {
		return nil, err
	}
	var telling sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(savingsAtOnce, runtime.GOMAXPROCS(0)))
	stopped, began := false, time.Now()
	for i := range list {
		b := &list[i]
		if b.Known || b.lift == nil {
			continue
		}
		if stopped = time.Since(began) > longest; stopped {
			break
		}
		group.Go(func() error { // waits while as many are computed
			err := o.lift(ctx, b, base)
			telling.Lock()
			defer telling.Unlock()
			if err == nil {
				tell(s.soFar())
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	known := s.soFar()
	known.Stopped = stopped
	return known, nil
}

// Blockers returns what keeps nodes with the price of these nodes, without waiting for savings.
func (o *Overview) Blockers() *view.Savings { return o.saved.soFar() }

// lift computes the saving without the blocker: what the fleet at rest costs, less what it costs when the plan goes on
// from there without the blocker. One that cannot be lifted is listed without a saving from then on.
func (o *Overview) lift(ctx context.Context, b *blocker, base *view.Plan) error {
	changed, refused := o.changed(b.lift)
	saving := 0.0
	if refused == nil {
		r := newPlanRecorder(changed, changed.after(o))
		if err := r.removeAll(ctx, nil); err != nil {
			return err
		}
		saving = base.After.Price - figuresFor(r.d.figures(r.d.last)).Price
	}
	o.saved.mu.Lock()
	defer o.saved.mu.Unlock()
	if refused != nil {
		b.lift = nil
		return nil
	}
	b.Saving, b.Known = max(0, saving), true
	return nil
}

// after returns the snapshot as it would be if the plan of another overview, of the same nodes and pods, had been carried
// out before the objects became these.
func (o *Overview) after(other *Overview) *model.Snapshot {
	return at(disruption.Transfer(other.snap, other.rest, o.snap), other.rest.Now, o.w.poolObjects())
}

// soFar returns what is known of the blockers now.
func (s *savings) soFar() *view.Savings {
	list := s.list()
	s.mu.Lock()
	defer s.mu.Unlock()
	known := &view.Savings{Blockers: make([]view.Blocker, len(list))}
	for i := range list {
		b := &known.Blockers[i]
		*b = list[i].Blocker
		if b.Fixed = list[i].lift == nil; !b.Fixed {
			known.Of++
		}
		if b.Known {
			known.Done++
		}
	}
	return known
}

// findBlockers groups the nodes that are kept now by what keeps them, the most expensive first. Nodes that are kept
// because nothing cheaper was found are not among them: nothing keeps them but their pods.
func (o *Overview) findBlockers() []blocker {
	d := o.disruptNow()
	at, list := map[string]int{}, []blocker{}
	for _, k := range d.proposal.Kept {
		n := d.first.Node(k.Node)
		if n == nil {
			continue
		}
		b := o.blockerOf(n, k)
		if b.Kind == "" {
			continue
		}
		id := b.Kind + "|" + b.Name
		i, known := at[id]
		if !known {
			i = len(list)
			b.nodes = map[string]bool{}
			at[id], list = i, append(list, b)
		}
		first := &list[i]
		if first.nodes[k.Node] {
			continue
		}
		first.nodes[k.Node], first.kept = true, append(first.kept, k)
		first.Nodes = append(first.Nodes, k.Node)
		if first.Held += usd(n.LeastPrice()); n.LeastPrice() == 0 {
			first.Unpriced++
		}
		if first.lift != nil && b.lift != nil && first.lift != b.lift {
			for name := range b.lift.unprotected {
				first.lift.unprotected[name] = true
			}
		}
	}
	for i := range list {
		if ends := disruption.ChangesAt(d.first, d.opts, list[i].kept...); !ends.IsZero() {
			list[i].Changes = ends.UTC().Format(time.RFC3339)
		}
	}
	slices.SortFunc(list, func(a, b blocker) int {
		return cmp.Or(cmp.Compare(b.Held, a.Held), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return list
}

// blockerOf returns what keeps a node. It has no kind if nothing does that could be lifted, and if it ends soon by
// itself.
func (o *Overview) blockerOf(n *model.Node, k disruption.Kept) blocker {
	v := k.Verdict
	b := blocker{Blocker: view.Blocker{Name: k.Pool, Code: explain.Code(v.Code), Text: explain.Verdict(o.snap, v)}}
	switch v.Code {
	case plan.PDBBlocks, plan.PDBsConflict:
		b.Kind = "PodDisruptionBudget"
		if v.Holder != nil && v.Holder.PDB != "" {
			b.Name, b.lift = v.Holder.PDB, &Change{withoutPDB: v.Holder.PDB}
		}
	case plan.NodeProtected:
		b.protected(n, v)
	case plan.BudgetExhausted, plan.BudgetUnreadable:
		b.Kind = "Budget"
		if pool := o.snap.Pool(k.Pool); pool != nil && slices.ContainsFunc(pool.Budgets,
			func(x model.Budget) bool { return !x.Changes.IsZero() }) {
			b.Kind = "Window of a budget"
		}
		b.lift = ofPool(k.Pool, func(p *karpv1.NodePool) { p.Spec.Disruption.Budgets = []karpv1.Budget{} })
	case plan.PolicyForbids:
		b.Kind = "Policy of the pool"
		b.lift = ofPool(k.Pool, func(p *karpv1.NodePool) {
			p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
			p.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(0)
		})
	case plan.SavingTooSmall, plan.ScoreTooLow:
		b.Kind = "Price of moving"
		b.lift = ofPool(k.Pool, func(p *karpv1.NodePool) {
			annotate(p, karpv1.AnnotationMovePrice, "0")
			annotate(p, karpv1.AnnotationMinSaving, "0")
			annotate(p, karpv1.AnnotationMinStay, "0s")
			p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
		})
	case plan.SpotForbidden:
		b.Kind, b.lift = "Feature gate", &Change{SpotToSpot: true}
		b.Name = "SpotToSpotConsolidation"
	case plan.PriceUnknown:
		b.Kind = "Unknown price"
	case plan.PoolGone, plan.PoolRefused:
		b.Kind, b.Name = "Missing NodePool", cmp.Or(k.Pool, n.Pool, "(none)")
	case plan.Paused:
		b.Kind = "Failed replacements"
	}
	return b
}

// protected sets the annotation of a node or a pod as what keeps the node.
func (b *blocker) protected(n *model.Node, v plan.Verdict) {
	b.Kind = "Annotation of a node"
	if n == nil {
		return
	}
	b.Name = n.Name
	names := map[string]bool{n.Name: true}
	if v.Holder != nil {
		b.Kind = "Annotation of pods"
		for _, p := range n.Pods {
			if p.Key() == v.Holder.Pod {
				b.Name = workloadKey(p)
			}
		}
		names = map[string]bool{v.Holder.Pod: true}
	}
	b.lift = &Change{unprotected: names}
}

// ofPool is a change of one pool.
func ofPool(name string, change func(*karpv1.NodePool)) *Change {
	return &Change{pools: func(p *karpv1.NodePool) {
		if p.Name == name {
			change(p)
		}
	}}
}

func annotate(p *karpv1.NodePool, key, value string) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = value
}
