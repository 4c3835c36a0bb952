package offline

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// roomYAML is a node with room for one pod, a buffer of a Deployment that runs there, one of a PodTemplate that fits no
// type, and one that refers to nothing that exists.
const roomYAML = `apiVersion: v1
kind: Node
metadata: {name: a, labels: {kubernetes.io/hostname: a, karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: small,
  topology.kubernetes.io/zone: a, karpenter.sh/capacity-type: on-demand}}
status: {capacity: {cpu: 2, memory: 4Gi, pods: 20}, allocatable: {cpu: 1900m, memory: 4Gi, pods: 20},
  conditions: [{type: Ready, status: "True"}]}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare}
spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 100}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: giant}
template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: giant}
spec: {podTemplateRef: {name: giant}, replicas: 2}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: lost}
spec: {podTemplateRef: {name: none}, replicas: 2}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team}
spec: {}
status: {hard: {pods: "8"}, used: {pods: "1"}}
`

// readRoom reads the buffers of roomYAML.
func readRoom(t *testing.T, more ...string) (*Manifests, Policy) {
	t.Helper()
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": poolYAML,
		"web.yaml":  strings.Replace(webYAML, "cpu: 500m", "cpu: 600m", 1),
		"room.yaml": roomYAML, "more.yaml": strings.Join(more, "---\n") + "\n"})
	policy := DefaultPolicy()
	source := Source{Paths: []string{folder}, Cluster: &Cluster{}, Now: time.Unix(1, 0), Keep: true}
	w, err := source.Read(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Problems) > 0 {
		t.Fatal(w.Problems)
	}
	return w, policy
}

// TestSimulateBuffers checks that the room of buffers is planned after the pods, and what the answer says of it.
func TestSimulateBuffers(t *testing.T) {
	w, policy := readRoom(t)
	a := w.Decide(&policy, 1).Answer()
	if a.Pods.Total != 3 || len(a.Nodes) != 0 || a.Pods.Existing != 3 {
		t.Errorf("the plan of the pods is %+v, want three on the node that exists", a.Pods)
	}
	want := []BufferOutcome{
		{Buffer: "default/giant", Asked: 2, Replicas: 2, Without: 2, Status: "False", Reason: "Infeasible"},
		{Buffer: "default/lost", Status: "False", Reason: "PodTemplateNotFound", Message: "PodTemplate none does not exist"},
		{Buffer: "default/spare", Asked: 3, Replicas: 3, New: 3, Status: "False", Reason: "RequiresNewCapacity",
			Message: "3/3 virtual pods required new capacity, 0 failed"},
	}
	got := a.Buffers
	if len(got) == 3 && strings.Contains(got[0].Message, "needs 100 of cpu") {
		got[0].Message = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("buffers (-want +got):\n%s", diff)
	}
	if a.Room == nil || len(a.Room.Nodes) != 1 || len(a.Room.Unschedulable) != 2 {
		t.Fatalf("room is %+v, want a new node and two pods without room", a.Room)
	}
	text := a.Text(0)
	for _, want := range []string{
		"NEW NODE (ROOM)", "UNSCHEDULABLE default/capacity-buffer-giant-0 and 1 more\n",
		"buffer default/lost: PodTemplateNotFound: PodTemplate none does not exist\n",
		"buffer default/spare: 3 virtual pods: 0 on nodes that are ready, " +
			"0 on nodes being launched or launched for pods, 3 on new nodes, 0 nowhere\n",
		"room of CapacityBuffers: 1 new node in addition, price 0.1000 USD per hour\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestBufferQuotas checks that quotas of files reduce the number.
func TestBufferQuotas(t *testing.T) {
	w, policy := readRoom(t, "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: zz}\n"+
		"spec: {podTemplateRef: {name: giant}, replicas: 9}\n")
	a := w.Decide(&policy, 1).Answer()
	last := a.Buffers[len(a.Buffers)-1]
	if want := "ResourceQuota team allows 2 of 9"; last.Asked != 9 || last.Replicas != 2 || last.Limited != want {
		t.Errorf("the last buffer is %+v, want %q", last, want)
	}
}

// TestReplayBuffers checks CB-10: a capture with buffers is planned as before, and so are the same objects in another
// order.
func TestReplayBuffers(t *testing.T) {
	w, policy := readRoom(t)
	a := w.Decide(&policy, 1).Answer()
	file := filepath.Join(t.TempDir(), "capture.json")
	if err := WriteCapture(file, w, policy, a); err != nil {
		t.Fatal(err)
	}
	r, err := Replay(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Differs) > 0 || len(r.Problems) > 0 {
		t.Errorf("replayed: differs in %q, problems %v", r.Differs, r.Problems)
	}
	documents := strings.Split(roomYAML, "---\n")
	shuffled := strings.Join([]string{documents[3], documents[5], documents[2], documents[4], documents[1], documents[0]}, "---\n")
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "a.yaml": shuffled, "z.yaml": poolYAML,
		"web.yaml": strings.Replace(webYAML, "cpu: 500m", "cpu: 600m", 1)})
	source := Source{Paths: []string{folder}, Cluster: &Cluster{}, Now: time.Unix(1, 0)}
	other, err := source.Read(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	b := other.Decide(&policy, 1).Answer()
	if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(NewNode{}), cmpopts.IgnoreFields(LaunchAnswer{}, "Stats")); diff != "" {
		t.Errorf("in another order (-before +after):\n%s", diff)
	}
}

// TestExplainBuffer checks where the room of a buffer is, and what it costs.
func TestExplainBuffer(t *testing.T) {
	w, policy := readRoom(t, "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: spare, namespace: other}\n"+
		"spec: {podTemplateRef: {name: tiny}, replicas: 1}\n",
		"apiVersion: v1\nkind: PodTemplate\nmetadata: {name: tiny, namespace: other}\n"+
			"template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 50m}}}]}}\n")
	b, err := w.ExplainBuffer(&policy, "other/spare")
	if err != nil {
		t.Fatal(err)
	}
	want := []BufferPlace{{State: "Ready", Node: "a", NodePool: "default", InstanceType: "small", Zone: "a", CapacityType: "on-demand",
		PricePerHour: 0.1 * 50 / 1900, Pods: []string{"capacity-buffer-spare-0"}}}
	if diff := cmp.Diff(want, b.Places, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if b.Status != "True" || b.Requests["cpu"] != "50m" {
		t.Errorf("status %s, requests %v, want True and 50m of cpu", b.Status, b.Requests)
	}
	if _, err := w.ExplainBuffer(&policy, "spare"); err == nil ||
		!strings.Contains(err.Error(), "default/spare and other/spare: give a namespace") {
		t.Errorf("of two buffers of a name: %v", err)
	}
	if _, err := w.ExplainBuffer(&policy, "default/gaint"); err == nil || !strings.Contains(err.Error(), "did you mean default/giant?") {
		t.Errorf("of a name that is not there: %v", err)
	}
	if b, err = w.ExplainBuffer(&policy, "giant"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 virtual pods without room\n  pool default: needs 100 of cpu",
		"status False, Infeasible: 2 of 2 virtual pods fit on no node"} {
		if text := b.Text(); !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
