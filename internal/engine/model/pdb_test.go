package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

func pdbNames(pdbs []*model.PDBSpec) []string {
	var names []string
	for _, pdb := range pdbs {
		names = append(names, pdb.Namespace+"/"+pdb.Name)
	}
	return names
}

// TestPDBsOf compares the lookup by label with a scan over all PodDisruptionBudgets.
func TestPDBsOf(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	more := 0
	for round := range 200 {
		b := model.NewBuilder()
		for i := range random.IntN(12) {
			namespace := pick("a", "b")
			pdb := model.PDBSpec{UID: fmt.Sprint(i), Namespace: namespace, Name: fmt.Sprint("pdb-", 99-i), Selector: model.Selector{Namespaces: []string{namespace}}}
			for range random.IntN(3) {
				r := label.Requirement{Key: pick("app", "tier"), Operator: label.Operator(random.IntN(4))}
				if r.Operator == label.In || r.Operator == label.NotIn {
					r.Values = []string{pick("x", "y", "z"), pick("x", "y", "z")}
				}
				pdb.Selector.Requirements = append(pdb.Selector.Requirements, r)
			}
			pdb.Selector.Nothing = random.IntN(6) == 0
			b.UpsertPDB(pdb)
		}
		b.UpsertNode(model.NodeSpec{Name: "n", UID: "n", Stage: model.Initialized})
		for i := range 6 {
			labels := map[string]string{}
			for _, key := range []string{"app", "tier"} {
				if random.IntN(3) > 0 {
					labels[key] = pick("x", "y", "z")
				}
			}
			b.UpsertPod(model.PodSpec{UID: fmt.Sprint("p", i), Namespace: pick("a", "b"), Name: fmt.Sprint("p", i), State: model.Bound, Node: "n", Labels: labels})
		}
		snap := b.Snapshot(time.Unix(0, 0))
		for _, p := range snap.Node("n").Pods {
			var want []*model.PDBSpec
			for _, pdb := range snap.PDBs {
				if pdb.Namespace == p.Namespace && pdb.Selector.Selects(p.Namespace, p.Labels) {
					want = append(want, pdb)
				}
			}
			if len(want) > 1 {
				more++
			}
			if diff := cmp.Diff(pdbNames(want), pdbNames(snap.PDBsOf(p))); diff != "" {
				t.Fatalf("round %d: PodDisruptionBudgets of %s with %v (-want +got):\n%s", round, p.Key(), p.Labels, diff)
			}
		}
	}
	if more == 0 {
		t.Error("no pod has two PodDisruptionBudgets: the test covers too little")
	}
}

func TestPDBsComeAndGo(t *testing.T) {
	b := model.NewBuilder()
	b.UpsertPDB(model.PDBSpec{UID: "1", Namespace: "a", Name: "one", Allowed: 1})
	before := b.Snapshot(time.Unix(0, 0))
	b.UpsertPDB(model.PDBSpec{UID: "1", Namespace: "a", Name: "one", Allowed: 2})
	b.UpsertPDB(model.PDBSpec{UID: "0", Namespace: "a", Name: "another"})
	now := b.Snapshot(time.Unix(1, 0))
	b.DeletePDB("1")
	b.DeletePDB("unknown")
	after := b.Snapshot(time.Unix(2, 0))
	if before.PDBs[0].Allowed != 1 || now.PDBs[1].Allowed != 2 {
		t.Errorf("allowed %d and then %d, want 1 and 2", before.PDBs[0].Allowed, now.PDBs[1].Allowed)
	}
	for name, c := range map[string]struct {
		snap *model.Snapshot
		want []string
	}{"before": {before, []string{"a/one"}}, "now": {now, []string{"a/another", "a/one"}}, "after": {after, []string{"a/another"}}} {
		if diff := cmp.Diff(c.want, pdbNames(c.snap.PDBs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
