package instance

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// BenchmarkCatalog measures the refresh of a pool's catalog: all types, six zones, one mark.
func BenchmarkCatalog(b *testing.B) {
	class := al2023("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1e", "us-east-1f")
	typeSet, err := NewTypeSet(catalog.Load().Types, class, defaults(), nil)
	if err != nil {
		b.Fatal(err)
	}
	prices, unavailable := NewPrices("us-east-1", catalog.Load()), NewUnavailable(func() time.Time { return noon })
	unavailable.Mark(Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a"})
	market := &Market{OnDemand: prices.OnDemand, Spot: prices.Spot, Unavailable: unavailable.Until}
	b.ReportAllocs()
	for b.Loop() {
		if len(typeSet.Catalog(market)) < 1000 {
			b.Fatal("types are missing")
		}
	}
}

// BenchmarkNewAssortment measures the rebuild after a change of the class.
func BenchmarkNewAssortment(b *testing.B) {
	class := al2023("us-east-1a", "us-east-1b", "us-east-1c")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewTypeSet(catalog.Load().Types, class, defaults(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
