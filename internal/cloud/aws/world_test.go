package aws

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/cloudtest"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

const testCluster = "sandbox"

// world is a simulated AWS, a Kubernetes API with a class that is ready, and the dependencies of providers.
type world struct {
	sim     *awssim.Cloud
	api     client.WithWatch
	clients Clients
	config  aws.Config
	types   []catalog.Type
	records *records
	clock   *shifted
	hung    atomic.Pointer[chan struct{}] // closed when reads of the API resume; nil while they are not blocked
	drained []cloudtest.Offering
	spot    []instance.SpotPrice
}

// quick returns options of a cloud whose machines start and stop almost immediately and which does not throttle.
func quick() awssim.Options {
	return awssim.Options{
		Cluster: awssim.Cluster{CA: "PEM"}, Limits: map[string]awssim.Limit{},
		Timing: awssim.Timing{Pending: 10 * time.Millisecond, Boot: 10 * time.Millisecond, ShuttingDown: 50 * time.Millisecond},
	}
}

// newWorld returns a world for a test in real time, with the named types. Its cloud listens on a local port.
func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	transport := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	return newWorldOf(t, quick(), connection{listener, transport, "http://" + listener.Addr().String()}, names...)
}

// newVirtualWorld returns a world on a virtual clock (testing/synctest), with its cloud in memory.
func newVirtualWorld(t *testing.T, options awssim.Options, names ...string) *world {
	t.Helper()
	pipe := awssim.NewPipe()
	return newWorldOf(t, options, connection{pipe, pipe.HTTPClient(), awssim.Endpoint}, names...)
}

// connection describes how to reach the cloud.
type connection struct {
	listener net.Listener
	client   *http.Client
	endpoint string
}

func newWorldOf(t *testing.T, options awssim.Options, by connection, names ...string) *world {
	t.Helper()
	sim, err := awssim.New(options)
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- sim.Serve(ctx, by.listener) }()
	transport := by.client
	t.Cleanup(func() {
		sim.Clear(0)
		transport.CloseIdleConnections()
		cancel()
		check(t, <-served)
	})
	w := &world{sim: sim, records: &records{entries: map[types.UID]launch.Record{}, names: map[types.UID]string{}}, clock: &shifted{}}
	w.config = aws.Config{Region: "us-east-1", HTTPClient: transport, BaseEndpoint: aws.String(by.endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", "")}
	w.clients = ClientsOf(w.config)
	for _, name := range names {
		known, found := catalog.Load().Type(name)
		if !found {
			t.Fatalf("there is no type %s", name)
		}
		w.types = append(w.types, *known)
	}
	for _, pool := range sim.Pools(names...) {
		if pool.CapacityType == karpv1.CapacityTypeSpot {
			w.spot = append(w.spot, instance.SpotPrice{Type: pool.Type, Zone: pool.Zone, Price: pool.Price})
		}
	}
	w.serveAPI(t)
	return w
}

// patient returns clients for tests with many calls that must not fail. A server in the same process sometimes responds
// before the client has noticed that its request is fully written, which net/http treats as a connection failure.
func (w *world) patient() Clients {
	config := w.config.Copy()
	config.RetryMaxAttempts = 10
	return ClientsOf(config)
}

// serveAPI creates the Kubernetes API with a class that has been reconciled, and one that is not ready.
func (w *world) serveAPI(t *testing.T) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, awsv1.AddToScheme, karpv1.AddToScheme} {
		check(t, add(scheme))
	}
	unready := testClass("unready")
	unready.StatusConditions().SetFalse(awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound, "no subnet matches")
	stored := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&awsv1.EC2NodeClass{}, &karpv1.NodeClaim{}).
		WithIndex(&karpv1.NodeClaim{}, FieldInstance, instanceOfClaim).WithObjects(testClass("default"), unready).Build()
	w.api = interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if hung := w.hung.Load(); hung != nil {
				select {
				case <-*hung:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return api.Get(ctx, key, object, o...)
		},
	})
	p := w.provider(t)
	r := &class.Reconciler{Client: stored, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, Now: time.Now}
	for range 2 { // first its finalizer, then the rest
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
		check(t, err)
	}
	if err := p.Ready(t.Context(), classRef("default")); err != nil {
		t.Fatal(err)
	}
}

