package nominate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// A node has at most MostNominated nominated pods. A pod beyond that has no nomination, and loses an existing one to
// another node.
func TestNominationsAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		here, elsewhere, nowhere int // pods in this order, by where they are nominated
		nominated, cleared       int
	}{
		"few":                           {0, 0, 3, 3, 0},
		"as many as there may be":       {0, 0, nominate.MostNominated, nominate.MostNominated, 0},
		"more":                          {0, 0, nominate.MostNominated + 5, nominate.MostNominated, 0},
		"some are nominated already":    {100, 0, 20, nominate.MostNominated - 100, 0},
		"all are nominated already":     {nominate.MostNominated, 0, 20, 0, 0},
		"more than there may be":        {nominate.MostNominated + 3, 0, 1, 0, 0},
		"nominated elsewhere, room":     {0, 2, 1, 3, 0},
		"nominated elsewhere, no room":  {nominate.MostNominated, 2, 1, 0, 2},
		"nominated elsewhere, one goes": {nominate.MostNominated - 1, 2, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*model.Pod
			for node, n := range []int{c.here, c.elsewhere, c.nowhere} {
				for range n {
					pods = append(pods, &model.Pod{Shape: &model.Shape{}, UID: fmt.Sprint(len(pods)), Nominated: []string{"here", "elsewhere", ""}[node]})
				}
			}
			nominated, cleared := 0, 0
			snap := &model.Snapshot{Groups: []*model.Group{{Pods: pods}}}
			for _, action := range (nominate.Targets{"here": pods}).Nominate(snap, "claim", "here") {
				switch action := action.(type) {
				case plan.NominatePod:
					nominated++
					if action.Node != "here" {
						t.Errorf("%s, want node here", action)
					}
				case plan.ClearNomination:
					cleared++
				default:
					t.Errorf("%s is no nomination", action)
				}
			}
			if diff := cmp.Diff([]int{c.nominated, c.cleared}, []int{nominated, cleared}); diff != "" {
				t.Errorf("nominated and cleared (-want +got):\n%s", diff)
			}
		})
	}
}

// The writes agree with the newest snapshot, which may be newer than the plan.
func TestNominations(t *testing.T) {
	w := plantest.New(t, 1)
	for pod, nominated := range map[string]string{
		"stays": "n0", "comes": "", "moves": "elsewhere", "bought": "elsewhere", "registered-since": "", "nominated-since": "coming",
		"stray": "elsewhere", "refused": "n0", "invalid": "n0", "ignored": "n0",
	} {
		w.Pend(pod, nominated)
	}
	w.Add("late", "c-late").Stage = model.Registered
	w.Add("coming", "c-coming").Stage = model.Launched
	pods := func(names ...string) (list []*model.Pod) {
		for _, name := range names {
			list = append(list, &model.Pod{Shape: &model.Shape{Namespace: "default"}, UID: "uid-" + name, Name: name})
		}
		return list
	}
	for i := range w.Pods {
		switch w.Pods[i].Name {
		case "invalid":
			w.Pods[i].Rejected = &model.Rejection{Reason: "is odd"}
		case "ignored":
			w.Pods[i].Rejected = &model.Rejection{Reason: "is not ours", Silent: true}
		}
	}
	decided := &plan.Provision{
		Placed: []plan.Placement{
			{Node: "n0", Pods: pods("stays", "comes", "moves", "bound-since")},
			{Node: "c-coming", Pods: pods("nominated-since", "stray")},
			{Node: "gone", Pods: pods("absent")},
		},
		Claims:  []plan.NewClaim{{Name: "c-new", Pods: pods("bought")}, {Name: "c-late", Pods: pods("registered-since")}},
		Refused: []plan.Refusal{{Pods: pods("refused")}, {Pods: pods("invalid")}},
	}
	actions, beyond := nominate.Nominations(w.Snapshot(), decided)
	want := `clear the nomination of pod default/bought
clear the nomination of pod default/ignored
clear the nomination of pod default/invalid
clear the nomination of pod default/refused
clear the nomination of pod default/stray
nominate pod default/comes to node n0
nominate pod default/moves to node n0
nominate pod default/registered-since to node late`
	if diff := cmp.Diff(want, plantest.Texts(actions)); diff != "" || beyond != 0 {
		t.Errorf("%d beyond; nominations (-want +got):\n%s", beyond, diff)
	}
	for _, action := range actions {
		if clear, ok := action.(plan.ClearNomination); ok && clear.From == "" {
			t.Errorf("%s has no From", clear)
		}
	}
}

// Pods without a nomination only because their node has the maximum are counted, so that the loop runs again.
func TestNominationsCountWhatIsBeyond(t *testing.T) {
	w := plantest.New(t, 1)
	for i := range nominate.MostNominated + 7 {
		w.Pend(fmt.Sprint("p", i), "")
	}
	snap := w.Snapshot()
	actions, beyond := nominate.Nominations(snap, &plan.Provision{Placed: []plan.Placement{{Node: "n0", Pods: snap.Groups[0].Pods}}})
	if len(actions) != nominate.MostNominated || beyond != 7 {
		t.Errorf("%d nominations and %d beyond, want %d and 7", len(actions), beyond, nominate.MostNominated)
	}
}

