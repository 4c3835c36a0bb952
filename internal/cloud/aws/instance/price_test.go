package instance

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

var noon = time.Date(2026, 8, 22, 12, 0, 0, 0, time.UTC)

func expectPrice(t *testing.T, what string, wantPrice float64, wantKnown bool) func(float64, bool) {
	t.Helper()
	return func(price float64, known bool) {
		t.Helper()
		if price != wantPrice || known != wantKnown {
			t.Errorf("%s: %v, known %t; want %v, %t", what, price, known, wantPrice, wantKnown)
		}
	}
}

func TestEmbeddedPrices(t *testing.T) {
	for region, want := range map[string]float64{
		"us-east-1": 0.096, "us-gov-west-1": 0.121, "eu-west-1": 0.096 /* us-east-1's */, "cn-north-1": 0.672, /* likewise, in CNY, until the list is read */
	} {
		prices := NewPrices(region, catalog.Load())
		expectPrice(t, region, want, true)(prices.OnDemand("m5.large"))
		expectPrice(t, region+" spot, as on demand", want, true)(prices.Spot("m5.large", region+"a"))
		expectPrice(t, region, 0, false)(prices.OnDemand("x8aedz.large"))
		expectPrice(t, region+" spot", 0, false)(prices.Spot("x8aedz.large", region+"a"))
		if onDemand, spot := prices.Updated(); !onDemand.IsZero() || !spot.IsZero() {
			t.Errorf("%s: updated at %v and %v before any update", region, onDemand, spot)
		}
	}
	// GovCloud has its own list. Types that are not in it are not offered there.
	expectPrice(t, "GovCloud", 0, false)(NewPrices("us-gov-east-1", catalog.Load()).OnDemand("c1.medium"))
}

