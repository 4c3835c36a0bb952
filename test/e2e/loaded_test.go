package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/fakeapi"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
)

// A block is a unit that the whole control plane creates and that is then copied: 20 nodes that are filled by eight
// pods of eight applications and two daemon pods.
const (
	blockNodes   = 20
	applications = 8
	podsPerNode  = applications + 2
)

// TestLoaded measures the controller's resource usage in clusters of the sizes in KARPENTER_LOADED ("1000,5000"
// nodes), with ten pods per node, and prints a Markdown table. It asserts that the controller decides nothing where
// nothing is to be decided and launches what is needed otherwise, and nothing about time.
//
//	20 nodes, by the whole control plane ──> sample ──> etcd: N nodes, N claims, 10 N pods, as they were stored
//	                                                     |
//	                               kube-apiserver ───────┘<── node reports, created and deleted pods, written by the test
//	                                     |
//	                                 controller, its flags the default ones (but for the profiler)
//
// Scheduler, controller manager and kubelets would use both cores at that size, so they do not run. Leases of nodes
// are not renewed: the controller does not watch them, and the test fails if it does.
//
//	ready     from the start of the process until /readyz returns ok
//	settled   until it uses less than 5% of a core over 10 s, and 3% more for each 1,000 nodes
//	at rest   a minute in which nothing happens
//	living    a minute in which ten pods a second are replaced and each node reports its state as kubelets do,
//	          every five minutes
//	500 pods  from the last of 500 pending pods until the last of their claims is written, and the CPU from the first pod
//	          until all has settled; nodes are created and do not become ready
//	memory    resident: the peak until it is ready, at rest, the peak of all; in use by Go at rest, after a collection
func TestLoaded(t *testing.T) {
	sizes := os.Getenv("KARPENTER_LOADED")
	if sizes == "" {
		t.Skip("takes up to an hour; KARPENTER_LOADED=1000,5000 runs it (make scale)")
	}
	sample := takeSample(t)
	measureSizes(t, "loaded.md", sizes, func(t *testing.T, nodes int) *loaded { return load(t, sample, nodes) })
}

// measureSizes measures clusters of the sizes ("1000,5000" nodes) and keeps a table of them in a file.
func measureSizes(t *testing.T, file, sizes string, load func(t *testing.T, nodes int) *loaded) {
	t.Helper()
	table := []string{
		"| nodes | pods | ready | CPU until ready | until settled | a minute at rest | a minute living | 500 pods: claims | CPU | memory until ready | at rest | greatest | in use |",
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|",
	}
	for size := range strings.SplitSeq(sizes, ",") {
		nodes, err := strconv.Atoi(size)
		if err != nil {
			t.Fatalf("the numbers of nodes: %v", err)
		}
		if nodes%blockNodes != 0 || nodes < 5*blockNodes {
			t.Fatalf("a cluster has %d nodes, want multiples of %d from %d", nodes, blockNodes, 5*blockNodes)
		}
		t.Run(size, func(t *testing.T) {
			l := load(t, nodes)
			table = append(table, l.measure())
		})
		text := strings.Join(table, "\n") + "\n"
		t.Logf("so far:\n%s", text)
		write(t, kept(t, file), text)
	}
}