// Of pods that a spread constraint counts together, only as many are nominated to a node as can each be bound beside
// the others: more would exclude each other in kube-scheduler.
func TestNominationsOfSpreadPods(t *testing.T) {
	in := func(app string) model.Selector {
		return model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{app}}}}
	}
	shape := func(spread ...model.Spread) *model.Shape { return &model.Shape{Namespace: "default", Spread: spread} }
	pod := func(name, app, nominated string, shape *model.Shape) *model.Pod {
		return &model.Pod{Shape: shape, UID: name, Name: name, Nominated: nominated, Labels: map[string]string{"app": app}}
	}
	web := model.Spread{Key: model.LabelZone, MaxSkew: 1, Selector: in("web")}
	loose, everywhere, byHost := web, web, web
	loose.MaxSkew, everywhere.MinDomains, byHost.Key = 2, 3, model.LabelHostname
	soft := model.Spread{Key: model.LabelZone, MaxSkew: 1, Soft: true, Selector: in("soft")}
	plain, strict, two, both := shape(), shape(web), shape(loose), shape(loose, byHost)
	wide, hosts := shape(everywhere), shape(byHost)
	nominated := func(names ...string) string {
		for i := range names {
			names[i] = "nominate pod default/" + names[i] + " to node n0"
		}
		return strings.Join(names, "\n")
	}
	three := func(shape *model.Shape) []*model.Pod {
		return []*model.Pod{pod("a", "web", "", shape), pod("b", "web", "", shape), pod("c", "web", "", shape)}
	}
	for name, c := range map[string]struct {
		pods     []*model.Pod
		oneZone  bool
		launched string // a node that is being launched, by the zone that is known of it
		want     string
		beyond   int
	}{
		"one of three":                            {pods: three(strict), want: nominated("a"), beyond: 2},
		"as many as may exceed others":            {pods: three(two), want: nominated("a", "b"), beyond: 1},
		"one where another constraint is":         {pods: three(both), want: nominated("a"), beyond: 2},
		"all in one domain":                       {pods: three(strict), oneZone: true, want: nominated("a", "b", "c")},
		"all in one domain, whatever is launched": {pods: three(strict), oneZone: true, launched: "z", want: nominated("a", "b", "c")},
		"one while a domain is open":              {pods: three(strict), oneZone: true, launched: "?", want: nominated("a"), beyond: 2},
		"one when there are to be more domains":   {pods: three(wide), oneZone: true, want: nominated("a"), beyond: 2},
		"one by host":                             {pods: three(hosts), oneZone: true, want: nominated("a"), beyond: 2},
		"who has it keeps it":                     {pods: []*model.Pod{pod("a", "web", "", strict), pod("b", "web", "n0", strict)}, beyond: 1},
		"of two who have it one keeps it":         {pods: []*model.Pod{pod("a", "web", "n0", strict), pod("b", "web", "n0", strict)}, want: "clear the nomination of pod default/b", beyond: 1},
		"soft constraints exclude no pod":         {pods: []*model.Pod{pod("a", "soft", "", shape(soft)), pod("b", "soft", "", shape(soft))}, want: nominated("a", "b")},
		"others do":                               {pods: []*model.Pod{pod("a", "web", "", strict), pod("b", "else", "", plain)}, want: nominated("a", "b")},
		"who is only counted is in the way":       {pods: []*model.Pod{pod("a", "web", "", plain), pod("b", "else", "", two)}, want: nominated("a"), beyond: 1},
		"and who counts is":                       {pods: []*model.Pod{pod("a", "else", "", two), pod("b", "web", "", plain)}, want: nominated("a"), beyond: 1},
		"of different kinds one":                  {pods: []*model.Pod{pod("a", "web", "", two), pod("b", "web", "", plain)}, want: nominated("a"), beyond: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			if !c.oneZone {
				w.Nodes["c1"].Labels[model.LabelZone] = "y"
			}
			if c.launched != "" {
				n := w.Add("late", "late")
				if n.Stage = model.Launched; c.launched == "?" {
					delete(n.Labels, model.LabelZone)
				}
			}
			snap := w.Snapshot()
			snap.Groups = []*model.Group{{Shape: c.pods[0].Shape, Pods: c.pods}}
			actions, beyond := nominate.Nominations(snap, &plan.Provision{Placed: []plan.Placement{{Node: "n0", Pods: c.pods}}})
			if diff := cmp.Diff(c.want, plantest.Texts(actions)); diff != "" || beyond != c.beyond {
				t.Errorf("%d beyond, want %d; nominations (-want +got):\n%s", beyond, c.beyond, diff)
			}
		})
	}
}
