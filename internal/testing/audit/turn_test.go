package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

// stage is a cluster of nodes with unlimited room, and a plan that binds pods to them in an order. Only the order is
// tested.
type stage struct {
	b      *model.Builder
	names  []string
	places map[string]string
}

func newStage() *stage {
	return &stage{b: model.NewBuilder(), places: map[string]string{}}
}

// node adds a node with the labels, given as key=value.
func (s *stage) node(name string, labels ...string) *stage {
	room := amounts(100_000, 400*gi, 100)
	n := model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Capacity: room, Allocatable: room, Labels: map[string]string{model.LabelHostname: name}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		if key == "taint" {
			n.Taints = []model.Taint{{Key: value, Effect: model.NoSchedule}}
			continue
		}
		n.Labels[key] = value
	}
	s.b.UpsertNode(n)
	return s
}

// change modifies the spec of a pod.
type change func(*model.PodSpec)

// bound adds a pod that is already bound to a node. pod adds one that the plan binds there, in the order of the
// calls.
func (s *stage) bound(name, node, app string, changes ...change) *stage {
	p := spec(name, app, changes)
	p.State, p.Node = model.Bound, node
	s.b.UpsertPod(p)
	return s
}

func (s *stage) pod(name, node, app string, changes ...change) *stage {
	s.b.UpsertPod(spec(name, app, changes))
	s.names = append(s.names, name)
	s.places[name] = node
	return s
}

func spec(name, app string, changes []change) model.PodSpec {
	p := model.PodSpec{UID: name, Name: name, Namespace: "default", Labels: map[string]string{"app": app}, Requests: amounts(100, gi/8, 1), Reschedulable: true}
	for _, c := range changes {
		c(&p)
	}
	return p
}

func (s *stage) problems() []audit.Problem {
	snap := s.b.Snapshot(epoch)
	byName := map[string]*model.Pod{}
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			byName[p.Name] = p
		}
	}
	p := &plan.Provision{}
	on := map[string][]*model.Pod{}
	for _, name := range s.names {
		p.Order = append(p.Order, byName[name])
		on[s.places[name]] = append(on[s.places[name]], byName[name])
	}
	for _, n := range snap.Nodes {
		if len(on[n.Name]) > 0 {
			p.Placed = append(p.Placed, plan.Placement{Node: n.Name, Pods: on[n.Name]})
		}
	}
	return audit.Provision(snap, p)
}

func selects(app string) model.Selector {
	return model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", app)}}
}

func spread(key string, skew int, app string, more ...func(*model.Spread)) change {
	return func(p *model.PodSpec) {
		c := model.Spread{Key: key, MaxSkew: skew, Selector: selects(app)}
		for _, m := range more {
			m(&c)
		}
		p.Spread = append(p.Spread, c)
	}
}

func near(key, app string) change {
	return func(p *model.PodSpec) { p.Terms = append(p.Terms, model.Term{Key: key, Selector: selects(app)}) }
}

func apart(key, app string) change {
	return func(p *model.PodSpec) {
		p.Terms = append(p.Terms, model.Term{Key: key, Anti: true, Selector: selects(app)})
	}
}

func namespace(name string) change { return func(p *model.PodSpec) { p.Namespace = name } }

func terminating(p *model.PodSpec) { p.Terminating = true }

func requires(key string, values ...string) change {
	return func(p *model.PodSpec) { p.Alternatives = [][]label.Requirement{{in(key, values...)}} }
}

const (
	zone = model.LabelZone
	host = model.LabelHostname
	za   = zone + "=a"
	zb   = zone + "=b"
	zc   = zone + "=c"
)

