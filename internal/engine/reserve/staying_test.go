package reserve_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// offer gives the world's pool one type of four CPUs, available in the zones. The first zone costs least.
func offer(w *plantest.World, zones ...string) {
	amounts := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "pods", Value: 110}}
	kind := model.InstanceType{Name: "t", Capacity: amounts, Allocatable: amounts,
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"t"}}}}
	for i, zone := range zones {
		kind.Offerings = append(kind.Offerings, model.Offering{Zone: zone, CapacityType: "on-demand", Price: model.Nano + int64(i), Available: true})
	}
	w.Pools[0].Catalog = &model.Catalog{Types: []model.InstanceType{kind},
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
}

// leave adds a node in the zone that is being deleted. It has one pod, whose PodDisruptionBudget allows no eviction at
// present.
func leave(w *plantest.World, zone, pod string, cpu int64) *model.PodSpec {
	n := w.Add("node-of-"+pod, "claim-of-"+pod)
	n.Deleting, n.Labels[model.LabelZone] = true, zone
	p := bindOwned(w, pod, pod, n.Name, cpu)
	w.Protect(pod, 0)
	return p
}

// await adds a pending pod of the app.
func await(w *plantest.World, pod, app string) *model.PodSpec {
	w.Pods = append(w.Pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Pending, Labels: map[string]string{"app": app},
		Requests: []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 1}}})
	return &w.Pods[len(w.Pods)-1]
}

func ofApp(app string) model.Selector {
	return model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{app}}}}
}

func spreadByZone(app string) []model.Spread {
	return []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Selector: ofApp(app)}}
}

func byZone(app string, anti bool) []model.Term {
	return []model.Term{{Key: model.LabelZone, Anti: anti, Selector: ofApp(app)}}
}

// inZones lists the zones in which a plan launches nodes, with their pods, and the refused pods.
func inZones(p *plan.Provision) string {
	var lines []string
	say := func(where string, pods []*model.Pod) {
		for _, pod := range pods {
			lines = append(lines, pod.Name+" "+where)
		}
	}
	for i := range p.Claims {
		var zones []string
		for _, o := range p.Claims[i].Options {
			zones = append(zones, o.Zone)
		}
		say(strings.Join(zones, "/"), p.Claims[i].Pods)
	}
	for _, r := range p.Refused {
		say("refused", r.Pods)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestPodsThatStayCountWhereTheyRun: a pod that cannot be evicted for now, and fits nowhere except on its node under
// deletion, counts there for all rules between pods, as in kube-scheduler. A pod that can be evicted counts as gone.
func TestPodsThatStayCountWhereTheyRun(t *testing.T) {
	tooLarge := int64(5000)
	spread := func(w *plantest.World) {
		offer(w, "b")
		w.Add("here", "here").Labels[model.LabelZone] = "b"
		w.Nodes["here"].Allocatable = []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 1}}
		bindOwned(w, "web-b", "web", "here", 1000).Spread = spreadByZone("web")
		leave(w, "a", "web", tooLarge).Spread = spreadByZone("web")
		await(w, "new", "web").Spread = spreadByZone("web")
	}
	for _, test := range []struct {
		name string
		make func(w *plantest.World)
		want string
	}{
		{"spread", spread, "new b\nweb refused"},
		{"spread, the pod can be evicted", func(w *plantest.World) { spread(w); w.PDBs[0].Allowed = 1 }, "new refused\nweb refused"},
		{"spread, the pod has another place", func(w *plantest.World) { spread(w); offer(w, "a", "b"); w.Pods[1].Requests[0].Value = 1000 }, "new a\nweb a"},
		{"anti-affinity of the pending pod", func(w *plantest.World) {
			offer(w, "a")
			leave(w, "a", "web", tooLarge)
			await(w, "new", "other").Terms = byZone("web", true)
		}, "new refused\nweb refused"},
		{"anti-affinity of the pod that stays", func(w *plantest.World) {
			offer(w, "a", "b")
			leave(w, "a", "web", tooLarge).Terms = byZone("other", true)
			await(w, "new", "other")
		}, "new b\nweb refused"},
		{"anti-affinity, the pod can be evicted", func(w *plantest.World) {
			offer(w, "a")
			leave(w, "a", "web", tooLarge)
			w.PDBs[0].Allowed = 1
			await(w, "new", "other").Terms = byZone("web", true)
		}, "new a\nweb refused"},
		{"affinity", func(w *plantest.World) {
			offer(w, "b", "a")
			leave(w, "a", "web", tooLarge)
			await(w, "new", "other").Terms = byZone("web", false)
		}, "new a\nweb refused"},
		{"a ReadWriteOncePod claim", func(w *plantest.World) {
			offer(w, "a")
			data := []model.Volume{{Claim: "default/data", Shared: true, Exclusive: true}}
			leave(w, "a", "web", tooLarge).Volumes = data
			await(w, "new", "other").Volumes = data
		}, "new refused\nweb refused"},
		{"a pod that stays keeps another one on its node", func(w *plantest.World) {
			offer(w, "b", "a")
			leave(w, "a", "web", tooLarge)
			second := leave(w, "b", "second", 2000)
			second.Terms = byZone("web", true)
			second.Alternatives = [][]label.Requirement{{{Key: model.LabelZone, Operator: label.In, Values: []string{"a"}}}}
			await(w, "new", "other").Terms = byZone("second", true)
		}, "new a\nsecond refused\nweb refused"},
		{"no rule counts it", func(w *plantest.World) {
			offer(w, "a")
			leave(w, "a", "web", tooLarge)
			await(w, "new", "other")
		}, "new a\nweb refused"},
	} {
		t.Run(test.name, func(t *testing.T) { wantZones(t, test.make, test.want) })
	}
}

