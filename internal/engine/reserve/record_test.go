package reserve_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// Pods that no other object in the API records are reserved: pods that join a claim in flight, and pods that still run
// on a node that is being removed. Pods that the claim was created for, or that are nominated or about to be, are not
// reserved. An existing reservation is not written again, unless a pod now goes elsewhere or runs on another node that
// is not being removed.
func TestReservations(t *testing.T) {
	joined := func(w *plantest.World) { w.Pend("joined", "") }
	again := func(created time.Time) func(*plantest.World) {
		return func(w *plantest.World) {
			w.Nodes["c0"].Created = plantest.Noon
			n := w.Nodes["c1"]
			n.Stage, n.LaunchedFor, n.Created = model.Launched, model.ParsePodRefs("uid-bought"), created
		}
	}
	pods := func(names ...string) (list []*model.Pod) {
		for _, name := range names {
			list = append(list, &model.Pod{UID: "uid-" + name, Name: name})
		}
		return list
	}
	moving := &model.Pod{UID: "uid-moving", Name: "moving", Node: "n9", Controller: model.Owner{UID: "set"}}
	record := func(pods string) []plan.Action {
		return []plan.Action{plan.ReservePods{Claim: "c0", UID: "uid-c0", Pods: model.ParsePodRefs(pods)}}
	}
	onto := func(node string, pods []*model.Pod) *plan.Provision {
		return &plan.Provision{Placed: []plan.Placement{{Node: node, Pods: pods}}}
	}
	for name, test := range map[string]struct {
		stage    model.Stage
		before   func(*plantest.World)
		reserved string
		planned  *plan.Provision
		want     []plan.Action
	}{
		"joins a claim in flight":               {model.Launched, joined, "", onto("n0", pods("bought", "joined")), record("uid-joined")},
		"reserved already":                      {model.Launched, joined, "uid-joined", onto("n0", pods("bought", "joined")), nil},
		"gone since":                            {model.Launched, nil, "", onto("n0", pods("joined")), nil},
		"about to be nominated":                 {model.Registered, joined, "", onto("n0", pods("joined")), nil},
		"still runs elsewhere":                  {model.Initialized, nil, "", onto("n0", []*model.Pod{moving}), record("uid-moving/set")},
		"what is gone stays noted":              {model.Initialized, nil, "uid-bound", onto("n1", pods("joined")), nil},
		"runs on the node":                      {model.Initialized, func(w *plantest.World) { joined(w); w.Bind("bound", "n0") }, "uid-bound", onto("n1", pods("joined")), nil},
		"runs on another node":                  {model.Initialized, func(w *plantest.World) { joined(w); w.Bind("bound", "n1") }, "uid-bound", onto("n1", pods("joined")), record("")},
		"runs on another node that leaves":      {model.Initialized, func(w *plantest.World) { joined(w); w.Bind("bound", "n1"); w.Nodes["c1"].Deleting = true }, "uid-bound", onto("n0", pods("joined")), nil},
		"goes to another node now":              {model.Launched, joined, "uid-joined", onto("n1", pods("joined")), record("")},
		"goes to a new claim now":               {model.Launched, joined, "uid-joined", &plan.Provision{Claims: []plan.NewClaim{{Name: "new", Pods: pods("joined")}}}, record("")},
		"has no place any more":                 {model.Launched, joined, "uid-joined", &plan.Provision{Refused: []plan.Refusal{{Pods: pods("joined")}}}, record("")},
		"a newer claim was created for it":      {model.Launched, again(plantest.Noon.Add(time.Second)), "", onto("n0", pods("bought")), record("uid-bought")},
		"an older claim was created for it":     {model.Launched, again(plantest.Noon.Add(-time.Second)), "", onto("n0", pods("bought")), nil},
		"goes to the newer of its claims":       {model.Launched, again(plantest.Noon.Add(time.Second)), "", onto("n1", pods("bought")), nil},
		"goes to the newer of its claims again": {model.Launched, again(plantest.Noon.Add(time.Second)), "uid-bought", onto("n1", pods("bought")), record("")},
		"not planned at all":                    {model.Launched, func(w *plantest.World) { joined(w); w.Pend("other", "") }, "uid-joined uid-other", onto("n0", pods("other")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			n := w.Nodes["c0"]
			n.Stage, n.LaunchedFor, n.ReservedFor = test.stage, model.ParsePodRefs("uid-bought"), model.ParsePodRefs(test.reserved)
			w.Pend("bought", "")
			if test.before != nil {
				test.before(w)
			}
			got := reserve.Records(w.Snapshot(), test.planned)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Of more pods than may be nominated to a node at a time, the rest is reserved.
func TestReservationsBeyondNominations(t *testing.T) {
	w := plantest.New(t, 1)
	w.Nodes["c0"].Stage = model.Registered
	var pods []*model.Pod
	for i := range nominate.MostNominated + 2 {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26))
		w.Pend(name, "")
		pods = append(pods, &model.Pod{UID: "uid-" + name, Name: name})
	}
	got := reserve.Records(w.Snapshot(), &plan.Provision{Placed: []plan.Placement{{Node: "n0", Pods: pods}}})
	want := []plan.Action{plan.ReservePods{Claim: "c0", UID: "uid-c0", Pods: []model.PodRef{
		pods[nominate.MostNominated].Ref(), pods[nominate.MostNominated+1].Ref()}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Pods of a constraint that counts nodes in one domain only are all nominated, so nothing is reserved for them. The
// claims of the plan may join another domain: the nominations that are written after them are limited, and the pods
// that lose theirs are reserved before.
func TestReservationsBeforeClaims(t *testing.T) {
	w := plantest.New(t, 1)
	web := model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"web"}}}}
	var pods []*model.Pod
	for _, name := range []string{"a", "b", "c"} {
		w.Pend(name, "n0")
		p := &w.Pods[len(w.Pods)-1]
		p.Labels = map[string]string{"app": "web"}
		p.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Selector: web}}
		pods = append(pods, &model.Pod{UID: p.UID, Name: name})
	}
	w.Pend("other", "")
	p := &plan.Provision{Placed: []plan.Placement{{Node: "n0", Pods: pods}}}
	if got := plantest.Texts(reserve.Records(w.Snapshot(), p)); got != "" {
		t.Errorf("without claims, the reservations are\n%s", got)
	}
	p.Claims = []plan.NewClaim{{Name: "c1", Pods: []*model.Pod{{UID: "uid-other", Name: "other"}}}}
	reserved := reserve.Records(w.Snapshot(), p)
	want := []plan.Action{plan.ReservePods{Claim: "c0", UID: "uid-c0", Pods: model.ParsePodRefs("uid-b uid-c")}}
	if diff := cmp.Diff(want, reserved); diff != "" {
		t.Errorf("with a claim, the reservations are (-want +got):\n%s", diff)
	}
	n := w.Add("c1", "c1")
	n.Stage = model.Launching
	delete(n.Labels, model.LabelZone)
	nominations, _ := nominate.Nominations(w.Snapshot(), p)
	if diff := cmp.Diff("clear the nomination of pod default/b\nclear the nomination of pod default/c", plantest.Texts(nominations)); diff != "" {
		t.Errorf("after the claim is created, the nominations are (-want +got):\n%s", diff)
	}
}
