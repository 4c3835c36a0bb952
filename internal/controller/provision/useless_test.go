package provision_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// surprise is a cluster whose nodes are other than their NodePool says. The plan is the real one.
type surprise struct {
	*testing.T
	*loopcluster.Cluster
	loop *provision.Loop
	sink *events.FakeRecorder
	// joins changes a node when it joins.
	joins func(*model.NodeSpec)
	// bought are the types of all machines.
	bought []string
}

var onDemand = []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: 1, Available: true}}

// typeOf returns a type with so many CPUs, at a price that grows with them.
func typeOf(name string, cpus int64) model.InstanceType {
	amounts := []quantity.Amount{{Name: "cpu", Value: 1000 * cpus}, {Name: "pods", Value: 110}}
	offerings := slices.Clone(onDemand)
	offerings[0].Price = cpus * model.Nano / 10
	return model.InstanceType{Name: name, Capacity: amounts, Allocatable: amounts, Offerings: offerings,
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{name}}}}
}

func newSurprise(t *testing.T, types ...model.InstanceType) *surprise {
	s := &surprise{T: t, Cluster: loopcluster.New(t), sink: events.NewFakeRecorder(10_000)}
	s.Pool.Catalog = &model.Catalog{Types: types,
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
	s.restart()
	return s
}

// restart replaces the loop by that of another process.
func (s *surprise) restart() {
	s.loop = newLoop(s.Cluster, func(snap *model.Snapshot) *plan.Provision { return placement.Schedule(snap, placement.Options{}) })
	s.loop.Report.Recorder, s.loop.Report.Refusal = telemetry.NewRecorder(s.sink, s.Clock), explain.Refusal
	s.loop.Left = &provision.Departures{}
}

// pod adds a pod of the owner that waits.
func (s *surprise) pod(name string, milli int64, owner model.Owner) *model.PodSpec {
	s.Pending(name, "")
	p := s.Pods["uid-"+name]
	p.Created, p.State, p.Reschedulable, p.Controller = s.Clock.Now(), model.Pending, true, owner
	p.Requests = []quantity.Amount{{Name: "cpu", Value: milli}, {Name: "pods", Value: 1}}
	return p
}

// spare adds the virtual pods of a buffer.
func (s *surprise) spare(n int, milli int64) {
	for i := range n {
		p := s.pod(fmt.Sprintf("spare-%d", i), milli, model.Owner{Kind: "CapacityBuffer", Name: "spare", UID: "spare-uid"})
		p.Virtual = model.VirtualBuffer
	}
}

// step is a pass. The machines that it buys become nodes, and kube-scheduler binds the pods that fit to them.
func (s *surprise) step(later time.Duration) {
	s.loop.Tick(s.Context())
	for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
		if n := s.Nodes[name]; n.Stage == model.Launching {
			s.join(n)
		}
	}
	s.bind()
	s.Clock.Step(later)
}

// join makes a machine of the cheapest type of the claim a node.
func (s *surprise) join(n *model.NodeSpec) {
	kind := s.Pool.Catalog.Types[0]
	for _, r := range n.Requirements {
		if r.Key == model.LabelType {
			kind = s.Pool.Catalog.Types[slices.IndexFunc(s.Pool.Catalog.Types, func(t model.InstanceType) bool { return t.Name == r.Values[0] })]
		}
	}
	n.Stage, n.Ready, n.Created, n.InitializedAt, n.UID = model.Initialized, true, s.Clock.Now(), s.Clock.Now(), "uid-"+n.Name
	n.Labels = map[string]string{model.LabelPool: "p", model.LabelType: kind.Name, model.LabelZone: "z", model.LabelCapacityType: "on-demand"}
	n.Capacity, n.Allocatable, n.Requirements = kind.Capacity, kind.Allocatable, nil
	s.bought = append(s.bought, kind.Name)
	if s.joins != nil {
		s.joins(n)
	}
}

// bind binds pending pods to nodes as kube-scheduler does, as far as taints and cpu go.
func (s *surprise) bind() {
	for _, uid := range slices.Sorted(maps.Keys(s.Pods)) {
		p := s.Pods[uid]
		if p.State != model.Pending || p.Virtual != "" {
			continue
		}
		for _, n := range s.Snapshot().Nodes {
			_, no := model.Untolerated(n.Taints, p.Tolerations)
			if !no && n.Stage == model.Initialized && n.Free().At(quantity.CPU) >= p.Requests[0].Value {
				p.State, p.Node = model.Bound, n.Name
				break
			}
		}
	}
}

