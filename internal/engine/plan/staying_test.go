package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

// offer gives the world's pool one type of four CPUs, available in the zones. The first zone costs least.
func (w *world) offer(zones ...string) {
	amounts := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "pods", Value: 110}}
	kind := model.InstanceType{Name: "t", Capacity: amounts, Allocatable: amounts,
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"t"}}}}
	for i, zone := range zones {
		kind.Offerings = append(kind.Offerings, model.Offering{Zone: zone, CapacityType: "on-demand", Price: model.Nano + int64(i), Available: true})
	}
	w.pools[0].Catalogue = &model.Catalogue{Types: []model.InstanceType{kind},
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
}

// leave adds a node in the zone that is being deleted. It has one pod, whose PodDisruptionBudget allows no eviction at
// present.
func (w *world) leave(zone, pod string, cpu int64) *model.PodSpec {
	n := w.add("node-of-"+pod, "claim-of-"+pod)
	n.Deleting, n.Labels[model.LabelZone] = true, zone
	p := w.run(pod, pod, n.Name, cpu)
	w.guard(pod, 0)
	return p
}

// await adds a pending pod of the app.
func (w *world) await(pod, app string) *model.PodSpec {
	w.pods = append(w.pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Pending, Labels: map[string]string{"app": app},
		Requests: []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 1}}})
	return &w.pods[len(w.pods)-1]
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
	spread := func(w *world) {
		w.offer("b")
		w.add("here", "here").Labels[model.LabelZone] = "b"
		w.nodes["here"].Allocatable = []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 1}}
		w.run("web-b", "web", "here", 1000).Spread = spreadByZone("web")
		w.leave("a", "web", tooLarge).Spread = spreadByZone("web")
		w.await("new", "web").Spread = spreadByZone("web")
	}
	for _, test := range []struct {
		name string
		make func(w *world)
		want string
	}{
		{"spread", spread, "new b\nweb refused"},
		{"spread, the pod can be evicted", func(w *world) { spread(w); w.pdbs[0].Allowed = 1 }, "new refused\nweb refused"},
		{"spread, the pod has another place", func(w *world) { spread(w); w.offer("a", "b"); w.pods[1].Requests[0].Value = 1000 }, "new a\nweb a"},
		{"anti-affinity of the pending pod", func(w *world) {
			w.offer("a")
			w.leave("a", "web", tooLarge)
			w.await("new", "other").Terms = byZone("web", true)
		}, "new refused\nweb refused"},
		{"anti-affinity of the pod that stays", func(w *world) {
			w.offer("a", "b")
			w.leave("a", "web", tooLarge).Terms = byZone("other", true)
			w.await("new", "other")
		}, "new b\nweb refused"},
		{"anti-affinity, the pod can be evicted", func(w *world) {
			w.offer("a")
			w.leave("a", "web", tooLarge)
			w.pdbs[0].Allowed = 1
			w.await("new", "other").Terms = byZone("web", true)
		}, "new a\nweb refused"},
		{"affinity", func(w *world) {
			w.offer("b", "a")
			w.leave("a", "web", tooLarge)
			w.await("new", "other").Terms = byZone("web", false)
		}, "new a\nweb refused"},
		{"a ReadWriteOncePod claim", func(w *world) {
			w.offer("a")
			data := []model.Volume{{Claim: "default/data", Shared: true, Exclusive: true}}
			w.leave("a", "web", tooLarge).Volumes = data
			w.await("new", "other").Volumes = data
		}, "new refused\nweb refused"},
		{"a pod that stays keeps another one on its node", func(w *world) {
			w.offer("b", "a")
			w.leave("a", "web", tooLarge)
			second := w.leave("b", "second", 2000)
			second.Terms = byZone("web", true)
			second.Alternatives = [][]label.Requirement{{{Key: model.LabelZone, Operator: label.In, Values: []string{"a"}}}}
			w.await("new", "other").Terms = byZone("second", true)
		}, "new a\nsecond refused\nweb refused"},
		{"no rule counts it", func(w *world) {
			w.offer("a")
			w.leave("a", "web", tooLarge)
			w.await("new", "other")
		}, "new a\nweb refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 0)
			test.make(w)
			ahead := plan.Ahead(w.snapshot())
			p := placement.Schedule(ahead, placement.Options{})
			if diff := cmp.Diff(test.want, inZones(p)); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
			for _, problem := range audit.Provision(ahead, p) {
				t.Error(problem)
			}
		})
	}
}

