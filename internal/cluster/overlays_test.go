package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// discountFor returns an overlay of one pool.
func discountFor(name, pool, price string) *karpv1alpha1.NodeOverlay {
	o := &karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", ResourceVersion: "1", Generation: 1}}
	o.Spec.Requirements = []karpv1alpha1.Requirement{{Key: karpv1.LabelNodePool, Operator: karpv1.OperatorIn, Values: []string{pool}}}
	o.Spec.Price = &price
	return o
}

// TestOverlays follows an overlay from its creation to its deletion: plans, launches and annotations of claims agree, and
// the pool that it does not match keeps its catalog.
func TestOverlays(t *testing.T) {
	provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1)}}
	s := newStore(t, Config{Provider: provider, State: state.Config{Overlays: true}, Options: Options{Catalog: time.Hour}})
	for i, name := range []string{"a", "b"} {
		s.Saw(objecttest.Pool(t, name, "uid-"+name, string(rune('1'+i))))
	}
	run(t, s)
	eventually(t, "the catalogs are read", func() bool { return catalogOf(s, "a") != nil && catalogOf(s, "b") != nil })
	raw := catalogOf(s, "b")
	if raw != catalogOf(s, "a") {
		t.Error("without overlays, equal catalogs must be shared")
	}
	resolved := s.Subscribe(state.OverlaysResolved)
	o := discountFor("discount", "a", "0.25")
	o.Spec.Capacity = corev1.ResourceList{"example.com/fuse": resource.MustParse("2")}
	s.Saw(o)
	eventually(t, "the overlay applies", func() bool { return catalogOf(s, "a") != raw })
	<-resolved
	small := catalogOf(s, "a").Types[0]
	if got := small.Offerings[0].Price; got != model.Nano/4 {
		t.Errorf("the price is %d nano-USD, want 0.25 USD", got)
	}
	if catalogOf(s, "b") != raw {
		t.Error("OV-10: the other pool has another catalog")
	}
	if reports := s.OverlayReports(); len(reports) != 1 || reports[0].Message != "price of 1 offerings of 1 types, capacity of 1 types, in 1 of 2 pools" {
		t.Errorf("reports are %+v", reports)
	}
	launched := s.Overlaid("a", provider.types[""])
	if launched[0].Offerings[0].Price != 0.25 || launched[0].Capacity["example.com/fuse"] != 2 {
		t.Errorf("a launch has %+v, want a price of 0.25 and two fuses", launched[0])
	}
	if again := s.Overlaid("a", provider.types[""]); &again[0] != &launched[0] {
		t.Error("the result for the same types is computed again")
	}
	if other := s.Overlaid("b", provider.types[""]); &other[0] != &provider.types[""][0] {
		t.Error("the types of the other pool are copied")
	}
	for _, c := range []struct {
		pool, zone      string
		price, capacity bool
	}{{"a", "a", true, true}, {"a", "z", false, false}, {"b", "a", false, false}} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{karpv1.LabelNodePool: c.pool}}}
		claim.Spec.Requirements = []karpv1.Requirement{{Key: corev1.LabelTopologyZone, Operator: karpv1.OperatorIn, Values: []string{c.zone}}}
		claim.Spec.Resources.Requests = corev1.ResourceList{"example.com/fuse": resource.MustParse("1")}
		if price, capacity := s.OverlaysOf(claim); price != c.price || capacity != c.capacity {
			t.Errorf("a claim of pool %s in zone %s: price %t, capacity %t, want %t, %t", c.pool, c.zone, price, capacity, c.price, c.capacity)
		}
	}

	// A new status changes nothing, and another generation does.
	before := catalogOf(s, "a")
	written := o.DeepCopy()
	written.ResourceVersion = "2"
	s.Saw(written)
	s.RefreshCatalogs(t.Context())
	if catalogOf(s, "a") != before {
		t.Error("a status of the overlay changed the catalog")
	}
	raised := discountFor("discount", "a", "0.5")
	raised.ResourceVersion, raised.Generation = "3", 2
	s.Saw(raised)
	eventually(t, "the new price applies", func() bool { return catalogOf(s, "a").Types[0].Offerings[0].Price == model.Nano/2 })
	s.Gone(raised)
	eventually(t, "the overlay is gone", func() bool { return catalogOf(s, "a").Types[0].Offerings[0].Price == model.Nano })
	if catalogOf(s, "a") != catalogOf(s, "b") {
		t.Error("equal catalogs must be shared again")
	}
}

// TestOverlaysOff checks that nothing watches overlays without the feature gate, and that providers get their own types.
func TestOverlaysOff(t *testing.T) {
	provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1)}}
	s := newStore(t, Config{Provider: provider})
	if slices.Contains(s.watched, state.NodeOverlays) {
		t.Error("NodeOverlays are watched")
	}
	s.Saw(objecttest.Pool(t, "a", "uid-a", "1"))
	if types := s.Overlaid("a", provider.types[""]); &types[0] != &provider.types[""][0] {
		t.Error("types are copied")
	}
}

// TestOverlayBeforeTheFirstCatalog checks that a claim of an earlier process is launched with the overlays.
func TestOverlayBeforeTheFirstCatalog(t *testing.T) {
	provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1)}}
	s := newStore(t, Config{Provider: provider, State: state.Config{Overlays: true}})
	s.Saw(objecttest.Pool(t, "a", "uid-a", "1"))
	s.Saw(discountFor("discount", "a", "0.25"))
	if types := s.Overlaid("a", provider.types[""]); types[0].Offerings[0].Price != 0.25 {
		t.Errorf("the price is %v, want 0.25", types[0].Offerings[0].Price)
	}
}