func testClass(name string) *awsv1.EC2NodeClass {
	tagged := map[string]string{"karpenter.sh/discovery": testCluster}
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			Role: "KarpenterNodeRole-" + testCluster, AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: tagged}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: tagged}},
		},
	}
}

// poolOf returns the pool of the claims, with the given class.
func poolOf(class string) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: class}
	return pool
}

func classRef(name string) cloud.ClassRef {
	return cloud.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind, Name: name}
}

// provider returns a provider as a new process starts it.
func (w *world) provider(t *testing.T, change ...func(*Options)) *Provider {
	t.Helper()
	fast := launch.Rate{Burst: 1000, PerSecond: 1000}
	opts := Options{
		Client: w.api, Live: w.api, Clients: w.clients, Kubernetes: discovery.Kubernetes{FromEKS: true}, Cluster: testCluster,
		Region: "us-east-1",
		Types:  w.types, MemoryOverheadPercent: 0.075, Recorder: w.records, Clock: w.clock,
		Rates: map[string]launch.Rate{"CreateFleet": fast, "CreateLaunchTemplate": fast, "DescribeInstances": fast, "TerminateInstances": fast},
	}
	for _, c := range change {
		c(&opts)
	}
	p, err := New(opts)
	check(t, err)
	p.prices.MergeSpot(w.spot, time.Time{}.Add(1)) // a fixed time, so that all processes see the same prices
	return p
}

// claim creates a claim of the class in the API.
func (w *world) claim(t *testing.T, name string, requirements ...karpv1.Requirement) *karpv1.NodeClaim {
	t.Helper()
	c := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{karpv1.LabelNodePool: "pool"}},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"},
			Requirements: append([]karpv1.Requirement{}, requirements...)},
	}
	check(t, w.api.Create(t.Context(), c))
	return c
}

// launched returns a claim as the controller writes it after its launch.
func (w *world) launched(t *testing.T, p *Provider, name string, requirements ...karpv1.Requirement) *karpv1.NodeClaim {
	t.Helper()
	c := w.claim(t, name, requirements...)
	machine, err := p.Launch(t.Context(), c)
	check(t, err)
	for key, value := range machine.Labels {
		c.Labels[key] = value
	}
	c.Annotations = machine.Annotations
	check(t, w.api.Update(t.Context(), c))
	c.Status.ProviderID, c.Status.ImageID = machine.ProviderID, machine.ImageID
	check(t, w.api.Status().Update(t.Context(), c))
	return c
}

func (w *world) class(t *testing.T, name string) *awsv1.EC2NodeClass {
	t.Helper()
	c := &awsv1.EC2NodeClass{}
	check(t, w.api.Get(t.Context(), client.ObjectKey{Name: name}, c))
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shifted is the real clock plus the skipped time. Timers use the real time.
type shifted struct {
	clock.RealClock
	ahead atomic.Int64
}

func (s *shifted) Now() time.Time { return s.RealClock.Now().Add(time.Duration(s.ahead.Load())) }

func (s *shifted) Since(at time.Time) time.Duration { return s.Now().Sub(at) }

func (s *shifted) skip(d time.Duration) { s.ahead.Add(int64(d)) }

// records stores launch requests by the UIDs of claims, for claims that are not in an API.
type records struct {
	mu      sync.Mutex
	entries map[types.UID]launch.Record
	names   map[types.UID]string
}

func (r *records) Read(_ context.Context, claim *karpv1.NodeClaim) (launch.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[claim.UID], nil
}

func (r *records) Replace(_ context.Context, claim *karpv1.NodeClaim, before, after launch.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[claim.UID] != before {
		return fmt.Errorf("recording a purchase for %s: %w", claim.Name, launch.ErrChanged)
	}
	r.entries[claim.UID], r.names[claim.UID] = after, claim.Name
	return nil
}

func (r *records) Records(context.Context) (map[string]launch.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries := map[string]launch.Record{}
	for uid, e := range r.entries {
		entries[r.names[uid]] = e
	}
	return entries, nil
}
