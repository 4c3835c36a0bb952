package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

func poolRequirement(key, operator string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: karpv1.Operator(operator)}
}

// inside calls look under the lock of the store.
func inside[T any](s *Store, look func() T) T {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return look()
}

// picture returns the complete contents of a store and of its snapshot as text.
func picture(t *testing.T, s *Store) string {
	t.Helper()
	var text string
	for _, c := range []*capture{s.captured(start), captureOf(s.Snapshot(start))} {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	return text + fmt.Sprint(s.Rejected())
}

// history creates random events over a few names, so that many combinations occur.
type history struct {
	random  *rand.Rand
	version int
	objects map[ref]client.Object
}

func (h *history) pick(options ...string) string { return options[h.random.IntN(len(options))] }

// object returns a new version of a random object.
func (h *history) object(t *testing.T) client.Object {
	h.version++
	version := fmt.Sprint(h.version)
	name := h.pick("a", "b", "c")
	uid := name + h.pick("1", "1", "1", "2")
	more := h.pick("", "", "", "finalizers: [x]", "finalizers: [x], deletionTimestamp: '2026-11-20T09:00:00Z'")
	switch k := kind(h.random.IntN(int(kinds))); k {
	case pods:
		pod := podAt(t, name, "p"+uid, version, h.pick("", "", "a", "b", "gone"))
		pod.Status.NominatedNodeName = h.pick("", "", "a")
		if h.random.IntN(2) == 0 {
			uses(pod, h.pick("a", "b"))
			pod.Labels = map[string]string{"app": h.pick("a", "b")}
			everywhere(pod, "team: "+h.pick("a", "b"))
			pod.OwnerReferences = replicaSetOwner(h.pick("a", "b"))
		}
		if h.random.IntN(4) == 0 {
			pod.Spec.NodeSelector = map[string]string{h.pick("team", "karpenter.sh/x"): "x"}
		}
		return pod
	case nodes:
		return nodeAt(t, name, "n"+uid, version, h.pick("", "id-1", "id-2"), h.pick("", registered, "karpenter.sh/nodepool: pool"))
	case claims:
		claim := claimAt(t, name, "c"+uid, version, h.pick("", "id-1", "id-2"), more)
		if h.random.IntN(4) == 0 {
			claim.Spec.Requirements = append(claim.Spec.Requirements, poolRequirement("a", h.pick("Near", "Exists")))
		}
		return claim
	case pools:
		return poolAt(t, name, "o"+uid, version)
	case daemons:
		return daemonAt(t, name, "d"+uid, version, h.pick("1", "2"))
	case pdbs:
		return pdbAt(t, name, "b"+uid, version, "disruptionsAllowed: "+h.pick("0", "1", "2"))
	default:
		return h.surrounding(t, k, name, uid, version)
	}
}

// surrounding returns an object that pods and nodes depend on.
func (h *history) surrounding(t *testing.T, k kind, name, uid, version string) client.Object {
	uid = k.String() + uid
	switch k {
	case namespaces:
		return namespaceAt(t, name, uid, version, "team: "+h.pick("a", "b"))
	case volumeClaims:
		return volumeClaimAt(t, name, uid, version,
			h.pick("", "volumeName: a", "storageClassName: a", "storageClassName: a, accessModes: [ReadWriteOncePod]"))
	case volumes:
		return volumeAt(t, name, uid, version, h.pick("x", "y"))
	case classes:
		return classAt(t, name, uid, version, h.pick("x", "y"), h.pick("true", "false"))
	case csiNodes:
		return csiNodeAt(t, name, uid, version, h.pick("0", "5"))
	case replicaSets:
		return replicaSetAt(t, name, uid, version, "hash: "+h.pick("x", "y"))
	default:
		return serviceAt(t, name, uid, version, "app: "+h.pick("a", "b"))
	}
}

func replicaSetOwner(name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "r", Controller: new(true)}}
}

