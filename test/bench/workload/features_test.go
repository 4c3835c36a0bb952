package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFeatures checks what features add to a fleet, that each node belongs to a pool that allows its type, and that a fleet
// without features has none.
func TestFeatures(t *testing.T) {
	f := Everyday(10, 3)
	for _, c := range []struct {
		features Features
		pools    int
		spread   int32
	}{
		{Features{}, 1, 0},
		{Features{Limits: map[string]string{"cpu": "1000"}}, 1, 0},
		{Features{Pools: 12}, 12, 0},
		{Features{Skew: 1000}, 1, 1000},
	} {
		folder := t.TempDir()
		if err := f.With(c.features).Bound("10%").Write(folder); err != nil {
			t.Fatal(err)
		}
		w, err := Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Pools) != c.pools {
			t.Errorf("%+v: %d pools, want %d", c.features, len(w.Pools), c.pools)
		}
		for _, p := range w.Pools {
			if got := len(p.Spec.Limits); got != len(c.features.Limits) {
				t.Errorf("%+v: pool %s has %d limits", c.features, p.Name, got)
			}
			if tainted := len(p.Spec.Template.Spec.Taints) > 0; tainted != strings.HasPrefix(p.Name, "team") {
				t.Errorf("%+v: pool %s has taints: %t", c.features, p.Name, tainted)
			}
		}
		for _, n := range w.Nodes {
			want := "default"
			if n.Labels[labelCPU] == "16" && c.pools > 1 {
				want = large
			}
			if got := n.Labels[LabelPool]; got != want {
				t.Errorf("%+v: node %s with %s processors is in pool %s, want %s", c.features, n.Name, n.Labels[labelCPU], got, want)
			}
		}
		for _, p := range w.Bound {
			skew := int32(0)
			for _, s := range p.Spec.TopologySpreadConstraints {
				skew = s.MaxSkew
			}
			if skew != c.spread {
				t.Errorf("%+v: pod %s has maxSkew %d, want %d", c.features, p.Name, skew, c.spread)
			}
		}
	}
}

// TestPurchase checks the number of pods, and that a seed always gives the same ones.
func TestPurchase(t *testing.T) {
	for seed := 1; seed <= 60; seed++ {
		f := Purchase(seed)
		if len(f.Pods) < 3 || len(f.Pods) > 11 || len(f.Nodes) > 0 {
			t.Errorf("seed %d: %d pods on %d nodes, want 3 to 11 on none", seed, len(f.Pods), len(f.Nodes))
		}
		if diff := cmp.Diff(f.Pods, Purchase(seed).Pods, cmp.AllowUnexported(FleetPod{})); diff != "" {
			t.Errorf("seed %d: two purchases differ (-first +second):\n%s", seed, diff)
		}
	}
}
