package offline

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// mirror is the state that the controller would have of the objects, and what answers say about them besides.
type mirror struct {
	*state.State
	// idle are pods that wait for something other than a node.
	idle []idlePod
	// problems are the objects that the state ignores, and instance types that are invalid.
	problems []error
	// overlays say what the NodeOverlays do, resolved for pools; nil without any.
	overlays []OverlayOutcome
	resolved *overlay.Outcome
	// rules say what of the price file has no effect.
	rules []string
	pools []overlay.Pool
	// requests are what the buffers ask for.
	requests []*room.Request
	// invalidQuotas are the CapacityQuotas without effect.
	invalidQuotas []invalidQuota
}

// idlePod is a pod that needs no node from Karpenter, and why.
type idlePod struct {
	pod string
	why plan.Verdict
}

// mirror shows all objects to a new state, those first that others depend on.
func (o *Manifests) mirror() *mirror {
	m := &mirror{State: state.New(o.config())}
	m.Expect(len(o.pods))
	m.Advance(o.now)
	for _, other := range o.others.list {
		m.Saw(other)
	}
	show(m, o.nodes)
	show(m, o.claims)
	for controller, by := range o.templates {
		m.Creates(controller, by)
	}
	m.showPods(o)
	show(m, o.daemons)
	show(m, o.budgets)
	show(m, o.quotas)
	show(m, o.overlays)
	show(m, o.pools)
	m.offer(o)
	m.ask(o)
	m.judge(o)
	return m
}

// config returns the configuration of the state: as far as it depends on the controller only, that of a capture of one.
func (o *Manifests) config() state.Config {
	c := state.Config{Declared: o.sale.Declared, Classes: o.classes, DefaultSpread: o.defaultSpread, Pods: o.podRules, Selection: o.selection}
	c.Replicas = o.options != nil && o.options.Replicas
	return c
}

// show shows objects to the state.
func show[T state.Object](m *mirror, objects []sourced[T]) {
	for _, o := range objects {
		m.Saw(o.object)
	}
}

// showPods shows the pods that would be stored, and records which of them need no node.
func (m *mirror) showPods(o *Manifests) {
	for _, p := range o.pods {
		if why := o.forbidden(p); why != nil {
			m.idle = append(m.idle, idlePod{key(p.object), plan.Verdict{Code: plan.PodInvalid, Rejection: why}})
			continue
		}
		m.Saw(p.object)
		if !waiting(p.object) {
			continue
		}
		if why := m.Waits(p.object); why != nil {
			m.idle = append(m.idle, idlePod{key(p.object), plan.Verdict{Code: plan.PodWaiting, Rejection: why}})
		}
	}
}

// judge records which objects have no effect, and why.
func (m *mirror) judge(o *Manifests) {
	origins := map[string]string{}
	for _, c := range o.claims {
		origins["NodeClaim "+c.object.Name] = c.origin
	}
	for _, n := range o.nodes {
		origins["Node "+n.object.Name] = n.origin
	}
	for _, r := range m.Rejected() {
		if origin, known := origins[r.Kind+" "+r.Name]; known {
			m.problems = append(m.problems, fmt.Errorf("%s: %s: %s", origin, r.Why.Field, r.Why.Reason))
		}
	}
	for _, q := range o.quotas {
		if err := m.QuotaProblem(q.object.Name); err != nil {
			m.invalidQuotas = append(m.invalidQuotas, invalidQuota{q.object.Name, OneLine(err)})
		}
	}
}

// poolStock is what a pool can launch, or why nothing.
type poolStock struct {
	*model.Catalog
	why   string
	types []cloud.InstanceType
	own   *convert.Vocabulary
}

func (m *mirror) catalog(types []cloud.InstanceType, v *convert.Vocabulary) *model.Catalog {
	catalog, wrong := convert.Catalog(types, v)
	for _, r := range wrong {
		m.problems = append(m.problems, fmt.Errorf("instance types: %s: %s", r.Field, r.Reason))
	}
	return catalog
}

// offer sets what each pool can launch.
func (m *mirror) offer(o *Manifests) {
	stocks, overlaid := m.stocks(o), make([]overlay.Pool, len(o.pools))
	for i, s := range stocks {
		pool := o.pools[i].object
		overlaid[i] = overlay.Pool{Name: pool.Name, Labels: pool.Spec.Template.ObjectMeta.Labels, Types: s.types}
	}
	m.resolve(o, overlaid)
	changed := map[*cloud.InstanceType]*model.Catalog{}
	for i, s := range stocks {
		if types := m.overlaid(overlaid[i]); len(types) > 0 && &types[0] != &s.types[0] {
			if changed[&types[0]] == nil {
				changed[&types[0]] = m.catalog(types, s.own)
			}
			s.Catalog = changed[&types[0]]
		}
		m.SetTypes(o.pools[i].object, s.Catalog, s.why)
	}
	for _, r := range o.refused {
		m.Exclude(r.name, r.why)
	}
}

// stocks returns what each pool can launch, without changes of NodeOverlays.
func (m *mirror) stocks(o *Manifests) []poolStock {
	var common, none poolStock
	named, classes := map[string]poolStock{}, map[string]poolStock{}
	for i := range o.sale.Catalogs {
		c := &o.sale.Catalogs[i]
		s := poolStock{why: cmp.Or(c.Reason, "there are no instance types")}
		if c.Reason == "" {
			s.types, s.own = c.Types, m.Vocabulary()
			if c.Declared != nil {
				s.own = convert.NewVocabulary(*c.Declared, o.classes...)
			}
			s.Catalog = m.catalog(c.Types, s.own)
			m.OfferPrices(s.Catalog)
		}
		for _, pool := range c.Pools {
			named[pool] = s
		}
		switch {
		case c.Class != "":
			classes[c.Class] = s
		case len(c.Pools) == 0:
			common = s
		}
	}
	stocks := make([]poolStock, len(o.pools))
	for i := range o.pools {
		pool := o.pools[i].object
		s, known := named[pool.Name]
		if ref := classOf(pool); !known && ref.Group == awsv1.Group && len(classes) > 0 {
			if s, known = classes[ref.Name]; !known {
				s, known = none, true
				s.why = fmt.Sprintf("%s %s is not among those of the capture", ref.Kind, ref.Name)
			}
		}
		if !known {
			s = common
		}
		stocks[i] = s
	}
	return stocks
}

// ask shows the virtual pods of the buffers to the state.
func (m *mirror) ask(o *Manifests) {
	for _, b := range o.buffers.objects {
		if b.object.DeletionTimestamp == nil {
			m.requests = append(m.requests, o.buffers.request(b.object))
		}
	}
	room.Sort(m.requests)
	room.Allot(m.requests, func(namespace string) []corev1.ResourceQuota { return o.buffers.quotas[namespace] }, o.now)
	for _, q := range m.requests {
		if q.Shape != nil {
			q.Refused = m.SetVirtual(model.VirtualBuffer, string(q.Buffer.UID), "", q.Pods)
		}
	}
}

// classOfAssumed returns the reference to the node class of a claim that is assumed for a node.
func (o *Manifests) classOfAssumed(claim *karpv1.NodeClaim) karpv1.NodeClassReference {
	if pool, _ := o.pool(claim.Labels[karpv1.LabelNodePool]); pool != nil {
		return classOf(pool)
	}
	kind := o.classes[0]
	return karpv1.NodeClassReference{Group: kind.Group, Kind: kind.Kind}
}
