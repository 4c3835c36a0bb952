package census

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// place is a cluster: the content of lists, and the corresponding snapshot.
type place struct {
	pods   []corev1.Pod
	nodes  []corev1.Node
	claims []karpv1.NodeClaim
	pools  []karpv1.NodePool
	class  kwokv1alpha1.KWOKNodeClass
	// overlays and buffers are of kinds of feature gates. missing says that the kind of buffers is not served.
	overlays []karpv1alpha1.NodeOverlay
	buffers  []v1beta1.CapacityBuffer
	missing  bool
	specs    []model.NodeSpec
	synced   bool
}

// List implements client.Reader.
func (p *place) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1.NodeList:
		l.Items = p.nodes
	case *karpv1.NodeClaimList:
		l.Items = p.claims
	case *karpv1.NodePoolList:
		l.Items = p.pools
	case *kwokv1alpha1.KWOKNodeClassList:
		l.Items = []kwokv1alpha1.KWOKNodeClass{p.class}
	case *karpv1alpha1.NodeOverlayList:
		l.Items = p.overlays
	case *v1beta1.CapacityBufferList:
		if p.missing {
			return &meta.NoKindMatchError{}
		}
		l.Items = p.buffers
	default:
		return fmt.Errorf("unexpected list of %T", list)
	}
	return nil
}

// Get implements client.Reader.
func (p *place) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return fmt.Errorf("unexpected read of one object")
}

func (p *place) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	catalog := &model.Catalog{Types: []model.InstanceType{{
		Name:     "large",
		Capacity: []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 16 << 30}, {Name: "pods", Value: 110}},
		Offerings: []model.Offering{
			{Zone: "zone-0", CapacityType: "spot", Price: model.Nano / 10, Available: true},
			{Zone: "zone-0", CapacityType: "on-demand", Price: model.Nano / 4},
		},
	}}}
	for i := range p.pools {
		b.UpsertPool(model.PoolSpec{Name: p.pools[i].Name, UID: p.pools[i].Name, Catalog: catalog})
	}
	for _, spec := range p.specs {
		b.UpsertNode(spec)
	}
	for i := range p.pods {
		pod := &p.pods[i]
		spec := model.PodSpec{UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName,
			Requests: []quantity.Amount{{Name: "cpu", Value: 300}, {Name: "pods", Value: 1}}, Daemon: karpv1.DaemonPod(pod)}
		if spec.Node != "" {
			spec.State = model.Bound
		}
		b.UpsertPod(spec)
	}
	return b.Snapshot(now)
}

// cond returns a condition of a Karpenter object that changed a minute ago.
func cond(kind, state string) status.Condition {
	return status.Condition{Type: kind, Status: metav1.ConditionStatus(state), Reason: kind,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}
}

func (p *place) addNode(i int, pools, zones int) {
	name := fmt.Sprintf("node-%d", i)
	labels := map[string]string{
		karpv1.LabelNodePool: fmt.Sprintf("pool-%d", i%pools), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%zones),
		karpv1.LabelCapacityType: []string{"spot", "on-demand"}[i%2], corev1.LabelInstanceTypeStable: "large",
		corev1.LabelArchStable: "amd64", karpv1.LabelInitialized: "true", "karpenter.kwok.sh/kwoknodeclass": "default",
	}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	for _, c := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions,
			corev1.NodeCondition{Type: c, Status: corev1.ConditionFalse, Reason: "Kubelet", LastTransitionTime: metav1.NewTime(now)})
	}
	claim := karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, Labels: labels}}
	for _, c := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized,
		"Consolidatable", "ConsistentStateFound", "Ready"} {
		claim.Status.Conditions = append(claim.Status.Conditions, cond(c, "True"))
	}
	p.nodes, p.claims = append(p.nodes, node), append(p.claims, claim)
	p.specs = append(p.specs, model.NodeSpec{
		Name: name, UID: name, Claim: claim.Name, Pool: labels[karpv1.LabelNodePool], Stage: model.Initialized,
		Labels: labels, Created: now.Add(-time.Hour),
		Capacity: []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "pods", Value: 110}, {Name: "memory", Value: 16 << 30},
			{Name: "ephemeral-storage", Value: 20 << 30}},
		Allocatable: []quantity.Amount{{Name: "cpu", Value: 3000}, {Name: "pods", Value: 110}, {Name: "memory", Value: 15 << 30},
			{Name: "ephemeral-storage", Value: 18 << 30}},
	})
}