// steps runs passes of five seconds for the time.
func (s *surprise) steps(length time.Duration) {
	for range length / (5 * time.Second) {
		s.step(5 * time.Second)
	}
}

// buys verifies how many machines were bought in all.
func (s *surprise) buys(least, most int, when string) {
	s.Helper()
	if n := len(s.bought); n < least || n > most {
		s.Errorf("%s: %d machines were bought (%v), want %d to %d; pauses %v", when, n, s.bought, least, most, s.Pool.Pauses)
	}
}

var surprising = model.Taint{Key: "example.org/surprise", Effect: model.NoSchedule}

func taints(n *model.NodeSpec) { n.Taints = []model.Taint{surprising} }

// TestRoomThatNodesDoNotHave: each node that is launched for the room of a buffer has a taint that no NodePool names.
// After the first round the buffer's launches pause, and one machine is tried after each pause, also by another process.
func TestRoomThatNodesDoNotHave(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	s.joins = taints
	s.spare(4, 2000)
	s.steps(time.Minute)
	s.buys(4, 4, "a minute")
	s.restart()
	s.steps(time.Minute)
	s.buys(4, 5, "two minutes")
	s.steps(13 * time.Minute)
	s.buys(7, 8, "15 minutes")
	p := s.Pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: "spare-uid"})
	if p.Name != "launches for CapacityBuffer default/spare" || !strings.Contains(p.Why, "example.org/surprise:NoSchedule") {
		t.Errorf("the pauses are %v, want one of the buffer that names the taint", s.Pool.Pauses)
	}
	s.Clock.SetTime(p.Until)
	s.step(time.Second)
	for _, n := range s.Nodes {
		n.Disrupted = true // as empty: the node of the trial is not judged before it is gone
	}
	trials := len(s.bought)
	s.steps(time.Minute)
	s.buys(trials, trials, "while the node of the trial is being removed")
	s.Nodes = map[string]*model.NodeSpec{}
	s.joins = nil
	s.steps(40 * time.Minute)
	if n := len(s.bought); n > 13 || len(s.Pool.Pauses) > 0 {
		t.Errorf("%d machines (%v), pauses %v, want one trial, then the missing room, and no pause", n, s.bought, s.Pool.Pauses)
	}
}

// TestRoomOnNodesThatAreRemoved: the nodes with the taint are removed as empty before the next plan. The pause names the
// taint, which was seen.
func TestRoomOnNodesThatAreRemoved(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	s.joins = func(n *model.NodeSpec) {
		n.Taints = []model.Taint{surprising, {Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}}
		n.Disrupted = true
	}
	s.spare(2, 2000)
	s.step(time.Second)
	s.step(time.Second)
	s.Nodes = map[string]*model.NodeSpec{}
	s.step(time.Second)
	p := s.Pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: "spare-uid"})
	if p.Failures != 1 || !strings.Contains(p.Why, "has the taint example.org/surprise:NoSchedule") {
		t.Errorf("the pauses are %v, want one of the buffer that names the taint", s.Pool.Pauses)
	}
}

// TestRoomThatNodesHave: room is made again and again, while pods take it and end, and nothing pauses.
func TestRoomThatNodesHave(t *testing.T) {
	for name, joins := range map[string]func(*surprise) func(*model.NodeSpec){
		"ready at once": func(*surprise) func(*model.NodeSpec) { return nil },
		"slow": func(s *surprise) func(*model.NodeSpec) {
			return func(n *model.NodeSpec) { // without its startup taints, which the model does not show
				n.Stage, n.Ready = model.Registered, false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSurprise(t, typeOf("c-2x", 2))
			s.joins = joins(s)
			s.spare(2, 2000)
			for i := range 20 {
				s.step(5 * time.Second)
				for _, n := range s.Nodes {
					n.Stage, n.Ready = model.Initialized, true
				}
				s.pod(fmt.Sprintf("job-%d", i), 2000, model.Owner{})
				s.step(5 * time.Second) // takes room
				s.step(5 * time.Second) // room is made again
				node := s.Pods[fmt.Sprintf("uid-job-%d", i)].Node
				if node == "" {
					t.Fatalf("job %d is pending", i)
				}
				delete(s.Pods, fmt.Sprintf("uid-job-%d", i))
				delete(s.Nodes, node) // as empty
				if len(s.Pool.Pauses) > 0 {
					t.Fatalf("job %d: pauses %v", i, s.Pool.Pauses)
				}
			}
		})
	}
}

