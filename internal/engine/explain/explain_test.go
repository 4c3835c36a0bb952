package explain

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const gi = 1 << 30

// codes returns the names of all codes, in their order, from the source.
func codes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../plan/verdict.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || len(names) > 0 {
			continue
		}
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				names = append(names, name.Name)
			}
		}
	}
	if len(names) < 20 || names[0] != "OK" {
		t.Fatalf("unexpected codes: %v", names)
	}
	return names
}

func TestEveryCodeHasWords(t *testing.T) {
	snap := snapshot()
	seen := map[string]string{}
	for c, name := range codes(t) {
		v := plan.Verdict{Code: plan.Code(c)}
		if got := Code(v.Code); got != name {
			t.Errorf("code %d has the name %q, the source has %q", c, got, name)
		}
		text := Verdict(snap, v)
		switch {
		case text == "", strings.HasSuffix(text, "."), strings.Contains(text, "%!"), strings.HasPrefix(text, "refused by rule"):
			t.Errorf("%s: bad text %q", name, text)
		case seen[text] != "" && text != "for a reason that was not given":
			t.Errorf("%s has the same text as %s: %q", name, seen[text], text)
		}
		seen[text] = name
	}
	if got := Verdict(snap, plan.Verdict{Code: plan.Code(len(codes(t)))}); !strings.HasPrefix(got, "refused by rule") {
		t.Errorf("an unknown code has the text %q", got)
	}
}

func TestVerdictWithoutSnapshot(t *testing.T) {
	for c := range codes(t) {
		if text := Verdict(nil, plan.Verdict{Code: plan.Code(c), Key: 7, Resource: 9}); text == "" {
			t.Errorf("code %d has no text", c)
		}
	}
}

