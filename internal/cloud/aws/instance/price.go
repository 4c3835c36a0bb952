package instance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

const (
	// spotKept is how long a spot price is used after updates no longer contain it. An entry may be missing once by
	// accident; one that is missing for a day belongs to a pool that is gone.
	spotKept = 24 * time.Hour
	// A spot price of this many times the on-demand price is rejected. EC2 keeps spot prices below on-demand prices.
	spotImplausible = 10
	// A spot price below the on-demand price divided by this is rejected. According to AWS, spot costs up to 90% less
	// (https://aws.amazon.com/ec2/spot/pricing/); a further factor of ten is allowed.
	spotTooCheap = 100
	// An on-demand price that differs from the last one by this factor is rejected.
	onDemandImplausible = 100
	// fallbackRegion has the prices for regions without any in EC2 or the embedded file. Their amounts are wrong, but
	// their order is right.
	fallbackRegion = "us-east-1"
	// YuanPerDollar is an approximate exchange rate. Embedded prices are converted with it in the regions of China,
	// where EC2 reports spot prices in CNY, because only prices in one currency can be compared.
	YuanPerDollar = 7
)

// InChina reports whether the region has its prices in CNY.
func InChina(region string) bool { return strings.HasPrefix(region, "cn-") }

// Prices holds the prices of one region: USD per hour (CNY in the regions of China), Linux, shared tenancy. It starts
// with the embedded prices, and updates are merged into it. It is safe for concurrent use.
type Prices struct {
	region string

	mu       sync.RWMutex
	embedded map[string]float64 // by type
	onDemand map[string]float64 // by type
	spot     map[pool]spotPrice
	// onDemandAt and spotAt are the times of the last updates, zero before the first.
	onDemandAt, spotAt time.Time
	version            uint64
}

type pool struct{ typeName, zone string }

type spotPrice struct {
	price float64
	at    time.Time
}

// SpotPrice is one entry of a spot update.
type SpotPrice struct {
	Type  string
	Zone  string
	Price float64
}

// Merged is the result of an update.
type Merged struct {
	// Changed counts entries that are new or different, and Same the unchanged ones.
	Changed, Same int
	// Rejected has the first few implausible entries with the cause. RejectedCount counts all of them.
	Rejected      []string
	RejectedCount int
}

const rejectedShown = 5

func (m *Merged) reject(format string, args ...any) {
	if m.RejectedCount++; len(m.Rejected) < rejectedShown {
		m.Rejected = append(m.Rejected, fmt.Sprintf(format, args...))
	}
}

func (m *Merged) count(changed bool) {
	if changed {
		m.Changed++
	} else {
		m.Same++
	}
}

// NewPrices returns the prices of the catalog for the region, or those of us-east-1 if it has none. In China they are
// converted to CNY at a fixed rate.
func NewPrices(region string, catalog *catalog.Catalog) *Prices {
	p := &Prices{region: region, embedded: map[string]float64{}, onDemand: map[string]float64{}, spot: map[pool]spotPrice{}}
	source, rate := region, 1.0
	if _, known := catalog.Meta.PriceStamps[region]; !known {
		source = fallbackRegion
		if InChina(region) {
			rate = YuanPerDollar
		}
	}
	for i := range catalog.Types {
		if price, known := catalog.Types[i].Prices[source]; known {
			p.embedded[catalog.Types[i].Name] = math.Round(price*rate*1e9) / 1e9
		}
	}
	return p
}

// OnDemand returns the on-demand price of a type per hour.
func (p *Prices) OnDemand(typeName string) (price float64, known bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.onDemandLocked(typeName)
}

func (p *Prices) onDemandLocked(typeName string) (price float64, known bool) {
	if price, known = p.onDemand[typeName]; known {
		return price, true
	}
	if p.foreign() {
		return 0, false // types that are not in the list are not offered there
	}
	price, known = p.embedded[typeName]
	return price, known
}

// foreign reports whether the embedded prices, which are from another country, have been replaced by the region's own.
func (p *Prices) foreign() bool { return InChina(p.region) && !p.onDemandAt.IsZero() }

// Spot returns the spot price of a type in a zone per hour. Before the first spot update, it returns the on-demand
// price.
func (p *Prices) Spot(typeName, zone string) (price float64, known bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.spotAt.IsZero() {
		return p.onDemandLocked(typeName)
	}
	entry, known := p.spot[pool{typeName, zone}]
	return entry.price, known
}

// MergeOnDemand merges an update: price per hour by type. Types that are not in it keep their price.
func (p *Prices) MergeOnDemand(prices map[string]float64, at time.Time) Merged {
	p.mu.Lock()
	defer p.mu.Unlock()
	var merged Merged
	accepted := map[string]float64{}
	for _, typeName := range slices.Sorted(maps.Keys(prices)) {
		price := prices[typeName]
		old, known := p.onDemand[typeName]
		switch {
		case !isPrice(price):
			merged.reject("%s on demand: %v is not above zero", typeName, price)
			continue
		case known && (price > old*onDemandImplausible || price < old/onDemandImplausible):
			merged.reject("%[1]s on demand: %[2]v differs from the last price, %[4]v, by more than a factor of %[3]d", typeName, price,
				onDemandImplausible, old)
			continue
		}
		merged.count(!known || old != price)
		accepted[typeName] = price
	}
	if len(accepted) > 0 {
		maps.Copy(p.onDemand, accepted)
		p.onDemandAt = at
		p.version++
	}
	return merged
}

// MergeSpot merges an update. Pools that are not in it keep their price for a day. If a pool has two entries, the last
// one is used.
func (p *Prices) MergeSpot(prices []SpotPrice, at time.Time) Merged {
	p.mu.Lock()
	defer p.mu.Unlock()
	var merged Merged
	for _, entry := range prices {
		onDemand, known := p.onDemandLocked(entry.Type)
		switch {
		case !isPrice(entry.Price):
			merged.reject("%s spot in %s: %v is not above zero", entry.Type, entry.Zone, entry.Price)
			continue
		case known && entry.Price > onDemand*spotImplausible:
			merged.reject("%s spot in %s: %v is more than %d times the price on demand, %v", entry.Type, entry.Zone,
				entry.Price, spotImplausible, onDemand)
			continue
		case known && entry.Price < onDemand/spotTooCheap:
			merged.reject("%s spot in %s: %v is less than the price on demand, %v, divided by %d", entry.Type, entry.Zone,
				entry.Price, onDemand, spotTooCheap)
			continue
		}
		key := pool{entry.Type, entry.Zone}
		old, had := p.spot[key]
		merged.count(!had || old.price != entry.Price)
		p.spot[key] = spotPrice{entry.Price, at}
	}
	if merged.Changed+merged.Same == 0 {
		return merged
	}
	maps.DeleteFunc(p.spot, func(_ pool, old spotPrice) bool { return at.Sub(old.at) > spotKept })
	p.spotAt = at
	p.version++
	return merged
}

func isPrice(price float64) bool { return price > 0 && !math.IsInf(price, 0) }

// Updated returns the times of the last updates. Zero times mean that the embedded prices are in use.
func (p *Prices) Updated() (onDemand, spot time.Time) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.onDemandAt, p.spotAt
}

// Version changes with every merged update.
func (p *Prices) Version() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.version
}
