package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// inside calls look under the lock of the store.
func inside[T any](s *Store, look func() T) T {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return look()
}

// TestHistoriesOfWrites checks that after a random history of events and own writes the state has what the watch shows,
// and that no own write is left.
func TestHistoriesOfWrites(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		pick := func(options ...string) string { return options[random.IntN(len(options))] }
		s, shown := newStore(t, Config{}), map[state.Ref]client.Object{}
		for version := range 160 {
			name, v := pick("a", "b", "c"), fmt.Sprint(version+1)
			more := pick("", "", "", "finalizers: [x]", "finalizers: [x], deletionTimestamp: '2026-11-20T09:00:00Z'")
			obj := []client.Object{objecttest.Pod(t, name, "p"+name, v, pick("", "a")), objecttest.Node(t, name, "n"+name, v, "", ""),
				objecttest.Claim(t, name, "c"+name, v, pick("", "id-1"), more)}[random.IntN(3)]
			at, _ := state.RefOf(obj)
			before := shown[at]
			if before != nil && random.IntN(3) == 0 {
				if random.IntN(2) == 0 {
					s.Deleted(before)
				}
				s.Gone(before)
				delete(shown, at)
				continue
			}
			if before != nil && random.IntN(4) > 0 {
				obj.SetUID(before.GetUID())
			} else {
				obj.SetUID(types.UID(fmt.Sprintf("%s-%d", obj.GetUID(), version))) // a UID is never reused
			}
			if random.IntN(4) == 0 && obj.GetDeletionTimestamp() == nil {
				s.Wrote(obj)
			}
			s.Saw(obj)
			shown[at] = obj
		}
		for _, k := range []state.Kind{state.Pods, state.Nodes, state.Claims} {
			for _, name := range []string{"a", "b", "c"} {
				for _, namespace := range []string{"", "default"} {
					at := state.Ref{Kind: k, Key: types.NamespacedName{Namespace: namespace, Name: name}}
					if got := s.Object(at); got != shown[at] {
						t.Fatalf("seed %d: %s %s is %v, the watch shows %v", seed, k, name, got, shown[at])
					}
				}
			}
		}
		if n := inside(s, func() int { return len(s.writes) }); n != 0 {
			t.Fatalf("seed %d: %d own writes are not settled", seed, n)
		}
	}
}

// TestPodDelayEnds checks that subscribers learn when the delay of a pod is over.
func TestPodDelayEnds(t *testing.T) {
	s := newStore(t, Config{State: state.Config{Pods: convert.PodRules{Delay: time.Second}}})
	pending := s.Subscribe(state.PodsPending)
	for i, delay := range []string{"1h", "2s", ""} {
		pod := objecttest.Pod(t, fmt.Sprint("p", i), fmt.Sprint("u", i), "1", "")
		pod.CreationTimestamp = metav1.Now()
		if delay != "" {
			pod.Annotations = map[string]string{karpv1.AnnotationPodScaleUpDelay: delay}
		}
		s.Saw(pod)
	}
	for want := range 2 {
		select {
		case <-pending:
			if got := len(s.Snapshot(time.Now()).Groups); got == 0 {
				t.Errorf("no pod is planned for after delay %d", want)
			}
		case <-time.After(time.Minute):
			t.Fatal("no pod is pending after the delay")
		}
	}
}

// TestGhost checks that a claim that was created and deleted inside one gap of the watch is removed after a live
// read.
func TestGhost(t *testing.T) {
	live := &api{}
	s := newStore(t, Config{Live: live, Options: Options{WriteVisible: 20 * time.Millisecond}})
	s.Wrote(objecttest.Claim(t, "c", "1", "10", "", ""))
	if got := nodesOf(s); got != "c(c)launching" {
		t.Fatalf("nodes: %q", got)
	}
	run(t, s)
	eventually(t, "the ghost goes", func() bool { return nodesOf(s) == "" })
	s.Wrote(objecttest.Claim(t, "c", "1", "9", "", ""))
	if got := nodesOf(s); got != "" {
		t.Errorf("a late write restored it: %q", got)
	}
	if kept := inside(s, func() int { return len(s.writes) }); kept != 0 || s.Claim("c") != nil {
		t.Error("some of its state is kept")
	}
}

// TestLiveReadKeepsWhatIsThere checks that the claim is kept while it exists in the API, at the version in the API.
func TestLiveReadKeepsWhatIsThere(t *testing.T) {
	live := &api{}
	live.put(objecttest.Claim(t, "c", "1", "12", "id-1", ""))
	s := newStore(t, Config{Live: live, Options: Options{WriteVisible: 20 * time.Millisecond}})
	s.Wrote(objecttest.Claim(t, "c", "1", "10", "", ""))
	run(t, s)
	eventually(t, "the live version counts", func() bool { return nodesOf(s) == "c(c)launched" })
	reads := live.seen()
	eventually(t, "it is asked again", func() bool { return live.seen() > reads+2 })
	if got := nodesOf(s); got != "c(c)launched" {
		t.Errorf("nodes: %q", got)
	}
	s.Saw(objecttest.Claim(t, "c", "1", "12", "id-1", ""))
	if inside(s, func() int { return len(s.writes) }) != 0 {
		t.Error("the write is not settled although the watch shows it")
	}
}

// TestLiveReadThatFails checks that a failed live read changes nothing.
func TestLiveReadThatFails(t *testing.T) {
	live := &api{err: errors.New("the API server is away")}
	s := newStore(t, Config{Live: live, Options: Options{WriteVisible: 20 * time.Millisecond}})
	s.Wrote(objecttest.Claim(t, "c", "1", "10", "", ""))
	run(t, s)
	eventually(t, "it is tried again and again", func() bool { return live.seen() > 2 })
	if got := nodesOf(s); got != "c(c)launching" {
		t.Errorf("nodes: %q", got)
	}
}

// TestRecheck checks that the live reads do not wait after a watch broke.
func TestRecheck(t *testing.T) {
	s := newStore(t, Config{Options: Options{WriteVisible: time.Hour}})
	s.Wrote(objecttest.Claim(t, "c", "1", "10", "", ""))
	run(t, s)
	s.Recheck()
	eventually(t, "the ghost goes", func() bool { return nodesOf(s) == "" })
}

func TestDeletedClaim(t *testing.T) {
	s := newStore(t, Config{})
	claim := objecttest.Claim(t, "c", "1", "10", "", "finalizers: [karpenter.sh/termination]")
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