func (p *place) addPod(name, node string) *corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(now.Add(-30 * time.Second)),
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if node != "" {
		pod.Status.Phase = corev1.PodRunning
	}
	p.pods = append(p.pods, pod)
	return &p.pods[len(p.pods)-1]
}

func (p *place) eachPod(yield func(*corev1.Pod) bool) {
	for i := range p.pods {
		if !yield(&p.pods[i]) {
			return
		}
	}
}

// counted registers a census of the place.
func counted(t testing.TB, p *place, detail bool) (*Census, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	c := &Census{
		Objects: telemetry.NewObjects(registry, telemetry.ObjectOptions{
			Kinds:     Kinds(map[string]string{"kwoknodeclass": "karpenter.kwok.sh/kwoknodeclass"}, "nodeoverlay", "capacitybuffer"),
			WellKnown: karpv1.CoreRules().WellKnown, Detail: detail,
		}),
		Waits: telemetry.NewWaits(), Snapshot: p.snapshot, Synced: func() bool { return p.synced }, Cache: p, Pods: p.eachPod,
		Others: map[string]Kind{"kwoknodeclass": {&kwokv1alpha1.KWOKNodeClass{}, &kwokv1alpha1.KWOKNodeClassList{}},
			"nodeoverlay":    {&karpv1alpha1.NodeOverlay{}, &karpv1alpha1.NodeOverlayList{}},
			"capacitybuffer": {&v1beta1.CapacityBuffer{}, &v1beta1.CapacityBufferList{}}},
		Clock: testingclock.NewFakePassiveClock(now), Log: testr.NewWithInterface(t, testr.Options{}),
	}
	registry.MustRegister(c)
	return c, registry
}

// exposed returns the result of a scrape, without comments.
func exposed(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(text.String()), "\n"),
		func(line string) bool { return strings.HasPrefix(line, "#") })
}

func small() *place {
	p := &place{synced: true, pools: []karpv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "pool-0"}}}}
	p.pools[0].Status.Conditions = []status.Condition{cond("Ready", "True")}
	p.addNode(0, 1, 1)
	p.addPod("web-0", "node-0")
	p.addPod("web-1", "")
	return p
}

// placeOfSmall are labels of the node of small, and cpuOfSmall those of its series for CPU.
const (
	placeOfSmall = `arch="amd64",capacity_type="spot",instance_type="large"`
	cpuOfSmall   = `{` + placeOfSmall + `,managed="true",node_name="node-0",nodepool="pool-0",os="",phase="",region="",` +
		`resource_type="cpu",windows_build="",zone="zone-0"} `
)

