package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

var (
	firstWorld = flag.Int("first-world", 30, "seed of the first random world of the agreement with kube-scheduler")
	someWorlds = flag.Int("some-worlds", 0, "how many of these worlds are played; 0 is what KARPENTER_E2E says")
)

// attachLimit is the volume limit of a node of these workloads.
const attachLimit = 3

// TestAgreementWithKubeScheduler checks that the real kube-scheduler agrees with the plans, on random workloads with
// all constraints. There are one or two waves; the second finds the nodes of the first:
//
//	plan     pods are created and marked unschedulable; each is finally nominated to a node, or refused
//	bind     kube-scheduler runs with ready nodes: each planned pod runs, and a second round launches one node at most
//	refuse   some refused pods are created again, beside an empty node of every kind of the pools: none is bound
//
// Planned pods run where they were nominated to. Only pods that are admissible in turns may swap places: the plan has
// an order, kube-scheduler has its own, and a pod whose node is not admissible yet is bound elsewhere. There it takes
// the room of other pods. If these fit nowhere else, one node more is launched, which is the most that the test allows
// for each wave.
//
// The scheduler runs when all nodes exist. If it ran continuously, it could bind a pod that waits for a later node to
// the remaining room of the first ready node: no harm, but no agreement to test either.
func TestAgreementWithKubeScheduler(t *testing.T) {
	c := ownCluster(t)
	file := filepath.Join(t.TempDir(), "types.json")
	write(t, file, catalogFile(t))
	startCSI(t, c, attachLimit)
	c.runController(t, filepath.Join(artifacts, "agreement.log"), append([]string{"--disable-leader-election", "--pod-placement=nominate", "--instance-types-file-path=" + file}, quickTimers...)...)
	(&stage{cluster: c, t: t, name: "agreement"}).apply(filepath.Join("testdata", "agreement.yaml"))
	worlds := *someWorlds
	if worlds == 0 {
		worlds = effort(3, 10, 100)
	}
	var planned, refused, more atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		for seed := *firstWorld; seed < *firstWorld+worlds; seed++ {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, c, fmt.Sprintf("agreement-%d", seed))
				a := playAgreement(s, randomWorld(s.name, uint64(seed)))
				planned.Add(int64(a.planned))
				refused.Add(int64(a.refused))
				more.Add(int64(a.more))
			})
		}
	})
	if all := planned.Load() + refused.Load(); planned.Load()*4 < all {
		t.Errorf("only %d of %d pods run: the generator creates too few that can", planned.Load(), all)
	}
	t.Logf("%d worlds, %d pods on planned nodes, %d refused, %d nodes more than planned", worlds, planned.Load(), refused.Load(), more.Load())
}

// agreement is a workload on its stage.
type agreement struct {
	*stage
	world     *world
	scheduler *lateScheduler
	// These count pods.
	planned, tried, refused int
	// more counts the nodes that were launched in second rounds.
	more int
}

func playAgreement(s *stage, w *world) *agreement {
	s.t.Helper()
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the world %s:\n%s", s.name, w)
		}
	})
	a := &agreement{stage: s, world: w, scheduler: newLateScheduler(s.t, s.cluster, s.name)}
	s.create(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{caseLabel: s.name}}})
	for i := range w.pools {
		s.create(&w.pools[i])
	}
	await(s.t, patience, "the pools to be ready", a.poolsReady)
	for i := range w.waves {
		a.playWave(i)
		if s.t.Failed() {
			return a
		}
	}
	s.t.Logf("%d pods run on %d nodes of %d pools in %d waves; %d were refused, %d of them tried on empty nodes",
		a.planned, s.ledger.count(s.name).claims, len(w.pools), len(w.waves), a.refused, a.tried)
	return a
}

func (a *agreement) playWave(i int) {
	a.t.Helper()
	pods := a.come(a.world.waves[i])
	await(a.t, patience, "every pod to have a place or a reason, all nodes to be ready, and nothing to change any more", a.settled())
	claims := a.ledger.count(a.name).claimsEver
	away := a.sendAway()
	a.planned, a.refused = a.planned+len(pods)-len(away), a.refused+len(away)
	a.scheduler.start()
	await(a.t, patience, "every planned pod to run", a.allRunning)
	a.scheduler.stop()
	for _, w := range a.world.waves[i] {
		if !w.inTurns() && !slices.ContainsFunc(a.world.waves[i], func(other *workload) bool { return other.inTurns() && other.priority > w.priority }) {
			a.checkNominations(w.name)
		}
	}
	bound := a.ledger.count(a.name).claimsEver
	switch more := bound - claims; more {
	case 0:
		a.checkClaimsUsed()
	case 1:
		a.t.Logf("one node was launched in a second round, after %d in the first", claims)
		a.more++
	default:
		a.t.Errorf("%d nodes were launched in a second round, after %d in the first, want one at most", more, claims)
	}
	a.try(away)
	if now := a.ledger.count(a.name).claimsEver; now != bound {
		a.t.Errorf("%d claims were created for pods that had been refused", now-bound)
	}
}

// come creates the pods of the workloads and the objects they need, and marks each pod as unschedulable, as
// kube-scheduler would.
func (a *agreement) come(workloads []*workload) []*corev1.Pod {
	a.t.Helper()
	var pods []*corev1.Pod
	for _, w := range workloads {
		a.create(w.objects...)
		pods = append(pods, w.pods()...)
	}
	await(a.t, patience, "the volumes that are there to be bound", a.volumesBound)
	a.each(len(pods), func(ctx context.Context, i int) error { return a.Create(ctx, pods[i]) })
	a.each(len(pods), func(ctx context.Context, i int) error { return a.noPlace(ctx, pods[i]) })
	return pods
}