// TestTurns binds pods one by one. Each case is one rule of kube-scheduler.
func TestTurns(t *testing.T) {
	zones := func() *stage { return newStage().node("a", za).node("b", zb).node("c", zc) }
	for _, c := range []struct {
		name string
		made *stage
		want string // the kind and pod of the first problem; empty for none
	}{
		{"spread in turns", zones().pod("0", "a", "web", spread(zone, 1, "web")).pod("1", "b", "web", spread(zone, 1, "web")).
			pod("2", "c", "web", spread(zone, 1, "web")).pod("3", "a", "web", spread(zone, 1, "web")), ""},
		{"spread out of turn", zones().pod("0", "a", "web", spread(zone, 1, "web")).pod("1", "a", "web", spread(zone, 1, "web")).
			pod("2", "b", "web", spread(zone, 1, "web")).pod("3", "c", "web", spread(zone, 1, "web")), "spread default/1"},
		{"maxSkew 2", zones().pod("0", "a", "web", spread(zone, 2, "web")).pod("1", "a", "web", spread(zone, 2, "web")), ""},
		{"bound pods count", zones().bound("x", "a", "web").pod("0", "a", "web", spread(zone, 1, "web")), "spread default/0"},
		{"terminating pods do not", zones().bound("x", "a", "web", terminating).pod("0", "a", "web", spread(zone, 1, "web")), ""},
		{"those planned for terminating pods do", newStage().node("a", za).node("b", zb).pod("0", "a", "web", terminating, spread(zone, 1, "web")).
			pod("1", "b", "web", terminating, spread(zone, 1, "web")).pod("2", "a", "web", spread(zone, 1, "web")).pod("3", "b", "web", spread(zone, 1, "web")), ""},
		{"and out of turn", newStage().node("a", za).node("b", zb).pod("0", "a", "web", terminating, spread(zone, 1, "web")).
			pod("1", "a", "web", spread(zone, 1, "web")), "spread default/1"},
		{"other namespaces do not", zones().bound("x", "a", "web", namespace("other")).pod("0", "a", "web", spread(zone, 1, "web")), ""},
		{"a pod that its own selector leaves out", zones().bound("x", "a", "db").pod("0", "a", "web", spread(zone, 1, "db")), ""},
		{"the same with one more", zones().bound("x", "a", "db").bound("y", "a", "db").pod("0", "a", "web", spread(zone, 1, "db")), "spread default/0"},
		{"a node without the label", newStage().node("n").pod("0", "n", "web", spread(zone, 1, "web")), "spread default/0"},
		{"minDomains", newStage().node("a", za).node("b", zb).bound("x", "a", "web").bound("y", "b", "web").
			pod("0", "a", "web", spread(zone, 1, "web", func(s *model.Spread) { s.MinDomains = 3 })), "spread default/0"},
		{"minDomains reached", newStage().node("a", za).node("b", zb).bound("x", "a", "web").bound("y", "b", "web").
			pod("0", "a", "web", spread(zone, 1, "web", func(s *model.Spread) { s.MinDomains = 2 })), ""},
		{"a zone that node affinity excludes is no domain", newStage().node("a", za, "team=x").node("b", zb).bound("x", "a", "web").
			pod("0", "a", "web", requires("team", "x"), spread(zone, 1, "web")), ""},
		{"unless it is to be ignored", newStage().node("a", za, "team=x").node("b", zb).bound("x", "a", "web").
			pod("0", "a", "web", requires("team", "x"), spread(zone, 1, "web", func(s *model.Spread) { s.IgnoreAffinity = true })), "spread default/0"},
		{"a tainted zone is a domain", newStage().node("a", za).node("b", zb, "taint=t").bound("x", "a", "web").
			pod("0", "a", "web", spread(zone, 1, "web")), "spread default/0"},
		{"unless taints are honored", newStage().node("a", za).node("b", zb, "taint=t").bound("x", "a", "web").
			pod("0", "a", "web", spread(zone, 1, "web", func(s *model.Spread) { s.HonorTaints = true })), ""},
		{"a node without another topology key does not count", newStage().node("a", za, "rack=1").node("b", zb).bound("x", "a", "web").
			pod("0", "a", "web", spread(zone, 1, "web"), spread("rack", 5, "web")), ""},
		{"an empty selector counts no pod", zones().bound("x", "a", "web").bound("y", "a", "web").
			pod("0", "a", "web", func(p *model.PodSpec) { p.Spread = []model.Spread{{Key: zone, MaxSkew: 1}} }), ""},
		{"soft spread is a wish", zones().bound("x", "a", "web").pod("0", "a", "web", spread(zone, 1, "web", func(s *model.Spread) { s.Soft = true })), ""},
		{"hostname spread", zones().pod("0", "a", "web", spread(host, 1, "web")).pod("1", "a", "web", spread(host, 1, "web")), "spread default/1"},

		{"affinity", zones().bound("x", "a", "db").pod("0", "a", "web", near(zone, "db")), ""},
		{"affinity elsewhere", zones().bound("x", "a", "db").pod("0", "b", "web", near(zone, "db")), "affinity default/0"},
		{"affinity too early", zones().pod("0", "a", "web", near(zone, "db")).pod("x", "a", "db"), "affinity default/0"},
		{"the first of its kind", zones().pod("0", "a", "web", near(zone, "web")).pod("1", "a", "web", near(zone, "web")), ""},
		{"the second of its kind elsewhere", zones().pod("0", "a", "web", near(zone, "web")).pod("1", "b", "web", near(zone, "web")), "affinity default/1"},
		{"the first of its kind needs the label too", newStage().node("n").pod("0", "n", "web", near(zone, "web")), "affinity default/0"},
		{"all terms or none", newStage().node("a", za, "rack=1").bound("x", "a", "x").bound("y", "a", "y").
			pod("0", "a", "web", near(zone, "x"), near("rack", "y")), "affinity default/0"},
		{"affinity counts terminating pods", zones().bound("x", "a", "db", terminating).pod("0", "a", "web", near(zone, "db")), ""},
		{"affinity looks into its own namespace", zones().bound("x", "a", "db", namespace("other")).pod("0", "a", "web", near(zone, "db")), "affinity default/0"},

		{"anti-affinity", zones().bound("x", "a", "db").pod("0", "a", "web", apart(zone, "db")), "anti-affinity default/0"},
		{"anti-affinity elsewhere", zones().bound("x", "a", "db").pod("0", "b", "web", apart(zone, "db")), ""},
		{"anti-affinity without the label", newStage().node("n").bound("x", "n", "db").pod("0", "n", "web", apart(zone, "db")), ""},
		{"each term alone", newStage().node("a", za, "rack=1").bound("y", "a", "y").pod("0", "a", "web", apart(zone, "x"), apart("rack", "y")), "anti-affinity default/0"},
		{"anti-affinity of a bound pod", zones().bound("x", "a", "db", apart(zone, "web")).pod("0", "a", "web"), "inverse default/0"},
		{"anti-affinity of a pod of the plan", zones().pod("x", "a", "db", apart(host, "web")).pod("0", "a", "web"), "inverse default/0"},
		{"one after the other is no excuse", zones().pod("0", "a", "web").pod("x", "a", "db", apart(host, "web")), "anti-affinity default/x"},
		{"preferred anti-affinity is a wish", zones().bound("x", "a", "web").pod("0", "a", "web",
			func(p *model.PodSpec) {
				p.Terms = []model.Term{{Key: zone, Anti: true, Weight: 5, Selector: selects("web")}}
			}), ""},

		{"host ports", zones().bound("x", "a", "x", port("", "TCP")).pod("0", "a", "web", port("10.0.0.1", "TCP")), "port default/0"},
		{"another protocol", zones().bound("x", "a", "x", port("", "TCP")).pod("0", "a", "web", port("", "UDP")), ""},
		{"another address", zones().pod("x", "a", "x", port("10.0.0.2", "TCP")).pod("0", "a", "web", port("10.0.0.1", "TCP")), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := c.made.problems()
			got := ""
			if len(problems) > 0 {
				got = problems[0].Kind + " " + problems[0].Object
			}
			if got != c.want {
				t.Errorf("want first problem %q, got %v", c.want, problems)
			}
		})
	}
}

