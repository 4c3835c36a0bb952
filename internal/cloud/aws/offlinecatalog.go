package aws

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/expression"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
)

// EstimatedSpotShare is the estimate for spot prices where AWS is not called, as a fraction of the on-demand price. AWS
// advertises discounts of up to 90%. Only AWS knows the actual discount of a type in a zone.
const EstimatedSpotShare = 0.4

// OfflineOptions are the settings of the provider that affect its instance types.
type OfflineOptions struct {
	// Region is the region of the cluster, such as us-east-1.
	Region string
	// MemoryOverheadPercent and ReservedENIs are as in Options.
	MemoryOverheadPercent float64
	ReservedENIs          int64
	// IPv6 means that the cluster's pods have IPv6 addresses.
	IPv6 bool
}

// OfflineCatalog computes the instance types of classes for offline use, by the same code as the provider (package
// instance), from the embedded catalog. It has no client. Only Refresh calls AWS, with the clients that are passed to
// it. It is safe for concurrent use.
//
//	embedded catalog    \
//	memory of nodes seen -> Catalog(class) -> []cloud.InstanceType
//	Refresh(clients)    /
type OfflineCatalog struct {
	opts   OfflineOptions
	memory *instance.Memory
	prices *instance.Prices
	// reserved has the counts of CountReservations.
	reserved *instance.Reserved
	// programs are the compiled expressions. The feature gate for them is taken to be on.
	programs *expression.Cache

	mu     sync.Mutex
	types  []catalog.Type
	byName map[string]*catalog.Type
	// unlisted is why on-demand prices are those of the embedded catalog although AWS was called.
	unlisted error
}

// NewOfflineCatalog returns a OfflineCatalog with the embedded data.
func NewOfflineCatalog(opts OfflineOptions) *OfflineCatalog {
	s := &OfflineCatalog{opts: opts, memory: instance.NewMemory(), reserved: instance.NewReserved(time.Now),
		programs: expression.NewCache(time.Now),
		prices:   instance.NewPrices(opts.Region, catalog.Load())}
	s.setTypes(catalog.Load().Types)
	return s
}

