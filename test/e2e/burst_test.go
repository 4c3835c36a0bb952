package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestBurst measures scale-ups from nothing on a control plane of its own: of one Deployment to the numbers of replicas
// in KARPENTER_BURST ("100,1000"), and "wide", a thousand pods of thirty Deployments. It does so with this controller as it
// is by default, without proactive scale-up, and with another controller if LATENCY_OTHER has its command (make latency). It
// prints a Markdown table. It asserts that all pods run, and for this controller by default that the claims of one
// Deployment are created in at most two plans and are all used.
//
//	claims    from the first scale command to the last new claim
//	ready     from the first scale command to the last pod that runs
//	plans     that created claims
//	unused    claims that are gone or have no pod when the last pod runs
//	used      the CPU that the pods request, of what the nodes have
//	CPU       seconds of the controller's process from the scale command to the last pod that runs
func TestBurst(t *testing.T) {
	sizes := os.Getenv("KARPENTER_BURST")
	if sizes == "" {
		t.Skip("takes minutes; KARPENTER_BURST=100,1000,wide runs it (make latency)")
	}
	table := slices.Clone(burstHead)
	for _, by := range scalers() {
		c := ownCluster(t)
		c.environment = append(c.environment, mutationDetector+"false")
		s := newStage(t, c, "thousand")
		for size := range strings.SplitSeq(sizes, ",") {
			table = append(table, s.burst(size, by))
			t.Logf("so far:\n%s", strings.Join(table, "\n"))
		}
	}
}

// burstHead is the head of the table.
var burstHead = []string{"| burst | controller | claims | ready | plans | nodes | unused | used | USD/h | CPU | memory |",
	"|---|---|---|---|---|---|---|---|---|---|---|"}

// TestSmallBurst runs the measurement with few pods, by this controller and by the same program as another one. It checks
// that the traces of this one tell of the plan, its claims and their pods.
func TestSmallBurst(t *testing.T) {
	t.Parallel()
	s := newStage(t, ownCluster(t), "thousand")
	spans := receiveSpans(t, s.cluster)
	row := s.burst("12", scaler{name: "default"})
	t.Logf("\n%s\n%s", strings.Join(burstHead, "\n"), row)
	spans.include("provision", "batch", "snapshot", "plan", "execute", "create NodeClaim", "NodeClaim", "launch", "cloud create",
		"register", "initialize", "pod bound")
	row = s.burst("12", scaler{name: "other", other: []string{binary, "controller", "--cloud-provider=kwok"}})
	if cells := strings.Split(row, "|"); len(cells) != strings.Count(burstHead[0], "|")+1 || strings.TrimSpace(cells[6]) == "0" {
		t.Errorf("the row of another controller is %s", row)
	}
}

// spans are the bodies of the requests with traces.
type spans struct {
	*testing.T
	mutex  sync.Mutex
	bodies [][]byte
}

// receiveSpans receives the traces of the cluster's controllers from now on.
func receiveSpans(t *testing.T, c *cluster) *spans {
	t.Helper()
	s := &spans{T: t}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("a request with traces to %s: %v", r.URL.Path, err)
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.bodies = append(s.bodies, body)
	}))
	t.Cleanup(server.Close)
	c.environment = append(c.environment, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL)
	return s
}

// include checks that there is a span of each name: in protobuf, text is preceded by its length.
func (s *spans) include(names ...string) {
	s.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, name := range names {
		text := append([]byte{byte(len(name))}, name...)
		if !slices.ContainsFunc(s.bodies, func(body []byte) bool { return bytes.Contains(body, text) }) {
			s.Errorf("no span %q in %d requests", name, len(s.bodies))
		}
	}
}

// scaler is a controller that is measured.
type scaler struct {
	name  string
	flags []string
	// other is the command of another controller, nil for this one.
	other []string
}

// scalers returns those to measure. KARPENTER_BURST_BY selects some by name.
func scalers() []scaler {
	all := []scaler{{name: "default"}, {name: "reactive", flags: []string{"--proactive-scale-up=false"}}}
	if command := strings.Fields(os.Getenv("LATENCY_OTHER")); len(command) > 0 {
		all = append(all, scaler{name: "other", other: command})
	}
	names := os.Getenv("KARPENTER_BURST_BY")
	if names == "" {
		return all
	}
	var selected []scaler
	for _, by := range all {
		if strings.Contains(","+names+",", ","+by.name+",") {
			selected = append(selected, by)
		}
	}
	return selected
}

// runScaler starts a controller and waits until it is ready. For another one, the account gets all permissions: it has those
// of this one's chart.
func (s *stage) runScaler(log string, by scaler) {
	s.t.Helper()
	if by.other == nil {
		s.runController(s.t, log, by.flags...)
		return
	}
	if err := s.Create(s.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "other"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}); client.IgnoreAlreadyExists(err) != nil {
		s.t.Fatal(err)
	}
	p, err := startProgram(s.cluster, log, by.other)
	if err != nil {
		s.t.Fatal(err)
	}
	s.controller = p
	await(s.t, patience, "the other controller to be ready", p.ready)
}

