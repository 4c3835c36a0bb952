package census

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// shares is a snapshot with a node of 4 CPUs for 0.4 USD per hour for each namespace, which has one pod that requests a
// quarter of it or, from the second one on, more of it; a DaemonSet's pod requests a tenth of each node. The labels team of
// the first four pods are none, "", a and b.
func shares(namespaces int) *model.Snapshot {
	b := model.NewBuilder()
	size := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "pods", Value: 110}}
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: &model.Catalog{Types: []model.InstanceType{{Name: "large", Capacity: size,
		Allocatable: size, Offerings: []model.Offering{{Zone: "a", CapacityType: "spot", Price: 4 * model.Nano / 10, Available: true}}}}}})
	for i := range namespaces {
		name := fmt.Sprintf("n%03d", i)
		b.UpsertNode(model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "p", Stage: model.Initialized, Ready: true,
			Capacity: size, Allocatable: size, Labels: map[string]string{model.LabelPool: "p", model.LabelType: "large", model.LabelZone: "a",
				model.LabelCapacityType: "spot"}})
		pod := func(namespace, owner string, cpu int64, daemon bool) model.PodSpec {
			return model.PodSpec{UID: owner + name, Namespace: namespace, Name: owner + name, Node: name, State: model.Bound, Daemon: daemon,
				Labels: map[string]string{}, Requests: []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: 1}}}
		}
		web := pod(fmt.Sprintf("team-%03d", i), "web", 1000+int64(i), false)
		if i%4 > 0 {
			web.Labels["team"] = []string{"", "a", "b"}[i%4-1]
		}
		b.UpsertPod(web)
		b.UpsertPod(pod("kube-system", "agent", 400, true))
	}
	return b.Snapshot(now)
}

// costs returns the series of the bill, and the cost of the cluster.
func costs(t *testing.T, snap *model.Snapshot, label string) (series map[string]string, cluster float64) {
	t.Helper()
	c, registry := counted(t, &place{synced: true}, false)
	c.Snapshot = func() *model.Snapshot { return snap }
	c.CostLabel = label
	series = map[string]string{}
	for _, line := range exposed(t, registry) {
		name, value, _ := strings.Cut(line, " ")
		if rest, is := strings.CutPrefix(name, "karpenter_cost_"); is {
			series[rest] = value
		}
		if name == "karpenter_cluster_cost" {
			cluster, _ = strconv.ParseFloat(value, 64)
		}
	}
	return series, cluster
}

func TestCost(t *testing.T) {
	got, _ := costs(t, shares(4), "team")
	want := map[string]string{
		`by_namespace{kind="pods",pod_namespace="team-000"}`:       "0.1",
		`by_namespace{kind="pods",pod_namespace="team-001"}`:       "0.1001",
		`by_namespace{kind="pods",pod_namespace="team-002"}`:       "0.1002",
		`by_namespace{kind="pods",pod_namespace="team-003"}`:       "0.1003",
		`by_namespace{kind="daemons",pod_namespace="kube-system"}`: "0.16",
		`by_namespace{kind="unused",pod_namespace=""}`:             "1.0394",
		`by_label{kind="pods",value="(none)"}`:                     "0.1",
		`by_label{kind="pods",value=""}`:                           "0.1001",
		`by_label{kind="pods",value="a"}`:                          "0.1002",
		`by_label{kind="pods",value="b"}`:                          "0.1003",
		`by_label{kind="daemons",value="(none)"}`:                  "0.16",
		`by_label{kind="unused",value=""}`:                         "1.0394",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, _ = costs(t, shares(4), "")
	maps.DeleteFunc(want, func(name, _ string) bool { return strings.HasPrefix(name, "by_label") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without --cost-label, -want +got:\n%s", diff)
	}
}

// TestCostIsBounded checks that many namespaces have a bounded number of series, the largest ones, and that the series add
// up to the cost of the cluster.
func TestCostIsBounded(t *testing.T) {
	series, cluster := costs(t, shares(250), "")
	if len(series) != mostCostKeys+1+2 {
		t.Errorf("there are %d series, want %d namespaces, the others, the DaemonSets and what is unused", len(series), mostCostKeys)
	}
	if series[`by_namespace{kind="pods",pod_namespace="team-249"}`] == "" ||
		series[`by_namespace{kind="pods",pod_namespace="team-149"}`] != "" {
		t.Error("the series are not those of the largest namespaces")
	}
	sum := 0.0
	for _, text := range series {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Round(value * model.Nano)
	}
	if sum != math.Round(cluster*model.Nano) || cluster != 100 {
		t.Errorf("the series add up to %v nano-USD, and the cluster costs %v USD, want 100 each", sum, cluster)
	}
}
