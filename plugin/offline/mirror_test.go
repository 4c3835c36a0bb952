package offline

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// specs is what a snapshot was made of.
type specs struct {
	Pools   []model.PoolSpec
	Nodes   []model.NodeSpec
	Daemons []model.DaemonSpec
	PDBs    []model.PDBSpec
	Quotas  []model.QuotaSpec
	Pods    []model.Pod
}

func specsOf(snap *model.Snapshot) specs {
	var s specs
	for _, p := range snap.Pools {
		s.Pools = append(s.Pools, *p.PoolSpec)
	}
	for _, d := range snap.Daemons {
		s.Daemons = append(s.Daemons, *d.DaemonSpec)
	}
	for _, p := range snap.PDBs {
		s.PDBs = append(s.PDBs, *p)
	}
	for _, q := range snap.Quotas {
		s.Quotas = append(s.Quotas, *q.QuotaSpec)
	}
	add := func(pods []*model.Pod) {
		for _, p := range pods {
			s.Pods = append(s.Pods, *p)
		}
	}
	for _, n := range snap.Nodes {
		s.Nodes = append(s.Nodes, *n.NodeSpec)
		add(n.Pods)
	}
	for _, g := range slices.Concat(snap.Groups, snap.Virtual) {
		add(g.Pods)
	}
	add(snap.Rejected)
	slices.SortFunc(s.Pods, func(a, b model.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	return s
}

// sameSpecs compares specs. Marks are numbers in the order of arrival.
var sameSpecs = gocmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(model.Pod{}, model.PodSpec{}, model.Shape{}),
	cmpopts.IgnoreFields(model.Shape{}, "SpreadMarks", "TermMarks", "CarrierMarks"),
	gocmp.Comparer(func(a, b *model.Catalog) bool { return reflect.DeepEqual(a, b) })}

// watched returns a mirror to which the objects were shown as informers show them: stored and trimmed, in any order, and
// more than once.
func watched(t *testing.T, o *Manifests, seed uint64) *mirror {
	t.Helper()
	m := &mirror{State: state.New(o.config())}
	m.Advance(o.now)
	for controller, by := range o.templates {
		m.Creates(controller, by)
	}
	objects := o.mirror().Objects()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2 {
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		for _, object := range objects {
			ref, held := state.RefOf(object)
			if !held {
				t.Fatalf("%T %s is shown and not held", object, object.GetName())
			}
			text, err := json.Marshal(object)
			stored := ref.Kind.New()
			if err == nil {
				err = json.Unmarshal(text, stored)
			}
			if err != nil {
				t.Fatal(err)
			}
			convert.Trim(stored)
			m.Saw(stored)
		}
	}
	m.offer(o)
	m.ask(o)
	return m
}

// served returns a client of an API server that has the objects, and the buffers with what they refer to.
func served(t *testing.T, o *Manifests, objects []state.Object) client.Client {
	t.Helper()
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(liveKinds())
	for _, object := range objects {
		cluster.WithObjects(object.DeepCopyObject().(client.Object))
	}
	for _, b := range o.buffers.objects {
		kept := b.object.DeepCopy()
		kept.Status.ReadyReplicas = new(int32(0)) // the controller keeps room for it
		cluster.WithObjects(kept)
	}
	for _, referent := range o.buffers.referents {
		if _, held := state.RefOf(referent.(state.Object)); !held || objects == nil {
			cluster.WithObjects(referent.DeepCopyObject().(client.Object))
		}
	}
	for _, quotas := range o.buffers.quotas {
		for i := range quotas {
			cluster.WithObjects(quotas[i].DeepCopy())
		}
	}
	return cluster.Build()
}

// captured returns what is read of the capture that the controller writes.
func captured(t *testing.T, controller *mirror, o *Manifests, p Policy) *Manifests {
	t.Helper()
	reader := served(t, o, nil)
	from := capture.Controller{Objects: controller.Objects(), Sale: o.sale, Scheme: reader.Scheme(), Buffers: reader, Live: reader}
	input, err := from.Input(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "capture.json")
	if err := (&capture.Document{Input: *input, Options: capture.Options{Now: o.now}}).Write(file); err != nil {
		t.Fatal(err)
	}
	source := Source{Paths: []string{file}, Cluster: &Cluster{}}
	read, err := source.Read(t.Context(), p)
	if err != nil || len(read.Problems) > len(o.Problems) {
		t.Fatal(err, read.Problems)
	}
	return read
}

// TestMirrorIsTheControllers checks that the snapshot that answers are decided on is that of a controller that watches
// the same objects, and that the controller's capture gives it again, for the worlds of the end-to-end tests and for one in
// which objects have all that the model knows.
func TestMirrorIsTheControllers(t *testing.T) {
	paths, err := filepath.Glob("../../test/e2e/testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no worlds: %v", err)
	}
	read := 0
	for _, path := range append(paths, "testdata/all.yaml") {
		source := Source{Paths: []string{path}, Cluster: &Cluster{CloudProvider: "kwok"}}
		o, err := source.Read(t.Context(), Policy{})
		if err != nil || o.Empty() { // parts of worlds, or a template
			continue
		}
		read++
		before := specsOf(o.Snapshot())
		after := specsOf(watched(t, o, uint64(read)).Snapshot(o.now))
		if diff := gocmp.Diff(before, after, sameSpecs); diff != "" {
			t.Errorf("%s (-plugin +controller):\n%s", path, diff)
		}
		o.templates, o.refused = nil, nil // only files have them
		controller := watched(t, o, uint64(read))
		after = specsOf(controller.Snapshot(o.now))
		if diff := gocmp.Diff(after, specsOf(captured(t, controller, o, Policy{}).Snapshot()), sameSpecs); diff != "" {
			t.Errorf("%s (-controller +its capture):\n%s", path, diff)
		}
	}
	if read < 30 {
		t.Errorf("%d worlds are read of %d", read, len(paths))
	}
}

