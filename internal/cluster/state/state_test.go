package state

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

func poolRequirement(key, operator string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: karpv1.Operator(operator)}
}

// inside calls look under the lock of the store.
func inside[T any](s *State, look func() T) T {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return look()
}

// picture returns the complete contents of a store and of its snapshot as text.
func picture(t *testing.T, s *State) string {
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
	objects map[Ref]client.Object
}

func (h *history) pick(options ...string) string { return options[h.random.IntN(len(options))] }

// object returns a new version of a random object.
func (h *history) object(t *testing.T) client.Object {
	h.version++
	version := fmt.Sprint(h.version)
	name := h.pick("a", "b", "c")
	uid := name + h.pick("1", "1", "1", "2")
	more := h.pick("", "", "", "finalizers: [x]", "finalizers: [x], deletionTimestamp: '2026-11-20T09:00:00Z'")
	switch k := Kind(h.random.IntN(int(kinds))); k {
	case Pods:
		pod := objecttest.Pod(t, name, "p"+uid, version, h.pick("", "", "a", "b", "gone"))
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
	case Nodes:
		return objecttest.Node(t, name, "n"+uid, version, h.pick("", "id-1", "id-2"), h.pick("", objecttest.Registered, "karpenter.sh/nodepool: pool"))
	case Claims:
		claim := objecttest.Claim(t, name, "c"+uid, version, h.pick("", "id-1", "id-2"), more)
		if h.random.IntN(4) == 0 {
			claim.Spec.Requirements = append(claim.Spec.Requirements, poolRequirement("a", h.pick("Near", "Exists")))
		}
		return claim
	case Pools:
		return objecttest.Pool(t, name, "o"+uid, version)
	case Daemons:
		return objecttest.Daemon(t, name, "d"+uid, version, h.pick("1", "2"))
	case PDBs:
		return objecttest.PDB(t, name, "b"+uid, version, "disruptionsAllowed: "+h.pick("0", "1", "2"))
	default:
		return h.surrounding(t, k, name, uid, version)
	}
}

// surrounding returns an object that pods and nodes depend on.
func (h *history) surrounding(t *testing.T, k Kind, name, uid, version string) client.Object {
	uid = k.String() + uid
	switch k {
	case Namespaces:
		return namespaceAt(t, name, uid, version, "team: "+h.pick("a", "b"))
	case VolumeClaims:
		return volumeClaimAt(t, name, uid, version,
			h.pick("", "volumeName: a", "storageClassName: a", "storageClassName: a, accessModes: [ReadWriteOncePod]"))
	case Volumes:
		return volumeAt(t, name, uid, version, h.pick("x", "y"))
	case Classes:
		return classAt(t, name, uid, version, h.pick("x", "y"), h.pick("true", "false"))
	case CSINodes:
		return csiNodeAt(t, name, uid, version, h.pick("0", "5"))
	case ReplicaSets:
		return replicaSetAt(t, name, uid, version, "hash: "+h.pick("x", "y"))
	default:
		return serviceAt(t, name, uid, version, "app: "+h.pick("a", "b"))
	}
}

func replicaSetOwner(name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "r", Controller: new(true)}}
}

// TestHistoriesEndAsColdBuilds compares a state after a random history of events with a new one that receives the remaining objects once, in any order.
func TestHistoriesEndAsColdBuilds(t *testing.T) {
	for seed := range uint64(40) {
		h := &history{random: rand.New(rand.NewPCG(seed, 0)), objects: map[Ref]client.Object{}}
		hot := newState(Config{DefaultSpread: rackSpread})
		for range 160 {
			obj := h.object(t)
			at, _ := RefOf(obj)
			before := h.objects[at]
			switch {
			case before != nil && h.random.IntN(3) == 0:
				lost(hot, before)
				delete(h.objects, at)
				continue
			case before != nil && before.GetUID() != obj.GetUID() || before == nil:
				obj.SetUID(types.UID(fmt.Sprintf("%s-%d", obj.GetUID(), h.version))) // a UID is never reused
			}
			h.objects[at] = obj
			hot.Saw(obj)
			if h.random.IntN(10) == 0 {
				hot.Snapshot(start)
			}
		}
		cold := newState(Config{DefaultSpread: rackSpread})
		for _, obj := range h.objects { // in the random order of maps
			cold.Saw(obj)
		}
		if diff := cmp.Diff(picture(t, cold), picture(t, hot)); diff != "" {
			t.Fatalf("seed %d (-cold +hot):\n%s", seed, diff)
		}
	}
}