func (a *agreement) noPlace(ctx context.Context, pod *corev1.Pod) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Now()}}}})
	if err != nil {
		return err
	}
	return a.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch))
}

// each calls do for every number below n, several at a time.
func (a *agreement) each(n int, do func(context.Context, int) error) {
	a.t.Helper()
	errs, next := make([]error, n), make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(a.t.Context(), i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

// volumesBound fails while a claim that names its volume is not bound to it.
func (a *agreement) volumesBound(ctx context.Context) error {
	var claims corev1.PersistentVolumeClaimList
	if err := a.List(ctx, &claims, client.InNamespace(a.name)); err != nil {
		return err
	}
	for _, c := range claims.Items {
		if c.Spec.VolumeName != "" && c.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is %s", c.Name, c.Status.Phase)
		}
	}
	return nil
}

// poolsReady fails until every pool can launch nodes. Before that pods are refused.
func (a *agreement) poolsReady(ctx context.Context) error {
	for i := range a.world.pools {
		var pool karpv1.NodePool
		if err := a.Get(ctx, client.ObjectKeyFromObject(&a.world.pools[i]), &pool); err != nil {
			return err
		}
		if !pool.Condition(status.ConditionReady).IsTrue() {
			return fmt.Errorf("pool %s is not", pool.Name)
		}
	}
	return nil
}

// unchanged is the time without changes after which a decision is considered final. Pods are created at shorter
// intervals, and are planned once no more were created for a second.
const unchanged = 4 * time.Second

// settled fails until all pods are decided, all nodes are ready, and both have not changed for a while.
func (a *agreement) settled() func(context.Context) error {
	last, since := "", time.Now()
	return func(ctx context.Context) error {
		if err := cmp.Or(a.allDecided(ctx), a.allReady(ctx)); err != nil {
			return err
		}
		now := fmt.Sprint(a.ledger.count(a.name).claimsEver)
		for _, pod := range a.waiting() {
			now += fmt.Sprint(" ", pod.Name, pod.Status.NominatedNodeName, a.verdict(pod))
		}
		if now != last {
			last, since = now, time.Now()
		}
		if same := time.Since(since); same < unchanged {
			return fmt.Errorf("all is decided, and has been the same for %s", same)
		}
		return nil
	}
}

// allDecided fails until every pod has an event that it is placed, or that it is refused.
func (a *agreement) allDecided(context.Context) error {
	for _, pod := range a.waiting() {
		if pod.Status.NominatedNodeName == "" && a.verdict(pod) == "" {
			return fmt.Errorf("pod %s is not nominated, and nothing was said of it", pod.Name)
		}
	}
	return nil
}

// These are the reasons of the events about decisions.
const placed, refused = "Nominated", "FailedScheduling"

// verdict returns the last decision about a pod: placed, refused, or nothing yet.
func (a *agreement) verdict(pod *corev1.Pod) string {
	for _, text := range slices.Backward(a.ledger.saidOf(pod.UID)) {
		for _, reason := range []string{placed, refused} {
			if strings.HasPrefix(text, reason+": ") {
				return reason
			}
		}
	}
	return ""
}

// allReady fails until every claim is initialized.
func (a *agreement) allReady(context.Context) error {
	for _, claim := range a.ledger.claimsOf(a.name) {
		if !claim.object.Condition(status.ConditionReady).IsTrue() {
			return fmt.Errorf("claim %s is not", claim.object.Name)
		}
	}
	return nil
}

// allRunning fails until every pod runs.
func (a *agreement) allRunning(context.Context) error {
	for _, pod := range a.ledger.podsOf(a.name) {
		if pod.Status.Phase != corev1.PodRunning {
			why := ""
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled {
					why = c.Message
				}
			}
			return fmt.Errorf("pod %s, nominated to %q, is %s on node %q: %s", pod.Name, pod.Status.NominatedNodeName, pod.Status.Phase, pod.Spec.NodeName, why)
		}
	}
	return nil
}

// waiting returns the pods that are not bound, by name.
func (a *agreement) waiting() []*corev1.Pod {
	pods := slices.DeleteFunc(a.ledger.podsOf(a.name), func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	slices.SortFunc(pods, func(p, q *corev1.Pod) int { return slices.Compare([]string{p.Name}, []string{q.Name}) })
	return pods
}

// sendAway deletes the refused pods, and returns them. Not every placed pod is nominated at once.
func (a *agreement) sendAway() []*corev1.Pod {
	a.t.Helper()
	away := slices.DeleteFunc(a.waiting(), func(p *corev1.Pod) bool { return p.Status.NominatedNodeName != "" || a.verdict(p) == placed })
	a.goes(away)
	return away
}

// goes deletes pods, and waits until they and their claims are deleted.
func (a *agreement) goes(pods []*corev1.Pod) {
	a.t.Helper()
	a.each(len(pods), func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(a.Delete(ctx, pods[i], client.GracePeriodSeconds(0)))
	})
	await(a.t, patience, "pods to be gone", func(ctx context.Context) error {
		for _, p := range pods {
			if err := a.Get(ctx, client.ObjectKeyFromObject(p), &corev1.Pod{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("pod %s is there: %w", p.Name, err)
			}
			if slices.ContainsFunc(a.ledger.podsOf(a.name), func(q *corev1.Pod) bool { return q.UID == p.UID }) {
				return fmt.Errorf("pod %s is seen", p.Name)
			}
		}
		return nil
	})
}