// takeSample makes the whole control plane create a block and reads it.
func takeSample(t *testing.T) *fakeapi.Sample {
	t.Helper()
	var w *fakeapi.Sample
	t.Run("sample", func(t *testing.T) {
		c := ownCluster(t)
		s := &stage{cluster: c, t: t, name: ours}
		first := fmt.Sprintf(fakeapi.Namespace, 0)
		for _, namespace := range []string{ours, first} {
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		}
		s.apply(filepath.Join("testdata", "loaded.yaml"))
		text, err := os.ReadFile(filepath.Join("testdata", "loaded-app.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range applications {
			path := filepath.Join(t.TempDir(), "app.yaml")
			write(t, path, strings.ReplaceAll(string(text), "app-0", "app-"+strconv.Itoa(i)))
			s.apply(path)
		}
		s.runController(t, kept(t, "sample.log"))
		await(t, 10*time.Minute, "a block to run", func(ctx context.Context) error { return s.blockRuns(ctx, first) })
		for _, node := range s.ledger.nodesOf("") {
			s.addImages(node)
		}
		registry, err := openRegistry(c.sandbox)
		if err != nil {
			t.Fatal(err)
		}
		if w, err = readSample(t.Context(), registry); err != nil {
			t.Fatal(err)
		}
		t.Logf("a block: %s", sizes(w))
		keepSample(t, w)
	})
	if t.Failed() {
		t.FailNow()
	}
	return w
}

// blockRuns fails until all pods of the block run, and its claims are settled.
func (s *stage) blockRuns(ctx context.Context, namespace string) error {
	const forgotten = time.Minute
	running, last := 0, ""
	for _, pod := range slices.Concat(s.ledger.podsOf(namespace), s.ledger.podsOf(ours)) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running++
			continue
		}
		last = fmt.Sprintf("%s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		// On a busy machine kwok sometimes misses a pod whose status it wrote twice at a time.
		if pod.Spec.NodeName != "" && time.Since(pod.CreationTimestamp.Time) > forgotten {
			if err := s.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	if running != blockNodes*podsPerNode {
		return fmt.Errorf("%d of %d pods run; %s", running, blockNodes*podsPerNode, last)
	}
	// A surplus node may have been launched while pods were still being created; it is removed.
	claims := slices.DeleteFunc(s.ledger.claimsOf(""), func(e entry[*karpv1.NodeClaim]) bool { return e.gone })
	for _, e := range claims {
		if len(claims) != blockNodes || !e.object.DeepCopy().Condition(karpv1.ConditionConsolidatable).IsTrue() {
			return fmt.Errorf("%d claims, want %d; %s has the conditions %v", len(claims), blockNodes, e.object.Name, e.object.Status.Conditions)
		}
	}
	return nil
}

// addImages adds what kwok's kubelets do not report: the node's images, which are most of a node's bytes.
func (s *stage) addImages(node *corev1.Node) {
	s.t.Helper()
	const images = 40
	var list []string
	for i := range images {
		digest := strings.Repeat(fmt.Sprintf("%02x", 3*i), 32)
		list = append(list, fmt.Sprintf(`{"names":["registry.example.org/shop/image-%d@sha256:%s","registry.example.org/shop/image-%d:v1.%d.0"],"sizeBytes":%d}`, i, digest, i, i, (i+1)<<20))
	}
	s.patchStatus(node.Name, `{"status":{"images":[`+strings.Join(list, ",")+`]}}`)
}

// loaded is an API server with a large cluster, without other components.
type loaded struct {
	*cluster
	t      *testing.T
	sample *fakeapi.Sample
	nodes  int
	// watchesLeases reports whether the controller has watched Leases.
	watchesLeases func(t *testing.T) bool
}

// load starts an API server and writes the cluster into its etcd.
func load(t *testing.T, w *fakeapi.Sample, nodes int) *loaded {
	t.Helper()
	directory, err := os.MkdirTemp(artifacts, "loaded-")
	if err != nil {
		t.Fatal(err)
	}
	c, err := startOf(t.Context(), sandbox.Options{DataDir: directory, Components: sandbox.APIOnly()}, "kwok")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.close(t)
		giveBack(t, directory, filepath.Dir(c.audit))
	})
	c.environment = append(c.environment, mutationDetector+"false")
	l := &loaded{cluster: c, t: t, sample: w, nodes: nodes, watchesLeases: c.watchedLeases}
	l.forgetOlder()
	l.fill()
	return l
}

// forgetOlder removes all versions of the definitions but the stored one. The controller converts older versions, and
// in a cluster a Service points to it. Here the API server would not reach it, and would read all claims repeatedly
// to convert them.
func (l *loaded) forgetOlder() {
	l.t.Helper()
	config, err := l.sandbox.Config()
	if err != nil {
		l.t.Fatal(err)
	}
	definitions, err := crds.Definitions()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, definition := range definitions {
		definition.Spec.Conversion = nil
		definition.Spec.Versions = slices.DeleteFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage })
	}
	if err := sandbox.Install(l.t.Context(), config, definitions); err != nil {
		l.t.Fatal(err)
	}
}

