package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBytes compares the checksum of each file of some workloads with that of an implementation of the generator in
// another language.
func TestBytes(t *testing.T) {
	type key struct{ name, seed string }
	want := map[key]map[string]string{}
	content, err := os.ReadFile("testdata/sums.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		k := key{f[0], f[1]}
		if want[k] == nil {
			want[k] = map[string]string{}
		}
		want[k][f[2]] = f[3]
	}
	if len(want) < len(Small()) {
		t.Fatalf("%d workloads in sums.txt", len(want))
	}
	for k, sums := range want {
		t.Run(k.name+" seed "+k.seed, func(t *testing.T) {
			seed, err := number(k.seed, "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sums, sumsOf(t, written(t, k.name, seed))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// written returns the folder of a workload.
func written(t *testing.T, name string, seed int) string {
	t.Helper()
	set, err := Named(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := set.Write(folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

func sumsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		sums[filepath.Base(f)] = hex.EncodeToString(sum[:])
	}
	return sums
}

func TestRead(t *testing.T) {
	for _, name := range append(Small(), "cluster-20-pending-7", "fill-200") {
		w, err := Read(written(t, name, 3))
		if err != nil {
			t.Fatal(err)
		}
		set, err := Named(name, 3)
		if err != nil {
			t.Fatal(err)
		}
		got := []int{len(w.Types), len(w.Pools), len(w.Pods), len(w.Nodes), len(w.Bound)}
		want := []int{len(set.types), len(set.pools), len(set.pods), len(set.nodes), len(set.bound)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: numbers of types, pools, pods, nodes and bound pods (-want +got):\n%s", name, diff)
		}
		if w.Name != name {
			t.Errorf("%s was read as %s", name, w.Name)
		}
		if len(w.ProviderLabels) != 4 {
			t.Errorf("%s: %d labels of the provider, want 4: %v", name, len(w.ProviderLabels), w.ProviderLabels)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	folder := written(t, "inflate-200", 1)
	if err := os.WriteFile(filepath.Join(folder, "pods.json"), []byte(`{"items":[{"spec":7}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(folder); err == nil || !strings.Contains(err.Error(), "pods.json") {
		t.Errorf("an invalid pods.json: %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("an empty folder was read")
	}
}

func TestNamedRefuses(t *testing.T) {
	for _, name := range []string{"", "inflate", "inflate-", "inflate-0", "inflate-1m", "deflate-10", "inflate-10-pending-5", "inflate-99999999k", "../inflate-10"} {
		if _, err := Named(name, 1); err == nil {
			t.Errorf("%q gave a workload", name)
		}
	}
}

// TestFillFits checks that the pools of fill may launch its nodes, and that there is one node for ten pods.
func TestFillFits(t *testing.T) {
	w, err := Read(written(t, "fill-500", 1))
	if err != nil {
		t.Fatal(err)
	}
	byPool := map[string]int{}
	for _, n := range w.Nodes {
		byPool[n.Labels[LabelPool]]++
		for _, p := range manyPools {
			if p.name != n.Labels[LabelPool] {
				continue
			}
			for _, r := range p.requirements {
				key := r["key"].(string)
				value, has := n.Labels[key]
				if !meets(r, value, has) {
					t.Errorf("%s of %s: %s is %q", n.Name, p.name, key, value)
				}
			}
			if (p.taint != nil) != (len(n.Spec.Taints) == 1) {
				t.Errorf("%s of %s has taints %v", n.Name, p.name, n.Spec.Taints)
			}
		}
	}
	if diff := cmp.Diff([]int{50, 50, 500}, []int{len(w.Nodes), len(w.Bound), len(w.Pods)}); diff != "" {
		t.Errorf("numbers of nodes, bound pods and pending pods (-want +got):\n%s", diff)
	}
	if len(byPool) < 5 {
		t.Errorf("the nodes are of the pools %v, want at least 5", byPool)
	}
}
