package instance

import (
	"testing"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// TestWindowsTypes checks which types nodes with Windows run on.
func TestWindowsTypes(t *testing.T) {
	for name, want := range map[string]bool{
		"m5.large": true, "m4.16xlarge": true, "c5.large": true, "m6i.large": true, "g4dn.xlarge": true,
		"m4.large": false, "c3.large": false, "c4.large": false, "d2.xlarge": false, "i2.xlarge": false, "m6a.large": false,
		"r3.large": false, "m6g.large": false,
	} {
		arch := architecture(known(t, name))
		if why := refusesWindows(known(t, name), arch); (why == "") != want {
			t.Errorf("%s runs Windows: %t (%q), want %t", name, why == "", why, want)
		}
	}
	if f := familyOf(awsv1.FamilyWindows2025); f.windowsBuild != "10.0.26100" || !f.reservesForPods {
		t.Errorf("the family is %+v", f)
	}
}

// TestWindowsPrices checks that the prices of Windows have precedence, and that those of Linux get the license.
func TestWindowsPrices(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	loaded := catalog.Load()
	linux := NewPrices("us-east-1", loaded)
	w := NewWindowsPrices("us-east-1", linux, loaded.Type)
	price := func(what string, got float64, known bool, want float64) {
		t.Helper()
		if !known || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: %v, %t, want %v", what, got, known, want)
		}
	}
	onDemand, _ := linux.OnDemand("m5.large")
	got, known := w.OnDemand("m5.large")
	price("on demand, without a price of Windows", got, known, onDemand+2*0.046)
	linux.MergeSpot([]SpotPrice{{"m5.large", "us-east-1a", 0.04}}, at)
	got, known = w.Spot("m5.large", "us-east-1a")
	price("spot, without a price of Windows", got, known, 0.04+2*0.046)
	if _, known := w.Spot("m5.large", "us-east-1b"); known {
		t.Error("a spot price is known that Linux does not have")
	}
	before := w.Version()
	w.Own.MergeOnDemand(map[string]float64{"m5.large": 0.19}, at)
	w.Own.MergeSpot([]SpotPrice{{"m5.large", "us-east-1a", 0.13}}, at)
	if w.Version() == before {
		t.Error("the version does not change with the prices of Windows")
	}
	got, known = w.OnDemand("m5.large")
	price("on demand", got, known, 0.19)
	got, known = w.Spot("m5.large", "us-east-1a")
	price("spot", got, known, 0.13)
	if got, _ := linux.OnDemand("m5.large"); got != onDemand {
		t.Errorf("the price of Linux has become %v", got)
	}
}
