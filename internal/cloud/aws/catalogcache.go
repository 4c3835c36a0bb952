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
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/expression"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// catalogCache caches the instance types of each class. A type set is rebuilt when its inputs have changed: the class,
// the types, the memory seen on nodes, the address family. Its catalog is rebuilt when prices or refusals have changed.
// Both are shared by all callers, and replaced instead of modified.
type catalogCache struct {
	settings    instance.Settings
	memory      *instance.Memory
	prices      *instance.Prices
	windows     *instance.WindowsPrices
	unavailable *instance.Unavailable
	reserved    *instance.Reserved
	interrupted *instance.Interruptions
	now         func() time.Time

	mu sync.Mutex
	// instanceTypes holds the types that EC2 has. version counts its replacements.
	instanceTypes []catalog.Type
	byName        map[string]*catalog.Type
	version       uint64
	entries       map[types.UID]map[string]*cacheEntry
}

// maxVariants is the maximum number of places per class: pools may have their own kubelet settings, which change.
const maxVariants = 50

// cacheEntry is the cache entry of one class with the kubelet settings that a pool sets instead of the class's
// (userdata.WithKubelet). Its lock is held while it is filled, so that concurrent callers fill it once.
type cacheEntry struct {
	mu        sync.Mutex
	key       string
	typeSet   *instance.TypeSet
	offerings offeringsVersion
	catalog   []cloud.InstanceType
}

// offeringsVersion identifies the versions of prices and refusals that a catalog was built from.
type offeringsVersion struct {
	prices, refusals uint64
	// reserved is that of the counts of reservations, 0 for classes without any.
	reserved uint64
	// until is when the next refusal expires. Zero means never.
	until time.Time
}

func newCatalogCache(p *Provider, instanceTypes []catalog.Type) *catalogCache {
	s := &catalogCache{
		settings: instance.Settings{Region: p.opts.Region, MemoryOverheadPercent: p.opts.MemoryOverheadPercent,
			ReservedENIs: p.opts.ReservedENIs, KubeletExpressions: p.opts.KubeletExpressions, Programs: expression.NewCache(p.opts.Clock.Now),
			IgnoreReservations: p.opts.OpenReservations},
		memory: p.memory, prices: p.prices, windows: p.windows, unavailable: p.unavailable, reserved: p.reserved,
		interrupted: p.interrupted,
		now:         p.opts.Clock.Now, entries: map[types.UID]map[string]*cacheEntry{},
	}
	s.setTypes(instanceTypes)
	return s
}

func (s *catalogCache) setTypes(instanceTypes []catalog.Type) {
	byName := make(map[string]*catalog.Type, len(instanceTypes))
	for i := range instanceTypes {
		byName[instanceTypes[i].Name] = &instanceTypes[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instanceTypes, s.byName = instanceTypes, byName
	s.version++
}

// types returns the types that EC2 has. They must not be modified.
func (s *catalogCache) types() []catalog.Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instanceTypes
}

// typeOf returns the type of the given name.
func (s *catalogCache) typeOf(name string) (*catalog.Type, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.byName[name]
	return t, known
}

// forget drops a deleted class.
func (s *catalogCache) forget(class types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, class)
}

// classTypes holds the current instance types of a class. It must not be modified.
type classTypes struct {
	typeSet *instance.TypeSet
	types   []cloud.InstanceType
}

// typesFor returns the instance types of the class. It fails if a setting of the class is invalid.
func (s *catalogCache) typesFor(class *awsv1.EC2NodeClass, ipv6 bool, group instance.PlacementGroup) (classTypes, error) {
	s.mu.Lock()
	variant := class.Annotations[karpv1.AnnotationKubelet]
	variants := s.entries[class.UID]
	if variants == nil || len(variants) >= maxVariants && variants[variant] == nil {
		variants = map[string]*cacheEntry{}
		s.entries[class.UID] = variants
	}
	p := variants[variant]
	if p == nil {
		p = &cacheEntry{}
		variants[variant] = p
	}
	instanceTypes, version := s.instanceTypes, s.version
	s.mu.Unlock()

	p.mu.Lock()
	defer p.mu.Unlock()
	facts := instance.ClassOf(class)
	facts.Placement = group
	settings := s.settings
	settings.IPv6 = ipv6
	key, err := keyOf(&facts, version, s.memory.Version(), ipv6)
	if err != nil {
		return classTypes{}, err
	}
	if p.key != key {
		typeSet, err := instance.NewTypeSet(instanceTypes, &facts, &settings, s.memory.Least)
		if err != nil {
			return classTypes{}, err
		}
		p.key, p.typeSet, p.catalog = key, typeSet, nil
	}
	if state := s.state(&facts); p.catalog == nil || !p.offerings.holds(state, s.now()) {
		market := &instance.Market{OnDemand: s.prices.OnDemand, Spot: s.prices.Spot,
			Unavailable: s.unavailable.Until, Shifted: s.unavailable.Shifted, Left: s.reserved.Left,
			Interrupted: s.interrupted.Avoided}
		if facts.Family.Windows() {
			market.OnDemand, market.Spot = s.windows.OnDemand, s.windows.Spot
		}
		p.catalog = p.typeSet.Catalog(market)
		p.offerings = state
	}
	return classTypes{p.typeSet, p.catalog}, nil
}

// state is read before a catalog is built, so that a concurrent change causes another build.
func (s *catalogCache) state(class *instance.Class) offeringsVersion {
	state := offeringsVersion{prices: s.windows.Version(), refusals: s.unavailable.Version()}
	if at, any := s.unavailable.NextExpiry(); any {
		state.until = at
	}
	if len(class.Reservations) > 0 {
		state.reserved = s.reserved.Version()
	}
	return state
}

func (m offeringsVersion) holds(now offeringsVersion, at time.Time) bool {
	return m.prices == now.prices && m.refusals == now.refusals && m.reserved == now.reserved && (m.until.IsZero() || at.Before(m.until))
}

// keyOf returns a key that differs for classes that may have different instance types. The order of subnets depends on
// their free addresses and is irrelevant here.
func keyOf(class *instance.Class, instanceTypes, memory uint64, ipv6 bool) (string, error) {
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
	return fmt.Sprint(string(text), sortedSubnets(subnets), instanceTypes, memory, ipv6), nil
}

func sortedSubnets(subnets map[instance.Subnet]bool) []string {
	var list []string
	for subnet := range maps.Keys(subnets) {
		list = append(list, subnet.ID+" "+subnet.Zone+" "+subnet.ZoneID)
	}
	slices.Sort(list)
	return list
}
