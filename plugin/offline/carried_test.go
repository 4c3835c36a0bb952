package offline

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// spreading is the policy with which all kinds have an effect that have one on the answers.
var spreading = Policy{SchedulerConfig: `
podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}`}

// inert are the kinds without an effect on answers, and why.
var inert = map[state.Kind]string{
	state.Jobs: "the plugin plans no pods that workloads are about to create",
}

// TestEachKindIsCarried checks that what a controller knows of objects of each kind that the state holds is known by
// simulate, explain, web and report, of files as of a cluster, and by captures and replay: the same objects, and the same
// snapshot of them. A kind that the state is to hold needs an object in testdata/kinds.yaml that matters.
func TestEachKindIsCarried(t *testing.T) {
	o := readKinds(t, &Source{Paths: []string{"testdata/kinds.yaml"}, Cluster: &Cluster{CloudProvider: "kwok"}})
	controller := watched(t, o, 1)
	want, held := specsOf(controller.Snapshot(o.now)), refsOf(controller)
	for _, kind := range state.Kinds() {
		if !slices.ContainsFunc(held, func(r state.Ref) bool { return r.Kind == kind }) {
			t.Errorf("no object of testdata/kinds.yaml is a %s, or the plugin does not show it to the state", kind)
			continue
		}
		if equal := gocmp.Equal(want, specsOf(without(t, o, kind).Snapshot(o.now)), sameSpecs); equal != (inert[kind] != "") {
			t.Errorf("the snapshot without objects of the kind %s is the same: %t", kind, equal)
		}
	}
	for name, carried := range carriers(t, o, controller) {
		same(t, name, o.now, controller, carried)
	}
	watching := without(t, o, state.Deployments) // in a cluster, the ReplicaSets of Deployments own the pods
	same(t, "the cluster", o.now, watching, readKinds(t, &Source{Live: true, Cluster: serving(t, o, controller), Now: o.now}).mirror())
}

// carriers returns the states on which the commands decide, for files and the captures of both writers.
func carriers(t *testing.T, o *Manifests, controller *mirror) map[string]*mirror {
	t.Helper()
	p := DefaultPolicy()
	p.SchedulerConfig = spreading.SchedulerConfig
	decision := o.Decide(&p, 1)
	file := filepath.Join(t.TempDir(), "capture.json")
	if err := WriteCapture(file, o, p, decision.Answer()); err != nil {
		t.Fatal(err)
	}
	replayed, _, _, err := restore(file)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*mirror{
		"simulate, explain":        decision.from,
		"web, report":              o.Overview(&p).from,
		"-f CAPTURE":               readKinds(t, &Source{Paths: []string{file}, Cluster: &Cluster{}}).mirror(),
		"replay":                   replayed.mirror(),
		"the controller's capture": captured(t, controller, o, spreading).mirror(),
	}
}

// same checks that a state has the objects of the controller's, and gives its snapshot.
func same(t *testing.T, name string, now time.Time, controller, carried *mirror) {
	t.Helper()
	if diff := gocmp.Diff(refsOf(controller), refsOf(carried)); diff != "" {
		t.Errorf("%s: objects (-controller +answer):\n%s", name, diff)
	}
	if diff := gocmp.Diff(specsOf(controller.Snapshot(now)), specsOf(carried.Snapshot(now)), sameSpecs); diff != "" {
		t.Errorf("%s: snapshot (-controller +answer):\n%s", name, diff)
	}
}

// serving returns a cluster with the objects of the controller.
func serving(t *testing.T, o *Manifests, controller *mirror) *Cluster {
	t.Helper()
	class := &kwokv1alpha1.KWOKNodeClass{}
	class.Name = "default"
	api := served(t, o, controller.Objects())
	if err := api.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	return &Cluster{Jobs: true, same: &sameLists{Client: api, known: map[string]client.ObjectList{}}}
}

func readKinds(t *testing.T, source *Source) *Manifests {
	t.Helper()
	if source.Keep = true; source.Now.IsZero() {
		source.Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	}
	o, err := source.Read(t.Context(), spreading)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Problems) > 0 {
		t.Fatal(o.Problems)
	}
	return o
}

// without returns a state that has not seen the objects of the kind.
func without(t *testing.T, o *Manifests, kind state.Kind) *mirror {
	t.Helper()
	m := watched(t, o, 1)
	for _, at := range refsOf(m) {
		if at.Kind == kind {
			m.Gone(at)
		}
	}
	m.overlays, m.resolved = nil, nil
	m.offer(o)
	return m
}

func refsOf(m *mirror) []state.Ref {
	var refs []state.Ref
	for _, object := range m.Objects() {
		ref, _ := state.RefOf(object)
		refs = append(refs, ref)
	}
	return refs
}