func TestNominatedPodStaysPending(t *testing.T) {
	s := newState(Config{})
	woken := func() bool { return changed(s, PodsPending) }
	s.Saw(objecttest.Pod(t, "p", "1", "1", ""))
	if !woken() {
		t.Error("a new pending pod did not notify the subscriber")
	}
	pod := objecttest.Pod(t, "p", "1", "2", "")
	pod.Status.NominatedNodeName = "n"
	pod.ManagedFields = objecttest.Parse[karpv1.NodePool](t, `
metadata:
  managedFields:
  - {manager: karpenter-nominate, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:nominatedNodeName": {}}}}
`).ManagedFields
	s.Saw(pod)
	if woken() {
		t.Error("our own nomination notified the subscriber")
	}
	snap := s.Snapshot(start)
	if len(snap.Groups) != 1 || snap.Groups[0].Pods[0].Nominated != "n" {
		t.Fatalf("groups: %+v", snap.Groups)
	}
	s.Saw(objecttest.Pod(t, "p", "1", "3", ""))
	if !woken() {
		t.Error("a pod that lost its node did not notify the subscriber")
	}
	s.Saw(objecttest.Pod(t, "p", "1", "4", ""))
	if woken() {
		t.Error("a status update of a pending pod notified the subscriber")
	}
}

