package offline

import (
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/cluster/capture"
)

// TestDisruptGates checks that decisions about disruption read feature gates as the controller does, and
// that a capture stores them.
func TestDisruptGates(t *testing.T) {
	for _, test := range []struct {
		text               string
		spotToSpot, static bool
		refused            string
	}{
		{"", false, false, ""},
		{"SpotToSpotConsolidation=true", true, false, ""},
		{"StaticCapacity=true, NodeRepair=true,Whatever=true", false, true, ""},
		{"SpotToSpotConsolidation=true,StaticCapacity=false", true, false, ""},
		{"StaticCapacity", false, false, "want Name=true or Name=false"},
		{"NodeOverlay=true", false, false, ""},
	} {
		p := DefaultPolicy()
		p.FeatureGates = test.text
		err := p.Check()
		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%q: %v, want %q", test.text, err, test.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
		}
		again := policyOf(&capture.Options{Disrupt: &capture.Disrupt{FeatureGates: p.FeatureGates}})
		for _, o := range []*Policy{&p, &again} {
			if got := o.disruptOptions(); got.SpotToSpot != test.spotToSpot || got.Static != test.static {
				t.Errorf("%q: spot to spot %v, static %v", test.text, got.SpotToSpot, got.Static)
			}
		}
	}
}