// TestManyOwnersOfATaintedPool: each node has a taint that no NodePool names, and each pod has an owner of its own. After
// three nodes the launches of the pool pause, and one machine is tried after each pause, also by another process.
func TestManyOwnersOfATaintedPool(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	s.joins = taints
	for i := range 30 { // a CronJob each minute that replaces its Job; empty nodes are removed
		for uid := range s.Pods {
			delete(s.Pods, uid)
		}
		s.pod(fmt.Sprintf("job-%d", i), 2000, model.Owner{Kind: "Job", Name: fmt.Sprint("job-", i), UID: fmt.Sprint("job-uid-", i)})
		s.steps(40 * time.Second)
		s.Nodes = map[string]*model.NodeSpec{}
		if i == 10 {
			s.restart()
		}
		s.steps(20 * time.Second)
	}
	s.buys(5, 8, "30 minutes")
	p := s.Pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: model.TaintScope("p", surprising)})
	if want := "launches from NodePool p for pods that do not tolerate the taint example.org/surprise:NoSchedule"; p.Name != want {
		t.Errorf("the pauses are %v, want %s", s.Pool.Pauses, want)
	}
	if emitted := strings.Join(loopcluster.Emitted(s.sink), "\n"); !strings.Contains(emitted, p.Name+" are paused until") {
		t.Errorf("no event of a pod contains %q", p.Name)
	}
	s.joins = nil // whatever added the taint is gone
	s.pod("last", 2000, model.Owner{})
	s.Clock.SetTime(p.Until)
	s.steps(2 * time.Minute)
	if s.Pods["uid-last"].Node == "" || len(s.Pool.Pauses.Active(s.Clock.Now())) > 0 {
		t.Errorf("the pod is on node %q, and the pauses are %v", s.Pods["uid-last"].Node, s.Pool.Pauses)
	}
	for i := range 10 {
		s.pod(fmt.Sprintf("more-%d", i), 2000, model.Owner{})
	}
	s.steps(time.Minute)
	for i := range 10 {
		if s.Pods[fmt.Sprintf("uid-more-%d", i)].Node == "" {
			t.Fatalf("pod %d is pending: %v", i, s.Pool.Pauses)
		}
	}
}

// TestShortJobsEndThePauseOfAPool: the taint is gone, and no pod is on a node for a minute. The first one that is bound to
// a newer node ends the pause, and no tenant waits for the short pods of another.
func TestShortJobsEndThePauseOfAPool(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	s.joins = taints
	for i := range 3 {
		s.pod(fmt.Sprintf("first-%d", i), 2000, model.Owner{})
	}
	s.steps(10 * time.Minute)
	p := s.Pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: model.TaintScope("p", surprising)})
	if p.Until.IsZero() {
		t.Fatalf("the pauses are %v, want one of the pool", s.Pool.Pauses)
	}
	s.joins, s.Nodes, s.Pods = nil, map[string]*model.NodeSpec{}, map[string]*model.PodSpec{}
	s.Clock.SetTime(p.Until)
	bought := len(s.bought)
	for i := range 8 {
		s.pod(fmt.Sprintf("job-%d", i), 2000, model.Owner{})
		if i == 2 {
			s.pod("other", 2000, model.Owner{}).Namespace = "other"
		}
		s.steps(15 * time.Second)
		if old := s.Pods[fmt.Sprintf("uid-job-%d", i-2)]; old != nil {
			delete(s.Nodes, old.Node)
			delete(s.Pods, old.UID)
		}
	}
	left := s.Pool.Pauses.Of(p.Key)
	if s.Pods["uid-other"].Node == "" || len(s.bought) < bought+8 || left.Failures > 0 {
		t.Errorf("%d nodes for short jobs, the other pod is on %q: %v", len(s.bought)-bought, s.Pods["uid-other"].Node, left)
	}
}