// TestHistoriesEndAsColdBuilds compares a store after a random history of events, including own writes, with a new
// store that receives the remaining objects once, in any order.
func TestHistoriesEndAsColdBuilds(t *testing.T) {
	for seed := range uint64(40) {
		h := &history{random: rand.New(rand.NewPCG(seed, 0)), objects: map[ref]client.Object{}}
		hot := newStore(t, Config{DefaultSpread: rackSpread})
		for range 160 {
			obj := h.object(t)
			k, _ := kindOf(obj)
			at := ref{k, client.ObjectKeyFromObject(obj)}
			before := h.objects[at]
			switch {
			case before != nil && h.random.IntN(3) == 0:
				hot.Gone(before)
				delete(h.objects, at)
				continue
			case before != nil && before.GetUID() != obj.GetUID() || before == nil:
				obj.SetUID(types.UID(fmt.Sprintf("%s-%d", obj.GetUID(), h.version))) // a UID is never reused
			}
			h.objects[at] = obj
			if h.random.IntN(4) == 0 && obj.GetDeletionTimestamp() == nil {
				hot.Wrote(obj)
				if h.random.IntN(2) == 0 {
					hot.Snapshot(start)
				}
			}
			hot.Saw(obj)
			if h.random.IntN(10) == 0 {
				hot.Snapshot(start)
			}
		}
		cold := newStore(t, Config{DefaultSpread: rackSpread})
		for _, obj := range h.objects { // in the random order of maps
			cold.Saw(obj)
		}
		if diff := cmp.Diff(picture(t, cold), picture(t, hot)); diff != "" {
			t.Fatalf("seed %d (-cold +hot):\n%s", seed, diff)
		}
		if len(hot.writes) != 0 {
			t.Fatalf("seed %d: %d own writes are not settled", seed, len(hot.writes))
		}
	}
}

// TestGhost checks that a claim that was created and deleted inside one gap of the watch is removed after a live
// read.
func TestGhost(t *testing.T) {
	live := &api{}
	s := newStore(t, Config{Live: live, Options: Options{WriteVisible: 20 * time.Millisecond}})
	s.Wrote(claimAt(t, "c", "1", "10", "", ""))
	if got := nodesOf(s); got != "c(c)launching" {
		t.Fatalf("nodes: %q", got)
	}
	run(t, s)
	eventually(t, "the ghost goes", func() bool { return nodesOf(s) == "" })
	s.Wrote(claimAt(t, "c", "1", "9", "", ""))
	if got := nodesOf(s); got != "" {
		t.Errorf("a late write restored it: %q", got)
	}
	if kept := inside(s, func() int { return len(s.objects[claims]) + len(s.writes) }); kept != 0 {
		t.Error("some of its state is kept")
	}
}

// TestLiveReadKeepsWhatIsThere checks that the claim is kept while it exists in the API, at the version in the API.
func TestLiveReadKeepsWhatIsThere(t *testing.T) {
	live := &api{}
	live.put(claimAt(t, "c", "1", "12", "id-1", ""))
	s := newStore(t, Config{Live: live, Options: Options{WriteVisible: 20 * time.Millisecond}})
	s.Wrote(claimAt(t, "c", "1", "10", "", ""))
	run(t, s)
	eventually(t, "the live version counts", func() bool { return nodesOf(s) == "c(c)launched" })
	reads := live.seen()
	eventually(t, "it is asked again", func() bool { return live.seen() > reads+2 })
	if got := nodesOf(s); got != "c(c)launched" {
		t.Errorf("nodes: %q", got)
	}
	s.Saw(claimAt(t, "c", "1", "12", "id-1", ""))
	if inside(s, func() int { return len(s.writes) }) != 0 {
		t.Error("the write is not settled although the watch shows it")
	}
}

// TestLiveReadThatFails checks that a failed live read changes nothing.
func TestLiveReadThatFails(t *testing.T) {
	live := &api{err: errors.New("the API server is away")}
	s := newStore(t, Config{Live: live, Options: Options{WriteVisible: 20 * time.Millisecond}})
	s.Wrote(claimAt(t, "c", "1", "10", "", ""))
	run(t, s)
	eventually(t, "it is tried again and again", func() bool { return live.seen() > 2 })
	if got := nodesOf(s); got != "c(c)launching" {
		t.Errorf("nodes: %q", got)
	}
}

// TestRecheck checks that the live reads do not wait after a watch broke.
func TestRecheck(t *testing.T) {
	s := newStore(t, Config{Options: Options{WriteVisible: time.Hour}})
	s.Wrote(claimAt(t, "c", "1", "10", "", ""))
	run(t, s)
	s.Recheck()
	eventually(t, "the ghost goes", func() bool { return nodesOf(s) == "" })
}