// TestCollect verifies that without detail, pools, classes and nodes are the only single objects with series, and that
// pods are counted.
func TestCollect(t *testing.T) {
	p := small()
	p.addPod("web-2", "node-0")
	_, registry := counted(t, p, false)
	want := []string{
		`karpenter_cluster_state_unsynced_time_seconds 0`,
		`karpenter_cluster_utilization_percent{resource_type="cpu"} 20`,
		`karpenter_cluster_utilization_percent{resource_type="pods"} 1.8181818181818181`,
		`karpenter_cluster_utilization_percent{resource_type="ephemeral_storage"} 0`,
		`karpenter_nodepools_cost_total{nodepool="pool-0"} 0.1`,
		`karpenter_nodepools_oldest_drain_seconds{nodepool="pool-0"} 0`,
		`karpenter_nodes_allocatable` + cpuOfSmall + `3`,
		`karpenter_nodes_total_pod_requests` + cpuOfSmall + `0.6`,
		`karpenter_nodes_total_daemon_requests` + cpuOfSmall + `0`,
		`karpenter_pods_state{` + placeOfSmall + `,managed="true",name="",namespace="default",node="",nodepool="pool-0",owner="",` +
			`phase="Running",ready="false",scheduled="true",zone="zone-0"} 2`,
		`karpenter_pods_state{arch="",capacity_type="",instance_type="",managed="false",name="",namespace="default",node="",nodepool="",` +
			`owner="",phase="Pending",ready="false",scheduled="false",zone=""} 1`,
		`karpenter_cluster_cost 0.1`,
		`operator_node_status_condition_count{karpenter_kwok_sh_kwoknodeclass="default",karpenter_sh_initialized="true",karpenter_sh_nodepool="pool-0",name="",namespace="",reason="Kubelet",status="False",type="DiskPressure"} 1`,
		`operator_nodepool_status_condition_count{name="pool-0",namespace="",reason="Ready",status="True",type="Ready"} 1`,
		`operator_nodepool_status_condition_current_status_seconds{name="pool-0",namespace="",reason="Ready",status="True",type="Ready"} 60`,
		`operator_nodeclaim_status_condition_count{karpenter_kwok_sh_kwoknodeclass="default",karpenter_sh_nodepool="pool-0",name="",namespace="",reason="Launched",status="True",type="Launched"} 1`,
	}
	holds(t, exposed(t, registry), want)
	for _, line := range exposed(t, registry) {
		switch {
		case strings.Contains(line, "claim-node-0"):
			t.Errorf(`a series of an object without --metrics-detail: line contains "claim-node-0", %s`, line)
		case strings.Contains(line, "limits"), strings.Contains(line, "lifetime"), strings.Contains(line, "overhead"):
			t.Errorf("a series of a node that needs --metrics-detail: %s", line)
		case strings.Contains(line, "web-"):
			t.Errorf(`a series of an object without --metrics-detail: line contains "web-", %s`, line)
		case strings.Contains(line, "offering"):
			t.Errorf(`a series of an object without --metrics-detail: line contains "offering", %s`, line)
		}
	}
}

// holds reports missing lines.
func holds(t *testing.T, got, want []string) {
	t.Helper()
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
}

// TestCollectGated verifies that overlays and buffers have series each, and that a kind that is not served has none.
func TestCollectGated(t *testing.T) {
	p := small()
	p.overlays = []karpv1alpha1.NodeOverlay{{ObjectMeta: metav1.ObjectMeta{Name: "discount"}}}
	p.overlays[0].Status.Conditions = []status.Condition{cond("Ready", "False")}
	p.buffers = []v1beta1.CapacityBuffer{{ObjectMeta: metav1.ObjectMeta{Name: "spare", Namespace: "web",
		DeletionTimestamp: &metav1.Time{Time: now.Add(-9 * time.Second)}}}}
	p.buffers[0].Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionProvisioning, Status: metav1.ConditionTrue,
		Reason: "FitsExistingCapacity", LastTransitionTime: metav1.Time{Time: now.Add(-time.Minute)}}}
	_, registry := counted(t, p, false)
	of := `{name="spare",namespace="web",reason="FitsExistingCapacity",status="True",type="Provisioning"}`
	holds(t, exposed(t, registry), []string{
		`operator_nodeoverlay_status_condition_count{name="discount",namespace="",reason="Ready",status="False",type="Ready"} 1`,
		`operator_capacitybuffer_status_condition_count` + of + ` 1`,
		`operator_capacitybuffer_status_condition_current_status_seconds` + of + ` 60`,
		`operator_capacitybuffer_termination_current_time_seconds{name="spare",namespace="web"} 9`,
	})
	p.missing = true
	if got := strings.Join(exposed(t, registry), "\n"); strings.Contains(got, "operator_capacitybuffer_status_condition_count") {
		t.Errorf("series of a kind that is not served:\n%s", got)
	}
}

