package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestConsolidationPools checks that every wave has its pool, with a closed budget, and that there are no other
// pools.
func TestConsolidationPools(t *testing.T) {
	documents := bytes.Split(consolidationPools, []byte("\n---\n"))
	if len(documents) != len(consolidationWaves) {
		t.Fatalf("%d pools for %d waves", len(documents), len(consolidationWaves))
	}
	for i, wave := range consolidationWaves {
		pool := &karpv1.NodePool{}
		if err := yaml.UnmarshalStrict(documents[i], pool); err != nil {
			t.Fatal(err)
		}
		if pool.Name != wave.pool {
			t.Errorf("pool %d is %s, want %s", i, pool.Name, wave.pool)
		}
		if budgets := pool.Spec.Disruption.Budgets; len(budgets) != 1 || budgets[0].Nodes != "0" {
			t.Errorf("pool %s has the budgets %v, want one that allows nothing", pool.Name, budgets)
		}
		if heaviest := pool.WeightOrZero() > 0; heaviest != (wave.pool == "any") {
			t.Errorf("pool %s has weight %d; the pool that may launch the cheapest type, any, must have the highest weight",
				pool.Name, pool.WeightOrZero())
		}
	}
}

// moved returns a history of a pool of ten nodes and a pod: leaving nodes were removed at the same time, and the pod
// was restarted.
func moved(leaving int, pending bool) *demo {
	h := newHistory()
	for i := range 10 {
		name := types.UID(fmt.Sprint("claim-", i))
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: name, Name: string(name),
			Labels: map[string]string{karpv1.LabelNodePool: "any"}}}
		claim.Status.NodeName = fmt.Sprint("node-", i)
		h.record(claim, false)
	}
	h.record(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "before"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, false)
	d := &demo{history: h, scaled: time.Now(), planned: 2, out: &bytes.Buffer{}}
	h.watchLeaving()
	for i := range leaving {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("node-", i)), Name: fmt.Sprint("node-", i)}}
		node.Spec.Taints = []corev1.Taint{karpv1.DisruptedTaint()}
		h.record(node, false)
	}
	for i := range leaving {
		name := types.UID(fmt.Sprint("claim-", i))
		h.record(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: name, Name: string(name)}}, true)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "again"}}
	if pending {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
	}
	h.record(pod.DeepCopy(), false)
	pod.Spec.NodeName, pod.Status = "node-9", corev1.PodStatus{Phase: corev1.PodRunning}
	h.record(pod, false)
	return d
}

// TestConsolidationIsJudged checks that the story fails when a guarantee was violated, and reports which.
func TestConsolidationIsJudged(t *testing.T) {
	for _, c := range []struct {
		name          string
		leaving       int
		pending       bool
		before, after float64
		want          string
	}{
		{"all is well", 4, false, 2, 1, ""},
		{"a pod waited", 4, true, 2, 1, "1 pod waited for a node"},
		{"more nodes than the budget allows", 5, false, 2, 1, "5 nodes of NodePool any were removed at a time, but its budget allows 4"},
		{"nothing is saved", 4, false, 2, 2, "the fleet costs 2.0000 USD/hour, and cost 2.0000 before"},
		{"a little above the plan", 4, false, 3, 2.2, ""},
		{"far above the plan", 4, false, 3, 2.4, "the fleet costs 2.4000 USD/hour, more than the 2.0000 of the plan plus 15%"},
		{"all at once", 5, true, 2, 3, "1 pod waited for a node; 5 nodes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := moved(c.leaving, c.pending)
			err := d.judge(2, c.before, c.after)
			switch {
			case err != nil && c.want == "":
				t.Errorf("got error %v, want none", err)
			case err == nil && c.want != "":
				t.Errorf("no error, want one with %q", c.want)
			case err != nil && !strings.Contains(err.Error(), c.want):
				t.Errorf("got error %q, want %q in it", err, c.want)
			}
			if text := fmt.Sprint(d.out); c.want == "" && !strings.Contains(text, "1 move of 2 pods") {
				t.Errorf("it prints %q", text)
			}
		})
	}
}

// TestHistorySinceThen checks that events before the budgets were opened do not count, and that removed nodes are not
// counted as leaving.
func TestHistorySinceThen(t *testing.T) {
	d := moved(4, false)
	if got := d.history.since(podRunning, d.scaled).count; got != 1 {
		t.Errorf("%d pods began to run, want the later one", got)
	}
	if diff := cmp.Diff(peak{4, 10}, d.history.peak("any"), cmp.AllowUnexported(peak{})); diff != "" {
		t.Errorf("peak (-want +got):\n%s", diff)
	}
	if now, running := d.history.leavingNow(), d.history.runningNow(); now != 0 || running != 2 {
		t.Errorf("%d nodes are leaving and %d pods running, want 0 and 2", now, running)
	}
}