func TestDeletedClaim(t *testing.T) {
	s := newStore(t, Config{})
	claim := claimAt(t, "c", "1", "10", "", "finalizers: [karpenter.sh/termination]")
	s.Saw(claim)
	s.Deleted(claim)
	if n := s.Snapshot(start).Node("c"); n == nil || !n.Deleting {
		t.Fatalf("node: %+v, want one that is deleting", n)
	}
	s.Gone(claim)
	s.Wrote(claim)
	if got := nodesOf(s); got != "" {
		t.Errorf("nodes: %q", got)
	}
}

func TestNominatedPodStaysPending(t *testing.T) {
	s := newStore(t, Config{})
	wakes := s.Subscribe(PodsPending)
	woken := func() bool {
		select {
		case <-wakes:
			return true
		default:
			return false
		}
	}
	s.Saw(podAt(t, "p", "1", "1", ""))
	if !woken() {
		t.Error("a new pending pod did not notify the subscriber")
	}
	pod := podAt(t, "p", "1", "2", "")
	pod.Status.NominatedNodeName = "n"
	pod.ManagedFields = object[karpv1.NodePool](t, `
metadata:
  managedFields:
  - {manager: karpenter-nominate, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:nominatedNodeName": {}}}}
`).ManagedFields
	s.Wrote(pod)
	if woken() {
		t.Error("our own nomination notified the subscriber")
	}
	snap := s.Snapshot(start)
	if len(snap.Groups) != 1 || snap.Groups[0].Pods[0].Nominated != "n" {
		t.Fatalf("groups: %+v", snap.Groups)
	}
	s.Saw(podAt(t, "p", "1", "3", ""))
	if !woken() {
		t.Error("a pod that lost its node did not notify the subscriber")
	}
	s.Saw(podAt(t, "p", "1", "4", ""))
	if woken() {
		t.Error("a status update of a pending pod notified the subscriber")
	}
}

// changesBy returns the changes of which do notifies subscribers.
func changesBy(s *Store, do func()) Change {
	all := []Change{PodsPending, PodsMoved, NodesChanged, PoolsChanged, NodesLost, RejectedChanged, PDBsChanged}
	var channels []<-chan struct{}
	for _, change := range all {
		channels = append(channels, s.Subscribe(change))
	}
	do()
	var got Change
	for i, c := range channels {
		select {
		case <-c:
			got |= all[i]
		default:
		}
	}
	return got
}