func TestVerdictOperands(t *testing.T) {
	snap := snapshot()
	zone, _ := snap.Space.Lookup(model.LabelZone)
	for _, c := range []struct {
		verdict plan.Verdict
		want    string
	}{
		{plan.Verdict{Code: plan.TaintNotTolerated, Taint: model.Taint{Key: "nvidia.com/gpu", Value: "true", Effect: model.NoSchedule}},
			"taint nvidia.com/gpu=true:NoSchedule is not tolerated"},
		{plan.Verdict{Code: plan.TaintNotTolerated, Taint: model.Taint{Key: "dedicated", Effect: model.NoExecute}},
			"taint dedicated:NoExecute is not tolerated"},
		{plan.Verdict{Code: plan.ResourceTooLarge, Resource: quantity.Memory, Need: 512 * gi, Have: 384 * gi, Types: 40},
			"needs 512Gi of memory, the largest of 40 types has 384Gi"},
		{plan.Verdict{Code: plan.ResourceTooLarge, Resource: quantity.CPU, Need: 2500, Have: 1000, Types: 1},
			"needs 2500m of cpu, the only type left has 1"},
		{plan.Verdict{Code: plan.ResourceTooLarge, Resource: quantity.Memory, Need: 4*gi + 1024, Have: 4 * gi, Types: 2},
			"needs 4194305Ki of memory, the largest of 2 types has 4194304Ki"},
		{plan.Verdict{Code: plan.LimitReached, Resource: quantity.CPU, Need: 4000, Have: 1500, Types: 3},
			"the limit has 1500m of cpu left, the smallest of 3 matching types has 4"},
		{plan.Verdict{Code: plan.TypesExcluded, Key: zone, Types: 12},
			"none of 12 types satisfies the requirements on label topology.kubernetes.io/zone"},
		{plan.Verdict{Code: plan.PodUnsupported, Rejection: &model.Rejection{Field: "spec.volumes[0]", Reason: "volumes are not supported yet"}},
			"spec.volumes[0]: volumes are not supported yet"},
		{plan.Verdict{Code: plan.NodeBusy, Node: "n1", Have: 1}, "node n1 is expected to be empty and has 1 pod"},
		{plan.Verdict{Code: plan.SpreadExceeded, Key: zone}, "every remaining domain would exceed the maxSkew of the topology spread constraint on label topology.kubernetes.io/zone"},
		{plan.Verdict{Code: plan.AffinityUnmet, Key: zone}, "no remaining domain has a pod that the pod affinity on label topology.kubernetes.io/zone selects"},
		{plan.Verdict{Code: plan.MinValuesUnmet, Key: zone, Need: 3, Have: 2, Types: 7}, "minValues of label topology.kubernetes.io/zone is 3, with 2 values in 7 matching types"},
		{plan.Verdict{Code: plan.ReservationTaken, Types: 1}, "the reserved capacity is used up, and none of 1 matching type has another available offering"},
		{plan.Verdict{Code: plan.NodeProtected, Node: "n1"}, "node n1 is protected by the annotation karpenter.sh/do-not-disrupt"},
		{plan.Verdict{Code: plan.NodeProtected, Node: "n1", Holder: &plan.Holder{Pod: "shop/db-0"}}, "node n1 is protected by the annotation karpenter.sh/do-not-disrupt of pod shop/db-0"},
		{plan.Verdict{Code: plan.PDBBlocks, Node: "n1", Holder: &plan.Holder{Pod: "shop/db-0", PDB: "shop/db"}}, "PodDisruptionBudget shop/db allows no eviction of pod shop/db-0 on node n1 now"},
		{plan.Verdict{Code: plan.PDBsConflict, Node: "n1", Have: 2, Holder: &plan.Holder{Pod: "shop/db-0", PDB: "shop/a"}},
			"pod shop/db-0 on node n1 is selected by PodDisruptionBudget shop/a and another; the API server refuses to evict such a pod: keep one"},
		{plan.Verdict{Code: plan.PDBsConflict, Node: "n1", Have: 3, Holder: &plan.Holder{Pod: "shop/db-0", PDB: "shop/a"}},
			"pod shop/db-0 on node n1 is selected by PodDisruptionBudget shop/a and 2 others; the API server refuses to evict such a pod: keep one"},
		{plan.Verdict{Code: plan.PodsHomeless, Node: "n1", Have: 3, Holder: &plan.Holder{Pod: "shop/web"}}, "3 pods of node n1 would be unschedulable elsewhere, pod shop/web among them"},
		{plan.Verdict{Code: plan.PodsHomeless, Node: "n1", Have: 1, Holder: &plan.Holder{Pod: "shop/web"}}, "pod shop/web of node n1 would be unschedulable elsewhere"},
		{plan.Verdict{Code: plan.SavingTooSmall, Node: "n1", Need: 50_000_000, Have: 12_345_678},
			"removing node n1 saves 0.01235 USD per hour; the disruption requires a saving of 0.05 USD per hour (annotations payback, move-price, min-saving and min-stay of the pool)"},
		{plan.Verdict{Code: plan.SavingTooSmall, Node: "n1", Need: 50_000_000, Have: -1}, "removing node n1 saves nothing; the disruption requires a saving of 0.05 USD per hour"},
		{plan.Verdict{Code: plan.SavingTooSmall, Node: "n1", Need: 1_000_000 * model.Nano, Have: 12_000},
			"removing node n1 saves 0.000012 USD per hour; the disruption requires a saving of 1000000 USD per hour (annotations payback, move-price, min-saving and min-stay of the pool)"},
		{plan.Verdict{Code: plan.SavingTooSmall, Node: "n1", Others: 2, Need: 50_000_000, Have: -1},
			"removing node n1 and 2 others saves nothing; the disruption requires a saving of 0.05 USD per hour"},
		{plan.Verdict{Code: plan.ScoreTooLow, Node: "n1", Others: 2, Need: 500, Have: 125},
			"the policy Balanced requires a score of 0.5 or more, and removing node n1 and 2 others scores 0.125"},
		{plan.Verdict{Code: plan.NoSaving, Node: "n1", Others: 2, Name: "m", Pool: "p", Need: 2, Have: -60_000_000},
			"the pods of node n1 and 2 others do not all fit on other nodes; " +
				"the cheapest new node for the rest, m of pool p and 1 other, costs 0.06 USD per hour more"},
		{plan.Verdict{Code: plan.NodeUnsettled, Node: "n1", Need: 5400}, "a consolidation launched node n1, or moved pods to it, less than 1h30m ago"},
		{plan.Verdict{Code: plan.NodeUnsettled, Node: "n1", Need: 60}, "a consolidation launched node n1, or moved pods to it, less than 1m ago"},
		{plan.Verdict{Code: plan.ScoreTooLow, Node: "n1", Need: 500, Have: 125}, "the policy Balanced requires a score of 0.5 or more, and removing node n1 scores 0.125"},
		{plan.Verdict{Code: plan.SpotShareReached, Have: 25, Types: 3}, "all matching types are available as spot only, and each has reached its 25% of the pool's spot capacity (max-spot-share)"},
		{plan.Verdict{Code: plan.SpotShareExceeded, Node: "n1", Need: 25, Have: 40},
			"without node n1 one instance type in one zone would have 40% of the pool's spot capacity, and may have at most 25% (max-spot-share)"},
		{plan.Verdict{Code: plan.Paused, Need: 1, Pause: &pause.Pause{Name: "launches for Job a/b", Failures: 4, Why: "c: gone"}},
			"launches for Job a/b are paused until 0001-01-01T00:00:00Z, after 4 failures in a row: c: gone"},
		{plan.Verdict{Code: plan.Paused, Need: 1, Pool: "p", Pause: &pause.Pause{Name: "launches for Job a/b", Failures: 4}},
			"launches for Job a/b are paused until 0001-01-01T00:00:00Z, after 4 failures in a row; " +
				"to try again at once: kubectl annotate nodepool p karpenter-go.github.io/pauses-"},
		{plan.Verdict{Code: plan.Paused, Node: "n", Pause: &pause.Pause{Name: "replacements (drifted)", Failures: 2, Why: "claim c is gone"}},
			"replacements (drifted) failed 2 times in a row: claim c is gone; another attempt is in progress"},
		{plan.Verdict{Code: plan.HostPortTaken, Node: "n1", Have: 8080}, "a pod on node n1 uses host port 8080"},
	} {
		if got := Verdict(snap, c.verdict); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		resource string
		value    int64
		want     string
	}{
		{"cpu", 0, "0"}, {"cpu", 100, "100m"}, {"cpu", 2000, "2"}, {"cpu", -500, "-500m"},
		{"memory", 0, "0"}, {"memory", 512, "512"}, {"memory", 256 << 20, "256Mi"}, {"memory", gi, "1Gi"}, {"memory", 3 * gi / 2, "1.5Gi"},
		{"memory", 384 * gi, "384Gi"}, {"memory", 1 << 40, "1Ti"}, {"memory", 7910 << 20, "7910Mi"}, {"memory", 16101234 << 10, "15.36Gi"},
		{"memory", gi - 1, "1024Mi"}, {"memory", -5, "-5"}, {"hugepages-2Mi", 4 << 20, "4Mi"}, {"ephemeral-storage", 20 * gi, "20Gi"},
		{"nvidia.com/gpu", 8, "8"}, {"pods", 110, "110"}, {"memory", 1<<63 - 1, "8Ei"},
	} {
		if got := Quantity(c.resource, c.value); got != c.want {
			t.Errorf("%d of %s: got %q, want %q", c.value, c.resource, got, c.want)
		}
	}
}

