package demo

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// TestHistoryNotesStagesOnce checks that each stage of an object is recorded once, when it is first seen, however
// often the object changes and even if stages are skipped.
func TestHistoryNotesStagesOnce(t *testing.T) {
	h := newHistory()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}}
	h.record(pod.DeepCopy(), false)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	h.record(pod.DeepCopy(), false)
	pending := h.span(podPending)
	h.record(pod.DeepCopy(), false)
	if again := h.span(podPending); again != pending || pending.count != 1 {
		t.Errorf("pending is %+v after another event of the pod, want %+v with one pod", again, pending)
	}
	pod.Status.NominatedNodeName = "node"
	h.record(pod.DeepCopy(), false)
	if kept, made := h.nominations(); kept != 0 || made != 1 {
		t.Errorf("of a nominated pod that is not bound, %d of %d are where they were planned, want 0 of 1", kept, made)
	}
	pod.Spec.NodeName, pod.Status.Phase, pod.Status.NominatedNodeName = "node", corev1.PodRunning, ""
	h.record(pod.DeepCopy(), false)
	if kept, made := h.nominations(); kept != 1 || made != 1 {
		t.Errorf("of a pod on the node that it was nominated to, %d of %d are where they were planned, want 1 of 1", kept, made)
	}

	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: "claim"}}
	claim.Status.Conditions = []status.Condition{{Type: karpv1.ConditionLaunched, Status: metav1.ConditionTrue}}
	h.record(claim, false)
	h.record(toolscache.DeletedFinalStateUnknown{Obj: claim}, true)
	h.record(&corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "node"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{karpv1.DisruptedTaint()}}}, false)

	got := map[stage]int{}
	for s := range h.seen {
		got[s] = h.count(s)
	}
	want := map[stage]int{
		podCreated: 1, podPending: 1, podBound: 1, podRunning: 1,
		claimCreated: 1, claimLaunched: 1, claimDeleting: 1, claimGone: 1, nodeCordoned: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages seen (-want +got):\n%s", diff)
	}
	pods, claims, nodes := h.present()
	if diff := cmp.Diff([]int{1, 0, 1}, []int{len(pods), len(claims), len(nodes)}); diff != "" {
		t.Errorf("present pods, claims and nodes (-want +got):\n%s", diff)
	}
	h.record(pod, true)
	if h.count(podGone) != 1 {
		t.Error("the end of the pod was not recorded")
	}
}

// TestTimeline checks that the timeline counts from the scale command.
func TestTimeline(t *testing.T) {
	var out bytes.Buffer
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	d := &demo{out: &out, scaled: start}
	d.printTimeline([]timelineRow{
		{"pods pending", span{start.Add(12 * time.Millisecond), start.Add(1500 * time.Millisecond), 100}},
		{"nodes gone", span{}},
	})
	want := "                        count       first        last\n" +
		"  pods pending            100     0.012 s     1.500 s\n" +
		"  nodes gone                0           -           -\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}

// TestCost checks that the cost has a line for identical nodes, with the catalog's price.
func TestCost(t *testing.T) {
	h, out := newHistory(), &bytes.Buffer{}
	claim := func(uid, instanceType, zone string) {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: instanceType, corev1.LabelTopologyZone: zone, karpv1.LabelCapacityType: karpv1.CapacityTypeSpot}}}
		c.Status.NodeName = "node-" + uid
		c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")}
		h.record(c, false)
	}
	claim("a", "c-2x-amd64-linux", "test-zone-a")
	claim("b", "c-2x-amd64-linux", "test-zone-a")
	claim("c", "c-4x-amd64-linux", "test-zone-b")
	h.record(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}, Spec: corev1.PodSpec{NodeName: "node-b", Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
			corev1.ResourceMemory: resource.MustParse("2Gi")}}}}}}, false)
	d := &demo{out: out, history: h}
	if price, err := d.printCost("Cost"); err != nil || math.Abs(price-0.152) > 1e-4 {
		t.Fatalf("the cost is %v (%v), want 0.152", price, err)
	}
	want := `
Cost

  type               capacity   zone          nodes   pods   CPU used   memory used   USD/hour
  c-2x-amd64-linux   spot       test-zone-a   2       1      25%        25%           0.0760
  c-4x-amd64-linux   spot       test-zone-b   1       0      0%         0%            0.0760
  total                                       3       1      17%        17%           0.1520
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("cost (-want +got):\n%s", diff)
	}
	h.record(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "stray", Name: "stray"}, Spec: corev1.PodSpec{NodeName: "unmanaged"}}, false)
	if _, err := d.printCost("Cost"); err == nil || !strings.Contains(err.Error(), "stray") {
		t.Errorf("a pod on a node without a price: got %v, want an error that names it", err)
	}
}

// TestReadPasses checks that only passes that created claims are read from the controller's log.
func TestReadPasses(t *testing.T) {
	log := filepath.Join(t.TempDir(), "karpenter.log")
	lines := `panic: not JSON
{"level":"INFO","message":"starting"}
{"level":"INFO","message":"created nodeclaims","nodeclaims":3,"pods":100,` +
		`"decidedAt":"2026-11-20T11:54:16.407359934Z","batchSeconds":2.8,"scheduleSeconds":0.25,"createSeconds":0.5}