func TestSubscribe(t *testing.T) {
	tests := []struct {
		name  string
		do    func(*Store)
		want  Change
		setUp func(*Store)
	}{
		{"bound pod", func(s *Store) { s.Saw(podAt(t, "p", "1", "2", "n")) }, PodsMoved, nil},
		{"pod leaves", func(s *Store) { s.Deleted(podAt(t, "p", "1", "2", "n")) }, PodsMoved,
			func(s *Store) { s.Saw(podAt(t, "p", "1", "2", "n")) }},
		{"pod gone", func(s *Store) { s.Gone(podAt(t, "p", "1", "2", "n")) }, PodsMoved, func(s *Store) { s.Saw(podAt(t, "p", "1", "2", "n")) }},
		{"pod is seen again", func(s *Store) { s.Saw(podAt(t, "p", "1", "2", "n")) }, 0, func(s *Store) { s.Saw(podAt(t, "p", "1", "2", "n")) }},
		{"node", func(s *Store) { s.Saw(nodeAt(t, "n", "1", "1", "", "")) }, NodesChanged, nil},
		{"heartbeat of a node", func(s *Store) { s.Saw(nodeAt(t, "n", "1", "2", "", "")) }, 0,
			func(s *Store) { s.Saw(nodeAt(t, "n", "1", "1", "", "")) }},
		{"claim", func(s *Store) { s.Saw(claimAt(t, "c", "1", "1", "id", "")) }, NodesChanged, nil},
		{"claim's node", func(s *Store) { s.Saw(nodeAt(t, "n", "2", "2", "id", "")) }, NodesChanged,
			func(s *Store) { s.Saw(claimAt(t, "c", "1", "1", "id", "")) }},
		{"claim leaves", func(s *Store) { s.Deleted(claimAt(t, "c", "1", "1", "id", "")) }, NodesChanged | NodesLost,
			func(s *Store) { s.Saw(claimAt(t, "c", "1", "1", "id", "")) }},
		{"leaving claim's end comes nearer", func(s *Store) { s.Saw(endingAt(t, "3", time.Minute)) }, NodesChanged | NodesLost,
			func(s *Store) { s.Saw(endingAt(t, "2", time.Hour)) }},
		{"leaving claim's end is put off", func(s *Store) { s.Saw(endingAt(t, "3", time.Hour)) }, NodesChanged,
			func(s *Store) { s.Saw(endingAt(t, "2", time.Minute)) }},
		{"claim gone", func(s *Store) { s.Gone(claimAt(t, "c", "1", "1", "id", "")) }, NodesChanged | NodesLost,
			func(s *Store) { s.Saw(claimAt(t, "c", "1", "1", "id", "")) }},
		{"claim's command begins", func(s *Store) { s.Saw(commandedAt(t, "2", plan.Proposed)) }, NodesChanged,
			func(s *Store) { s.Saw(claimAt(t, "c", "1", "1", "id", "")) }},
		{"claim's command launches replacements", func(s *Store) { s.Saw(commandedAt(t, "3", plan.Launching)) },
			NodesChanged | NodesLost, func(s *Store) { s.Saw(commandedAt(t, "2", plan.Proposed)) }},
		{"claim's command still stands", func(s *Store) { s.Saw(commandedAt(t, "4", plan.Launching)) }, 0,
			func(s *Store) { s.Saw(commandedAt(t, "3", plan.Launching)) }},
		{"second claim of a machine", func(s *Store) { s.Saw(claimAt(t, "d", "2", "1", "id", "")) }, RejectedChanged,
			func(s *Store) { s.Saw(claimAt(t, "c", "1", "1", "id", "")) }},
		{"second claim goes", func(s *Store) { s.Gone(claimAt(t, "d", "2", "1", "id", "")) }, RejectedChanged, func(s *Store) {
			s.Saw(claimAt(t, "c", "1", "1", "id", ""))
			s.Saw(claimAt(t, "d", "2", "1", "id", ""))
		}},
		{"pool", func(s *Store) { s.Saw(poolAt(t, "p", "1", "1")) }, PoolsChanged, nil},
		{"status of a pool", func(s *Store) {
			pool := poolAt(t, "p", "1", "2")
			pool.Generation = 1
			s.Saw(pool)
		}, 0, func(s *Store) { s.Saw(poolAt(t, "p", "1", "1")) }},
		{"daemon", func(s *Store) { s.Saw(daemonAt(t, "d", "1", "1", "1")) }, PoolsChanged, nil},
		{"status of a daemon", func(s *Store) { s.Saw(daemonAt(t, "d", "1", "2", "1")) }, 0,
			func(s *Store) { s.Saw(daemonAt(t, "d", "1", "1", "1")) }},
		{"budget of pods", func(s *Store) { s.Saw(pdbAt(t, "b", "1", "1", "currentHealthy: 1")) }, PDBsChanged, nil},
		{"budget opens", func(s *Store) { s.Saw(pdbAt(t, "b", "1", "2", "disruptionsAllowed: 1")) }, PDBsChanged,
			func(s *Store) { s.Saw(pdbAt(t, "b", "1", "1", "disruptionsAllowed: 0")) }},
		{"budget allows more", func(s *Store) { s.Saw(pdbAt(t, "b", "1", "2", "disruptionsAllowed: 2")) }, 0,
			func(s *Store) { s.Saw(pdbAt(t, "b", "1", "1", "disruptionsAllowed: 1")) }},
		{"budget gone", func(s *Store) { s.Gone(pdbAt(t, "b", "1", "1", "currentHealthy: 1")) }, PDBsChanged,
			func(s *Store) { s.Saw(pdbAt(t, "b", "1", "1", "currentHealthy: 1")) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t, Config{})
			if test.setUp != nil {
				test.setUp(s)
			}
			if got := changesBy(s, func() { test.do(s) }); got != test.want {
				t.Errorf("change is %07b, want %07b", got, test.want)
			}
		})
	}
}

