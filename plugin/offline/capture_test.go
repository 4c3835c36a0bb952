package offline

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// scaledYAML is a ReplicaSet that asks for four pods, and the one that it has created.
const scaledYAML = `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: shop, uid: web-uid, generation: 2}
spec: {replicas: 4, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, uid: pod-uid, labels: {app: web}, creationTimestamp: "2026-01-01T00:00:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web-uid, controller: true}]}
spec: {schedulerName: default-scheduler, containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
`

// scaling returns a controller with the options during the scale-up, and what it is made of. The pool default is selected by
// cell=a.
func scaling(t *testing.T, options *capture.Options) (*mirror, *Manifests) {
	t.Helper()
	pool := strings.Replace(poolYAML, "    spec:", "    metadata: {labels: {cell: a}}\n    spec:", 1)
	source := Source{Paths: []string{files(t, map[string]string{"pool.yaml": pool, "instance-types.json": typesJSON})}, Cluster: &Cluster{}}
	o, err := source.Read(t.Context(), DefaultPolicy())
	if err != nil || len(o.Problems) > 0 {
		t.Fatal(err, o.Problems)
	}
	selector, err := labels.Parse(options.PoolSelector)
	if err != nil {
		t.Fatal(err)
	}
	m := &mirror{State: state.New(state.Config{Declared: o.sale.Declared, Classes: o.classes, Replicas: options.Replicas,
		Selection: karpv1.Selection{Selector: selector}})}
	m.Advance(options.Now)
	for i, object := range []state.Object{&appsv1.ReplicaSet{}, &corev1.Pod{}} {
		if err := yaml.UnmarshalStrict([]byte(strings.Split(scaledYAML, "---\n")[i]), object); err != nil {
			t.Fatal(err)
		}
		m.Saw(object)
	}
	show(m, o.pools)
	m.offer(o)
	return m, o
}

// TestCaptureOfController checks that the capture of a controller during a scale-up, or with a pool selector, gives its snapshot
// and so its plan, also when simulate has written it again; and that one without the fields is read as before.
func TestCaptureOfController(t *testing.T) {
	policy := DefaultPolicy()
	base := capture.Options{Now: time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC), PreferencePolicy: policy.Preferences, MinValuesPolicy: policy.MinValues,
		NodeOverheadPrice: policy.NodePrice, PackingEffort: policy.PackingEffort}
	for name, c := range map[string]struct {
		replicas bool
		selector string
		// pods are those on new nodes, virtual those of the plan for virtual pods.
		pods, virtual int
	}{
		"older":                 {false, "", 1, 0},
		"during a scale-up":     {true, "", 1, 3},
		"with its own pool":     {false, "cell=a", 1, 0},
		"with another's pool":   {false, "cell=b", 0, 0},
		"with both":             {true, "cell=a", 1, 3},
		"with both, another's ": {true, "cell=b", 0, 0},
	} {
		options := base
		options.Replicas, options.PoolSelector = c.replicas, c.selector
		m, o := scaling(t, &options)
		reader := served(t, o, nil)
		input, err := (&capture.Controller{Objects: m.Objects(), Sale: o.sale, Scheme: reader.Scheme()}).Input(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		document := &capture.Document{Input: *input, Options: options}
		text, err := json.Marshal(document)
		if written := strings.Contains(string(text), "replicas\":true"); err != nil || written != c.replicas {
			t.Errorf("%s: %v: %s", name, err, text)
		}
		first, second := filepath.Join(t.TempDir(), "first.json"), filepath.Join(t.TempDir(), "seconc.json")
		if err := document.Write(first); err != nil {
			t.Fatal(err)
		}
		source := Source{Paths: []string{first}, Cluster: &Cluster{}, Keep: true}
		w, err := source.Read(t.Context(), policy)
		if err != nil || len(w.Problems) > 0 {
			t.Fatal(name, err, w.Problems)
		}
		if diff := gocmp.Diff(specsOf(m.Snapshot(options.Now)), specsOf(w.Snapshot()), sameSpecs); diff != "" {
			t.Errorf("%s: (-controller +its capture):\n%s", name, diff)
		}
		a := w.Decide(&policy, 1).Answer()
		virtual := 0
		if a.Room != nil {
			for _, n := range a.Room.Nodes {
				virtual += len(n.Pods)
			}
			for _, n := range a.Room.ExistingNodes {
				virtual += len(n.Pods)
			}
		}
		if a.Pods.New != c.pods || virtual != c.virtual {
			t.Errorf("%s: %d pods and %d virtual ones are on new nodes, want %d and %d", name, a.Pods.New, virtual, c.pods, c.virtual)
		}
		if err := WriteCapture(second, w, policy, a); err != nil {
			t.Fatal(err)
		}
		if r, err := Replay(second); err != nil || len(r.Differs)+len(r.Problems) > 0 {
			t.Errorf("%s: replay: %v %+v", name, err, r)
		}
	}
}

// TestCaptureWithInvalidSelector checks that a damaged selector is named.
func TestCaptureWithInvalidSelector(t *testing.T) {
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	o.takeCapture("c.json", &capture.Document{Input: capture.Input{Sale: &capture.PriceList{}}, Options: capture.Options{PoolSelector: "(a"}})
	if len(o.Problems) != 1 || !strings.HasPrefix(o.Problems[0].Error(), "c.json: options.poolSelector: ") {
		t.Errorf("the problems are %v", o.Problems)
	}
}