// wantZones checks the zones that the plan for the pods of leaving nodes gives to pods.
func wantZones(t *testing.T, change func(*plantest.World), want string) {
	t.Helper()
	w := plantest.New(t, 0)
	change(w)
	ahead := reserve.Ahead(w.Snapshot(), nil)
	p := placement.Schedule(ahead, placement.Options{})
	if diff := cmp.Diff(want, inZones(p)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	for _, problem := range audit.Provision(ahead, p) {
		t.Error(problem)
	}
}

// TestPodsThatStayFollowOthers: a pod that cannot be evicted for now counts where it runs until the others are placed,
// and is then placed beside them. When it counted as gone, pending pods went to the zone with the lowest price, where
// kube-scheduler admitted none of them while the pod ran elsewhere, so its PodDisruptionBudget never opened. Or it was
// refused although the others left capacity, and the next plan launched a node for it.
func TestPodsThatStayFollowOthers(t *testing.T) {
	near := func(w *plantest.World) {
		leave(w, "b", "web", 1000).Terms = byZone("web", false)
		await(w, "new", "web").Terms = byZone("web", false)
	}
	inFlight := func(w *plantest.World, zone, pod string) {
		n := w.Add("in-"+zone, "in-"+zone)
		n.Stage, n.Labels[model.LabelZone], n.LaunchedFor = model.Registered, zone, model.ParsePodRefs("uid-"+pod)
		n.Allocatable = []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 1}}
	}
	for _, test := range []struct {
		name string
		make func(w *plantest.World)
		want string
	}{
		{"another zone has a lower price", func(w *plantest.World) { offer(w, "a", "b"); near(w) }, "new b\nweb b"},
		{"the pod can be evicted", func(w *plantest.World) { offer(w, "a", "b"); near(w); w.PDBs[0].Allowed = 1 }, "new a\nweb a"},
		{"its zone has no offering", func(w *plantest.World) { offer(w, "a"); near(w) }, "new a\nweb a"},
		{"a node of another zone is promised to the other", func(w *plantest.World) { offer(w, "b"); near(w); inFlight(w, "c", "new") }, "new b\nweb b"},
		{"a node of its zone is promised to it", func(w *plantest.World) { offer(w, "a", "b"); near(w); inFlight(w, "b", "web") }, "new b"},
		{"a node of another zone is promised to it", func(w *plantest.World) { offer(w, "a", "b"); near(w); inFlight(w, "a", "web") }, "new b\nweb b"},
		{"spread, room is kept for it", func(w *plantest.World) {
			offer(w, "a", "b")
			leave(w, "b", "web", 1000).Spread = spreadByZone("web")
			await(w, "new", "web").Spread = spreadByZone("web")
			inFlight(w, "b", "web")
		}, "new a"},
	} {
		t.Run(test.name, func(t *testing.T) { wantZones(t, test.make, test.want) })
	}
}

