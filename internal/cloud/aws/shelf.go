package aws

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// shelf caches the instance types of each class. An assortment is rebuilt when its inputs have changed: the class, the
// types, the memory seen on nodes, the address family. Its catalog is rebuilt when prices or refusals have changed.
// Both are shared by all callers, and replaced instead of modified.
type shelf struct {
	settings    instance.Settings
	memory      *instance.Memory
	prices      *instance.Prices
	unavailable *instance.Unavailable
	now         func() time.Time

	mu sync.Mutex
	// stock holds the types that EC2 has. version counts its replacements.
	stock   []catalog.Type
	byName  map[string]*catalog.Type
	version uint64
	places  map[types.UID]map[string]*place
}

// mostVariants is the maximum number of places per class: pools may have their own kubelet settings, which change.
const mostVariants = 50

// place is the cache entry of one class with the kubelet settings that a pool sets instead of the class's
// (userdata.WithKubelet). Its lock is held while it is filled, so that concurrent callers fill it once.
type place struct {
	mu         sync.Mutex
	key        string
	assortment *instance.Assortment
	market     marketState
	catalogue  []cloud.InstanceType
}

// marketState identifies the versions of prices and refusals that a catalog was built from.
type marketState struct {
	prices, refusals uint64
	// until is when the next refusal expires. Zero means never.
	until time.Time
}

func newShelf(p *Provider, stock []catalog.Type) *shelf {
	s := &shelf{
		settings: instance.Settings{Region: p.opts.Region, MemoryOverheadPercent: p.opts.MemoryOverheadPercent,
			ReservedENIs: p.opts.ReservedENIs},
		memory: p.memory, prices: p.prices, unavailable: p.unavailable, now: p.opts.Clock.Now, places: map[types.UID]map[string]*place{},
	}
	s.setTypes(stock)
	return s
}

func (s *shelf) setTypes(stock []catalog.Type) {
	byName := make(map[string]*catalog.Type, len(stock))
	for i := range stock {
		byName[stock[i].Name] = &stock[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stock, s.byName = stock, byName
	s.version++
}

// types returns the types that EC2 has. They must not be modified.
func (s *shelf) types() []catalog.Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stock
}

// typeOf returns the type of the given name.
func (s *shelf) typeOf(name string) (*catalog.Type, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.byName[name]
	return t, known
}

// forget drops a deleted class.
func (s *shelf) forget(class types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places, class)
}

// goods holds the current instance types of a class. It must not be modified.
type goods struct {
	assortment *instance.Assortment
	types      []cloud.InstanceType
}

// of returns the instance types of the class. It fails if a setting of the class is invalid.
func (s *shelf) of(class *awsv1.EC2NodeClass, ipv6 bool) (goods, error) {
	s.mu.Lock()
	variant := class.Annotations[karpv1.AnnotationKubelet]
	variants := s.places[class.UID]
	if variants == nil || len(variants) >= mostVariants && variants[variant] == nil {
		variants = map[string]*place{}
		s.places[class.UID] = variants
	}
	p := variants[variant]
	if p == nil {
		p = &place{}
		variants[variant] = p
	}
	stock, version := s.stock, s.version
	s.mu.Unlock()

	p.mu.Lock()
	defer p.mu.Unlock()
	facts := instance.ClassOf(class)
	settings := s.settings
	settings.IPv6 = ipv6
	key, err := keyOf(&facts, version, s.memory.Version(), ipv6)
	if err != nil {
		return goods{}, err
	}
	if p.key != key {
		assortment, err := instance.NewAssortment(stock, &facts, &settings, s.memory.Least)
		if err != nil {
			return goods{}, err
		}
		p.key, p.assortment, p.catalogue = key, assortment, nil
	}
	if state := s.state(); p.catalogue == nil || !p.market.holds(state, s.now()) {
		p.catalogue = p.assortment.Catalogue(&instance.Market{OnDemand: s.prices.OnDemand, Spot: s.prices.Spot, Unavailable: s.unavailable.Has})
		p.market = state
	}
	return goods{p.assortment, p.catalogue}, nil
}

// state is read before a catalog is built, so that a concurrent change causes another build.
func (s *shelf) state() marketState {
	state := marketState{prices: s.prices.Version(), refusals: s.unavailable.Version()}
	if at, any := s.unavailable.NextExpiry(); any {
		state.until = at
	}
	return state
}

func (m marketState) holds(now marketState, at time.Time) bool {
	return m.prices == now.prices && m.refusals == now.refusals && (m.until.IsZero() || at.Before(m.until))
}

// keyOf returns a key that differs for classes that may have different instance types. The order of subnets depends on
// their free addresses and is irrelevant here.
func keyOf(class *instance.Class, stock, memory uint64, ipv6 bool) (string, error) {
	subnets := map[instance.Subnet]bool{}
	for _, subnet := range class.Subnets {
		subnets[subnet] = true
	}
	plain := *class
	plain.Subnets = nil
	text, err := json.Marshal(plain)
	if err != nil {
		return "", fmt.Errorf("reading EC2NodeClass %q: %w", class.Name, err)
	}
	return fmt.Sprint(string(text), sortedSubnets(subnets), stock, memory, ipv6), nil
}

func sortedSubnets(subnets map[instance.Subnet]bool) []string {
	var list []string
	for subnet := range maps.Keys(subnets) {
		list = append(list, subnet.ID+" "+subnet.Zone+" "+subnet.ZoneID)
	}
	slices.Sort(list)
	return list
}