func (s *OfflineCatalog) setTypes(instanceTypes []catalog.Type) {
	byName := make(map[string]*catalog.Type, len(instanceTypes))
	for i := range instanceTypes {
		byName[instanceTypes[i].Name] = &instanceTypes[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.types, s.byName = instanceTypes, byName
}

// Observe records the memory in bytes of a registered node of the given type and image. As in the controller, it
// replaces the estimate.
func (s *OfflineCatalog) Observe(typeName, imageID string, bytes int64) {
	s.mu.Lock()
	t := s.byName[typeName]
	s.mu.Unlock()
	if t != nil {
		s.memory.Observe(t, imageID, bytes)
	}
}

// Restore loads the data of the ConfigMap in which the controller stores the memory that it has seen. Invalid entries
// are skipped and named in the error.
func (s *OfflineCatalog) Restore(data map[string]string) error { return s.memory.Restore(data) }

// Catalog returns the instance types of the class, based on the subnets and images in its status. If the status has
// none, it returns a *cloud.NodeClassNotReadyError, as the provider does. An invalid setting is another error.
func (s *OfflineCatalog) Catalog(class *awsv1.EC2NodeClass) ([]cloud.InstanceType, error) {
	if len(class.Status.Subnets) == 0 || len(class.Status.AMIs) == 0 {
		return nil, unresolved(class)
	}
	return s.selling(class)
}

// Assumed returns the instance types that the class would have if it were resolved. It fills in the missing parts of
// the status: a subnet in each of the zones, and images for every architecture of its family. assumed describes the
// assumptions and is empty if there are none.
func (s *OfflineCatalog) Assumed(class *awsv1.EC2NodeClass, zones []string) (types []cloud.InstanceType, assumed string, err error) {
	resolved := class.DeepCopy()
	var assumptions []string
	if len(resolved.Status.Subnets) == 0 {
		zones := s.zones(zones)
		for _, zone := range zones {
			resolved.Status.Subnets = append(resolved.Status.Subnets, awsv1.Subnet{ID: "subnet-in-" + zone, Zone: zone})
		}
		assumptions = append(assumptions, "a subnet in each of "+strings.Join(zones, ", "))
	}
	if len(resolved.Status.AMIs) == 0 {
		assumptions = append(assumptions, "images for every type")
	}
	types, err = s.selling(resolved)
	return types, strings.Join(assumptions, ", and "), err
}

// zones returns the zones of the region in the catalog, or a, b and c if it has none, plus the given zones that are in
// the region.
func (s *OfflineCatalog) zones(given []string) []string {
	var zones []string
	for _, t := range catalog.Load().Types {
		for _, zone := range t.ZonesIn(s.opts.Region) {
			if !slices.Contains(zones, zone) {
				zones = append(zones, zone)
			}
		}
	}
	if len(zones) == 0 {
		zones = []string{s.opts.Region + "a", s.opts.Region + "b", s.opts.Region + "c"}
	}
	for _, zone := range given {
		if RegionOf(zone) == s.opts.Region {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// selling computes the instance types of a resolved class.
func (s *OfflineCatalog) selling(class *awsv1.EC2NodeClass) ([]cloud.InstanceType, error) {
	facts := instance.ClassOf(class)
	if selector := class.Spec.PlacementGroupSelector; selector != nil {
		facts.Placement = instance.AssumedPlacement(selector.ID)
	}
	settings := instance.Settings{Region: s.opts.Region, MemoryOverheadPercent: s.opts.MemoryOverheadPercent,
		ReservedENIs: s.opts.ReservedENIs, IPv6: s.opts.IPv6, KubeletExpressions: true, Programs: s.programs}
	typeSet, err := instance.NewTypeSet(s.typesFor(&facts), &facts, &settings, s.memory.Least)
	if err != nil {
		return nil, err
	}
	if failure := typeSet.Failure(); failure != "" {
		return nil, &cloud.NodeClassNotReadyError{Class: cloud.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind, Name: class.Name},
			Reason: awsv1.ReasonKubeletExpressionEvaluationFailed, Message: failure}
	}
	if err := excludesAll(class.Name, typeSet); err != nil {
		return nil, err
	}
	market := &instance.Market{OnDemand: s.prices.OnDemand, Spot: s.spot, Left: s.reserved.Left,
		Unavailable: func(instance.Offer) time.Time { return time.Time{} }}
	if facts.Family.Windows() { // AWS is not asked for these prices
		windows := instance.NewWindowsPrices(s.opts.Region, s.prices, s.typeOf)
		market.OnDemand = windows.OnDemand
		market.Spot = func(typeName, zone string) (float64, bool) {
			price, known := s.spot(typeName, zone)
			return price + windows.License(typeName), known
		}
	}
	return typeSet.Catalog(market), nil
}

// typeOf returns the type of the given name.
func (s *OfflineCatalog) typeOf(name string) (*catalog.Type, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.types, func(t catalog.Type) bool { return t.Name == name })
	if at < 0 {
		return nil, false
	}
	return &s.types[at], true
}

// typesFor returns the types. If neither the catalog nor AWS has the zones of the region, every type is assumed to be
// offered in all zones of the class's subnets.
func (s *OfflineCatalog) typesFor(class *instance.Class) []catalog.Type {
	s.mu.Lock()
	instanceTypes := s.types
	s.mu.Unlock()
	if slices.Contains(catalog.Load().Meta.ZoneRegions, s.opts.Region) || s.asked() {
		return instanceTypes
	}
	var zones []string
	for _, subnet := range class.Subnets {
		zones = append(zones, subnet.Zone)
	}
	everywhere := slices.Clone(instanceTypes)
	for i := range everywhere {
		everywhere[i].Zones = zones
	}
	return everywhere
}

// asked reports whether AWS has been called.
func (s *OfflineCatalog) asked() bool {
	_, spot := s.prices.Updated()
	return !spot.IsZero()
}

// spot returns the spot price from AWS, or its estimate.
func (s *OfflineCatalog) spot(typeName, zone string) (price float64, known bool) {
	if s.asked() {
		return s.prices.Spot(typeName, zone)
	}
	price, known = s.prices.OnDemand(typeName)
	return price * EstimatedSpotShare, known
}

// Refresh loads types, zones and prices from AWS and uses them from then on. If the price list cannot be read (because
// of missing permissions or an isolated network), on-demand prices remain those of the catalog, and Source says so.
func (s *OfflineCatalog) Refresh(ctx context.Context, clients Clients) error {
	calls := &discovery.Caller{Timeout: 30 * time.Second, Now: time.Now, Observe: func(discovery.Call) {}}
	types := upkeep.NewTypes(clients.EC2, calls, catalog.Load())
	prices := &upkeep.Prices{EC2: clients.EC2, Calls: calls, Book: s.prices, Region: s.opts.Region, Now: time.Now}
	if clients.Pricing != nil {
		prices.Pricing = clients.Pricing
	}
	var all sync.WaitGroup
	var typesErr, spotErr, listErr error
	all.Go(func() { typesErr = types.Refresh(ctx) })
	all.Go(func() { spotErr = prices.RefreshSpot(ctx) })
	all.Go(func() { listErr = prices.RefreshOnDemand(ctx) })
	all.Wait()
	if err := errors.Join(typesErr, spotErr); err != nil {
		return err
	}
	if !s.asked() {
		return fmt.Errorf("refreshing spot prices: EC2 returned none for %s", s.opts.Region)
	}
	s.setTypes(types.Current())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted = listErr
	return nil
}

// Source describes the origin, region and date of types and prices in one line.
func (s *OfflineCatalog) Source() string {
	s.mu.Lock()
	unlisted := s.unlisted
	s.mu.Unlock()
	onDemandAt, spotAt := s.prices.Updated()
	if spotAt.IsZero() {
		return fmt.Sprintf("on demand %s; spot %.0f%% of that, as an estimate of prices that only AWS has", s.embedded(),
			100*EstimatedSpotShare)
	}
	spot := "spot those of AWS in " + s.opts.Region + " at " + spotAt.UTC().Format(time.RFC3339)
	switch {
	case unlisted != nil:
		return fmt.Sprintf("on demand %s (the price list cannot be read: %s); %s", s.embedded(),
			strings.ReplaceAll(unlisted.Error(), "\n", "; "), spot)
	case onDemandAt.IsZero():
		return fmt.Sprintf("on demand %s (the price list has none of this region); %s", s.embedded(), spot)
	}
	return "on demand and " + spot
}

// embedded describes the prices in the catalog.
func (s *OfflineCatalog) embedded() string {
	meta := catalog.Load().Meta
	of, standIn := s.opts.Region, ""
	if meta.PriceStamps[of] == "" {
		of, standIn = "us-east-1", ", used as estimates for "+s.opts.Region
	}
	day, _, _ := strings.Cut(meta.PriceStamps[of], "T")
	return "those built in, of " + of + " on " + day + standIn
}

var regionOfZone = regexp.MustCompile(`^[a-z]+(-[a-z]+)+-[0-9]+`)

// RegionOf returns the region of a zone, such as us-east-1 for us-east-1a and for the local zone us-east-1-bos-1a. It
// returns "" if the zone is not an AWS zone.
func RegionOf(zone string) string { return regionOfZone.FindString(zone) }
