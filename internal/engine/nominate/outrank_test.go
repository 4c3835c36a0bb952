package nominate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// outranked is a plan in which four pods of web, spread over zones, go to nodes n0 and n1, and a pod of db to node n2.
// A node is in a zone of its own.
type outranked struct {
	web, db   int32                   // priorities
	places    []string                // of the pods web-0, web-1, ... and the pod db, by node
	nominated string                  // the node that web-0 is nominated to
	change    func(w *plantest.World) // optional
}

func (o outranked) world(t *testing.T) (*plantest.World, *plan.Provision) {
	w, decided := plantest.New(t, 3), &plan.Provision{}
	spread := model.Spread{Key: model.LabelZone, MaxSkew: 1, Selector: model.Selector{Namespaces: []string{"default"},
		Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"web"}}}}}
	for i := range 3 {
		w.Nodes[fmt.Sprint("c", i)].Labels[model.LabelZone] = fmt.Sprint("z", i)
	}
	pods := map[string][]string{}
	for i, node := range o.places {
		name := "db"
		if i < len(o.places)-1 {
			name = fmt.Sprint("web-", i)
		}
		w.Pend(name, "")
		p := &w.Pods[i]
		if p.Priority, p.Labels = o.db, map[string]string{"app": "db"}; name != "db" {
			p.Priority, p.Labels, p.Spread = o.web, map[string]string{"app": "web"}, []model.Spread{spread}
		}
		pods[node] = append(pods[node], name)
	}
	w.Pods[0].Nominated = o.nominated
	if o.change != nil {
		o.change(w)
	}
	snap := w.Snapshot()
	for _, node := range []string{"n0", "n1", "n2", "new"} {
		var list []*model.Pod
		for _, g := range snap.Groups {
			for _, pod := range g.Pods {
				if slices.Contains(pods[node], pod.Name) {
					list = append(list, pod)
				}
			}
		}
		slices.SortFunc(list, func(a, b *model.Pod) int { return strings.Compare(a.Name, b.Name) })
		switch {
		case list == nil:
		case node == "new":
			decided.Claims = append(decided.Claims, plan.NewClaim{Name: node, Pods: list})
		default:
			decided.Placed = append(decided.Placed, plan.Placement{Node: node, Pods: list})
		}
	}
	return w, decided
}

// Spread pods of which some would exclude others are not nominated while they may take the capacity of a pod of lower
// priority: kube-scheduler might try the excluded ones first.
func TestNominationsOfPodsThatOutrankOthers(t *testing.T) {
	everyday := []string{"n0", "n0", "n1", "n1", "n2"}
	some := []string{"db to n2", "web-0 to n0", "web-2 to n1"}
	taint := func(w *plantest.World) {
		w.Nodes["c2"].Taints = []model.Taint{{Key: "db", Effect: model.NoSchedule}}
		w.Pods[len(w.Pods)-1].Tolerations = []model.Toleration{{Key: "db", Exists: true, Effect: model.AnyEffect}}
	}
	for name, c := range map[string]struct {
		plan   outranked
		want   []string
		beyond int
	}{
		"higher priority":                   {outranked{web: 2, db: 1, places: everyday}, []string{"db to n2"}, 4},
		"nominated before":                  {outranked{web: 2, db: 1, places: everyday, nominated: "n0"}, []string{"clear web-0", "db to n2"}, 4},
		"equal priority":                    {outranked{web: 1, db: 1, places: everyday}, some, 2},
		"lower priority":                    {outranked{web: 0, db: 1, places: everyday}, some, 2},
		"excluded from the other node":      {outranked{web: 2, db: 1, places: everyday, change: taint}, some, 2},
		"one on each node":                  {outranked{web: 2, db: 1, places: []string{"n0", "n1", "n2"}}, []string{"db to n2", "web-0 to n0", "web-1 to n1"}, 0},
		"all on one node":                   {outranked{web: 2, db: 1, places: []string{"n0", "n0", "n0"}}, []string{"db to n0", "web-0 to n0"}, 1},
		"beside the lower one":              {outranked{web: 2, db: 1, places: []string{"n0", "n0", "n1", "n1", "n1"}}, []string{"db to n1"}, 4},
		"the lower one on a new node":       {outranked{web: 2, db: 1, places: []string{"n0", "n0", "n1", "new"}}, nil, 3},
		"two of higher priority, one there": {outranked{web: 2, db: 1, places: []string{"n0", "n0", "n2", "n2"}}, []string{"db to n2"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w, decided := c.plan.world(t)
			snap := w.Snapshot()
			actions, beyond := nominate.Nominations(snap, decided)
			if diff := cmp.Diff(c.want, shortly(actions)); diff != "" || beyond != c.beyond {
				t.Errorf("%d beyond, want %d; nominations (-want +got):\n%s", beyond, c.beyond, diff)
			}
			// The same pods are nominated when a node opens, and the others are reserved.
			var opening []plan.Action
			reserved := map[string]bool{}
			for _, action := range reserve.Records(snap, decided) {
				for _, pod := range action.(plan.ReservePods).Pods {
					reserved[pod.UID] = true
				}
			}
			for _, placed := range decided.Placed {
				opening = append(opening, nominate.TargetsOf(decided).Nominate(snap, "", placed.Node)...)
				for _, pod := range placed.Pods {
					told := slices.Contains(c.want, pod.Name+" to "+placed.Node)
					if reserved[pod.UID] == told {
						t.Errorf("pod %s is reserved: %v, nominated: %v", pod.Name, reserved[pod.UID], told)
					}
				}
			}
			if diff := cmp.Diff(c.want, shortly(opening)); diff != "" {
				t.Errorf("nominations before the nodes open (-want +got):\n%s", diff)
			}
		})
	}
}

// When none of them excludes another any more, spread pods of higher priority are nominated again.
func TestNominationsAfterPodsThatOutrankOthersAreBound(t *testing.T) {
	w, decided := outranked{web: 2, db: 1, places: []string{"n0", "n0", "n1", "n1", "n2"}}.world(t)
	for _, step := range []struct {
		pod, node string
		want      []string
	}{
		{"web-0", "n0", []string{"db to n2"}},
		{"web-3", "n1", []string{"db to n2", "web-1 to n0", "web-2 to n1"}},
	} {
		p := &w.Pods[slices.IndexFunc(w.Pods, func(p model.PodSpec) bool { return p.Name == step.pod })]
		p.State, p.Node = model.Bound, step.node
		actions, _ := nominate.Nominations(w.Snapshot(), decided)
		if diff := cmp.Diff(step.want, shortly(actions)); diff != "" {
			t.Errorf("nominations after pod %s is bound (-want +got):\n%s", step.pod, diff)
		}
	}
}

// shortly returns nominations as text, sorted.
func shortly(actions []plan.Action) []string {
	var lines []string
	for _, action := range actions {
		switch a := action.(type) {
		case plan.NominatePod:
			lines = append(lines, a.Name+" to "+a.Node)
		case plan.ClearNomination:
			lines = append(lines, "clear "+a.Name)
		default:
			lines = append(lines, a.String())
		}
	}
	slices.Sort(lines)
	return lines
}
