package upkeep

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// TestOnDemand checks that each type in the price list gets its price, including bare metal.
func TestOnDemand(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.Must(w.prices.RefreshOnDemand(ctx))
		if at, _ := w.book.Updated(); at.IsZero() {
			t.Error("prices were merged, but the time of the update is not set")
		}
		priced, metal := 0, 0
		for _, it := range catalog.Load().Types {
			want := it.Prices["us-east-1"]
			if want == 0 || len(it.ZonesIn("us-east-1")) == 0 {
				continue
			}
			priced++
			if it.Metal {
				metal++
			}
			if got, _ := w.book.OnDemand(it.Name); got != want {
				t.Errorf("%s: %v, want %v", it.Name, got, want)
			}
		}
		if priced < 700 || metal < 50 {
			t.Errorf("%d types with a price, %d of them metal: the test compares nothing", priced, metal)
		}
		if pages := w.Asked("GetProducts"); pages < priced/100 {
			t.Errorf("%d pages of a hundred prices for %d prices", pages, priced)
		}
	})
}

// TestWindowsPrices checks that the prices of Windows are a book of their own, with the license.
func TestWindowsPrices(t *testing.T) {
	within(t, awssim.Options{Seed: 1}, func(ctx context.Context, w *world) {
		windows := *w.prices
		windows.Windows, windows.Book = true, instance.NewPrices("us-east-1", &catalog.Catalog{})
		w.Must(windows.RefreshOnDemand(ctx))
		w.Must(windows.RefreshSpot(ctx))
		if price, _ := windows.Book.OnDemand("m5.large"); price != 0.188 {
			t.Errorf("m5.large costs %v on demand, want 0.188", price)
		}
		if price, known := windows.Book.Spot("m5.large", "us-east-1a"); !known || price < 2*0.046 || price >= 0.188 {
			t.Errorf("m5.large costs %v on spot, %t", price, known)
		}
		if _, known := windows.Book.OnDemand("m6g.large"); known {
			t.Error("a type on arm64 has a price with Windows")
		}
		if price, _ := w.book.OnDemand("m5.large"); price != 0.096 {
			t.Errorf("m5.large costs %v with Linux, want 0.096", price)
		}
	})
}

// TestOnDemandWithoutList checks that no call is made where the list cannot be reached, and that known prices are kept
// if the list is unavailable or empty.
func TestOnDemandWithoutList(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		known, _ := w.book.OnDemand("m5.large")
		isolated := *w.prices
		isolated.Pricing = nil
		w.Must(isolated.RefreshOnDemand(ctx))
		government := *w.prices
		government.Region = "us-gov-west-1"
		w.Must(government.RefreshOnDemand(ctx))
		if n := w.Asked("GetProducts"); n != 0 {
			t.Errorf("%d calls where there is no list", n)
		}
		restore := w.fail("GetProducts")
		if err := w.prices.RefreshOnDemand(ctx); discovery.KindOf(err) != discovery.Throttled {
			t.Errorf("the list is throttled: error %v", err)
		}
		restore()
		elsewhere := *w.prices
		elsewhere.Region = "mars-north-1"
		if err := elsewhere.RefreshOnDemand(ctx); err == nil || !strings.Contains(err.Error(), "mars-north-1") {
			t.Errorf("the list has no price of the region: error %v", err)
		}
		if price, _ := w.book.OnDemand("m5.large"); price != known || price == 0 {
			t.Errorf("m5.large costs %v, want %v as before", price, known)
		}
	})
}

// TestSpot checks that each pool has its newest price, that prices follow EC2, and that pools that EC2 no longer
// reports lose theirs.
func TestSpot(t *testing.T) {
	within(t, awssim.Options{Seed: 1}, func(ctx context.Context, w *world) {
		price := func() float64 {
			p, known := w.book.Spot("m5.large", "us-east-1a")
			if !known {
				t.Fatal("m5.large in us-east-1a has no spot price")
			}
			return p
		}
		onDemand := price()
		w.Must(w.prices.RefreshSpot(ctx))
		first := price()
		if first >= onDemand {
			t.Errorf("spot costs %v, on demand %v", first, onDemand)
		}
		if n := w.Asked("DescribeSpotPriceHistory"); n < 2 {
			t.Errorf("%d pages, want several", n)
		}
		changed := false
		for range 4 {
			w.Pass(6 * time.Hour)
			w.Must(w.prices.RefreshSpot(ctx))
			changed = changed || price() != first
		}
		if !changed {
			t.Error("the price stayed the same for a day: EC2's changes were missed")
		}
		if _, known := w.book.Spot("m5.large", "us-east-1z"); known {
			t.Error("a zone that does not exist has a price")
		}
	})
}

// TestSpotDown checks that an error is returned and known prices are kept.
func TestSpotDown(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.Must(w.prices.RefreshSpot(ctx))
		before, _ := w.book.Spot("c5.large", "us-east-1b")
		defer w.fail("DescribeSpotPriceHistory")()
		if err := w.prices.RefreshSpot(ctx); discovery.KindOf(err) != discovery.Throttled {
			t.Errorf("error %v, want the throttled call", err)
		}
		if after, known := w.book.Spot("c5.large", "us-east-1b"); !known || after != before {
			t.Errorf("price %v, known %t; want %v as before", after, known, before)
		}
	})
}

