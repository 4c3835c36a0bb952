package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestEveryday checks that generated fleets have what their comment says, and that no node is overfull.
func TestEveryday(t *testing.T) {
	for seed := 1; seed <= 80; seed++ {
		nodes := 3 + seed%38
		f := Everyday(nodes, seed)
		if _, err := f.Free(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if len(f.Nodes) != nodes {
			t.Errorf("seed %d: %d nodes, want %d", seed, len(f.Nodes), nodes)
		}
		apps, used, total := map[string]bool{}, 0, 0
		for _, p := range f.Pods {
			apps[p.app] = true
			used += p.Room.CPU
		}
		for _, n := range f.Nodes {
			total += n.Type.Room.CPU
		}
		if len(apps) < 1 || len(apps) > 6 {
			t.Errorf("seed %d: pods of %d Deployments, want 1 to 6", seed, len(apps))
		}
		if share := float64(used) / float64(total); share < 0.1 || share > 0.8 {
			t.Errorf("seed %d: the pods request %.2f of the processors", seed, share)
		}
	}
}

// TestEverydayFiles checks that a seed always gives the same files, and that these have the fleet's nodes and pods.
func TestEverydayFiles(t *testing.T) {
	if diff := cmp.Diff(sumsOf(t, written(t, "everyday-7", 3)), sumsOf(t, written(t, "everyday-7", 3))); diff != "" {
		t.Errorf("two fleets of one seed differ (-first +second):\n%s", diff)
	}
	f, folder := Everyday(7, 3), t.TempDir()
	for i := range f.Pods { // as after some steps
		f.Pods[i].Node = f.Nodes[i%len(f.Nodes)].Name
	}
	if err := f.Bound("25%").Write(folder); err != nil {
		t.Fatal(err)
	}
	w, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []FleetPod
	for _, p := range w.Bound {
		got = append(got, FleetPod{Name: p.Name, Node: p.Spec.NodeName})
	}
	if diff := cmp.Diff(f.Pods, got, cmpopts.IgnoreFields(FleetPod{}, "Room"), cmpopts.IgnoreUnexported(FleetPod{})); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if len(w.Nodes) != 7 || len(w.Pods) != 0 {
		t.Errorf("%d nodes and %d pending pods, want 7 and 0", len(w.Nodes), len(w.Pods))
	}
	if budget := w.Pools[0].Spec.Disruption.Budgets[0].Nodes; budget != "25%" {
		t.Errorf("budget %s, want 25%%", budget)
	}
}

// TestEverydayPending checks that the pods without nodes are all there.
func TestEverydayPending(t *testing.T) {
	f, folder := Everyday(7, 3), t.TempDir()
	if err := f.Pending().Write(folder); err != nil {
		t.Fatal(err)
	}
	w, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Nodes) != 0 || len(w.Bound) != 0 || len(w.Pods) != len(f.Pods) {
		t.Errorf("%d nodes, %d bound and %d pending pods, want 0, 0 and %d", len(w.Nodes), len(w.Bound), len(w.Pods), len(f.Pods))
	}
}