// snapshot returns a snapshot with one pool and three pods of two kinds.
func snapshot() *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "default", UID: "pool-uid", Catalog: &model.Catalog{},
		Requirements: []label.Requirement{{Key: "team", Operator: label.In, Values: []string{"a", "b", "c", "d", "e", "f", "g"}}}})
	for i, name := range []string{"web-1", "web-2", "job"} {
		p := model.PodSpec{UID: name, Namespace: "default", Name: name, Created: time.Unix(int64(i), 0).UTC(),
			Requests: []quantity.Amount{{Name: "cpu", Value: 500}, {Name: "memory", Value: gi / 2}, {Name: "pods", Value: 1}}}
		if name == "job" {
			p.Alternatives = [][]label.Requirement{{{Key: "team", Operator: label.In, Values: []string{"x"}}}, {{Key: "team", Operator: label.Exists}}}
		}
		b.UpsertPod(p)
	}
	return b.Snapshot(time.Unix(100, 0).UTC())
}

func example() (*model.Snapshot, *plan.Provision) {
	snap := snapshot()
	var web, job []*model.Pod
	for _, g := range snap.Groups {
		if len(g.Alternatives) > 0 {
			job = g.Pods
		} else {
			web = g.Pods
		}
	}
	team, _ := snap.Space.Lookup("team")
	taint := plan.Verdict{Code: plan.TaintNotTolerated, Taint: model.Taint{Key: "gpu", Effect: model.NoSchedule}}
	return snap, &plan.Provision{
		Placed: []plan.Placement{{Node: "n1", Pods: web[:1]}},
		Claims: []plan.NewClaim{{
			Name: "default-abc", Pool: "default", Pods: web[1:], Requests: []quantity.Amount{{Name: "cpu", Value: 500}},
			Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"small", "big"}}},
			Options:      []plan.Option{{Type: "small", Zone: "a", CapacityType: "spot", Price: 25_000_000}, {Type: "big", Zone: "b", CapacityType: "spot", Price: 50_000_000}},
		}},
		Refused: []plan.Refusal{{Pods: job, Pools: []plan.PoolVerdict{
			{Pool: "gpu-a", Verdict: taint}, {Pool: "default", Verdict: plan.Verdict{Code: plan.LabelExcluded, Key: team}}, {Pool: "gpu-b", Verdict: taint}}}},
	}
}

