package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// prices returns the path of the controller's price file.
func (w *awsWorld) prices() string { return filepath.Join(filepath.Dir(w.log), "prices.yaml") }

// price writes the price file. The controller reads it within ten seconds.
func (w *awsWorld) price(t *testing.T, rules string) {
	t.Helper()
	if err := os.WriteFile(w.prices(), []byte("rules: "+rules+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// testAWSPrices checks that a commitment of the price file is used up and no further, and that a rule without a limit makes
// another type the cheapest one. By list prices m6g.large costs less than m5.large.
func testAWSPrices(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-prices")
	t.Cleanup(func() { w.price(t, "[]") })
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand), among(corev1.LabelInstanceTypeStable, "m5.large", "m6g.large"))
	s.apart()
	const limit = `karpenter_commitments_limit{commitment="savings-plan",unit="vcpus"}`
	limited := func(want string) func(context.Context) error {
		return func(context.Context) error {
			if got := s.metric(limit); got != want {
				return fmt.Errorf("the limit is %q, want %q", got, want)
			}
			return nil
		}
	}
	launched := func(want map[string]int) {
		t.Helper()
		got := map[string]int{}
		for _, i := range s.all() {
			got[i.Type]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("the instances are %v, want %v", got, want)
		}
	}

	w.price(t, `[{name: savings-plan, instanceTypes: [m5.large], factor: 0.5, upTo: {vCPUs: 4}}]`)
	await(t, patience, "the commitment to be known", limited("4"))
	s.scale("app", 3)
	await(t, patience, "all pods to run", s.running("app", 3))
	s.boughtOnce()
	launched(map[string]int{"m5.large": 2, "m6g.large": 1})
	await(t, patience, "the commitment to be used up", func(context.Context) error {
		if used := s.metric(`karpenter_commitments_used{commitment="savings-plan",unit="vcpus"}`); used != "4" {
			return fmt.Errorf("%s vCPUs of it are used", used)
		}
		return nil
	})

	w.price(t, `[{name: contract, instanceTypes: [m5.large], factor: 0.5}]`)
	await(t, patience, "the new rules to be known", limited(""))
	s.scale("app", 5)
	await(t, patience, "all pods to run", s.running("app", 5))
	s.boughtOnce()
	launched(map[string]int{"m5.large": 4, "m6g.large": 1})
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}