// unshown are the fields that no object of a file sets, and why.
var unshown = map[string]string{
	"NodeSpec.NominatedUntil": "the loop of the controller sets it",
	"PoolSpec.Refused":        "TestRefusedPools",
	"PoolSpec.BudgetError":    "the API server refuses such budgets",
	"PoolSpec.Blocked":        "TestRefusedPools",
	"PoolSpec.Elsewhere":      "TestCaptureOfController: only --pool-selector sets it",
	"Pod.Unknown":             "the model numbers all resources of so few objects",
	"Pod.Nominated":           "only controllers nominate pods",
	"Pod.NoNewNode":           "the flags --priority-cutoff and --new-pod-delay set it",
}

// TestMirrorShowsEveryField checks that each field of the model follows from some object of testdata: what the state learns
// to read of objects, simulate, explain, web, report and replay know (TestEachKindIsCarried).
func TestMirrorShowsEveryField(t *testing.T) {
	var all specs
	for _, path := range []string{"testdata/all.yaml", "testdata/kinds.yaml"} {
		s := specsOf(readKinds(t, &Source{Paths: []string{path}, Cluster: &Cluster{CloudProvider: "kwok"}}).Snapshot())
		all.Pools, all.Nodes = append(all.Pools, s.Pools...), append(all.Nodes, s.Nodes...)
		all.Daemons, all.PDBs = append(all.Daemons, s.Daemons...), append(all.PDBs, s.PDBs...)
		all.Quotas, all.Pods = append(all.Quotas, s.Quotas...), append(all.Pods, s.Pods...)
	}
	missing := slices.Concat(unset("NodeSpec", all.Nodes), unset("PoolSpec", all.Pools), unset("DaemonSpec", all.Daemons),
		unset("PDBSpec", all.PDBs), unset("QuotaSpec", all.Quotas), unset("Pod", all.Pods))
	if len(missing) > 0 {
		t.Errorf("no object of testdata sets %s", strings.Join(missing, ", "))
	}
}

// unset returns the fields that are zero in all values.
func unset[T any](name string, values []T) []string {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		set := slices.ContainsFunc(values, func(v T) bool { return !reflect.ValueOf(v).FieldByIndex(f.Index).IsZero() })
		if !set && f.IsExported() && unshown[name+"."+f.Name] == "" {
			fields = append(fields, name+"."+f.Name)
		}
	}
	return fields
}
