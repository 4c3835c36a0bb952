package decide

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/neutral"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/review"
)

// reviewed are changes that do not matter if OLD and NEW both have them.
var reviewed = []string{"far limit of cpu", "far limits of all", "1 idle pool", "DaemonSet on no node", "PDB that blocks nothing",
	"order of objects", "annotations of pools and nodes", "grace period and scheduler's name"}

// edits are changes of NodePools under review.
var edits = map[string]func(*karpv1.NodePool){
	"a zone less": func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, karpv1.Requirement{
			Key: corev1.LabelTopologyZone, Operator: "NotIn", Values: []string{"zone-c"}})
	},
	"no consolidation": func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmpty },
}

// withClaims gives each node a claim, so that it is known what it was launched from.
func withClaims(in *neutral.Input) *neutral.Input {
	in = in.Clone()
	for _, o := range slices.Clone(in.Objects) {
		node, ok := o.(*corev1.Node)
		if !ok {
			continue
		}
		node.Spec.ProviderID = "test://" + node.Name
		claim := &karpv1.NodeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: "claim-" + node.UID, Labels: node.Labels, CreationTimestamp: node.CreationTimestamp}}
		claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "types.example.org", Kind: "ExampleNodeClass", Name: "default"}
		claim.Spec.Requirements = []karpv1.Requirement{{Key: corev1.LabelOSStable, Operator: "In", Values: []string{"linux"}}}
		claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, node.Name
		for _, kind := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized} {
			claim.StatusConditions().SetTrue(kind)
		}
		in.Objects = append(in.Objects, claim)
	}
	return in
}

// compare compares the fleet of an input with itself, of whose NodePools some are edited on either side.
func compare(t *testing.T, in *neutral.Input, old, now func(*karpv1.NodePool)) *offline.DiffAnswer {
	t.Helper()
	folder := t.TempDir()
	side := func(name string, edit func(*karpv1.NodePool)) string {
		part := &neutral.Input{Name: name}
		for _, o := range in.Clone().Objects {
			if pool, ok := o.(*karpv1.NodePool); ok {
				if edit != nil && !strings.HasPrefix(pool.Name, "idle-") {
					edit(pool)
				}
				part.Objects = append(part.Objects, pool)
			}
		}
		path := filepath.Join(folder, name)
		if err := part.Write(path); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(path, "objects.json")
	}
	rest := in.Clone()
	rest.Objects = slices.DeleteFunc(rest.Objects, func(o neutral.Object) bool { _, pool := o.(*karpv1.NodePool); return pool })
	if err := rest.Write(filepath.Join(folder, "fleet")); err != nil {
		t.Fatal(err)
	}
	policy := offline.DefaultPolicy()
	source := offline.Source{Paths: []string{filepath.Join(folder, "fleet")}, Cluster: &offline.Cluster{}}
	before, after, err := source.ReadBoth(t.Context(), policy, []string{side("old", old)}, []string{side("new", now)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := offline.Compare(t.Context(), before, after, &policy, &review.Policy{})
	if err != nil || len(before.Problems)+len(after.Problems) > 0 {
		t.Fatal(err, before.Problems, after.Problems)
	}
	return a
}

// TestVerdictIsNeutral: what does not matter and is in OLD and in NEW leaves the verdict as it is, byte for byte.
func TestVerdictIsNeutral(t *testing.T) {
	var list []neutral.Change
	for _, c := range neutral.Changes() {
		if slices.Contains(reviewed, c.Name) {
			list = append(list, c)
		}
	}
	if len(list) != len(reviewed) {
		t.Fatalf("%d of the %d changes exist", len(list), len(reviewed))
	}
	effects, compared := 0, 0
	for seed := 1; seed <= 3; seed++ {
		in := neutral.Fleet(seed)
		for name, edit := range edits {
			want := compare(t, in, nil, edit)
			if math.Abs(want.Difference.PricePerMonth) > 0.01 {
				effects++
			}
			for _, c := range list {
				changed := c.Apply(in, neutral.Outcome{})
				if changed == nil {
					continue
				}
				compared++
				if got := compare(t, changed, nil, edit).Verdict; got != want.Verdict {
					t.Errorf("%s, %s:\ngot  %s\nwant %s", changed.Name, name, got, want.Verdict)
				}
			}
		}
	}
	if effects < 3 || compared < 30 {
		t.Errorf("%d of the edits matter, in %d comparisons", effects, compared)
	}
}

// TestDiffIsAntisymmetric: with OLD and NEW swapped, the difference at rest is negated, and a fleet that is compared
// with itself has none.
func TestDiffIsAntisymmetric(t *testing.T) {
	for seed := 1; seed <= 4; seed++ {
		in := withClaims(neutral.Fleet(seed))
		for name, edit := range edits {
			forth, back := compare(t, in, nil, edit), compare(t, in, edit, nil)
			if d := forth.Difference; d.PricePerHour != -back.Difference.PricePerHour || d.PricePerMonth != -back.Difference.PricePerMonth {
				t.Errorf("fleet %d, %s: forth %+v, back %+v", seed, name, d, back.Difference)
			}
			if len(forth.Changes) != len(back.Changes) || len(forth.Changes) == 0 {
				t.Errorf("fleet %d, %s: %d changes forth, %d back", seed, name, len(forth.Changes), len(back.Changes))
			}
			same := compare(t, in, edit, edit)
			if want := "Nothing changes: no field that decides changed (" +
				fmt.Sprintf("%.2f", same.Old.PricePerHour*730) + " USD a month at rest"; !strings.HasPrefix(same.Verdict, want) ||
				same.Difference != (offline.Difference{}) || len(same.Drifted) > 0 {
				t.Errorf("fleet %d, %s: of itself: %s", seed, name, same.Verdict)
			}
		}
	}
}