func TestChanges(t *testing.T) {
	tests := []struct {
		name  string
		do    func(*State)
		want  Change
		setUp func(*State)
	}{
		{"bound pod", func(s *State) { s.Saw(objecttest.Pod(t, "p", "1", "2", "n")) }, PodsMoved, nil},
		{"pod leaves", func(s *State) { s.Saw(leaving(objecttest.Pod(t, "p", "1", "3", "n"))) }, PodsMoved,
			func(s *State) { s.Saw(objecttest.Pod(t, "p", "1", "2", "n")) }},
		{"pod gone", func(s *State) { lost(s, objecttest.Pod(t, "p", "1", "2", "n")) }, PodsMoved, func(s *State) { s.Saw(objecttest.Pod(t, "p", "1", "2", "n")) }},
		{"pod is seen again", func(s *State) { s.Saw(objecttest.Pod(t, "p", "1", "2", "n")) }, 0, func(s *State) { s.Saw(objecttest.Pod(t, "p", "1", "2", "n")) }},
		{"node", func(s *State) { s.Saw(objecttest.Node(t, "n", "1", "1", "", "")) }, NodesChanged, nil},
		{"heartbeat of a node", func(s *State) { s.Saw(objecttest.Node(t, "n", "1", "2", "", "")) }, 0,
			func(s *State) { s.Saw(objecttest.Node(t, "n", "1", "1", "", "")) }},
		{"claim", func(s *State) { s.Saw(objecttest.Claim(t, "c", "1", "1", "id", "")) }, NodesChanged, nil},
		{"claim's node", func(s *State) { s.Saw(objecttest.Node(t, "n", "2", "2", "id", "")) }, NodesChanged,
			func(s *State) { s.Saw(objecttest.Claim(t, "c", "1", "1", "id", "")) }},
		{"claim gone", func(s *State) { lost(s, objecttest.Claim(t, "c", "1", "1", "id", "")) }, NodesChanged | NodesLost,
			func(s *State) { s.Saw(objecttest.Claim(t, "c", "1", "1", "id", "")) }},
		{"leaving claim's end comes nearer", func(s *State) { s.Saw(endingAt(t, "3", time.Minute)) }, NodesChanged | NodesLost,
			func(s *State) { s.Saw(endingAt(t, "2", time.Hour)) }},
		{"leaving claim's end is put off", func(s *State) { s.Saw(endingAt(t, "3", time.Hour)) }, NodesChanged,
			func(s *State) { s.Saw(endingAt(t, "2", time.Minute)) }},
		{"claim gone", func(s *State) { lost(s, objecttest.Claim(t, "c", "1", "1", "id", "")) }, NodesChanged | NodesLost,
			func(s *State) { s.Saw(objecttest.Claim(t, "c", "1", "1", "id", "")) }},
		{"claim's command begins", func(s *State) { s.Saw(commandedAt(t, "2", plan.Proposed)) }, NodesChanged,
			func(s *State) { s.Saw(objecttest.Claim(t, "c", "1", "1", "id", "")) }},
		{"claim's command launches replacements", func(s *State) { s.Saw(commandedAt(t, "3", plan.Launching)) },
			NodesChanged | NodesLost, func(s *State) { s.Saw(commandedAt(t, "2", plan.Proposed)) }},
		{"claim's command still stands", func(s *State) { s.Saw(commandedAt(t, "4", plan.Launching)) }, 0,
			func(s *State) { s.Saw(commandedAt(t, "3", plan.Launching)) }},
		{"second claim of a machine", func(s *State) { s.Saw(objecttest.Claim(t, "d", "2", "1", "id", "")) }, RejectedChanged,
			func(s *State) { s.Saw(objecttest.Claim(t, "c", "1", "1", "id", "")) }},
		{"second claim goes", func(s *State) { lost(s, objecttest.Claim(t, "d", "2", "1", "id", "")) }, RejectedChanged, func(s *State) {
			s.Saw(objecttest.Claim(t, "c", "1", "1", "id", ""))
			s.Saw(objecttest.Claim(t, "d", "2", "1", "id", ""))
		}},
		{"pool", func(s *State) { s.Saw(objecttest.Pool(t, "p", "1", "1")) }, PoolsChanged, nil},
		{"status of a pool", func(s *State) {
			pool := objecttest.Pool(t, "p", "1", "2")
			pool.Generation = 1
			s.Saw(pool)
		}, 0, func(s *State) { s.Saw(objecttest.Pool(t, "p", "1", "1")) }},
		{"daemon", func(s *State) { s.Saw(objecttest.Daemon(t, "d", "1", "1", "1")) }, PoolsChanged, nil},
		{"status of a daemon", func(s *State) { s.Saw(objecttest.Daemon(t, "d", "1", "2", "1")) }, 0,
			func(s *State) { s.Saw(objecttest.Daemon(t, "d", "1", "1", "1")) }},
		{"budget of pods", func(s *State) { s.Saw(objecttest.PDB(t, "b", "1", "1", "currentHealthy: 1")) }, PDBsChanged, nil},
		{"budget opens", func(s *State) { s.Saw(objecttest.PDB(t, "b", "1", "2", "disruptionsAllowed: 1")) }, PDBsChanged,
			func(s *State) { s.Saw(objecttest.PDB(t, "b", "1", "1", "disruptionsAllowed: 0")) }},
		{"budget allows more", func(s *State) { s.Saw(objecttest.PDB(t, "b", "1", "2", "disruptionsAllowed: 2")) }, 0,
			func(s *State) { s.Saw(objecttest.PDB(t, "b", "1", "1", "disruptionsAllowed: 1")) }},
		{"budget gone", func(s *State) { lost(s, objecttest.PDB(t, "b", "1", "1", "currentHealthy: 1")) }, PDBsChanged,
			func(s *State) { s.Saw(objecttest.PDB(t, "b", "1", "1", "currentHealthy: 1")) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newState(Config{})
			if test.setUp != nil {
				test.setUp(s)
			}
			s.Drain()
			test.do(s)
			if got := s.Drain().Changes &^ PoolSpecsChanged; got != test.want {
				t.Errorf("change is %07b, want %07b", got, test.want)
			}
		})
	}
}

