// Package converttest reads clusters from files for benchmarks and tests of packages that must not read files.
//
//	folder/instance-types.json   the instance types, in either format of the kwok provider
//	folder/nodepools.json        a v1 List; all pools count as valid, their node class as ready
//	folder/pods.json             pending pods
//	folder/nodes.json            nodes (those with a pool's label count as having a claim), and
//	folder/bound-pods.json       the pods on them; both files may be missing
//
//	Snapshots(b, now, run)       for each folder in the folder of KARPENTER_WORKLOADS
//	Snapshot(tb, folder, now)    for one folder
//	Read(tb, folder)             the specs in a folder
//
// `go -C test run ./bench workload NAME FOLDER` writes such folders. The engine itself must not know Kubernetes
// objects, and each of its tests would have to convert objects to a snapshot. This package does it once, with the
// functions of package convert that the controller uses.
//
// The package is for tests. It must not know what is done with a snapshot: placement, bounds, disruption.
package converttest

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
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Snapshots calls run, as a separate benchmark, with the snapshot of each folder in the folder of
// KARPENTER_WORKLOADS. It skips the benchmark if that is not set.
func Snapshots(b *testing.B, now time.Time, run func(*testing.B, *model.Snapshot)) {
	b.Helper()
	Folders(b, func(b *testing.B, folder string) { run(b, Snapshot(b, folder, now)) })
}

// Folders is like Snapshots, with the paths of the folders.
func Folders(b *testing.B, run func(b *testing.B, folder string)) {
	b.Helper()
	root := os.Getenv("KARPENTER_WORKLOADS")
	if root == "" {
		b.Skip("KARPENTER_WORKLOADS is not set")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "instance-types.json"))
	if err != nil || len(files) == 0 {
		b.Fatalf("no workloads in %s: %v", root, err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		b.Run(filepath.Base(folder), func(b *testing.B) { run(b, folder) })
	}
}

// Snapshot reads a folder. Every kind of node class counts as the provider's. It fails the test if anything cannot be
// read.
func Snapshot(tb testing.TB, folder string, now time.Time) *model.Snapshot {
	tb.Helper()
	f := Read(tb, folder)
	builder := model.NewBuilder()
	for _, p := range f.Pools {
		builder.UpsertPool(p)
	}
	for _, n := range f.Nodes {
		builder.UpsertNode(n)
	}
	for _, p := range f.Pods {
		builder.UpsertPod(p)
	}
	return builder.Snapshot(now)
}

// Folder holds the specs in a folder.
type Folder struct {
	Pools []model.PoolSpec
	Nodes []model.NodeSpec
	Pods  []model.PodSpec
}

// Read is like Snapshot, for tests that change the specs.
func Read(tb testing.TB, folder string) Folder {
	tb.Helper()
	pools, v := poolsOf(tb, folder)
	f := Folder{Pools: pools}
	for _, node := range readList[corev1.Node](tb, filepath.Join(folder, "nodes.json")) {
		spec, _ := convert.Node(&node, nil, v)
		if spec.Pool = node.Labels[karpv1.LabelNodePool]; spec.Pool != "" {
			spec.Claim, spec.ClaimUID = spec.Name, spec.UID
		}
		f.Nodes = append(f.Nodes, spec)
	}
	pods := append(readList[corev1.Pod](tb, filepath.Join(folder, "pods.json")), readList[corev1.Pod](tb, filepath.Join(folder, "bound-pods.json"))...)
	for i := range pods {
		if spec, disposition := convert.Pod(&pods[i], v, nil); disposition != convert.Ignore {
			f.Pods = append(f.Pods, spec)
		}
	}
	return f
}

// poolsOf returns the pools with their catalogs, and the vocabulary of the folder's cloud.
func poolsOf(tb testing.TB, folder string) ([]model.PoolSpec, *convert.Vocabulary) {
	tb.Helper()
	file, err := os.Open(filepath.Join(folder, "instance-types.json"))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	kinds, labels, err := kwok.ReadInstanceTypes(file, file.Name())
	if err != nil {
		tb.Fatal(err)
	}
	pools := readList[karpv1.NodePool](tb, filepath.Join(folder, "nodepools.json"))
	if len(pools) == 0 {
		tb.Fatalf("%s: there are no pools", folder)
	}
	class := pools[0].Spec.Template.Spec.NodeClassRef
	v := convert.NewVocabulary(cloud.Declared{WellKnown: labels}, schema.GroupKind{Group: class.Group, Kind: class.Kind})
	catalog, refused := convert.Catalog(kinds, v)
	if len(refused) > 0 {
		tb.Fatal(refused)
	}
	specs := make([]model.PoolSpec, len(pools))
	for i := range pools {
		pools[i].StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
		pools[i].StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
		specs[i] = convert.Pool(&pools[i], v)
		convert.AddCatalog(&specs[i], catalog, "nothing is for sale")
	}
	return specs, v
}

// readList reads a v1 List of one kind. A missing file is empty.
func readList[T any](tb testing.TB, path string) []T {
	tb.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	var list struct{ Items []T }
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return list.Items
}
