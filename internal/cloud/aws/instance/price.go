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
	// spotKept is for how long a spot price holds that newer updates do not mention any more: an entry missing once may
	// be a hiccup, one missing for a day is a pool that is gone.
	spotKept = 24 * time.Hour
	// What is this many times the price on demand is no spot price, which EC2 keeps below it.
	spotImplausible = 10
	// What is less than the price on demand divided by this is no spot price either: AWS says that spot costs up to 90% less
	// (https://aws.amazon.com/ec2/spot/pricing/), a tenth of that again leaves room.
	spotTooCheap = 100
	// What is this many times away from the last price of the same list is no change of prices.
	onDemandImplausible = 100
	// fallbackRegion has the prices used where neither EC2 nor the embedded file knows any: wrong in amount, right in
	// order.
	fallbackRegion = "us-east-1"
	// YuanPerDollar is the rate of exchange, about, at which embedded prices count in the regions of China, where EC2 says
	// spot prices in CNY: what is compared has to be of one currency.
	YuanPerDollar = 7
)

// InChina says whether the region has its prices in CNY.
func InChina(region string) bool { return strings.HasPrefix(region, "cn-") }

// Prices is the price book of one region: USD per hour (CNY in the regions of China), Linux, shared tenancy. It begins
// with the embedded prices; updates are merged into it. It may be used from several goroutines.
type Prices struct {
	region string

	mu       sync.RWMutex
	embedded map[string]float64 // by type
	onDemand map[string]float64 // by type
	spot     map[pool]spotPrice
	// When the last update was merged; zero before the first.
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

// Merged says what became of an update.
type Merged struct {
	// Changed counts entries that are new or differ, Same those that do not.
	Changed, Same int
	// Rejected are the first few entries that cannot be prices, and why; RejectedCount counts all of them.
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

// NewPrices begins a price book with the prices of the catalogue for the region, or those of us-east-1 where it has none,
// in China in CNY at a fixed rate.
func NewPrices(region string, catalogue *catalog.Catalogue) *Prices {
	p := &Prices{region: region, embedded: map[string]float64{}, onDemand: map[string]float64{}, spot: map[pool]spotPrice{}}
	source, rate := region, 1.0
	if _, known := catalogue.Meta.PriceStamps[region]; !known {
		source = fallbackRegion
		if InChina(region) {
			rate = YuanPerDollar
		}
	}
	for i := range catalogue.Types {
		if price, known := catalogue.Types[i].Prices[source]; known {
			p.embedded[catalogue.Types[i].Name] = math.Round(price*rate*1e9) / 1e9
		}
	}
	return p
}

// OnDemand is the price of a type per hour.
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
		return 0, false // what the list does not have is not sold there
	}
	price, known = p.embedded[typeName]
	return price, known
}

// foreign is whether the embedded prices are worth nothing any more: those of another country, when its own have come.
func (p *Prices) foreign() bool { return InChina(p.region) && !p.onDemandAt.IsZero() }

// Spot is the price of a type in a zone per hour: on demand's as long as no spot prices have come at all.
func (p *Prices) Spot(typeName, zone string) (price float64, known bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.spotAt.IsZero() {
		return p.onDemandLocked(typeName)
	}
	entry, known := p.spot[pool{typeName, zone}]
	return entry.price, known
}

// MergeOnDemand takes in an update: price per hour by type. Types that it does not mention keep their price.
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
			merged.reject("%s on demand: %v is more than %d times away from the last price, %v", typeName, price, onDemandImplausible, old)
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

// MergeSpot takes in an update. Pools that it does not mention keep their price for a day. Of two entries for one
// pool the last one counts.
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
			merged.reject("%s spot in %s: %v is more than %d times the price on demand, %v", entry.Type, entry.Zone, entry.Price, spotImplausible, onDemand)
			continue
		case known && entry.Price < onDemand/spotTooCheap:
			merged.reject("%s spot in %s: %v is less than the price on demand, %v, divided by %d", entry.Type, entry.Zone, entry.Price, onDemand, spotTooCheap)
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

// Updated is when prices were last taken in; zero times mean that the embedded ones are in use.
func (p *Prices) Updated() (onDemand, spot time.Time) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.onDemandAt, p.spotAt
}

// Version changes with every update that was taken in.
func (p *Prices) Version() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.version
}