func TestCollectDetail(t *testing.T) {
	p := small()
	c, registry := counted(t, p, true)
	c.Waits.Planned("web-1", now.Add(-10*time.Second))
	const labels, cpu = placeOfSmall + `,managed="true",node_name="node-0",nodepool="pool-0",os="",phase="",region="",`, cpuOfSmall
	holds(t, exposed(t, registry), []string{
		`karpenter_nodes_allocatable` + cpu + `3`,
		`karpenter_nodes_system_overhead` + cpu + `1`,
		`karpenter_nodes_total_pod_requests` + cpu + `0.3`,
		`karpenter_nodes_total_pod_limits` + cpu + `0.5`,
		`karpenter_nodes_total_daemon_requests` + cpu + `0`,
		`karpenter_nodes_current_lifetime_seconds{` + labels + `windows_build="",zone="zone-0"} 3600`,
		`karpenter_pods_state{arch="amd64",capacity_type="spot",instance_type="large",managed="true",name="web-0",namespace="default",node="node-0",nodepool="pool-0",owner="/apis/apps/v1/namespaces/default/replicasets/web",phase="Running",ready="false",scheduled="true",zone="zone-0"} 1`,
		`karpenter_pods_oldest_unbound_seconds 30`,
		`karpenter_pods_unbound_time_seconds{name="web-1",namespace="default"} 30`,
		`karpenter_pods_unstarted_time_seconds{name="web-1",namespace="default"} 30`,
		`karpenter_pods_provisioning_unbound_time_seconds{name="web-1",namespace="default"} 10`,
		`karpenter_pods_provisioning_unstarted_time_seconds{name="web-1",namespace="default"} 10`,
		`karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="on-demand",instance_type="large",zone="zone-0"} 0.25`,
		`karpenter_cloudprovider_instance_type_offering_available{capacity_type="on-demand",instance_type="large",zone="zone-0"} 0`,
		`karpenter_cloudprovider_instance_type_offering_available{capacity_type="spot",instance_type="large",zone="zone-0"} 1`,
		`karpenter_cloudprovider_instance_type_cpu_cores{instance_type="large"} 4`,
		`operator_nodeclaim_status_condition_current_status_seconds{karpenter_kwok_sh_kwoknodeclass="default",karpenter_sh_nodepool="pool-0",name="claim-node-0",namespace="",reason="Launched",status="True",type="Launched"} 60`,
	})
	// Deleted objects have no series.
	p.pods, p.nodes, p.claims, p.specs, p.pools = nil, nil, nil, nil, nil
	if diff := cmp.Diff([]string{"karpenter_cluster_cost 0", "karpenter_cluster_state_unsynced_time_seconds 0",
		"karpenter_pods_oldest_unbound_seconds 0"}, exposed(t, registry)); diff != "" {
		t.Errorf("of an empty cluster, -want +got:\n%s", diff)
	}
}

// TestCollectUnsynced verifies that an incomplete mirror exports only how long it has been incomplete.
func TestCollectUnsynced(t *testing.T) {
	p := small()
	p.synced = false
	c, registry := counted(t, p, true)
	c.Begin()
	c.Clock.(*testingclock.FakePassiveClock).SetTime(now.Add(5 * time.Second))
	if diff := cmp.Diff([]string{"karpenter_cluster_state_unsynced_time_seconds 5"}, exposed(t, registry)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTransitions verifies that changes are counted when the status of a condition changes, and not for other
// changes.
func TestTransitions(t *testing.T) {
	c, registry := counted(t, &place{}, false)
	h := c.handler(c.Objects.Kind(kindClaim))
	claim := func(conditions ...status.Condition) *karpv1.NodeClaim {
		n := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{karpv1.LabelNodePool: "pool-0"}}}
		n.Status.Conditions = conditions
		return n
	}
	unknown, true1 := cond("Launched", "Unknown"), cond("Launched", "True")
	true1.LastTransitionTime = metav1.NewTime(now.Add(-50 * time.Second))
	other := true1
	other.Reason = "Other"
	h.OnUpdate(claim(), claim(unknown))
	h.OnUpdate(claim(unknown), claim(true1))
	h.OnUpdate(claim(true1), claim(other))
	gone := claim(true1)
	gone.DeletionTimestamp = new(metav1.NewTime(now.Add(-7 * time.Second)))
	h.OnDelete(gone)
	const of = `karpenter_kwok_sh_kwoknodeclass="",karpenter_sh_nodepool="pool-0"`
	holds(t, exposed(t, registry), []string{
		`operator_nodeclaim_status_condition_transitions_total{` + of + `,reason="Launched",status="True",type="Launched"} 1`,
		`operator_nodeclaim_status_condition_transitions_total{` + of + `,reason="Launched",status="Unknown",type="Launched"} 1`,
		`operator_nodeclaim_status_condition_transition_seconds_sum{` + of + `,status="Unknown",type="Launched"} 10`,
		`operator_nodeclaim_termination_duration_seconds_sum{` + of + `} 7`,
	})
}

