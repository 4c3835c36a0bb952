package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// start is the time of the snapshots in these tests.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme, autoscalingv1beta1.AddToScheme, karpv1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// shop is a provider with configurable instance types and no other function.
type shop struct {
	cloud.Provider
	mutex   sync.Mutex
	types   map[string][]cloud.InstanceType // by pool, "" for the others
	errs    map[string]error
	visits  map[string]int
	blocked map[string]bool
}

func (s *shop) Name() string                 { return "shop" }
func (s *shop) NodeClasses() []client.Object { return []client.Object{&kwokv1alpha1.KWOKNodeClass{}} }
func (s *shop) Declared() cloud.Declared     { return cloud.Declared{} }

func (s *shop) Catalog(ctx context.Context, pool *karpv1.NodePool) ([]cloud.InstanceType, error) {
	s.mutex.Lock()
	blocked := s.blocked[pool.Name]
	if s.visits == nil {
		s.visits = map[string]int{}
	}
	s.visits[pool.Name]++
	s.mutex.Unlock()
	if blocked {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	types, named := s.types[pool.Name]
	if !named {
		types = s.types[""]
	}
	// A provider may create a new slice for each call.
	return append([]cloud.InstanceType(nil), types...), s.errs[pool.Name]
}

func (s *shop) change(f func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f()
}

func oneType(name string, price float64) []cloud.InstanceType {
	return []cloud.InstanceType{{
		Name:         name,
		Requirements: []cloud.Requirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}}},
		Capacity:     map[string]int64{"cpu": 4000, "memory": 16 << 30, "pods": 110},
		Offerings:    []cloud.Offering{{Zone: "a", CapacityType: "on-demand", Price: price, Available: true}},
	}}
}

// api holds the objects for live reads.
type api struct {
	client.Reader
	mutex   sync.Mutex
	objects map[state.Ref]client.Object
	err     error
	reads   int
}

func (a *api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.reads++
	if a.err != nil {
		return a.err
	}
	at, _ := state.RefOf(into)
	found := a.objects[state.Ref{Kind: at.Kind, Key: key}]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: at.Kind.String()}, key.Name)
	}
	data, err := yaml.Marshal(found)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(data, into)
}

func (a *api) put(obj client.Object) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.objects == nil {
		a.objects = map[state.Ref]client.Object{}
	}
	at, _ := state.RefOf(obj)
	a.objects[at] = obj
}

func (a *api) seen() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.reads
}

// newStore returns a store without watches. WriteVisible defaults to an hour.
func newStore(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Provider == nil {
		config.Provider = &shop{}
	}
	if config.Live == nil {
		config.Live = &api{}
	}
	if config.Options.WriteVisible == 0 {
		config.Options.WriteVisible = time.Hour
	}
	config.Scheme = scheme(t)
	if b, ok := t.(*testing.T); ok && config.Log.GetSink() == nil {
		config.Log = testr.New(b)
	}
	s, err := NewStore(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nodesOf returns the nodes of the snapshot as text: name(claim)stage.
func nodesOf(s *Store) string {
	var all []string
	for _, n := range s.Snapshot(start).Nodes {
		all = append(all, n.Name+"("+n.Claim+")"+n.Stage.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// run starts the store for the duration of the test.
func run(t testing.TB, s *Store) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not true after 20 s: %s", what)
		}
	}
}