// TestScheduledBudget checks that a snapshot has the budgets at its own time.
func TestScheduledBudget(t *testing.T) {
	s := newStore(t, Config{})
	pool := poolAt(t, "pool", "1", "1")
	pool.Spec.Disruption.Budgets = object[karpv1.NodePool](t, `
spec: {disruption: {budgets: [{nodes: "0", schedule: "0 9 * * *", duration: 8h}]}}`).Spec.Disruption.Budgets
	s.Saw(pool)
	for _, test := range []struct {
		hour     int
		inactive bool
	}{{8, true}, {10, false}, {18, true}} {
		now := time.Date(2026, 11, 20, test.hour, 0, 0, 0, time.UTC)
		if got := s.Snapshot(now).Pool("pool").Budgets[0].Inactive; got != test.inactive {
			t.Errorf("at %d:00 inactive is %t, want %t", test.hour, got, test.inactive)
		}
	}
}

// TestRefuse checks that no node is launched for a while from a pool whose claims the API server refuses, or until
// the pool is changed.
func TestRefuse(t *testing.T) {
	s := newStore(t, Config{Options: Options{Refusal: time.Minute}})
	catalog := &model.Catalog{Types: []model.InstanceType{{Name: "a"}}}
	for _, name := range []string{"p", "other"} {
		s.Saw(poolAt(t, name, "uid-"+name, "1"))
		s.setTypes(s.Pool(name), catalog, "")
	}
	blocked := func(after time.Duration) string {
		pool := s.Snapshot(start.Add(after)).Pool("p")
		if pool.Blocked == nil {
			return ""
		}
		return pool.Blocked.Reason
	}
	if got := blocked(0); got != "" {
		t.Fatalf("blocked before any refusal: %s", got)
	}
	news := s.Subscribe(PoolsChanged)
	s.Refuse("p", "uid-of-one-before", "late")
	s.Refuse("nowhere", "uid-p", "late")
	select {
	case <-news:
		t.Error("a refusal of an unknown pool notified the subscriber")
	default:
	}
	s.Refuse("p", "uid-p", "no nodes on Fridays")
	select {
	case <-news:
	default:
		t.Error("the refusal did not notify the subscriber")
	}
	s.Refuse("p", "uid-p", "the second claim of the pass")
	for after, want := range map[time.Duration]string{
		0:                "the API server refused a claim of the pool: no nodes on Fridays",
		59 * time.Second: "the API server refused a claim of the pool: no nodes on Fridays", time.Minute: "",
	} {
		if got := blocked(after); got != want {
			t.Errorf("%s later blocked by %q, want %q", after, got, want)
		}
	}
	if pool := s.Snapshot(start).Pool("other"); pool.Blocked != nil {
		t.Errorf("the other pool is blocked: %s", pool.Blocked.Reason)
	}
	s.Snapshot(start.Add(time.Hour))
	s.Refuse("p", "uid-p", "again")
	if got := blocked(time.Hour); got == "" {
		t.Error("a second refusal does not count")
	}
	changed := poolAt(t, "p", "uid-p", "2")
	s.Saw(changed)
	if got := blocked(time.Hour); got != "" {
		t.Errorf("blocked after the pool was changed: %s", got)
	}
}

// commandedAt returns a claim that carries a command in the phase.
func commandedAt(t *testing.T, version string, phase plan.Phase) *karpv1.NodeClaim {
	claim := claimAt(t, "c", "1", version, "id", "")
	cmd := plan.NewCommand(time.Time{}, plan.Drifted, "",
		[]plan.Candidate{{Claim: claim.Name, ClaimUID: string(claim.UID), Node: claim.Name, Pool: "p"}})
	cmd.Phase = phase
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationCommand, cmd.Encode())
	return claim
}

// endingAt returns a claim that is being deleted and whose drain ends after the given time.
func endingAt(t *testing.T, version string, after time.Duration) *karpv1.NodeClaim {
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return claimAt(t, "c", "1", version, "id", fmt.Sprintf(`deletionTimestamp: %q, finalizers: [karpenter.sh/termination],
  annotations: {karpenter.sh/nodeclaim-termination-timestamp: %q}`, began.Format(time.RFC3339), began.Add(after).Format(time.RFC3339)))
}