// TestOldestDrain verifies that the oldest drain of each pool is measured from the condition of its claim, also of a
// pool that was deleted, and that drains that have ended do not count.
func TestOldestDrain(t *testing.T) {
	p := &place{synced: true}
	for i := range 3 {
		p.pools = append(p.pools, karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-%d", i)}})
	}
	drain := func(i int, status metav1.ConditionStatus, waited time.Duration) {
		c := &p.claims[i]
		c.DeletionTimestamp = &metav1.Time{Time: now.Add(-waited - time.Minute)}
		drained := cond(karpv1.ConditionDrained, string(status))
		drained.LastTransitionTime = metav1.NewTime(now.Add(-waited))
		c.Status.Conditions = append(c.Status.Conditions, drained)
	}
	for i := range 6 { // pools 0, 1, 2, 0, 1, 2
		p.addNode(i, 3, 1)
	}
	drain(0, metav1.ConditionUnknown, 10*time.Minute)
	drain(3, metav1.ConditionUnknown, time.Hour)
	drain(1, metav1.ConditionTrue, 2*time.Hour)
	drain(4, metav1.ConditionUnknown, time.Minute)
	p.addNode(6, 8, 1) // pool 6 was deleted
	drain(6, metav1.ConditionUnknown, 2*time.Minute)
	_, registry := counted(t, p, false)
	holds(t, exposed(t, registry), []string{
		`karpenter_nodepools_oldest_drain_seconds{nodepool="pool-0"} 3600`,
		`karpenter_nodepools_oldest_drain_seconds{nodepool="pool-1"} 60`,
		`karpenter_nodepools_oldest_drain_seconds{nodepool="pool-2"} 0`,
		`karpenter_nodepools_oldest_drain_seconds{nodepool="pool-6"} 120`,
	})
}

// large returns a cluster with ten pods on each node.
func large(nodes, pools, zones int) *place {
	p := &place{synced: true}
	for i := range pools {
		pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-%d", i)}}
		for _, c := range []string{"Ready", "ValidationSucceeded", "NodeClassReady", "NodeRegistrationHealthy"} {
			pool.Status.Conditions = append(pool.Status.Conditions, cond(c, "True"))
		}
		p.pools = append(p.pools, pool)
	}
	for i := range nodes {
		p.addNode(i, pools, zones)
		for k := range 10 {
			p.addPod(fmt.Sprintf("pod-%d-%d", i, k), fmt.Sprintf("node-%d", i))
		}
	}
	return p
}

// TestSeriesOfALargeCluster verifies that a cluster of 5,000 nodes and 50,000 pods in ten pools and six zones, with
// all events in every pool and zone, has fewer than 20,000 series besides twelve for each node: three metrics of four
// resources.
func TestSeriesOfALargeCluster(t *testing.T) {
	const nodes, pools, zones = 5000, 10, 6
	p := large(nodes, pools, zones)
	c, registry := counted(t, p, false)
	everything(telemetry.New(registry), pools, zones)
	for i := range p.claims {
		claim, node := p.claims[i].DeepCopy(), p.nodes[i].DeepCopy()
		for k := range claim.Status.Conditions {
			claim.Status.Conditions[k].Status = metav1.ConditionUnknown
		}
		for k := range node.Status.Conditions {
			node.Status.Conditions[k].Status = corev1.ConditionUnknown
		}
		c.handler(c.Objects.Kind(kindClaim)).OnUpdate(claim, &p.claims[i])
		c.handler(c.Objects.Kind(kindNode)).OnUpdate(node, &p.nodes[i])
	}
	series := len(exposed(t, registry))
	ofNodes := 12 * nodes
	t.Logf("%d series, %d of them of nodes", series, ofNodes)
	if series >= ofNodes+20_000 || series < ofNodes+1000 {
		t.Errorf("%d series at %d nodes, want fewer than 20,000 besides those of nodes (and more than 1,000, else nothing happened)",
			series, nodes)
	}
	_, detailed := counted(t, p, true)
	if all := len(exposed(t, detailed)); all < 40*nodes {
		t.Errorf("with --metrics-detail there are %d series, want 40 for each node", all)
	}
}

// everything records all events for every pool in every zone.
func everything(m *telemetry.Metrics, pools, zones int) {
	reasons := []string{telemetry.DisruptedEmpty, telemetry.DisruptedUnderutilized, telemetry.DisruptedDrifted,
		telemetry.DisruptedExpired, telemetry.DisruptedUnhealthy}
	for i := range pools {
		pool := fmt.Sprintf("pool-%d", i)
		m.NodeClaimsTermination.WithLabelValues(pool).Observe(1)
		m.NodeClaimsInstanceTermination.WithLabelValues(pool).Observe(1)
		m.NodesTermination.WithLabelValues(pool).Observe(1)
		m.NodesLifetime.WithLabelValues(pool).Observe(1)
		m.NodesDrained.WithLabelValues(pool).Inc()
		for z := range zones {
			zone := fmt.Sprintf("zone-%d", z)
			m.NodesCreated.WithLabelValues(pool, zone).Inc()
			m.NodesTerminated.WithLabelValues(pool, zone).Inc()
			for _, capacityType := range []string{"spot", "on-demand"} {
				m.NodeClaimsTerminated.WithLabelValues(pool, capacityType, zone).Inc()
			}
		}
		for _, reason := range reasons {
			m.NodeClaimsCreated.WithLabelValues(reason, pool, "false").Inc()
			m.DisruptionDecisionsByPool.WithLabelValues(pool, "replace", reason, "multi").Inc()
			m.DisruptionDecisionsByPool.WithLabelValues(pool, "delete", reason, "single").Inc()
			m.NodePoolsAllowedDisruptions.WithLabelValues(pool, reason).Set(1)
			m.NodePoolsConsumingBudgets.WithLabelValues(pool, reason).Set(1)
			for _, capacityType := range []string{"spot", "on-demand"} {
				for _, policy := range []string{"", "when_empty_or_underutilized"} {
					m.NodeClaimsDisrupted.WithLabelValues(reason, pool, capacityType, policy, "graceful").Inc()
				}
			}
			for code := range 20 {
				m.DisruptionKeptNodes.WithLabelValues(pool, reason, fmt.Sprint("code-", code)).Set(1)
			}
		}
		for _, decision := range []string{"approved", "rejected"} {
			m.ConsolidationScore.WithLabelValues(decision, pool, "balanced").Observe(1)
			m.ConsolidationMoves.WithLabelValues(decision, pool, "balanced").Inc()
		}
		for _, resource := range []string{"cpu", "memory", "ephemeral-storage", "pods", "nodes"} {
			m.NodePoolsLimit.WithLabelValues(resource, pool).Set(1)
			m.NodePoolsUsage.WithLabelValues(resource, pool).Set(1)
		}
	}
	for _, controller := range []string{"state", "nodeclaim.lifecycle", "nodeclaim.garbagecollection",
		"nodeclaim.disruption", "node.termination"} {
		for _, method := range []string{"Create", "Delete", "Get", "List", "GetInstanceTypes", "IsDrifted"} {
			m.CloudDuration.WithLabelValues(controller, method, "kwok").Observe(1)
			m.CloudErrors.WithLabelValues(controller, method, "kwok", "").Inc()
		}
	}
}

// BenchmarkCollect measures one scrape, without its encoding.
func BenchmarkCollect(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		for _, detail := range []bool{false, true} {
			b.Run(fmt.Sprintf("nodes=%d/detail=%t", nodes, detail), func(b *testing.B) {
				p := large(nodes, 10, 6)
				snapshot := p.snapshot()
				c, registry := counted(b, p, detail)
				c.Snapshot = func() *model.Snapshot { return snapshot }
				b.ReportAllocs()
				for b.Loop() {
					if _, err := registry.Gather(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
