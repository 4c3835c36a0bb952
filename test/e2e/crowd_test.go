package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/legacy/webhook"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
)

// bystanders is the number of ordinary pods that are created one after the other beside hostile input.
const bystanders = 6

// leastRoom is a memory limit for the controller with hostile input in a small cluster.
const leastRoom = 1 << 30

// apiOnly starts an API server with Karpenter's definitions and an account. The test writes what kube-scheduler
// would. A whole control plane is slower than the measured effects.
func apiOnly(t *testing.T) *loaded {
	t.Helper()
	directory, err := os.MkdirTemp(artifacts, "api-")
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
	if err := c.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.environment = append(c.environment, mutationDetector+"false")
	l := &loaded{cluster: c, t: t}
	l.forgetOlder()
	return l
}

// stage returns a case whose objects are removed with the cluster.
func (l *loaded) stage(name string) *stage {
	l.t.Helper()
	s := &stage{cluster: l.cluster, t: l.t, name: name}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	s.apply(filepath.Join("testdata", name+".yaml"))
	return s
}

// TestCrowd creates pods of one namespace while 1,500 pods of another one are pending that exclude each other from
// their nodes, each of them a group of its own. Each ordinary pod has its NodeClaim soon, and the controller keeps
// its Lease.
func TestCrowd(t *testing.T) {
	only(t)
	const pods, limit = 1500, 200
	l := apiOnly(t)
	quiet, crowd := l.stage("bystander"), l.stage("crowd")
	l.runController(t, filepath.Join(artifacts, "crowd.log"))
	alone := quiet.pace(l, 0)
	t.Logf("alone: %s", alone)
	begun, before := time.Now(), l.controller.takes(t)
	come := make(chan error, 1)
	go func() { come <- crowd.comeApart(l, pods) }()
	coming := quiet.pace(l, bystanders)
	t.Logf("while %d pods with anti-affinity are created: %s", pods, coming)
	if err := <-come; err != nil {
		t.Fatal(err)
	}
	t.Logf("they were created after %.0f s", time.Since(begun).Seconds())
	await(t, 10*time.Minute, "the crowd to have as many claims as the limit allows", func(context.Context) error {
		if now := crowd.ledger.count(crowd.name); now.claims < limit {
			return fmt.Errorf("%d claims, want %d", now.claims, limit)
		}
		return nil
	})
	t.Logf("%d claims for them after %.0f s and %.1f CPU s", limit, time.Since(begun).Seconds(), l.controller.takes(t).cpu-before.cpu)
	late := quiet.pace(l, 2*bystanders)
	t.Logf("beside %d unschedulable ones: %s; slow passes: %v", pods-limit, late, l.controller.slowPasses(t))
	for _, beside := range []pacing{coming, late} {
		quiet.heldUp(beside)
	}
}

// comeApart creates pending pods, each of which excludes all others from its node and is spread over nodes, zones and
// capacity types.
func (s *stage) comeApart(l *loaded, number int) error {
	names := make([]string, number)
	for i := range names {
		names[i] = fmt.Sprintf("p%04d", i)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, 8)
	for worker := range errs {
		all.Go(func() {
			for i := int(next.Add(1)); i <= number && errs[worker] == nil; i = int(next.Add(1)) {
				errs[worker] = l.ask(s.t.Context(), apart(s.name, names, i-1))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// apart returns pod i of the names.
func apart(namespace string, names []string, i int) *corev1.Pod {
	name := names[i]
	others := slices.Concat(names[:i], names[i+1:])
	like := func(values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}}
	}
	spread := func(key string, when corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: when, LabelSelector: like(name)}
	}
	pod := plainPod(namespace, name, namespace, "100m")
	pod.Labels = map[string]string{"app": name}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: like(others...)}},
	}}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		spread(corev1.LabelHostname, corev1.DoNotSchedule), spread(corev1.LabelTopologyZone, corev1.DoNotSchedule),
		spread("karpenter.sh/capacity-type", corev1.ScheduleAnyway),
	}
	return pod
}

// plainPod returns a pod for the nodes of a case.
func plainPod(namespace, name, nodes, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			NodeSelector:                  map[string]string{caseLabel: nodes},
			Containers: []corev1.Container{{Name: "pause", Image: "pause:3.10", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Mi")},
			}}},
		},
	}
}

// pacing holds how long ordinary pods waited for their claims, and the controller's usage meanwhile.
type pacing struct {
	waits []time.Duration
	cpu   float64
	peak  int64
}

func (p pacing) worst() time.Duration { return slices.Max(p.waits) }

func (p pacing) String() string {
	var waits []string
	for _, wait := range p.waits {
		waits = append(waits, fmt.Sprintf("%.1f", wait.Seconds()))
	}
	return fmt.Sprintf("claims after %s s, %.1f CPU s of the controller, at most %d MiB so far", strings.Join(waits, ", "), p.cpu, p.peak>>20)
}

// pace creates ordinary pods one after the other, and waits for the claim of each.
func (s *stage) pace(l *loaded, from int) pacing {
	s.t.Helper()
	var p pacing
	before := s.controller.takes(s.t)
	for i := range bystanders {
		want := s.ledger.count(s.name).claimsEver + 1
		if err := l.ask(s.t.Context(), plainPod(s.name, fmt.Sprintf("harmless-%d", from+i), s.name, "1500m")); err != nil {
			s.t.Fatal(err)
		}
		begun := time.Now()
		await(s.t, 5*time.Minute, "a claim for a harmless pod", func(context.Context) error {
			if n := s.ledger.count(s.name).claimsEver; n < want {
				return fmt.Errorf("there are %d claims, want %d", n, want)
			}
			return nil
		})
		p.waits = append(p.waits, time.Since(begun))
	}
	after := s.controller.takes(s.t)
	p.cpu, p.peak = after.cpu-before.cpu, after.peak
	return p
}