// TestPodsThatStayFollowOthers: a pod that cannot be evicted for now counts where it runs until the others are placed,
// and is then placed beside them. When it counted as gone, pending pods went to the zone with the lowest price, where
// kube-scheduler admitted none of them while the pod ran elsewhere, so its PodDisruptionBudget never opened. Or it was
// refused although the others left capacity, and the next plan launched a node for it.
func TestPodsThatStayFollowOthers(t *testing.T) {
	near := func(w *world) {
		w.leave("b", "web", 1000).Terms = byZone("web", false)
		w.await("new", "web").Terms = byZone("web", false)
	}
	inFlight := func(w *world, zone, pod string) {
		n := w.add("in-"+zone, "in-"+zone)
		n.Stage, n.Labels[model.LabelZone], n.Promised = model.Registered, zone, []string{"uid-" + pod}
		n.Allocatable = []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 1}}
	}
	for _, test := range []struct {
		name string
		make func(w *world)
		want string
	}{
		{"another zone has a lower price", func(w *world) { w.offer("a", "b"); near(w) }, "new b\nweb b"},
		{"the pod can be evicted", func(w *world) { w.offer("a", "b"); near(w); w.pdbs[0].Allowed = 1 }, "new a\nweb a"},
		{"its zone has no offering", func(w *world) { w.offer("a"); near(w) }, "new a\nweb a"},
		{"a node of another zone is promised to the other", func(w *world) { w.offer("b"); near(w); inFlight(w, "c", "new") }, "new b\nweb b"},
		{"a node of its zone is promised to it", func(w *world) { w.offer("a", "b"); near(w); inFlight(w, "b", "web") }, "new b"},
		{"a node of another zone is promised to it", func(w *world) { w.offer("a", "b"); near(w); inFlight(w, "a", "web") }, "new b\nweb b"},
		{"spread, room is kept for it", func(w *world) {
			w.offer("a", "b")
			w.leave("b", "web", 1000).Spread = spreadByZone("web")
			w.await("new", "web").Spread = spreadByZone("web")
			inFlight(w, "b", "web")
		}, "new a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 0)
			test.make(w)
			ahead := plan.Ahead(w.snapshot())
			p := placement.Schedule(ahead, placement.Options{})
			if diff := cmp.Diff(test.want, inZones(p)); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
			for _, problem := range audit.Provision(ahead, p) {
				t.Error(problem)
			}
		})
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
		w := newWorld(t, 0)
		w.offer("a")
		w.leave("a", "web", 5000)
		w.await("new", "other")
		make(&w.pods[0], &w.pods[1])
		ahead := plan.Ahead(w.snapshot())
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
	critical := func(w *world, until time.Time) {
		w.pods[0].Priority, w.pdbs[0].Allowed = 2_000_000_000, 1
		w.run("beside", "other", "node-of-web", 100).ProtectedUntil = until
	}
	for _, test := range []struct {
		name            string
		change          func(w *world)
		blocked, onNode bool
	}{
		{"a PodDisruptionBudget allows no eviction", func(*world) {}, true, false},
		{"allowed", func(w *world) { w.pdbs[0].Allowed = 1 }, false, false},
		{"not ready beside healthy pods", func(w *world) { w.pods[0].Ready, w.pdbs[0].Healthy = false, true }, false, false},
		{"the drain ends soon", func(w *world) { w.nodes["claim-of-web"].DrainEnds = noon.Add(time.Minute) }, false, false},
		{"the drain tolerates it", func(w *world) { w.pods[0].Tolerations = []model.Toleration{{Exists: true}} }, false, false},
		{"a critical pod beside one that is protected", func(w *world) { critical(w, model.Forever) }, true, false},
		{"a critical pod beside one that can be evicted", func(w *world) { critical(w, noon) }, false, false},
		{"never allowed", func(w *world) { w.pdbs[0].Blocking = true }, false, true},
		{"rejected", func(w *world) { w.pods[0].Rejected = rejected }, false, true},
		{"rejected, allowed", func(w *world) { w.pods[0].Rejected, w.pdbs[0].Allowed = rejected, 1 }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 0)
			w.leave("a", "web", 100)
			test.change(w)
			ahead := plan.Ahead(w.snapshot())
			if got := ahead.EvictionBlocked["uid-web"]; got != test.blocked {
				t.Errorf("eviction is blocked: %v, want %v", got, test.blocked)
			}
			if got := slices.ContainsFunc(ahead.Nodes[0].Pods, func(p *model.Pod) bool { return p.Name == "web" }); got != test.onNode {
				t.Errorf("the pod is on its node: %v, want %v", got, test.onNode)
			}
		})
	}
}