// TestPodsOfAWorkflow: a batch of pods without owners gets its nodes, which have the taint. After that one machine is tried
// at a time, not a batch, and pods that tolerate the taint get theirs meanwhile.
func TestPodsOfAWorkflow(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	s.joins = taints
	for i := range 8 {
		s.pod(fmt.Sprintf("step-%d", i), 2000, model.Owner{})
	}
	s.steps(10 * time.Minute)
	s.buys(9, 12, "ten minutes")
	ofPool := func(p pause.Pause) bool { return strings.HasPrefix(p.Name, "launches from NodePool p") }
	if !slices.ContainsFunc(s.Pool.Pauses.Active(s.Clock.Now()), ofPool) {
		t.Fatalf("the pauses are %v, want one of the pool", s.Pool.Pauses)
	}
	for name, n := range s.Nodes {
		if len(s.Snapshot().Node(n.Name).Pods) == 0 {
			delete(s.Nodes, name)
		}
	}
	agent := s.pod("agent", 2000, model.Owner{})
	agent.Tolerations = []model.Toleration{{Key: surprising.Key, Exists: true}}
	s.step(0)
	if agent.Node == "" {
		t.Errorf("a pod that tolerates the taint is pending: %v", s.Pool.Pauses)
	}
	s.steps(2 * time.Minute)
	if len(s.Pool.Pauses.Active(s.Clock.Now())) == 0 {
		t.Error("a pod that tolerates the taint has ended the pause of those that do not")
	}
}

// TestNoPauseOfAPool: what resembles useless nodes and is not.
func TestNoPauseOfAPool(t *testing.T) {
	for name, round := range map[string]func(s *surprise, i int){
		"scale-ups": func(s *surprise, i int) {
			for j := range 5 {
				s.pod(fmt.Sprintf("pod-%d-%d", i, j), 2000, model.Owner{})
			}
			s.steps(20 * time.Second)
		},
		"nodes that start slowly": func(s *surprise, i int) {
			s.joins = func(n *model.NodeSpec) { n.Stage, n.Ready = model.Registered, false }
			for j := range 5 {
				s.pod(fmt.Sprintf("pod-%d-%d", i, j), 2000, model.Owner{})
			}
			s.steps(time.Minute)
			for _, n := range s.Nodes {
				n.Stage, n.Ready = model.Initialized, true
			}
			s.steps(10 * time.Second)
		},
		"nodes that are cordoned": func(s *surprise, i int) {
			s.pod(fmt.Sprintf("pod-%d", i), 2000, model.Owner{Kind: "Job", Name: "job", UID: fmt.Sprint("job-", i)})
			s.joins = func(n *model.NodeSpec) {
				n.Taints = []model.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: model.NoSchedule}}
			}
			s.step(5 * time.Second)
			s.joins = nil
			s.steps(10 * time.Second)
		},
		"nodes of the pool as it was before": func(s *surprise, i int) {
			s.Pool.Generation = int64(i)
			s.Pool.Taints = []model.Taint{{Key: "team", Value: fmt.Sprint(i), Effect: model.NoSchedule}}
			s.joins = func(n *model.NodeSpec) { n.Taints = s.Pool.Taints }
			p := s.pod(fmt.Sprintf("pod-%d", i), 2000, model.Owner{})
			p.Tolerations = []model.Toleration{{Key: "team", Value: fmt.Sprint(i)}}
			s.step(0)
			if i%2 == 0 {
				delete(s.Pods, p.UID) // canceled: its node stays
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSurprise(t, typeOf("c-2x", 2))
			s.Pool.Generation = 1
			for i := range 12 {
				round(s, i+1)
				for _, p := range s.Pool.Pauses.Active(s.Clock.Now()) {
					t.Fatalf("round %d: %v", i, p)
				}
			}
			for uid, p := range s.Pods {
				if p.Node == "" {
					t.Errorf("%s is pending", uid)
				}
			}
		})
	}
}