// heldUp checks the limits for hostile input: bounded memory, no lost Lease, no long waits of pods. The last two are
// checked on a quiet machine only: a starved API server has the same effects.
func (s *stage) heldUp(beside pacing) {
	s.t.Helper()
	promised(s.t, "the claim of a harmless pod", beside.worst(), 15*time.Second)
	if beside.peak > leastRoom {
		s.t.Errorf("the controller used %d MiB, want %d at most", beside.peak>>20, leastRoom>>20)
	}
	log, err := os.ReadFile(s.controller.log)
	if err != nil {
		s.t.Fatal(err)
	}
	lost := bytes.Count(log, []byte("the Lease is lost"))
	s.t.Logf("the Lease was lost %d times", lost)
	if lost > 0 && effort(0, 0, 1) == 1 {
		s.t.Errorf("the Lease was lost %d times", lost)
	}
}

// slowPasses returns the seconds of the longest pass of each loop that the log reports as long.
func (p *controller) slowPasses(t *testing.T) map[string]string {
	t.Helper()
	log, err := os.Open(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	longest, number := map[string]float64{}, map[string]int{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var entry struct {
			Logger, Message string
			Seconds         float64
		}
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Message == "deciding took long" {
			longest[entry.Logger] = max(longest[entry.Logger], entry.Seconds)
			number[entry.Logger]++
		}
	}
	said := map[string]string{}
	for loop, seconds := range longest {
		said[loop] = fmt.Sprintf("%d, the longest %.1f s", number[loop], seconds)
	}
	return said
}

// TestFlood creates pods while clients send 100 requests of 1 MiB a second to the conversion webhook. Pods are
// planned at their usual pace.
func TestFlood(t *testing.T) {
	only(t)
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	l := apiOnly(t)
	s := l.stage("bystander")
	l.runController(t, filepath.Join(artifacts, "flood.log"), "--karpenter-service=karpenter", "--webhook-port="+strconv.Itoa(ports[0]))
	f := newFlood(fmt.Sprintf("https://127.0.0.1:%d%s", ports[0], webhook.Path))
	await(t, patience, "the webhook to answer", f.answers)
	alone := s.pace(l, 0)
	t.Logf("without a flood: %s", alone)
	stop := f.start(t.Context())
	beside := s.pace(l, bystanders)
	t.Logf("beside a flood: %s; %s", beside, stop())
	s.heldUp(beside)
	if f.sent.Load() == 0 || f.converted.Load() == 0 {
		t.Error("the flood converted nothing")
	}
}

// flood sends requests to convert 1 MiB of pools, 100 a second.
type flood struct {
	url    string
	body   []byte
	client *http.Client

	sent, converted, busy, failed atomic.Int64
}

func newFlood(url string) *flood {
	const pools, requirements = 80, 90
	requirement := `{"key":"node.kubernetes.io/instance-type","operator":"In","values":["m5.large","m5.xlarge","m5.2xlarge","m5.4xlarge","m5.8xlarge","m5.12xlarge"]}`
	var objects []string
	for i := range pools {
		objects = append(objects, fmt.Sprintf(`{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"p%d"},"spec":{"template":{"spec":{"nodeClassRef":{"name":"x"},"requirements":[%s]}}}}`,
			i, strings.TrimSuffix(strings.Repeat(requirement+",", requirements), ",")))
	}
	return &flood{
		url:    url,
		body:   []byte(`{"kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"karpenter.sh/v1","objects":[` + strings.Join(objects, ",") + `]}}`),
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
	}
}

// answers fails until a request gets a response.
func (f *flood) answers(ctx context.Context) error {
	if err := f.send(ctx, 0); err != nil {
		return err
	}
	if f.converted.Load() == 0 {
		return fmt.Errorf("%s converts nothing", f.url)
	}
	return nil
}

func (f *flood) send(ctx context.Context, _ int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(f.body))
	if err != nil {
		return err
	}
	f.sent.Add(1)
	response, err := f.client.Do(request)
	if err != nil {
		f.failed.Add(1)
		return nil // rejected while it was sent
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	switch response.StatusCode {
	case http.StatusOK:
		f.converted.Add(1)
	case http.StatusServiceUnavailable:
		f.busy.Add(1)
	default:
		f.failed.Add(1)
	}
	return nil
}

// start sends requests until the returned function is called.
func (f *flood) start(ctx context.Context) (stop func() string) {
	ctx, cancel := context.WithCancel(ctx)
	done, begun := make(chan struct{}), time.Now()
	go func() {
		defer close(done)
		_, _ = paced(ctx, time.Hour, time.Second/100, f.send)
	}()
	return func() string {
		cancel()
		<-done
		return fmt.Sprintf("%.0f requests of %d KiB a second: %d converted, %d answered as too many, %d refused a connection or cut off", float64(f.sent.Load())/time.Since(begun).Seconds(), len(f.body)>>10,
			f.converted.Load(), f.busy.Load(), f.failed.Load())
	}
}