func TestRefusalMergesPoolsThatAnswerAlike(t *testing.T) {
	snap, p := example()
	want := "pools gpu-a, gpu-b: taint gpu:NoSchedule is not tolerated; " +
		"pool default: no value of label team satisfies both pod and pool (pod: In [x] or Exists, pool: In [a b c d e and 2 more])"
	if got := Refusal(snap, p.Refused[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	of := plan.Refusal{Pods: p.Refused[0].Pods, Verdict: plan.Verdict{Code: plan.NoPools}}
	if got := Refusal(snap, of); got != "there is no node pool" {
		t.Errorf("got %q", got)
	}
}

func TestProvision(t *testing.T) {
	snap, p := example()
	want := `node n1: default/web-1 (500m of cpu, 512Mi of memory)
claim default-abc of pool default: default/web-2 (500m of cpu, 512Mi of memory)
  launches small in a as spot for 0.0250 USD per hour or 1 other type, the last for 0.0500, requests 500m of cpu
refused: default/job (500m of cpu, 512Mi of memory)
  pools gpu-a, gpu-b: taint gpu:NoSchedule is not tolerated
  pool default: no value of label team satisfies both pod and pool (pod: In [x] or Exists, pool: In [a b c d e and 2 more])
total: 1 claim for 0.0250 USD per hour
`
	if diff := cmp.Diff(want, Provision(snap, p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJSONHasCodesAndOperands(t *testing.T) {
	snap, p := example()
	p.Refused = append(p.Refused, plan.Refusal{Pods: p.Refused[0].Pods, Verdict: plan.Verdict{Code: plan.PodInvalid, Rejection: &model.Rejection{Field: "spec.x", Reason: "is odd"}}})
	data, err := JSON(snap, p)
	if err != nil {
		t.Fatal(err)
	}
	var got Answer
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(AnswerOf(snap, p), got); diff != "" {
		t.Errorf("the document is incomplete, -want +got:\n%s", diff)
	}
	pool := got.Refused[0].Pools[1]
	if diff := cmp.Diff([]string{"LabelExcluded", "NeverHere", "team"}, []string{pool.Code, pool.Class, pool.Label}); diff != "" {
		t.Errorf("code, class and label of the pool (-want +got):\n%s", diff)
	}
	r := got.Refused[1].Verdict
	if r == nil {
		t.Fatalf("the second pod has no verdict: %+v", got.Refused[1])
	}
	if diff := cmp.Diff([]string{"PodInvalid", "spec.x", "spec.x: is odd"}, []string{r.Code, r.Field, r.Text}); diff != "" {
		t.Errorf("code, field and text of the second pod (-want +got):\n%s", diff)
	}
	if got.Claims[0].PricePerHour != 0.025 || got.Claims[0].Options[1].Type != "big" {
		t.Errorf("got %+v", got.Claims[0])
	}
}

// TestTree checks that the full form contains every rule with its counts and the changes that would help, and that
// the short form contains the first change that it does not already state.
func TestTree(t *testing.T) {
	snap, p := example()
	zone, _ := snap.Space.Lookup(model.LabelZone)
	memory := plan.Verdict{Code: plan.ResourceTooLarge, Resource: quantity.Memory, Need: 512 * gi, Have: 384 * gi, Types: 12}
	inZone := plan.Verdict{Code: plan.TypesExcluded, Key: zone}
	r := plan.Refusal{Pods: p.Refused[0].Pods, Dropped: 2, Pools: []plan.PoolVerdict{
		{Pool: "default", Verdict: memory, Filters: []plan.Filter{{Rule: inZone, Before: 40, After: 12}, {Rule: memory, Before: 12}},
			Nearest: []plan.Change{{Rule: inZone, Types: 3}, {Rule: memory, Types: 12}}},
		{Pool: "gpu", Verdict: plan.Verdict{Code: plan.TaintNotTolerated, Taint: model.Taint{Key: "gpu", Effect: model.NoSchedule}},
			Filters: []plan.Filter{{Rule: plan.Verdict{Code: plan.TaintNotTolerated, Taint: model.Taint{Key: "gpu", Effect: model.NoSchedule}}, Before: 9}}},
	}}
	want := `pool default: needs 512Gi of memory, the largest of 12 types has 384Gi
  label topology.kubernetes.io/zone                          40 types -> 12
  memory at least 512Gi                                      12 types -> 0
  3 types would fit if label topology.kubernetes.io/zone were not required
  12 types would fit for at most 384Gi of memory
pool gpu: taint gpu:NoSchedule is not tolerated
  taint gpu:NoSchedule                                       9 types -> 0
  more than one constraint excludes all types
the result is the same without 2 preferences
`
	if diff := cmp.Diff(want, Tree(snap, r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	short := "pool default: needs 512Gi of memory, the largest of 12 types has 384Gi, but 3 types would fit if label " +
		"topology.kubernetes.io/zone were not required; pool gpu: taint gpu:NoSchedule is not tolerated"
	if got := Refusal(snap, r); got != short {
		t.Errorf("got  %s\nwant %s", got, short)
	}
}

// TestLabelsOfOnePoolAreOneClause checks that all labels on which a pool does not match are in one clause.
func TestLabelsOfOnePoolAreOneClause(t *testing.T) {
	snap, p := example()
	team, _ := snap.Space.Lookup("team")
	zone, _ := snap.Space.Lookup(model.LabelZone)
	undefined, excluded := plan.Verdict{Code: plan.LabelUndefined, Key: zone}, plan.Verdict{Code: plan.LabelExcluded, Key: team}
	for _, c := range []struct {
		verdict plan.Verdict
		also    []plan.Verdict
		want    string
	}{
		{undefined, []plan.Verdict{excluded}, "label topology.kubernetes.io/zone is required, and the pool does not define it, and " +
			"no value of label team (pod: In [x] or Exists, pool: In [a b c d e and 2 more]) satisfies both pod and pool"},
		{undefined, []plan.Verdict{{Code: plan.LabelUndefined, Key: team}},
			"labels topology.kubernetes.io/zone and team (pod: In [x] or Exists, pool: In [a b c d e and 2 more]) are required, and the pool does not define them"},
		{plan.Verdict{Code: plan.TypesExcluded, Key: zone, Types: 3}, []plan.Verdict{{Code: plan.TypesExcluded, Key: team, Types: 3}},
			"no type satisfies the requirements on labels topology.kubernetes.io/zone and team " +
				"(pod: In [x] or Exists, pool: In [a b c d e and 2 more])"},
	} {
		r := plan.Refusal{Pods: p.Refused[0].Pods, Pools: []plan.PoolVerdict{{Pool: "default", Verdict: c.verdict, Also: c.also}}}
		if diff := cmp.Diff("pool default: "+c.want, Refusal(snap, r)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestClosestPoolComesFirst covers the order: first verdicts that may change by waiting, then verdicts that one
// change would resolve, then by the number of passed rules.
func TestClosestPoolComesFirst(t *testing.T) {
	snap, p := example()
	team, _ := snap.Space.Lookup("team")
	taint := plan.Verdict{Code: plan.TaintNotTolerated, Taint: model.Taint{Key: "gpu", Effect: model.NoSchedule}, Types: 5}
	memory := plan.Verdict{Code: plan.ResourceTooLarge, Resource: quantity.Memory, Need: 512 * gi, Have: 384 * gi, Types: 12}
	excluded := plan.Verdict{Code: plan.LabelExcluded, Key: team, Types: 9}
	r := plan.Refusal{Pods: p.Refused[0].Pods, Pools: []plan.PoolVerdict{
		{Pool: "blocked", Verdict: plan.Verdict{Code: plan.PoolBlocked, Rejection: &model.Rejection{Reason: "is not ready"}}},
		{Pool: "label", Verdict: excluded},
		{Pool: "large", Verdict: memory},
		{Pool: "tainted", Verdict: taint, Nearest: []plan.Change{{Rule: taint, Types: 5}}},
		{Pool: "labels", Verdict: excluded, Also: []plan.Verdict{excluded}},
		{Pool: "limit", Verdict: plan.Verdict{Code: plan.LimitReached, Need: 4000, Types: 2}},
	}}
	var got []string
	for _, c := range Clauses(snap, r) {
		got = append(got, c.Pools...)
	}
	if diff := cmp.Diff([]string{"limit", "tainted", "large", "label", "labels", "blocked"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if first := ReasonsOf(snap, r).Pools[0].Pool; first != "limit" {
		t.Errorf("the data begins with %s", first)
	}
}

// TestManyPoolsShareAClause checks that an event about one pool per team states the common reason once.
func TestManyPoolsShareAClause(t *testing.T) {
	b := model.NewBuilder()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		b.UpsertPool(model.PoolSpec{Name: "team-" + name, UID: name, Catalog: &model.Catalog{},
			Requirements: []label.Requirement{{Key: "team", Operator: label.In, Values: []string{name}}}})
	}
	b.UpsertPod(model.PodSpec{UID: "p", Namespace: "default", Name: "p", Alternatives: [][]label.Requirement{{{Key: "team", Operator: label.In, Values: []string{"x"}}}}})
	snap := b.Snapshot(time.Unix(0, 0))
	team, _ := snap.Space.Lookup("team")
	r := plan.Refusal{Pods: snap.Groups[0].Pods}
	for _, pool := range snap.Pools {
		r.Pools = append(r.Pools, plan.PoolVerdict{Pool: pool.Name, Verdict: plan.Verdict{Code: plan.LabelExcluded, Key: team}})
	}
	want := "pools team-j, team-i, team-h, team-g, team-f, team-e, team-d, team-c and 2 more: no value of label team satisfies both pod and pool (pod: In [x])"
	if diff := cmp.Diff(want, Refusal(snap, r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Pools = r.Pools[:2]
	want = "pool team-j: no value of label team satisfies both pod and pool (pod: In [x], pool: In [j]); pool team-i: no value of label team satisfies both pod and pool (pod: In [x], pool: In [i])"
	if diff := cmp.Diff(want, Refusal(snap, r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNodesOfARefusal(t *testing.T) {
	snap, p := example()
	team, _ := snap.Space.Lookup("team")
	r := plan.Refusal{Pods: p.Refused[0].Pods, Verdict: plan.Verdict{Code: plan.NoPools}, Nodes: []plan.NodeCount{
		{Rule: plan.Verdict{Code: plan.NodeFull, Resource: quantity.CPU, Need: 4000, Have: 1500}, Nodes: 3},
		{Rule: plan.Verdict{Code: plan.LabelExcluded, Key: team}, Nodes: 2},
		{Rule: plan.Verdict{Code: plan.NodeLeaving}, Nodes: 1},
	}}
	want := "there is no node pool\n3 of 6 nodes: needs 4 of cpu, at most 1500m is free\n" +
		"2 of 6 nodes: label team is not as required (pod: In [x] or Exists)\n1 of 6 nodes: being removed\n"
	if diff := cmp.Diff(want, Tree(snap, r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	switch got := ReasonsOf(snap, r).Nodes[0]; {
	case got.Nodes != 3:
		t.Errorf("the first reason covers %d nodes, want 3: %+v", got.Nodes, got)
	case got.Code != "NodeFull":
		t.Errorf("the first reason is %s, want NodeFull: %+v", got.Code, got)
	case *got.Have != 1500:
		t.Errorf("the first reason finds %d, want 1500: %+v", *got.Have, got)
	}
	r.Nodes = r.Nodes[2:]
	if got := Clauses(snap, r)[1]; got.Text != "the only node: being removed" || got.Code != plan.NodeLeaving {
		t.Errorf("got %+v", got)
	}
}

// TestRefusalFitsAnEvent checks that the text fits into an event for any number of pools.
func TestRefusalFitsAnEvent(t *testing.T) {
	snap, p := example()
	r := plan.Refusal{Pods: p.Refused[0].Pods}
	for i := range 200 {
		r.Pools = append(r.Pools, plan.PoolVerdict{Pool: strings.Repeat("p", 60) + string(rune('a'+i%26)), Verdict: plan.Verdict{Code: plan.LimitReached, Need: int64(i) * 1000}})
	}
	got := Refusal(snap, r)
	if len(got) > 1000 || !strings.HasSuffix(got, " more reasons") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// TestUnreadableBudget checks that the verdict names the budget and the error.
func TestUnreadableBudget(t *testing.T) {
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", BudgetError: "spec.disruption.budgets[1]: schedule"})
	const text = "a budget of the pool cannot be read, so no node may be disrupted"
	for pool, want := range map[string]string{"p": text + ": spec.disruption.budgets[1]: schedule", "gone": text} {
		if got := Verdict(b.Snapshot(time.Unix(0, 0)), plan.Verdict{Code: plan.BudgetUnreadable, Pool: pool}); got != want {
			t.Errorf("%s: got %q, want %q", pool, got, want)
		}
	}
}

// TestLocalVolume checks that the verdict about a pod that no other node can run names its volume.
func TestLocalVolume(t *testing.T) {
	b := model.NewBuilder()
	b.UpsertNode(model.NodeSpec{Name: "n", Claim: "c", Stage: model.Initialized})
	b.UpsertPod(model.PodSpec{UID: "1", Namespace: "shop", Name: "db", State: model.Bound, Node: "n",
		NoNewNode: &model.Rejection{Reason: "volume pv can be used on node n only"}})
	b.UpsertPod(model.PodSpec{UID: "2", Namespace: "shop", Name: "web", State: model.Bound, Node: "n"})
	for pod, want := range map[string]string{
		"shop/db":  "pod shop/db of node n would be unschedulable elsewhere: volume pv can be used on node n only",
		"shop/web": "pod shop/web of node n would be unschedulable elsewhere",
	} {
		v := plan.Verdict{Code: plan.PodsHomeless, Node: "n", Have: 1, Holder: &plan.Holder{Pod: pod}}
		if got := Verdict(b.Snapshot(time.Unix(0, 0)), v); got != want {
			t.Errorf("%s: got %q, want %q", pod, got, want)
		}
	}
}

func TestNearestKey(t *testing.T) {
	known := []string{"karpenter.sh/capacity-type", "karpenter.sh/nodepool", "kubernetes.io/arch", "team", "topology.kubernetes.io/zone"}
	for _, c := range []struct{ key, want string }{
		{"topology.kubernetes.io/zones", "topology.kubernetes.io/zone"},
		{"topology.kubernets.io/zone", "topology.kubernetes.io/zone"},
		{"karpenter.sh/capacity-tpye", "karpenter.sh/capacity-type"},
		{"zone", "topology.kubernetes.io/zone"},
		{"node.kubernetes.io/arch", "kubernetes.io/arch"},
		{"taem", "team"},
		{"zoen", "topology.kubernetes.io/zone"},
		{"example.com/nodepol", "karpenter.sh/nodepool"},
		{"tier", ""}, {"rack", ""}, {"example.com/anything-else", ""}, {"team", ""},
	} {
		if got := nearest(c.key, known); got != c.want {
			t.Errorf("%s: got %q, want %q", c.key, got, c.want)
		}
	}
}

func TestAbsurdRequests(t *testing.T) {
	snap := snapshot()
	for _, c := range []struct {
		resource quantity.Resource
		need     int64
		want     string
	}{
		{quantity.CPU, 1000 * absurdCPU, "did you mean 1000m? M is a million, m a thousandth"},
		{quantity.CPU, absurdCPU + 1, "more than a million CPUs: is the unit right?"},
		{quantity.CPU, absurdCPU - 1, ""},
		{quantity.Memory, absurdMemory, "more than a pebibyte of memory: is the unit right?"},
		{quantity.Memory, absurdMemory - 1, ""},
	} {
		if got := typoHint(snap, plan.Verdict{Code: plan.ResourceTooLarge, Resource: c.resource, Need: c.need}); got != c.want {
			t.Errorf("%d of %d: got %q, want %q", c.need, c.resource, got, c.want)
		}
	}
}

// TestReasonUnits checks that the figures of a resource have a unit, and that plain counts have none.
func TestReasonUnits(t *testing.T) {
	snap := model.NewBuilder().Snapshot(time.Unix(0, 0))
	for want, v := range map[string]plan.Verdict{
		"millicores": {Code: plan.ResourceTooLarge, Resource: quantity.CPU, Need: 16_000, Have: 900, Types: 2},
		"bytes":      {Code: plan.LimitReached, Resource: quantity.Memory, Need: 1 << 30, Have: 0, Types: 2},
		"units":      {Code: plan.NodeFull, Node: "n", Resource: quantity.Pods, Need: 1, Have: 0},
		"":           {Code: plan.BudgetExhausted, Have: 2},
	} {
		if got := ReasonOf(snap, v); got.Unit != want {
			t.Errorf("%s: unit %q, want %q", got.Text, got.Unit, want)
		}
	}
}
