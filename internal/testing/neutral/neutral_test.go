package neutral

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// files returns the files of an input by name.
func files(t *testing.T, in *Input) map[string]string {
	t.Helper()
	folder := t.TempDir()
	if err := in.Write(folder); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range []string{"instance-types.json", "objects.json"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(content)
	}
	return found
}

// TestSameSeedSameFiles checks that an input depends on its seed only, and that seeds differ.
func TestSameSeedSameFiles(t *testing.T) {
	for name, generate := range map[string]func(int) *Input{"purchase": Purchase, "fleet": Fleet} {
		first := files(t, generate(5))
		if diff := cmp.Diff(first, files(t, generate(5))); diff != "" {
			t.Errorf("%s: two inputs of one seed differ (-first +second):\n%s", name, diff)
		}
		if cmp.Equal(first, files(t, generate(6))) {
			t.Errorf("%s: two seeds give the same files", name)
		}
	}
}

// TestPurchases checks the numbers of pods and pools that the comments promise, and that features occur.
func TestPurchases(t *testing.T) {
	pools, features := map[int]bool{}, map[string]bool{}
	for seed := 1; seed <= 100; seed++ {
		in, pods := Purchase(seed), 0
		for _, d := range of[*appsv1.Deployment](in) {
			pods += int(*d.Spec.Replicas)
			for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
				features[string(c.WhenUnsatisfiable)] = true
			}
		}
		if pods < 3 || pods > 40 {
			t.Errorf("seed %d: %d pods, want 3 to 40", seed, pods)
		}
		for _, p := range of[*karpv1.NodePool](in) {
			features["limits"] = features["limits"] || p.Spec.Limits != nil
			features["weight"] = features["weight"] || p.Spec.Weight != nil
		}
		features["DaemonSet"] = features["DaemonSet"] || len(of[*appsv1.DaemonSet](in)) > 0
		pools[len(of[*karpv1.NodePool](in))] = true
	}
	want := map[string]bool{"DoNotSchedule": true, "ScheduleAnyway": true, "limits": true, "weight": true, "DaemonSet": true}
	if diff := cmp.Diff(want, features); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	if !pools[1] || !pools[12] {
		t.Errorf("numbers of pools: %v, want 1 and 12 among them", pools)
	}
}

// TestFleets checks that no node is overfull, and that pods request about half of the processors.
func TestFleets(t *testing.T) {
	for seed := 1; seed <= 100; seed++ {
		in, free, total, used := Fleet(seed), map[string]corev1.ResourceList{}, int64(0), int64(0)
		for _, n := range of[*corev1.Node](in) {
			free[n.Name] = n.Status.Allocatable.DeepCopy()
			total += n.Status.Allocatable.Cpu().MilliValue()
		}
		if len(free) < 3 || len(free) > 10 {
			t.Errorf("seed %d: %d nodes, want 3 to 10", seed, len(free))
		}
		for _, p := range of[*corev1.Pod](in) {
			for name, amount := range p.Spec.Containers[0].Resources.Requests {
				left := free[p.Spec.NodeName][name]
				left.Sub(amount)
				free[p.Spec.NodeName][name] = left
				if left.Sign() < 0 {
					t.Errorf("seed %d: node %s is overfull: %s", seed, p.Spec.NodeName, name)
				}
			}
			used += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
		if share := float64(used) / float64(total); share < 0.05 || share > 0.85 {
			t.Errorf("seed %d: the pods request %.2f of the processors", seed, share)
		}
	}
}

// TestChanges checks that each change has a name of its own, changes some purchase or fleet, and leaves the input itself as
// it was.
func TestChanges(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Changes() {
		if names[c.Name] {
			t.Errorf("two changes are named %q", c.Name)
		}
		names[c.Name] = true
		applied := 0
		for seed := 1; seed <= 12; seed++ {
			for _, in := range []*Input{Purchase(seed), Fleet(seed)} {
				before := encoded(t, in)
				changed := c.Apply(in, Outcome{Nodes: []Node{{Pool: "general", Type: "m1.4", Types: []string{"m1.4", "m1.8"}, Price: 0.2}}})
				if encoded(t, in) != before {
					t.Fatalf("%s: the input itself is changed", c.Name)
				}
				if changed == nil {
					continue
				}
				applied++
				if encoded(t, changed) == before {
					t.Errorf("%s: changes nothing", changed.Name)
				}
			}
		}
		if applied == 0 {
			t.Errorf("%s: applies to no input", c.Name)
		}
	}
	if len(names) < 40 {
		t.Errorf("%d changes, want at least 40", len(names))
	}
}

func encoded(t *testing.T, in *Input) string {
	t.Helper()
	text, err := json.Marshal([]any{in.Types, in.Objects, in.Prices})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestJudge checks what counts as changed and as dearer.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name            string
		without, with   Outcome
		changed, dearer bool
	}{
		{"the same", Outcome{Cost: 1, Unschedulable: 0}, Outcome{Cost: 1, Unschedulable: 0}, false, false},
		{"nothing at all", Outcome{}, Outcome{}, false, false},
		{"a little dearer", Outcome{Cost: 1, Unschedulable: 0}, Outcome{Cost: 1.004, Unschedulable: 0}, true, false},
		{"dearer", Outcome{Cost: 1, Unschedulable: 0}, Outcome{Cost: 1.006, Unschedulable: 0}, true, true},
		{"cheaper", Outcome{Cost: 1, Unschedulable: 0}, Outcome{Cost: 0.9, Unschedulable: 0}, true, false},
		{"something instead of nothing", Outcome{}, Outcome{Cost: 0.1, Unschedulable: 0}, true, true},
		{"cheaper, because a pod has no place", Outcome{Cost: 1, Unschedulable: 0}, Outcome{Cost: 0.9, Unschedulable: 1}, true, true},
		{"dearer, because one more pod has a place", Outcome{Cost: 1, Unschedulable: 1}, Outcome{Cost: 1.2, Unschedulable: 0}, true, false},
	} {
		if got := c.with.Changed(c.without); got != c.changed {
			t.Errorf("%s: changed is %t, want %t", c.name, got, c.changed)
		}
		if got := c.with.Dearer(c.without); got != c.dearer {
			t.Errorf("%s: dearer is %t, want %t", c.name, got, c.dearer)
		}
	}
}