// TestTaintThatGoes: the taint of a new node that startupTaints do not name is removed after 20 seconds. Nothing more is
// launched than for the pods, and a node for each pod whose node is waited for.
func TestTaintThatGoes(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	for i := range 5 {
		for j := range 3 {
			s.pod(fmt.Sprintf("pod-%d-%d", i, j), 2000, model.Owner{})
		}
		s.joins = taints
		s.steps(20 * time.Second)
		for _, n := range s.Nodes {
			n.Taints = nil
		}
		s.joins = nil
		s.steps(2 * time.Minute)
		for uid, p := range s.Pods {
			if p.Node == "" {
				t.Fatalf("round %d: %s is pending: %v", i, uid, s.Pool.Pauses)
			}
		}
		if len(s.Pool.Pauses) > 0 {
			t.Errorf("round %d: pauses %v, want none when pods have run for a minute", i, s.Pool.Pauses)
		}
	}
	s.buys(15, 15, "five rounds of three pods")
}

// daemon makes a pod of a DaemonSet, which no plan knows, take so much cpu of each new node.
func (s *surprise) daemon(milli int64) {
	s.joins = func(n *model.NodeSpec) {
		p := s.pod("driver-"+n.Name, milli, model.Owner{Kind: "DaemonSet", Name: "driver", UID: "driver-uid"})
		p.Namespace, p.State, p.Node, p.Daemon, p.Reschedulable = "kube-system", model.Bound, n.Name, true, false
	}
}

// TestDaemonThatTakesTheRoom: a DaemonSet that plans do not know takes the room on each new node of the smallest type. The
// next node is of a type that has room for both, also for pods of other owners, and for another process.
func TestDaemonThatTakesTheRoom(t *testing.T) {
	s := newSurprise(t, typeOf("c-1x", 1), typeOf("c-2x", 2), typeOf("c-4x", 4))
	s.daemon(700)
	s.pod("big", 900, model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web-uid"})
	s.step(5 * time.Second)
	s.step(5 * time.Second)
	if got := strings.Join(s.bought, " "); got != "c-1x c-2x" || s.Pods["uid-big"].Node == "" {
		t.Fatalf("bought %s, the pod is on node %q; pauses %v", got, s.Pods["uid-big"].Node, s.Pool.Pauses)
	}
	p := s.Pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: "p room "})
	if want := "DaemonSet kube-system/driver takes 700m cpu of it"; p.Shown != "cpu@c-1x=700,pods@c-1x=1" || !strings.Contains(p.Why, want) {
		t.Errorf("the pauses are %v, shown %q, want %q", s.Pool.Pauses, p.Shown, want)
	}
	for i := range 6 {
		if i == 3 {
			s.restart()
		}
		s.Nodes, s.Pods = map[string]*model.NodeSpec{}, map[string]*model.PodSpec{}
		s.pod(fmt.Sprintf("step-%d", i), 900, model.Owner{})
		s.step(5 * time.Second)
		s.step(5 * time.Second)
	}
	if got := strings.Join(s.bought, " "); got != "c-1x"+strings.Repeat(" c-2x", 7) {
		t.Errorf("bought %s, want one small node, and then larger ones", got)
	}
	if active := s.Pool.Pauses.Active(s.Clock.Now()); len(active) > 0 {
		t.Errorf("pauses %v, want none that holds launches", active)
	}
}

// TestShownIsNewerThanStored: what a node lacks counts though the NodePool that is read still stores what another one lacked.
func TestShownIsNewerThanStored(t *testing.T) {
	s := newSurprise(t, typeOf("c-1x", 1), typeOf("c-2x", 2))
	s.daemon(700)
	stored := pause.List{{Key: pause.Key{Reason: pause.Launch, Scope: "p room "}, Name: "launches", Failures: 1,
		At: s.Clock.Now().Add(-time.Minute), Shown: "cpu=10"}}
	for i := range 3 {
		if s.Pool.Pauses = stored; i != 1 {
			s.Nodes, s.Pods = map[string]*model.NodeSpec{}, map[string]*model.PodSpec{}
			s.pod(fmt.Sprintf("big-%d", i), 900, model.Owner{})
		}
		s.step(5 * time.Second)
	}
	if got := strings.Join(s.bought, " "); got != "c-1x c-2x c-2x" {
		t.Errorf("bought %s, want larger types after the first node", got)
	}
}