// TestStepsAreGrouped checks that steps that are alike share a line, and that nodes are described by their type and
// price.
func TestStepsAreGrouped(t *testing.T) {
	h, out := newHistory(), &bytes.Buffer{}
	for _, name := range []string{"a", "b", "c"} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: "c-4x-amd64-linux", corev1.LabelTopologyZone: "test-zone-a",
			karpv1.LabelCapacityType: karpv1.CapacityTypeSpot}}}
		claim.Status.NodeName = name
		h.record(claim, false)
	}
	d := &demo{out: out, history: h}
	small := []addedNode{{InstanceType: "c-1x-amd64-linux", CapacityType: "spot", PricePerHour: 0.019}}
	d.printSteps(&disruptAnswer{Steps: []disruptionStep{
		{Reason: "Underutilized", Remove: []string{"a"}, Add: small, Moved: 1, Saving: 0.05},
		{Reason: "Empty", Remove: []string{"b"}, Saving: 0.08},
		{Reason: "Underutilized", Remove: []string{"c"}, Add: small, Moved: 1, Saving: 0.05},
	}})
	want := `  steps  reason         pods/step  total saving  removed/step                    launched/step
  2      Underutilized  1          0.1000        1 c-4x-amd64-linux spot 0.0760  1 c-1x-amd64-linux spot 0.0190
  1      Empty          0          0.0800        1 c-4x-amd64-linux spot 0.0760  -
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestDemoStories checks that an unknown story, or one that is incompatible with another flag, is a usage error.
func TestDemoStories(t *testing.T) {
	for _, o := range []demoOptions{{story: "sleep", replicas: 1, dataDir: "d"},
		{story: "consolidation", keep: true, replicas: 1, dataDir: "d"},
		{story: "capacity", cloud: "aws", keep: true, replicas: 1, dataDir: "d"}} {
		if err := o.check(); err == nil || !strings.Contains(err.Error(), "scale") && !strings.Contains(err.Error(), "--keep") {
			t.Errorf("%+v: got %v, want an error that names the story scale", o, err)
		}
	}
	command := NewCommand(t.TempDir(), "karpenter")
	command.SetArgs([]string{"--story", "consolidation", "--replicas", "7"})
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--replicas requires --story scale") {
		t.Errorf("--replicas with the story consolidation: got %v", err)
	}
	o := demoOptions{story: "capacity", cloud: "kwok", replicas: 1, dataDir: "d"}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "requires --cloud-provider aws") {
		t.Errorf("the story capacity without AWS: got %v", err)
	}
	o = demoOptions{story: "capacity", cloud: "aws", replicas: 1, dataDir: "d"}
	if err := o.check(); err != nil || o.story != "capacity" {
		t.Errorf("the story capacity: %v, becomes %s", err, o.story)
	}
	o = demoOptions{story: "consolidation", replicas: 1, dataDir: "d"}
	if err := o.check(); err != nil {
		t.Errorf("the story consolidation: %v", err)
	}
}

// TestStepsArePrinted checks that steps that are alike share a row, and that a row has a line for each kind of node,
// so that it stays narrow.
func TestStepsArePrinted(t *testing.T) {
	what := map[string]string{"a": "m-4x-amd64-linux spot", "b": "s-8x-amd64-linux on-demand", "c": "m-4x-amd64-linux spot",
		"d": "m-4x-amd64-linux spot"}
	price := map[string]float64{"a": 0.0941, "b": 0.2344, "c": 0.0941, "d": 0.0941}
	answer := &disruptAnswer{Steps: []disruptionStep{
		{Reason: "Underutilized", Remove: []string{"a", "b"},
			Add: []addedNode{{InstanceType: "c-8x-amd64-linux", CapacityType: "spot", PricePerHour: 0.152}}, Moved: 28, Saving: 0.1765},
		{Reason: "Underutilized", Remove: []string{"c"}, Moved: 2, Saving: 0.0991},
		{Reason: "Underutilized", Remove: []string{"d"}, Moved: 2, Saving: 0.0991},
	}}
	var out bytes.Buffer
	printSteps(&out, answer, what, price)
	const want = `  steps  reason         pods/step  total saving  removed/step                         launched/step
  1      Underutilized  28         0.1765        1 m-4x-amd64-linux spot 0.0941       1 c-8x-amd64-linux spot 0.1520
                                                 1 s-8x-amd64-linux on-demand 0.2344
  2      Underutilized  2          0.1982        1 m-4x-amd64-linux spot 0.0941       -
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