// TestScheduledBudget checks that a snapshot has the budgets at its own time.
func TestScheduledBudget(t *testing.T) {
	s := newState(Config{})
	pool := objecttest.Pool(t, "pool", "1", "1")
	pool.Spec.Disruption.Budgets = objecttest.Parse[karpv1.NodePool](t, `
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

// TestClassChanged checks that the instance types of a pool outlast a failure to read them, but not a change of its class:
// as long as those of the new class are not known, the pool is blocked by the reason for that.
func TestClassChanged(t *testing.T) {
	s := newState(Config{})
	pool := objecttest.Pool(t, "p", "uid-p", "1")
	s.Saw(pool)
	s.SetTypes(s.Pool("p"), &model.Catalog{Types: []model.InstanceType{{Name: "a"}}}, "")
	s.SetTypes(s.Pool("p"), nil, "the cloud does not answer")
	if got := s.Snapshot(start).Pool("p"); got.Types == nil || got.Blocked != nil {
		t.Errorf("after a failure the pool has the types %v and is blocked by %v", got.Types, got.Blocked)
	}
	pool = pool.DeepCopy()
	pool.Spec.Template.Spec.NodeClassRef.Name, pool.ResourceVersion = "another", "2"
	pool.Generation++
	s.Saw(pool)
	s.SetTypes(s.Pool("p"), nil, "class another is not ready")
	if got := s.Snapshot(start).Pool("p"); got.Types != nil || got.Blocked == nil || got.Blocked.Reason != "class another is not ready" {
		t.Errorf("with another class the pool has the types %v and is blocked by %v", got.Types, got.Blocked)
	}
}

// TestRefuse checks that no node is launched for a while from a pool whose claims the API server refuses, or until
// the pool is changed.
func TestRefuse(t *testing.T) {
	s := newState(Config{})
	catalog := &model.Catalog{Types: []model.InstanceType{{Name: "a"}}}
	for _, name := range []string{"p", "other"} {
		s.Saw(objecttest.Pool(t, name, "uid-"+name, "1"))
		s.SetTypes(s.Pool(name), catalog, "")
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
	s.Drain()
	s.Refuse("p", "uid-of-one-before", "late")
	s.Refuse("nowhere", "uid-p", "late")
	if changed(s, PoolsChanged) {
		t.Error("a refusal of an unknown pool is a change")
	}
	s.Refuse("p", "uid-p", "no nodes on Fridays")
	if !changed(s, PoolsChanged) {
		t.Error("the refusal is no change")
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
	if got := blocked(time.Hour + 119*time.Second); got == "" {
		t.Error("the second pause is not twice as long")
	}
	changed := objecttest.Pool(t, "p", "uid-p", "2")
	s.Saw(changed)
	if got := blocked(time.Hour); got != "" {
		t.Errorf("blocked after the pool was changed: %s", got)
	}
}

// commandedAt returns a claim that carries a command in the phase.
func commandedAt(t *testing.T, version string, phase plan.Phase) *karpv1.NodeClaim {
	claim := objecttest.Claim(t, "c", "1", version, "id", "")
	cmd := plan.NewCommand(time.Time{}, plan.Drifted, "",
		[]plan.Candidate{{Claim: claim.Name, ClaimUID: string(claim.UID), Node: claim.Name, Pool: "p"}})
	cmd.Phase = phase
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationCommand, cmd.Encode())
	return claim
}

// endingAt returns a claim that is being deleted and whose drain ends after the given time.
func endingAt(t *testing.T, version string, after time.Duration) *karpv1.NodeClaim {
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return objecttest.Claim(t, "c", "1", version, "id", fmt.Sprintf(`deletionTimestamp: %q, finalizers: [karpenter.sh/termination],
  annotations: {karpenter.sh/nodeclaim-termination-timestamp: %q}`, began.Format(time.RFC3339), began.Add(after).Format(time.RFC3339)))
}

// leaving returns a pod that is being deleted.
func leaving(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = &metav1.Time{Time: start}
	return pod
}