`
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readPasses(log)
	if err != nil {
		t.Fatal(err)
	}
	want := []pass{{Claims: 3, Decided: time.Date(2026, 11, 20, 11, 54, 16, 407359934, time.UTC), Batch: 2.8, Schedule: 0.25, Create: 0.5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("passes (-want +got):\n%s", diff)
	}
}

// TestDemoEmptiesItsOwnDirectoryOnly checks that a demo empties only the directory of an earlier demo.
func TestDemoEmptiesItsOwnDirectoryOnly(t *testing.T) {
	d := &demo{demoOptions: demoOptions{dataDir: filepath.Join(t.TempDir(), "demo")}}
	if err := d.clearDataDir(); err != nil {
		t.Fatalf("a new directory: %v", err)
	}
	data := filepath.Join(d.dataDir, "etcd")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.clearDataDir(); err != nil {
		t.Fatalf("the directory of a demo: %v", err)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the previous demo's cluster still exists: %v", err)
	}
	if err := errors.Join(os.MkdirAll(data, 0o700), os.Remove(d.marker())); err != nil {
		t.Fatal(err)
	}
	var usage *cli.UsageError
	if err := d.clearDataDir(); !errors.As(err, &usage) {
		t.Errorf("a directory that no demo made: got %v, want a usage error", err)
	}
	if _, err := os.Stat(data); err != nil {
		t.Errorf("the cluster of another program was removed: %v", err)
	}
	d.dataDir = t.TempDir()
	if err := os.WriteFile(filepath.Join(d.dataDir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var directory *sandbox.DirectoryError
	if err := d.clearDataDir(); !errors.As(err, &directory) {
		t.Errorf("a directory with files: got %v, want a DirectoryError", err)
	}
	if entries, err := os.ReadDir(d.dataDir); err != nil || len(entries) != 1 {
		t.Errorf("an unrelated directory has %v (%v), want it unchanged", entries, err)
	}
}

// TestProgress checks that progress is silent for a second, and then plain text if there is no terminal.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	p.show("at once")
	p.since = p.since.Add(-2 * time.Second)
	p.show("after two seconds")
	p.show("right after")
	p.clear()
	if got, want := out.String(), "after two seconds\n"; got != want {
		t.Errorf("progress is %q, want %q", got, want)
	}
}

// TestProgressSaysNothingTwice checks that an unchanged progress message is printed once, and a new one is printed.
func TestProgressSaysNothingTwice(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	for _, text := range []string{"0 nodes left", "0 nodes left", "1 node left", "1 node left"} {
		p.patience = 0
		p.show(text)
	}
	if got := out.String(); got != "0 nodes left\n1 node left\n" {
		t.Errorf("got %q", got)
	}
}

func TestDemoWords(t *testing.T) {
	pool := &karpv1.NodePool{}
	for _, c := range []struct {
		conditions []status.Condition
		want       string
	}{
		{nil, "not checked yet"},
		{[]status.Condition{{Type: status.ConditionReady, Status: metav1.ConditionUnknown},
			{Type: karpv1.ConditionNodeClassReady, Status: metav1.ConditionUnknown},
			{Type: karpv1.ConditionValidationSucceeded, Status: metav1.ConditionTrue}}, "not observed yet: NodeClassReady"},
		{[]status.Condition{{Type: karpv1.ConditionNodeClassReady, Status: metav1.ConditionFalse, Message: "there is none"},
			{Type: karpv1.ConditionValidationSucceeded, Status: metav1.ConditionUnknown}}, "NodeClassReady is false: there is none"},
	} {
		pool.Status.Conditions = c.conditions
		if got := unready(pool); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	for _, c := range []struct {
		pods, cordoned, nodes int
		want                  string
	}{
		{1, 0, 2, "1 pod left"}, {0, 0, 2, "no pods left, waiting for consolidateAfter (30s)"}, {0, 1, 2, "2 nodes left, 1 node cordoned"},
	} {
		if got := leaving(c.pods, c.cordoned, c.nodes); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