// TestRulesThatCannotBindChangeNothing: a pod that cannot be evicted at present gets a place on the node of the others, also
// if a constraint of theirs selects it that cannot bind. The constraints of other apps do not matter.
func TestRulesThatCannotBindChangeNothing(t *testing.T) {
	for name, rules := range map[string]func(p *model.PodSpec){
		"no rule": func(*model.PodSpec) {},
		"wide spread": func(p *model.PodSpec) {
			p.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1000, Selector: ofApp("web")}}
		},
	} {
		w := plantest.New(t, 0)
		offer(w, "a", "b")
		rules(leave(w, "a", "web", 1000))
		for i := range 3 {
			rules(await(w, "new-"+strconv.Itoa(i), "web"))
		}
		await(w, "other", "other").Terms = byZone("other", true)
		w.Pods[len(w.Pods)-1].Requests[0].Value = 3500
		p := placement.Schedule(reserve.Ahead(w.Snapshot(), nil), placement.Options{})
		if len(p.Claims) != 2 || len(p.Refused) > 0 {
			t.Errorf("%s: %d claims, want one for four pods and one for the other:\n%s", name, len(p.Claims), inZones(p))
		}
	}
}

// TestAuditCountsPodsThatStay: the audit reports a plan that treats remaining pods as gone.
func TestAuditCountsPodsThatStay(t *testing.T) {
	data := []model.Volume{{Claim: "default/data", Shared: true, Exclusive: true}}
	for kind, make := range map[string]func(stays, comes *model.PodSpec){
		"anti-affinity": func(_, comes *model.PodSpec) { comes.Terms = byZone("web", true) },
		"inverse":       func(stays, _ *model.PodSpec) { stays.Terms = byZone("other", true) },
		"exclusive":     func(stays, comes *model.PodSpec) { stays.Volumes, comes.Volumes = data, data },
	} {
		w := plantest.New(t, 0)
		offer(w, "a")
		leave(w, "a", "web", 5000)
		await(w, "new", "other")
		make(&w.Pods[0], &w.Pods[1])
		ahead := reserve.Ahead(w.Snapshot(), nil)
		gone := *ahead
		gone.EvictionBlocked = nil
		problems := audit.Provision(ahead, placement.Schedule(&gone, placement.Options{}))
		if len(problems) != 1 || problems[0].Kind != kind {
			t.Errorf("problems %v, want one of %s", problems, kind)
		}
	}
}

// TestEvictionBlocked: which pods of nodes under removal cannot be evicted at present. A pod that no plan may place
// then remains among the pods of its node.
func TestEvictionBlocked(t *testing.T) {
	rejected := &model.Rejection{Field: "spec", Reason: "not supported", Unsupported: true}
	critical := func(w *plantest.World, until time.Time) {
		w.Pods[0].Priority, w.PDBs[0].Allowed = 2_000_000_000, 1
		bindOwned(w, "beside", "other", "node-of-web", 100).ProtectedUntil = until
	}
	for _, test := range []struct {
		name            string
		change          func(w *plantest.World)
		blocked, onNode bool
	}{
		{"a PodDisruptionBudget allows no eviction", func(*plantest.World) {}, true, false},
		{"allowed", func(w *plantest.World) { w.PDBs[0].Allowed = 1 }, false, false},
		{"not ready beside healthy pods", func(w *plantest.World) { w.Pods[0].Ready, w.PDBs[0].Healthy = false, true }, false, false},
		{"the drain ends soon", func(w *plantest.World) { w.Nodes["claim-of-web"].DrainEnds = plantest.Noon.Add(time.Minute) }, false, false},
		{"the drain tolerates it", func(w *plantest.World) { w.Pods[0].Tolerations = []model.Toleration{{Exists: true}} }, false, false},
		{"a critical pod beside one that is protected", func(w *plantest.World) { critical(w, model.Forever) }, true, false},
		{"a critical pod beside one that can be evicted", func(w *plantest.World) { critical(w, plantest.Noon) }, false, false},
		{"never allowed", func(w *plantest.World) { w.PDBs[0].Blocking = true }, false, true},
		{"rejected", func(w *plantest.World) { w.Pods[0].Rejected = rejected }, false, true},
		{"rejected, allowed", func(w *plantest.World) { w.Pods[0].Rejected, w.PDBs[0].Allowed = rejected, 1 }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := plantest.New(t, 0)
			leave(w, "a", "web", 100)
			test.change(w)
			ahead := reserve.Ahead(w.Snapshot(), nil)
			if got := ahead.EvictionBlocked["uid-web"]; got != test.blocked {
				t.Errorf("eviction is blocked: %v, want %v", got, test.blocked)
			}
			if got := slices.ContainsFunc(ahead.Nodes[0].Pods, func(p *model.Pod) bool { return p.Name == "web" }); got != test.onNode {
				t.Errorf("the pod is on its node: %v, want %v", got, test.onNode)
			}
		})
	}
}