// TestRoomOfATenantsDaemon: a DaemonSet of the pods' own namespace takes the room. Pods of other namespaces do not wait.
func TestRoomOfATenantsDaemon(t *testing.T) {
	s := newSurprise(t, typeOf("c-1x", 1))
	s.daemon(700)
	join := s.joins
	s.joins = func(n *model.NodeSpec) {
		join(n)
		for _, p := range s.Pods {
			if p.Daemon {
				p.Namespace = "default"
			}
		}
	}
	for i := range 40 {
		if i > 0 {
			delete(s.Pods, fmt.Sprintf("uid-step-%d", i-1))
		}
		s.pod(fmt.Sprintf("step-%d", i), 900, model.Owner{})
		s.steps(15 * time.Second)
	}
	s.buys(3, 7, "ten minutes")
	bought := len(s.bought)
	s.pod("stranger", 900, model.Owner{}).Namespace = "other"
	if s.step(time.Second); len(s.bought) != bought+1 {
		t.Errorf("%d nodes are launched for the pod of another namespace, want one; pauses %v", len(s.bought)-bought, s.Pool.Pauses)
	}
}

// TestLargeNodeLacksRoom: a large node lacks more than its type promises, as kernels of large machines do. Small pods get
// small nodes as before.
func TestLargeNodeLacksRoom(t *testing.T) {
	s := newSurprise(t, typeOf("c-1x", 1), typeOf("c-8x", 8), typeOf("c-64x", 64))
	s.joins = func(n *model.NodeSpec) {
		if cpu := &n.Allocatable[0]; n.Labels[model.LabelType] == "c-64x" {
			n.Allocatable = slices.Clone(n.Allocatable)
			n.Allocatable[0].Value = cpu.Value - 7000
		}
	}
	s.pod("huge", 60_000, model.Owner{})
	s.step(time.Second)
	s.step(time.Second)
	if p := s.Pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: "p room "}); !strings.Contains(p.Shown, "cpu@c-64x=") {
		t.Fatalf("the pauses are %v, want what c-64x lacks", s.Pool.Pauses)
	}
	s.Pods, s.Nodes, s.bought = map[string]*model.PodSpec{}, map[string]*model.NodeSpec{}, nil
	s.pod("small", 800, model.Owner{})
	s.step(time.Second)
	if got := strings.Join(s.bought, " "); got != "c-1x" {
		t.Errorf("bought %q for a small pod, want c-1x", got)
	}
}

// TestNoTypeHasTheRoom: where no larger type is left, the launches for such pods pause, whichever their owners are, and
// those for smaller pods do not. When the DaemonSet is gone, the trial ends the pause.
func TestNoTypeHasTheRoom(t *testing.T) {
	s := newSurprise(t, typeOf("c-1x", 1))
	s.daemon(700)
	for i := range 40 {
		if i > 0 {
			delete(s.Pods, fmt.Sprintf("uid-step-%d", i-1))
		}
		s.pod(fmt.Sprintf("step-%d", i), 900, model.Owner{})
		s.steps(15 * time.Second)
	}
	s.buys(3, 7, "ten minutes")
	for i := range 3 {
		s.pod(fmt.Sprintf("small-%d", i), 200, model.Owner{})
	}
	s.pod("stranger", 900, model.Owner{}).Namespace = "other"
	bought := len(s.bought)
	s.steps(10 * time.Second)
	if s.Pods["uid-stranger"].Node != "" || len(s.bought) > bought+1 {
		t.Errorf("%d nodes are launched, want none for the pod of another namespace: the DaemonSet is of none of them", len(s.bought)-bought)
	}
	if s.Pods["uid-small-0"].Node == "" || s.Pods["uid-small-1"].Node == "" {
		t.Errorf("small pods are pending: %v", s.Pool.Pauses)
	}
	s.joins = nil
	p := s.Pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: "p room "})
	s.Clock.SetTime(p.Until)
	s.steps(2 * time.Minute)
	if s.Pods["uid-step-39"].Node == "" || len(s.Pool.Pauses.Active(s.Clock.Now())) > 0 {
		t.Errorf("after the DaemonSet has gone the pod is on node %q: %v", s.Pods["uid-step-39"].Node, s.Pool.Pauses)
	}
}