func TestMergeOnDemand(t *testing.T) {
	prices := NewPrices("eu-west-1", catalog.Load())
	if got, want := prices.MergeOnDemand(map[string]float64{"m5.large": 0.107, "x8aedz.large": 3}, noon),
		(Merged{Changed: 2}); !cmp.Equal(got, want) {
		t.Errorf("first update: %+v, want %+v", got, want)
	}
	version := prices.Version()
	expectPrice(t, "updated", 0.107, true)(prices.OnDemand("m5.large"))
	expectPrice(t, "new", 3, true)(prices.OnDemand("x8aedz.large"))
	expectPrice(t, "not mentioned", 0.192, true)(prices.OnDemand("m5.xlarge"))

	got := prices.MergeOnDemand(map[string]float64{
		"m5.large": 0.107, "m5.xlarge": 0.2, "a": 0, "b": -1, "c": math.NaN(), "d": math.Inf(1), "x8aedz.large": 301, "e": 0, "f": 0,
	}, noon.Add(time.Hour))
	want := Merged{Changed: 1, Same: 1, RejectedCount: 7, Rejected: []string{
		"a on demand: 0 is not above zero", "b on demand: -1 is not above zero", "c on demand: NaN is not above zero",
		"d on demand: +Inf is not above zero", "e on demand: 0 is not above zero",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("second update -want +got:\n%s", diff)
	}
	expectPrice(t, "implausible", 3, true)(prices.OnDemand("x8aedz.large"))
	if prices.Version() == version {
		t.Error("the version is the one before the update")
	}

	version = prices.Version()
	if got := prices.MergeOnDemand(map[string]float64{"x8aedz.large": 0.0299},
		noon.Add(2*time.Hour)); got.RejectedCount != 1 ||
		!strings.Contains(got.Rejected[0], "differs from the last price, 3, by more than a factor of 100") {
		t.Errorf("an implausible price alone: %+v", got)
	}
	if onDemand, _ := prices.Updated(); onDemand != noon.Add(time.Hour) || prices.Version() != version {
		t.Errorf("an empty update has an effect: %v, version %d, was %d", onDemand, prices.Version(), version)
	}
}

// In China, prices are in CNY. The converted USD prices are dropped at the first update.
func TestPricesInChina(t *testing.T) {
	prices := NewPrices("cn-north-1", catalog.Load())
	prices.MergeOnDemand(map[string]float64{"m5.large": 0.9}, noon)
	expectPrice(t, "in the list", 0.9, true)(prices.OnDemand("m5.large"))
	expectPrice(t, "not in the list", 0, false)(prices.OnDemand("m5.xlarge"))
}

// In China without a price list (an isolated VPC), both spot and on-demand prices are in CNY: spot is the cheaper one,
// and implausible prices are detected.
func TestSpotInChina(t *testing.T) {
	prices := NewPrices("cn-north-1", catalog.Load())
	merged := prices.MergeSpot([]SpotPrice{{"m5.large", "cn-north-1a", 0.27}, {"m5.xlarge", "cn-north-1a", 14}}, noon)
	if merged.RejectedCount != 1 || !strings.Contains(merged.Rejected[0], "m5.xlarge") {
		t.Errorf("merged %+v", merged)
	}
	onDemand, _ := prices.OnDemand("m5.large")
	if spot, known := prices.Spot("m5.large", "cn-north-1a"); !known || spot >= onDemand {
		t.Errorf("spot costs %v, on demand %v", spot, onDemand)
	}
}

func TestMergeSpot(t *testing.T) {
	prices := NewPrices("us-east-1", catalog.Load())
	first := prices.MergeSpot([]SpotPrice{
		{"m5.large", "us-east-1a", 0.03}, {"m5.large", "us-east-1b", 0.001}, {"m5.xlarge", "us-east-1a", 0.2},
		{"x8aedz.large", "us-east-1a", 500},
		{"m5.large", "us-east-1c", 0}, {"m5.large", "us-east-1d", math.NaN()}, {"m5.large", "us-east-1f", 0.97},
		{"m5.2xlarge", "us-east-1a", 0.00001},
	}, noon)
	switch {
	case first.Changed != 4:
		t.Errorf("first update: first.Changed is %v, want 4", first.Changed)
	case first.Same != 0:
		t.Errorf("first update: first.Same is %v, want 0", first.Same)
	case first.RejectedCount != 4:
		t.Errorf("first update: first.RejectedCount is %v, want 4", first.RejectedCount)
	case !strings.Contains(first.Rejected[3],
		"m5.2xlarge spot in us-east-1a: 1e-05 is less than the price on demand, 0.384, divided by 100"):
		t.Errorf(`first update: first.Rejected[3] lacks "m5.2xlarge spot in us-east-1a: 1e-05 is less than the price on demand, 0.384, divided by 100", %+v`, first)
	case !strings.Contains(first.Rejected[2], "m5.large spot in us-east-1f: 0.97 is more than 10 times the price on demand, 0.096"):
		t.Errorf(`first update: first.Rejected[2] lacks "m5.large spot in us-east-1f: 0.97 is more than 10 times the price on demand, 0.096", %+v`, first)
	}
	expectPrice(t, "listed", 0.03, true)(prices.Spot("m5.large", "us-east-1a"))
	expectPrice(t, "cheap", 0.001, true)(prices.Spot("m5.large", "us-east-1b"))
	expectPrice(t, "above on demand", 0.2, true)(prices.Spot("m5.xlarge", "us-east-1a"))
	expectPrice(t, "nothing to compare with", 500, true)(prices.Spot("x8aedz.large", "us-east-1a"))
	expectPrice(t, "too cheap to be true", 0, false)(prices.Spot("m5.2xlarge", "us-east-1a"))
	for _, zone := range []string{"us-east-1c", "us-east-1d", "us-east-1f", "us-east-1z"} {
		expectPrice(t, "no price in "+zone, 0, false)(prices.Spot("m5.large", zone))
	}

	second := prices.MergeSpot([]SpotPrice{{"m5.large", "us-east-1a", 0.03}}, noon.Add(23*time.Hour))
	if diff := cmp.Diff(Merged{Same: 1}, second); diff != "" {
		t.Errorf("second update -want +got:\n%s", diff)
	}
	expectPrice(t, "missing once", 0.001, true)(prices.Spot("m5.large", "us-east-1b"))
	version := prices.Version()
	prices.MergeSpot(nil, noon.Add(25*time.Hour)) // an empty update, so nothing expires
	expectPrice(t, "empty update", 0.001, true)(prices.Spot("m5.large", "us-east-1b"))
	if _, spot := prices.Updated(); spot != noon.Add(23*time.Hour) || prices.Version() != version {
		t.Errorf("an empty update has an effect: %v, version %d, was %d", spot, prices.Version(), version)
	}
	prices.MergeSpot([]SpotPrice{{"m5.large", "us-east-1f", 0.04}}, noon.Add(25*time.Hour))
	expectPrice(t, "missing for a day", 0, false)(prices.Spot("m5.large", "us-east-1b"))
	expectPrice(t, "missing for two hours", 0.03, true)(prices.Spot("m5.large", "us-east-1a"))
}
