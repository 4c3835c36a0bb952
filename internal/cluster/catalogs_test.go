package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

func catalogOf(s *Store, pool string) *model.Catalog {
	if p := s.Snapshot(start).Pool(pool); p != nil {
		return p.Catalog
	}
	return nil
}

func blockedBy(s *Store, pool string) string {
	if p := s.Snapshot(start).Pool(pool); p != nil && p.Blocked != nil {
		return p.Blocked.Reason
	}
	return ""
}

// TestCatalogsAreShared checks that pools with equal catalogs share one, and that reading an equal catalog again
// changes nothing.
func TestCatalogsAreShared(t *testing.T) {
	provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1), "other": oneType("small", 2)}}
	s := newStore(t, Config{Provider: provider, Options: Options{Catalog: time.Hour}})
	for i, name := range []string{"a", "b", "other"} {
		s.Saw(objecttest.Pool(t, name, "uid-"+name, string(rune('1'+i))))
	}
	if got := blockedBy(s, "a"); !strings.Contains(got, "not been read yet") {
		t.Errorf("before it is read the pool is blocked by %q", got)
	}
	run(t, s)
	eventually(t, "all catalogs are read", func() bool {
		return catalogOf(s, "a") != nil && catalogOf(s, "b") != nil && catalogOf(s, "other") != nil
	})
	first := catalogOf(s, "a")
	if first != catalogOf(s, "b") || first == catalogOf(s, "other") {
		t.Error("equal catalogs must be shared, others must not")
	}
	if got := blockedBy(s, "a"); got != "" {
		t.Errorf("the pool is blocked by %q", got)
	}
	visits := func() (n int) { provider.change(func() { n = provider.visits["a"] }); return n }
	before := visits()
	s.RefreshCatalogs(t.Context(), "a")
	if visits() == before {
		t.Error("it was not read again")
	}
	provider.change(func() { provider.types[""] = oneType("large", 1) })
	s.RefreshCatalogs(t.Context())
	if got := catalogOf(s, "a").Types[0].Name; got != "large" {
		t.Errorf("type %s after the catalogs were read again, want large", got)
	}
	if first.Types[0].Name != "small" {
		t.Error("a returned catalog was changed")
	}
}

// TestSale checks that pools with equal offerings are listed together, as the provider offers them, and that a pool
// without offerings has the reason.
func TestSale(t *testing.T) {
	for _, overlays := range []bool{false, true} {
		provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1), "other": oneType("small", 2)},
			errs: map[string]error{"wrong": errors.New("not today"),
				"none": &cloud.NoTypesError{Class: cloud.ClassRef{Kind: "Class", Name: "c"}, Message: "a field is 0"}}}
		s := newStore(t, Config{Provider: provider, State: state.Config{Overlays: overlays}, Options: Options{Catalog: time.Hour}})
		for i, name := range []string{"a", "b", "none", "other", "wrong"} {
			s.Saw(objecttest.Pool(t, name, "uid-"+name, string(rune('1'+i))))
		}
		cheap := &karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "cheap"}}
		cheap.Spec.Price = new("0.5")
		s.Saw(cheap)
		run(t, s)
		want := []capture.PriceListEntry{{Pools: []string{"a", "b"}, Types: oneType("small", 1)},
			{Pools: []string{"none"}, Reason: `Class "c" excludes every instance type: a field is 0`},
			{Pools: []string{"other"}, Types: oneType("small", 2)},
			{Pools: []string{"wrong"}, Reason: "reading the catalog of instance types: not today"}}
		eventually(t, "all catalogs are read", func() bool { return len(s.Sale().Catalogs) == len(want) && s.Sale().Catalogs[0].Types != nil })
		s.RefreshCatalogs(t.Context())
		if diff := cmp.Diff(want, s.Sale().Catalogs); diff != "" {
			t.Errorf("overlays %t (-want +got):\n%s", overlays, diff)
		}
	}
}

// TestSlowCatalogDelaysNoCaller checks that a provider that hangs for one pool does not delay the other pool,
// and that an error keeps the existing catalog.
func TestSlowCatalogDelaysNoCaller(t *testing.T) {
	provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1)}, blocked: map[string]bool{"slow": true}, errs: map[string]error{}}
	s := newStore(t, Config{Provider: provider, Options: Options{
		Catalog: 10 * time.Millisecond, CatalogTimeout: 50 * time.Millisecond, CatalogRetry: time.Millisecond,
	}})
	run(t, s)
	s.Saw(objecttest.Pool(t, "slow", "1", "1"))
	s.Saw(objecttest.Pool(t, "good", "2", "2"))
	eventually(t, "the good pool is served", func() bool { return catalogOf(s, "good") != nil })
	eventually(t, "the slow pool says why not", func() bool { return strings.Contains(blockedBy(s, "slow"), "deadline") })
	provider.change(func() { provider.errs["good"] = errors.New("throttled") })
	var visits int
	provider.change(func() { visits = provider.visits["good"] })
	eventually(t, "the error is met", func() bool {
		var now int
		provider.change(func() { now = provider.visits["good"] })
		return now > visits+2
	})
	if catalogOf(s, "good") == nil || blockedBy(s, "good") != "" {
		t.Errorf("an error removed the catalog: %q", blockedBy(s, "good"))
	}
	short, end := context.WithCancel(t.Context())
	end()
	s.RefreshCatalogs(short) // does not wait for the slow one
	provider.change(func() { provider.blocked["slow"] = false })
	eventually(t, "the slow pool is served", func() bool { return catalogOf(s, "slow") != nil && blockedBy(s, "slow") == "" })
	s.Gone(objecttest.Pool(t, "slow", "1", "1"))
	eventually(t, "only the feed of the remaining pool is left", func() bool {
		s.catalogs.mutex.Lock()
		defer s.catalogs.mutex.Unlock()
		return len(s.catalogs.feeds) == 1
	})
}

// TestUnreadyClassIsNoFailure checks that a node class that is not ready yet, as at each start, is not logged as an
// error, and that anything else is.
func TestUnreadyClassIsNoFailure(t *testing.T) {
	var mutex sync.Mutex
	var lines []string
	log := funcr.New(func(_, line string) {
		mutex.Lock()
		defer mutex.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	unready := &cloud.NodeClassNotReadyError{Class: cloud.ClassRef{Kind: "EC2NodeClass", Name: "default"},
		Message: "it has not been checked yet"}
	provider := &shop{errs: map[string]error{"new": fmt.Errorf("the pool sells nothing: %w", unready), "broken": errors.New("throttled")}}
	s := newStore(t, Config{Provider: provider, Log: log})
	run(t, s)
	s.Saw(objecttest.Pool(t, "new", "1", "1"))
	s.Saw(objecttest.Pool(t, "broken", "2", "2"))
	eventually(t, "both pools say why not", func() bool {
		return strings.Contains(blockedBy(s, "new"), "has not been checked yet") && strings.Contains(blockedBy(s, "broken"), "throttled")
	})
	mutex.Lock()
	defer mutex.Unlock()
	for pool, fails := range map[string]bool{"new": false, "broken": true} {
		told := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"nodepool"="`+pool+`"`) })
		if told < 0 || strings.Contains(lines[told], `"error"=`) != fails {
			t.Errorf("the log for pool %s is %q, want an error: %t", pool, lines, fails)
		}
	}
}
