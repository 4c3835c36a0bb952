package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// resourceNodes is the resource name with which a pool limits the number of its nodes.
const resourceNodes = corev1.ResourceName("nodes")

// offering is a type in one zone and capacity type.
type offering struct{ instanceType, zone, capacityType string }

// pool is a NodePool with the labels of its nodes, and the requirements that select offerings.
type pool struct {
	name         string
	weight       int32
	taints       []corev1.Taint
	limits       amounts
	labels       map[string]string
	requirements []expression
}

// newPool turns requirements into node labels if only the pool knows their key and they name one value. Other
// requirements with such keys select no offerings.
func newPool(p *karpv1.NodePool, providerKeys map[string]bool) *pool {
	template := &p.Spec.Template
	n := &pool{name: p.Name, taints: template.Spec.Taints, limits: amountsOf(p.Spec.Limits), labels: map[string]string{}}
	if p.Spec.Weight != nil {
		n.weight = *p.Spec.Weight
	}
	maps.Copy(n.labels, template.ObjectMeta.Labels)
	n.labels[workload.LabelPool] = p.Name
	for _, r := range template.Spec.Requirements {
		_, own := n.labels[r.Key]
		switch {
		case own || providerKeys[r.Key] || slices.Contains(wellKnown, r.Key):
			n.requirements = append(n.requirements, expression{r.Key, string(r.Operator), r.Values})
		case r.Operator == "In" && len(r.Values) == 1:
			n.labels[r.Key] = r.Values[0]
		}
	}
	return n
}

// catalog holds the offers, and which pools may launch them.
type catalog struct {
	types       map[string]*workload.InstanceType
	capacity    map[string]amounts
	allocatable map[string]amounts
	prices      map[offering]float64
	pools       map[string]*pool
	poolOrder   []*pool
	offers      map[string][]offer // by pool
	groups      map[string][]offerGroup
}

// offer is an offering that a pool may launch.
type offer struct {
	instanceType string
	labels       map[string]string
}

// offerGroup is a set of offers with the same values of some labels.
type offerGroup struct {
	labels map[string]string
	types  []string
}

func newCatalog(w *workload.World) (*catalog, error) {
	c := &catalog{
		types: map[string]*workload.InstanceType{}, capacity: map[string]amounts{}, allocatable: map[string]amounts{},
		prices: map[offering]float64{}, pools: map[string]*pool{}, offers: map[string][]offer{}, groups: map[string][]offerGroup{},
	}
	providerKeys := map[string]bool{}
	for _, key := range w.ProviderLabels {
		providerKeys[key] = true
	}
	for i := range w.Types {
		for key := range w.Types[i].Labels {
			providerKeys[key] = true
		}
		if err := c.addType(&w.Types[i]); err != nil {
			return nil, fmt.Errorf("instance type %s: %w", w.Types[i].Name, err)
		}
	}
	for i := range w.Pools {
		p := newPool(&w.Pools[i], providerKeys)
		c.pools[p.name], c.poolOrder = p, append(c.poolOrder, p)
		for j := range w.Types {
			c.addOffers(p, &w.Types[j])
		}
	}
	return c, nil
}

func (c *catalog) addType(t *workload.InstanceType) error {
	capacity, err := parse(t.Capacity)
	if err != nil {
		return err
	}
	overhead, err := parse(t.Overhead)
	if err != nil {
		return err
	}
	free := amounts{}
	for name, n := range capacity {
		free[name] = max(0, n-overhead[name])
	}
	c.types[t.Name], c.capacity[t.Name], c.allocatable[t.Name] = t, capacity, free
	for _, o := range t.Offerings {
		if o.Available {
			c.prices[offering{t.Name, o.Zone, o.CapacityType}] = float64(o.Price)
		}
	}
	return nil
}

func parse(texts map[string]string) (amounts, error) {
	a := amounts{}
	for name, text := range texts {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, text, err)
		}
		a[corev1.ResourceName(name)] = q.MilliValue()
	}
	return a, nil
}

func (c *catalog) addOffers(p *pool, t *workload.InstanceType) {
	for _, o := range t.Offerings {
		if labels := c.labels(p, offering{t.Name, o.Zone, o.CapacityType}); o.Available && allHold(p.requirements, labels) {
			c.offers[p.name] = append(c.offers[p.name], offer{t.Name, labels})
		}
	}
}

// labels returns the labels of a node that the pool would launch as an offering.
func (c *catalog) labels(p *pool, o offering) map[string]string {
	t := c.types[o.instanceType]
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[workload.LabelType], labels[workload.LabelArch], labels[workload.LabelOS] = o.instanceType, t.Arch, t.OS[0]
	labels[workload.LabelZone], labels[workload.LabelCapacity] = o.zone, o.capacityType
	maps.Copy(labels, p.labels)
	return labels
}

// groupedBy groups the pool's offers by their values of the given labels, the only ones that matter.
func (c *catalog) groupedBy(p *pool, keys []string) []offerGroup {
	at := p.name + fmt.Sprintf("%q", keys)
	if known, ok := c.groups[at]; ok {
		return known
	}
	index := map[string]int{}
	var groups []offerGroup
	for _, o := range c.offers[p.name] {
		var values strings.Builder
		for _, key := range keys {
			value, has := o.labels[key]
			fmt.Fprintf(&values, "%t%q", has, value)
		}
		i, ok := index[values.String()]
		if !ok {
			i = len(groups)
			index[values.String()] = i
			groups = append(groups, offerGroup{labels: o.labels})
		}
		groups[i].types = append(groups[i].types, o.instanceType)
	}
	for i := range groups {
		slices.Sort(groups[i].types)
		groups[i].types = slices.Compact(groups[i].types)
	}
	c.groups[at] = groups
	return groups
}

// couldHold reports whether an offer of the pool holds the pod alone. room is the remainder of the pool's limits; nil
// means no limit.
func (c *catalog) couldHold(p *pool, of *pod, room amounts, effects []corev1.TaintEffect) bool {
	if !of.rule.tolerates(p.taints, effects) {
		return false
	}
	for _, g := range c.groupedBy(p, of.rule.keys) {
		if !of.rule.selected(g.labels) || !of.rule.affine(g.labels, "") {
			continue
		}
		for _, t := range g.types {
			if of.request.fits(c.allocatable[t]) && within(c.capacity[t], room) {
				return true
			}
		}
	}
	return false
}

// within reports whether one more node of that capacity fits into the room.
func within(capacity, room amounts) bool {
	for name, left := range room {
		used := capacity[name]
		if name == resourceNodes {
			used = 1000
		}
		if used > left {
			return false
		}
	}
	return true
}