// A price list that does not respond results in one error, and is called once.
func TestPriceListFails(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.fail("GetProducts")
		w.Observed = nil
		err := w.prices.RefreshOnDemand(ctx)
		switch {
		case err == nil:
			t.Errorf("no error")
		case strings.Count(err.Error(), "GetProducts") != 1:
			t.Errorf(`strings.Count(err.Error(), "GetProducts") is %v, want 1, calls, error %v`, strings.Count(err.Error(), "GetProducts"), err)
		case w.Count("GetProducts") != 1:
			t.Errorf(`w.Count("GetProducts") is %v, want 1`, w.Count("GetProducts"))
		}
	})
}

func TestPriceOf(t *testing.T) {
	item := func(attributes, dimensions string) string {
		return `{"product":{"attributes":{` + attributes + `}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{` + dimensions + `}}}}}`
	}
	for _, test := range []struct {
		name, text, currency string
		want                 float64
	}{
		{"a price", item(`"instanceType":"m5.large"`, `"A.B.C":{"unit":"Hrs","pricePerUnit":{"USD":"0.0960000000"}}`), "USD", 0.096},
		{"China", item(`"instanceType":"m5.large"`, `"A.B.C":{"unit":"Hrs","pricePerUnit":{"CNY":"0.7"}}`), "CNY", 0.7},
		{"another currency", item(`"instanceType":"m5.large"`, `"A.B.C":{"unit":"Hrs","pricePerUnit":{"CNY":"0.7"}}`), "USD", 0},
		{"for nothing", item(`"instanceType":"m5.large"`, `"A.B.C":{"unit":"Hrs","pricePerUnit":{"USD":"0"}}`), "USD", 0},
		{"by quantity", item(`"instanceType":"m5.large"`, `"A.B.C":{"unit":"Quantity","pricePerUnit":{"USD":"12"}}`), "USD", 0},
		{"no number", item(`"instanceType":"m5.large"`, `"A.B.C":{"unit":"Hrs","pricePerUnit":{"USD":"cheap"}}`), "USD", 0},
		{"several", item(`"instanceType":"m5.large"`,
			`"A.B.C":{"unit":"Hrs","pricePerUnit":{"USD":"1"}},"A.B.D":{"unit":"Hrs","pricePerUnit":{"USD":"2"}}`), "USD", 2},
		{"no type", item(`"instanceFamily":"General purpose"`, `"A.B.C":{"unit":"Hrs","pricePerUnit":{"USD":"1"}}`), "USD", 0},
		{"reserved only", `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"Reserved":{}}}`, "USD", 0},
		{"no JSON", "m5.large: 1", "USD", 0},
	} {
		read, ok := priceOf(test.text, test.currency)
		switch {
		case read.price != test.want:
			t.Errorf("%s: read.price is %v, want %v", test.name, read.price, test.want)
		case ok != (test.want > 0):
			t.Errorf("%s: ok is %v, want %v, ), want %v", test.name, ok, (test.want > 0), test.want)
		case ok && read.typeName != "m5.large":
			t.Errorf(`%s: ok && read.typeName != "m5.large", %s, (%t`, test.name, read.typeName, ok)
		}
	}
}

// An entry of another product than the requested one has no price here. An entry that lacks the attribute has one.
func TestListedPriceIs(t *testing.T) {
	asked := [][2]string{{"operatingSystem", "Linux"}, {"productFamily", "Compute Instance"}}
	for text, want := range map[string]bool{
		`"instanceType":"m5.large","operatingSystem":"Linux"`:   true,
		`"instanceType":"m5.large","operatingSystem":"Windows"`: false,
		`"instanceType":"m5.large"`:                             true,
	} {
		read, ok := priceOf(`{"product":{"productFamily":"Compute Instance","attributes":{`+text+
			`}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{"A.B.C":{"unit":"Hrs","pricePerUnit":{"USD":"1"}}}}}}}`, "USD")
		if !ok || read.is(asked) != want {
			t.Errorf("%s: read %t, counts %t, want %t", text, ok, read.is(asked), want)
		}
	}
}

func TestPricingRegion(t *testing.T) {
	for region, want := range map[string]string{
		"us-east-1": "us-east-1", "us-west-2": "us-east-1", "sa-east-1": "us-east-1", "ca-central-1": "us-east-1",
		"eu-west-1": "eu-central-1", "ap-northeast-1": "ap-south-1", "cn-north-1": "cn-northwest-1",
	} {
		if got := PricingRegion(region); got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
}

// TestRejected checks that implausible entries are reported.
func TestRejected(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.Must(w.prices.RefreshOnDemand(ctx))
		w.book.MergeOnDemand(map[string]float64{"m5.large": 9.6}, time.Now()) // the list now has a hundredth of that
		w.book.MergeOnDemand(map[string]float64{"m5.large": 959}, time.Now())
		var reported []string
		w.prices.Rejected = func(kind string, merged instance.Merged) {
			reported = append(reported, kind+": "+strings.Join(merged.Rejected, ", "))
		}
		w.Must(w.prices.RefreshOnDemand(ctx))
		if len(reported) != 1 || !strings.HasPrefix(reported[0], "on-demand: m5.large") {
			t.Errorf("reported %q, want the price of m5.large", reported)
		}
	})
}

func TestEmbedded(t *testing.T) {
	for region, want := range map[string][]string{
		"us-east-1":     {"prices on demand of us-east-1 as of 2026-07-20T13:44:30Z", "types have no price", "mac1.metal"},
		"us-gov-west-1": {"prices on demand of us-gov-west-1"},
		"cn-north-1":    {"used as estimates for cn-north-1 at 7 CNY to the USD"},
		"eu-west-1":     {"prices on demand of us-east-1", "used as estimates for eu-west-1"},
	} {
		text := Embedded(catalog.Load(), region)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q lacks %q", region, text[:min(200, len(text))], part)
			}
		}
	}
}