// workloads creates the Deployments of a burst without replicas, and returns the numbers to scale them to.
func (s *stage) workloads(size string) map[string]int {
	s.t.Helper()
	if size != "wide" {
		replicas, err := strconv.Atoi(size)
		if err != nil {
			s.t.Fatalf("KARPENTER_BURST: %v", err)
		}
		return map[string]int{"app": replicas}
	}
	const deployments, pods = 30, 1000
	asked := map[string]int{}
	for i := range deployments {
		w := shrunk{name: fmt.Sprintf("wide-%02d", i), cpu: []string{"100m", "250m", "500m", "750m", "1500m", "2"}[i%6]}
		asked[w.name] = (pods + i) / deployments
		d := w.deployment(s.name, 0)
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] =
			resource.MustParse([]string{"128Mi", "512Mi", "1Gi", "2Gi", "6Gi"}[i%5])
		if i%3 == 2 {
			d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: []string{corev1.LabelTopologyZone, corev1.LabelHostname}[i%2],
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.Spec.Selector}}
		}
		s.create(d)
	}
	return asked
}

// burst returns the table row of a scale-up.
func (s *stage) burst(size string, by scaler) string {
	s.t.Helper()
	asked := s.workloads(size)
	log := kept(s.t, fmt.Sprintf("burst-%s-%s.log", size, by.name))
	s.runScaler(log, by)
	before := s.controller.takes(s.t)
	old := len(s.ledger.claimsOf(s.name))
	begun := time.Now()
	for app, replicas := range asked {
		s.scale(app, replicas)
	}
	for app, replicas := range asked {
		await(s.t, 10*patience, fmt.Sprintf("%d pods of %s to run", replicas, app), s.running(app, replicas))
	}
	row := s.measured(result{ready: time.Since(begun), claims: s.ledger.claimsOf(s.name)[old:]}, log, begun)
	elapsed := s.controller.takes(s.t)
	for app := range asked {
		s.scale(app, 0)
	}
	await(s.t, 10*patience, "no node to be left", s.empty)
	if err := s.controller.stop(); err != nil {
		s.t.Error(err)
	}
	if size == "wide" {
		for app := range asked {
			s.remove(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: app}})
		}
	}
	if by.name == "default" && size != "wide" && row.plans > 2 {
		s.t.Errorf("%d plans created claims, want one, or two when pods differ", row.plans)
	}
	if by.name == "default" && size != "wide" && row.unused > 0 {
		s.t.Errorf("%d claims were never used", row.unused)
	}
	return fmt.Sprintf("| %s | %s | %.1f s | %.1f s | %d | %d | %d | %.0f%% | %.3f | %.1f s | %d MiB |", size, by.name,
		row.last.Seconds(), row.ready.Seconds(), row.plans, len(row.claims), row.unused, 100*row.used, row.price,
		elapsed.cpu-before.cpu, elapsed.peak>>20)
}

// result is what a burst led to.
type result struct {
	// ready and last are the times from the scale command until the last pod runs and the last claim exists.
	ready, last   time.Duration
	plans, unused int
	claims        []entry[*karpv1.NodeClaim]
	// used is the share of the nodes' CPU that is requested, and price theirs in USD per hour.
	used, price float64
}

// measured completes the result from the log and the objects of the case.
func (s *stage) measured(r result, log string, begun time.Time) result {
	s.t.Helper()
	r.plans = s.creations(log, begun)
	nodes, requested, has := map[string]bool{}, int64(0), int64(0)
	for _, pod := range s.ledger.podsOf(s.name) {
		nodes[pod.Spec.NodeName] = true
		for i := range pod.Spec.Containers {
			requested += pod.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
		}
	}
	for _, claim := range r.claims {
		r.last = max(r.last, claim.seen.Sub(begun))
		if claim.gone || !nodes[claim.object.Status.NodeName] {
			r.unused++
		}
	}
	for _, node := range s.ledger.nodesOf(s.name) {
		has += node.Status.Allocatable.Cpu().MilliValue()
	}
	r.used, r.price = float64(requested)/float64(max(has, 1)), s.price()
	return r
}

// creations returns how many plans have created claims according to the log, after begun. It is 0 for other controllers.
func (s *stage) creations(log string, begun time.Time) int {
	s.t.Helper()
	content, err := os.ReadFile(log)
	if err != nil {
		s.t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(content) {
		var said struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"message"`
			Plan string    `json:"planID"`
		}
		if json.Unmarshal(line, &said) == nil && strings.HasPrefix(said.Msg, "created nodeclaims") && said.Time.After(begun) {
			seen[said.Plan] = true
		}
	}
	return len(seen)
}

// TestQuotaStopsPods checks that no node remains for pods that a ResourceQuota does not allow.
func TestQuotaStopsPods(t *testing.T) {
	s := onShared(t, "stopped")
	s.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "few"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}})
	await(t, patience, "the quota to be in force", func(ctx context.Context) error {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "few"}}
		if err := s.Get(ctx, keyOf(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return fmt.Errorf("its status is empty")
		}
		return nil
	})
	s.scale("app", 20)
	await(t, patience, "two pods to run", s.running("app", 2))
	await(t, patience, "the nodes of two pods to be left", s.nodesReady(2))
	if c := s.ledger.count(s.name); c.claimsEver > 20 {
		t.Errorf("%d claims were created for 20 replicas", c.claimsEver)
	}
}