// fill writes all blocks, and waits until the API server shows them.
func (l *loaded) fill() {
	l.t.Helper()
	registry, err := openRegistry(l.sandbox)
	if err != nil {
		l.t.Fatal(err)
	}
	objects, begun, bytes := make(chan fakeapi.Stored), time.Now(), 0
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	go func() {
		defer close(objects)
		for block := -1; block < l.nodes/blockNodes; block++ {
			all := l.sample.Once
			if block >= 0 {
				all = l.sample.Block(block)
			}
			for _, object := range all {
				select {
				case objects <- object:
					bytes += len(object.Value)
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	if err := registry.write(ctx, objects); err != nil {
		l.t.Fatalf("writing the cluster: %v", err)
	}
	l.t.Logf("%d nodes and %d pods, %d MiB in all, are in etcd after %.0f s", l.nodes, l.nodes*podsPerNode, bytes>>20, time.Since(begun).Seconds())
	for kind, want := range map[string]int{"Node": l.nodes, "NodeClaim": l.nodes, "Pod": l.nodes * podsPerNode} {
		await(l.t, 10*time.Minute, "the API server to show the cluster", func(ctx context.Context) error {
			got, err := l.number(ctx, kind)
			if err == nil && got != want {
				err = fmt.Errorf("there are %d objects of kind %s, want %d", got, kind, want)
			}
			return err
		})
	}
	l.t.Logf("the API server shows them after %.0f s", time.Since(begun).Seconds())
}

// measure returns the table row of a size.
func (l *loaded) measure() string {
	l.t.Helper()
	begun := time.Now()
	p, err := startController(l.cluster, kept(l.t, fmt.Sprintf("%s-%d.log", l.kind(), l.nodes)), "--enable-profiling")
	if err != nil {
		l.t.Fatal(err)
	}
	l.controller = p
	await(l.t, 20*time.Minute, "the controller to be ready", p.ready)
	ready, start := time.Since(begun), p.takes(l.t)
	l.t.Logf("ready after %.1f s and %.1f s of CPU, %d MiB", ready.Seconds(), start.cpu, start.peak>>20)
	settled := l.settle()
	idle(time.Minute)
	rest := p.takes(l.t)
	l.t.Logf("at rest %.1f s of CPU a minute, %d MiB", rest.cpu-settled.cpu, rest.resident>>20)
	l.profile("rest")
	inUse := l.inUse()
	before := p.takes(l.t)
	l.live(time.Minute)
	living := p.takes(l.t)
	l.t.Logf("living %.1f s of CPU a minute, %d MiB", living.cpu-before.cpu, living.resident>>20)
	l.stay(l.nodes, l.nodes)
	l.settle()
	calm := p.takes(l.t)
	claims := l.grow(500)
	after := l.settle()
	l.t.Logf("claims for 500 pods after %.1f s and %.1f s of CPU, %d MiB", claims.Seconds(), after.cpu-calm.cpu, after.peak>>20)
	l.profile("end")
	if l.watchesLeases(l.t) {
		l.t.Error("the controller watches Leases, which this measure does not renew")
	}
	const row = "| %d%s | %d | %.1f s | %.1f s | %.1f s | %.1f s | %.1f s | %.1f s | %.1f s | %d MiB | %d MiB | %d MiB | %d MiB |"
	return fmt.Sprintf(row, l.nodes, l.remark(), l.nodes*podsPerNode, ready.Seconds(), start.cpu, settled.cpu, rest.cpu-settled.cpu, living.cpu-before.cpu,
		claims.Seconds(), after.cpu-calm.cpu, start.peak>>20, rest.resident>>20, after.peak>>20, inUse>>20)
}

// remark reports that the controller lost its Lease and restarted, which happens on a machine that is too busy for
// measurements.
func (l *loaded) remark() string {
	l.t.Helper()
	log, err := os.ReadFile(l.controller.log)
	if err != nil {
		l.t.Fatal(err)
	}
	if times := strings.Count(string(log), "the Lease is lost"); times > 0 {
		return fmt.Sprintf(" (busy machine: began anew %d times)", times)
	}
	return ""
}

// settle waits until the controller is idle, five minutes at most, and returns its usage up to then.
func (l *loaded) settle() consumption {
	l.t.Helper()
	const window = 10 * time.Second
	quiet := 0.5 + 0.3*float64(l.nodes)/1000 // seconds of CPU; the usage at rest grows with nodes
	last := l.controller.takes(l.t)
	for range 30 {
		idle(window)
		now := l.controller.takes(l.t)
		if now.cpu-last.cpu < quiet {
			return now
		}
		last = now
	}
	l.t.Log("it did not settle in five minutes")
	return last
}

// stay checks the number of claims, and that each has a node.
func (l *loaded) stay(least, most int) {
	l.t.Helper()
	claims, err := l.number(l.t.Context(), "NodeClaim")
	if err != nil {
		l.t.Fatal(err)
	}
	nodes, err := l.number(l.t.Context(), "Node")
	if err != nil {
		l.t.Fatal(err)
	}
	if claims < least || claims > most {
		l.t.Errorf("%d claims exist, want %d to %d", claims, least, most)
	}
	if nodes != claims {
		l.t.Errorf("%d nodes exist, want one for each of %d claims", nodes, claims)
	}
}

// profile stores a profile of the controller's memory.
func (l *loaded) profile(moment string) {
	l.t.Helper()
	write(l.t, kept(l.t, fmt.Sprintf("%s-%d-%s.heap", l.kind(), l.nodes, moment)), l.scrape("/debug/pprof/heap?gc=1"))
}

// inUse returns the bytes of objects in the controller's heap, according to its metrics: shortly after a collection,
// the live ones.
func (l *loaded) inUse() int64 {
	l.t.Helper()
	for line := range strings.Lines(l.scrape("/metrics")) {
		var bytes float64
		if _, err := fmt.Sscanf(line, "go_memstats_heap_alloc_bytes %g", &bytes); err == nil {
			return int64(bytes)
		}
	}
	l.t.Error("the metrics do not contain go_memstats_heap_alloc_bytes")
	return 0
}

// scrape reads from the controller's metrics port.
func (l *loaded) scrape(path string) string {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(l.controller.metrics)+path, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		l.t.Fatalf("%s returns %s, %v", path, response.Status, err)
	}
	return string(content)
}