func port(ip, protocol string) change {
	return func(p *model.PodSpec) { p.HostPorts = []model.HostPort{{IP: ip, Protocol: protocol, Port: 80}} }
}

// TestOrder checks that every placed pod is bound exactly once.
func TestOrder(t *testing.T) {
	for name, mutate := range map[string]func(p *plan.Provision){
		"is never bound": func(p *plan.Provision) { p.Order = p.Order[1:] },
		"bound twice":    func(p *plan.Provision) { p.Order = append(p.Order, p.Order[0]) },
		"has no place":   func(p *plan.Provision) { p.Order = append(slices.Clone(p.Order), p.Refused[len(p.Refused)-1].Pods[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			snap, p := good(t)
			mutate(p)
			problems := audit.Provision(snap, p)
			if !slices.ContainsFunc(problems, func(p audit.Problem) bool { return p.Kind == "order" && strings.Contains(p.Text, name) }) {
				t.Errorf("no problem of kind \"order\" in %v", problems)
			}
		})
	}
}

// TestVolumes checks that attach limits hold where a node has one, and that a shared volume counts once.
func TestVolumes(t *testing.T) {
	const driver = "disk.example.com"
	limited := func(limit int64) *stage {
		s := newStage()
		room := append(amounts(100_000, 400*gi, 100), quantity.Amount{Name: model.VolumeResource(driver), Value: limit})
		s.b.UpsertNode(model.NodeSpec{Name: "n", UID: "n", Stage: model.Initialized, Capacity: room, Allocatable: room, Labels: map[string]string{zone: "a"}})
		return s
	}
	volume := func(claim string, shared bool) change {
		return func(p *model.PodSpec) {
			p.Volumes = append(p.Volumes, model.Volume{Claim: "default/" + claim, Driver: driver, Shared: shared})
		}
	}
	in := func(zones ...string) change {
		return func(p *model.PodSpec) {
			p.VolumeAlternatives = [][]label.Requirement{{{Key: zone, Operator: label.In, Values: zones}}}
		}
	}
	for name, c := range map[string]struct {
		made *stage
		want string
	}{
		"within the limit":          {limited(2).bound("x", "n", "x", volume("x", false)).pod("0", "n", "web", volume("y", false)), ""},
		"beyond it":                 {limited(1).bound("x", "n", "x", volume("x", false)).pod("0", "n", "web", volume("y", false)), "resources n"},
		"shared with a bound pod":   {limited(1).bound("x", "n", "x", volume("s", true)).pod("0", "n", "web", volume("s", true)), ""},
		"two shared ones":           {limited(1).bound("x", "n", "x", volume("s", true)).pod("0", "n", "web", volume("t", true)), "resources n"},
		"without a limit":           {newStage().node("n").pod("0", "n", "web", volume("x", false)), ""},
		"where the volume is":       {limited(2).pod("0", "n", "web", in("a", "b")), ""},
		"where the volume is not":   {limited(2).pod("0", "n", "web", in("b")), "labels n"},
		"affinity and volume agree": {limited(2).pod("0", "n", "web", requires(zone, "a"), in("a")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems := c.made.problems()
			got := ""
			if len(problems) > 0 {
				got = problems[0].Kind + " " + problems[0].Object
			}
			if got != c.want {
				t.Errorf("want %q, got %v", c.want, problems)
			}
		})
	}
}

// TestNewNodes covers weights, minValues, reservations and open domains of claims to create.
func TestNewNodes(t *testing.T) {
	type shop struct {
		weight   int32
		minimum  int
		variety  int
		reserved int
		zones    []string
		changes  []change
	}
	for name, c := range map[string]struct {
		shop
		want string
	}{
		"as it should be":                 {shop{zones: []string{"a"}}, ""},
		"a heavier pool could":            {shop{weight: 10, zones: []string{"a"}}, "weight light-0"},
		"a heavier pool that is avoided":  {shop{weight: 10, zones: []string{"a"}, changes: []change{func(p *model.PodSpec) { p.Preferred = []model.Preference{{Weight: 1}} }}}, ""},
		"too few types":                   {shop{minimum: 3, zones: []string{"a"}}, "minValues light-0"},
		"enough types":                    {shop{minimum: 2, zones: []string{"a"}}, ""},
		"one zone of one":                 {shop{variety: 1, zones: []string{"a"}}, ""},
		"one zone of two":                 {shop{variety: 2, zones: []string{"a"}}, "minValues light-0"},
		"two zones":                       {shop{variety: 2, zones: []string{"a", "b"}}, ""},
		"one reservation for two":         {shop{reserved: 1, zones: []string{"a"}}, "reservation light-1"},
		"two reservations for two":        {shop{reserved: 2, zones: []string{"a"}}, ""},
		"spread over a zone that is open": {shop{zones: []string{"a", "b"}, changes: []change{spread(zone, 1, "web")}}, "spread default/1"},
		"spread over zones, none is open": {shop{zones: []string{"a"}, changes: []change{spread(zone, 2, "web")}}, ""},
		"anti-affinity in an open zone":   {shop{zones: []string{"a", "b"}, changes: []change{apart(zone, "web")}}, "anti-affinity default/1"},
	} {
		t.Run(name, func(t *testing.T) {
			ct := "spot"
			kinds := []model.InstanceType{kind("amd-2", "amd64", 2), kind("amd-4", "amd64", 4)}
			if c.reserved > 0 {
				ct = "reserved"
				for i := range kinds {
					for k := range kinds[i].Offerings {
						o := &kinds[i].Offerings[k]
						o.CapacityType, o.ReservationID, o.ReservationCount = ct, "r", c.reserved
					}
				}
			}
			b := model.NewBuilder()
			catalog := &model.Catalog{WellKnown: map[string]bool{model.LabelPool: true, model.LabelCapacityType: true, zone: true, model.LabelType: true, keyArch: true}, Types: kinds}
			for pool, weight := range map[string]int32{"light": 0, "other": c.weight} {
				b.UpsertPool(model.PoolSpec{Name: pool, UID: pool, Weight: weight, Catalog: catalog, Requirements: []label.Requirement{in(model.LabelPool, pool),
					{Key: model.LabelType, Operator: label.Exists, MinValues: map[string]int{"light": c.minimum}[pool]},
					{Key: zone, Operator: label.Exists, MinValues: map[string]int{"light": c.variety}[pool]}}})
			}
			for _, uid := range []string{"0", "1"} {
				b.UpsertPod(spec(uid, "web", c.changes))
			}
			snap := b.Snapshot(epoch)
			p := &plan.Provision{}
			for i, pod := range snap.Groups[0].Pods {
				claim := plan.NewClaim{Name: "light-" + pod.Name, Pool: "light", PoolUID: "light", Pods: snap.Groups[0].Pods[i : i+1], Requests: amounts(100, gi/8, 1),
					Requirements: []label.Requirement{in(model.LabelPool, "light"), in(model.LabelType, "amd-2", "amd-4"), in(zone, c.zones...), in(model.LabelCapacityType, ct)}}
				for _, k := range kinds {
					claim.Options = append(claim.Options, plan.Option{Type: k.Name, Zone: "a", CapacityType: ct, Price: k.Offerings[0].Price})
				}
				p.Claims, p.Order = append(p.Claims, claim), append(p.Order, pod)
			}
			got := ""
			problems := audit.Provision(snap, p)
			if len(problems) > 0 {
				got = problems[0].Kind + " " + problems[0].Object
			}
			if got != c.want {
				t.Errorf("want %q, got %v", c.want, problems)
			}
		})
	}
}
