package bound_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// BenchmarkWorkloads bounds the workloads in the folders of KARPENTER_WORKLOADS (each with instance-types.json,
// nodepools.json and pods.json), and compares with what placement buys for them.
func BenchmarkWorkloads(b *testing.B) {
	root := os.Getenv("KARPENTER_WORKLOADS")
	if root == "" {
		b.Skip("KARPENTER_WORKLOADS is not set")
	}
	folders, err := filepath.Glob(filepath.Join(root, "*", "instance-types.json"))
	if err != nil || len(folders) == 0 {
		b.Fatalf("no workloads in %s: %v", root, err)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		b.Run(filepath.Base(folder), func(b *testing.B) { compare(b, readWorkload(b, folder)) })
	}
}

func compare(b *testing.B, snap *model.Snapshot) {
	plan := placement.Schedule(snap, placement.Options{})
	price, cost, opts := planned(plan)
	var a bound.Answer
	for b.Loop() {
		a = bound.Of(snap, opts)
	}
	if a.Price > price || a.Cost > cost {
		b.Errorf("the plan costs %d (%d with nodes), less than the bound %d (%d)", price, cost, a.Price, a.Cost)
	}
	b.ReportMetric(float64(a.Price)/model.Nano, "price-bound")
	b.ReportMetric(float64(a.Cost)/model.Nano, "cost-bound")
	b.ReportMetric(float64(price)/model.Nano, "plan-price")
	b.ReportMetric(float64(cost)/model.Nano, "plan-cost")
	refused := 0
	for _, r := range plan.Refused {
		refused += len(r.Pods)
	}
	b.ReportMetric(float64(refused), "refused")
	b.ReportMetric(100*(float64(cost)/float64(a.Cost)-1), "gap-%")
}

// readWorkload reads a folder of manifests as lists and of instance types. Every kind of node class is ours.
func readWorkload(b *testing.B, folder string) *model.Snapshot {
	b.Helper()
	file, err := os.Open(filepath.Join(folder, "instance-types.json"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	kinds, labels, err := kwok.ReadInstanceTypes(file, file.Name())
	if err != nil {
		b.Fatal(err)
	}
	pools := readList[karpv1.NodePool](b, filepath.Join(folder, "nodepools.json"))
	class := pools[0].Spec.Template.Spec.NodeClassRef
	v := convert.NewVocabulary(cloud.Declared{WellKnown: labels}, schema.GroupKind{Group: class.Group, Kind: class.Kind})
	catalogue, refused := convert.Catalogue(kinds, v)
	if len(refused) > 0 {
		b.Fatal(refused)
	}
	builder := model.NewBuilder()
	for i := range pools {
		pools[i].StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
		pools[i].StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
		spec := convert.Pool(&pools[i], v)
		convert.AddCatalogue(&spec, catalogue, "nothing is for sale")
		builder.UpsertPool(spec)
	}
	for _, node := range readList[corev1.Node](b, filepath.Join(folder, "nodes.json")) {
		spec, _ := convert.Node(&node, nil, v)
		builder.UpsertNode(spec)
	}
	pods := append(readList[corev1.Pod](b, filepath.Join(folder, "pods.json")), readList[corev1.Pod](b, filepath.Join(folder, "bound-pods.json"))...)
	for i := range pods {
		if spec, disposition := convert.Pod(&pods[i], v, nil); disposition != convert.Ignore {
			builder.UpsertPod(spec)
		}
	}
	return builder.Snapshot(epoch)
}

// readList reads a v1 List of one kind; a file that is not there is empty.
func readList[T any](b *testing.B, path string) []T {
	b.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	var list struct{ Items []T }
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		b.Fatalf("%s: %v", path, err)
	}
	return list.Items
}
