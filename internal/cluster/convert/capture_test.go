package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// world returns a capture with objects of every kind.
func world(t testing.TB) *Capture {
	v := words()
	c := &Capture{Now: time.Date(2026, 11, 20, 9, 30, 0, 123, time.UTC)}
	shared, _ := Catalog([]cloud.InstanceType{{
		Name: "small", Capacity: map[string]int64{"cpu": 2000, "memory": 4 << 30, "pods": 10},
		Offerings: []cloud.Offering{{Zone: "z", CapacityType: "spot", Price: 0.01, Available: true}},
	}}, v)
	for _, name := range []string{"pool", "other"} {
		pool := decode[karpv1.NodePool](t, strings.Replace(poolText, "name: pool,", "name: "+name+",", 1))
		pool.Annotations = map[string]string{karpv1.AnnotationPayback: "2h", karpv1.AnnotationMinStay: "1m",
			karpv1.AnnotationMovePrice: "0", karpv1.AnnotationMinSaving: "0.01", karpv1.AnnotationMaxSpotShare: "30"}
		pool.Spec.Replicas = new(int64(3))
		spec := Pool(pool, v)
		spec.Budgets, spec.BudgetError = Budgets(pool, c.Now)
		AddCatalog(&spec, shared, "")
		c.Pools = append(c.Pools, spec)
	}
	blocked := model.PoolSpec{Name: "empty"}
	AddCatalog(&blocked, nil, "nothing to buy")
	c.Pools = append(c.Pools, blocked)
	launching, _ := Node(nil, decode[karpv1.NodeClaim](t, claimText), v)
	node, _ := Node(decode[corev1.Node](t, strings.Replace(nodeText, "LABELS", "a: b", 1)), nil, v)
	aged, _ := Node(nil, decode[karpv1.NodeClaim](t, agedText), v)
	c.Nodes = []model.NodeSpec{launching, node, aged}
	c.PDBs = []model.PDBSpec{PDB(decode[policyv1.PodDisruptionBudget](t, pdbText)),
		PDB(decode[policyv1.PodDisruptionBudget](t, "metadata: {name: a, namespace: shop, uid: b2}"))}
	c.Daemons = []model.DaemonSpec{Daemon(decode[appsv1.DaemonSet](t,
		"metadata: {name: d, uid: d1}\nspec: {template: {spec: {containers: [{name: a}]}}}"), v, nil, nil)}
	for _, text := range []string{
		"metadata: {name: w2, uid: u2, annotations: {karpenter.sh/do-not-disrupt: 'true'}}" + unschedulableStatus,
		"metadata: {name: w1, uid: u1}\nspec: {nodeSelector: {a: b}}" + unschedulableStatus,
		"metadata: {name: w3, uid: u3}\nspec: {nodeSelector: {karpenter.sh/x: b}}" + unschedulableStatus,
		"metadata: {name: w4, uid: u4}\nspec: {nodeName: node-1}\nstatus: {conditions: [{type: Ready, status: 'True'}]}",
		"metadata: {name: w5, uid: u5, namespace: shop, labels: {app: db}, deletionTimestamp: '2026-11-20T09:00:00Z'}\nspec: {nodeName: node-1, volumes: [{name: v, persistentVolumeClaim: {claimName: bound}}]}",
		"metadata: {name: w6, uid: u6, namespace: shop, labels: {app: db}}" + betweenSpec + unschedulableStatus,
	} {
		spec, _ := Pod(decode[corev1.Pod](t, text), v, &Around{Volumes: newStorage(t, storageText)})
		c.Pods = append(c.Pods, spec)
	}
	return c
}

func TestCaptureRoundTrip(t *testing.T) {
	c := world(t)
	switch pool := c.Pools[0]; {
	case !pool.Static:
		t.Errorf("the pool lacks fields that this test needs: pool.Static is false, %+v", pool)
	case pool.Payback == 0:
		t.Errorf("the pool lacks fields that this test needs: pool.Payback is 0, %+v", pool)
	case pool.MinStay == 0:
		t.Errorf("the pool lacks fields that this test needs: pool.MinStay is 0, %+v", pool)
	case pool.MovePrice == 0:
		t.Errorf("the pool lacks fields that this test needs: pool.MovePrice is 0, %+v", pool)
	case pool.MinSaving == 0:
		t.Errorf("the pool lacks fields that this test needs: pool.MinSaving is 0, %+v", pool)
	case pool.MaxSpotShare == 0:
		t.Errorf("the pool lacks fields that this test needs: pool.MaxSpotShare is 0, %+v", pool)
	case pool.Budgets[1].Changes.IsZero():
		t.Errorf("the pool lacks fields that this test needs: pool.Budgets[1].Changes.IsZero() is true, %+v", pool)
	}
	data, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, loaded); diff != "" {
		t.Errorf("capture (-written +read):\n%s", diff)
	}
	switch {
	case loaded.Pools[1].Catalog != loaded.Pools[2].Catalog:
		t.Errorf("pools that shared a catalog no longer share it: loaded.Pools[1].Catalog is %v, want %v",
			loaded.Pools[1].Catalog, loaded.Pools[2].Catalog)
	case loaded.Pools[1].Catalog == nil:
		t.Errorf("pools that shared a catalog no longer share it: loaded.Pools[1].Catalog is nil")
	case loaded.Pools[0].Catalog != nil:
		t.Errorf("pools that shared a catalog no longer share it: loaded.Pools[0].Catalog is %v, want nil", loaded.Pools[0].Catalog)
	}
	again, err := loaded.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(again)); diff != "" {
		t.Errorf("bytes (-first +second):\n%s", diff)
	}
}

// TestCaptureOfSnapshot checks that the capture of the snapshot of a capture equals that capture.
func TestCaptureOfSnapshot(t *testing.T) {
	c := world(t)
	c.Sort()
	if diff := cmp.Diff(c, Of(c.Snapshot())); diff != "" {
		t.Errorf("capture (-original +from snapshot):\n%s", diff)
	}
}

// TestCaptureOfUnknownResources does the same where pods name so many resources that those which no node has share a
// number.
func TestCaptureOfUnknownResources(t *testing.T) {
	c := world(t)
	for i := range 40 {
		p := &c.Pods[i%len(c.Pods)]
		p.Requests = append(p.Requests, quantity.Amount{Name: fmt.Sprintf("example.com/r-%d", i), Value: int64(i + 1)})
	}
	for i := range c.Pods {
		slices.SortFunc(c.Pods[i].Requests, compareAmounts)
	}
	c.Sort()
	snapshot := c.Snapshot()
	if !slices.Contains(snapshot.Resources, model.Unknown) {
		t.Fatalf("the resources are %v", snapshot.Resources)
	}
	if diff := cmp.Diff(c, Of(snapshot)); diff != "" {
		t.Errorf("capture (-original +from snapshot):\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"nothing", "", "EOF"},
		{"another version", `{"Version":99}`, "its version is 99, want 1"},
		{"an unknown field", `{"Version":1,"Nodes":[{"Color":"red"}]}`, "Color"},
		{"a catalog that is not there", `{"Version":1,"Pools":[{"Name":"a","Catalog":3}]}`, `pool "a" has catalog 3`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Load([]byte(test.data)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}
