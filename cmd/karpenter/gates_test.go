package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestDisruptGates checks that the verbs that decide about disruption read feature gates as the controller does, and
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
		{"NodeOverlay=true", false, false, "is not supported"},
	} {
		var p policy
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		p.addFlags(flags)
		p.addDisruptFlags(flags)
		if err := flags.Parse([]string{"--feature-gates=" + test.text}); err != nil {
			t.Fatal(err)
		}
		err := p.check()
		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%q: %v, want %q", test.text, err, test.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
		}
		again := (&captureOptions{Disrupt: &captureDisrupt{FeatureGates: p.featureGates}}).policy()
		for _, o := range []*policy{&p, &again} {
			if got := o.disruptOptions(); got.SpotToSpot != test.spotToSpot || got.Static != test.static {
				t.Errorf("%q: spot to spot %v, static %v", test.text, got.SpotToSpot, got.Static)
			}
		}
	}
}
