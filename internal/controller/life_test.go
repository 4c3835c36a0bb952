package controller_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestControllers runs all scenarios on one API server. Each has its own controllers and cloud.
func TestControllers(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *apiServer)
	}{
		{"a claim's whole life", testLife},
		{"a claim's story", testStory},
		{"no capacity deletes the claim", testInsufficientCapacity},
		{"events reach the API", testEventsAreWritten},
		{"a claim made by hand", testClaimByHand},
		{"claims that vanish while they are launched", testVanishingClaims},
		{"class not ready deletes the claim", testClassNotReady},
		{"a create error is shown and tried again", testCreateError},
		{"a create error is not tried again at once by what is written meanwhile", testCreateErrorPauses},
		{"a node that never registers is given up", testNeverRegisters},
		{"a launch that never answers is given up", testNeverLaunches},
		{"what happened while we were away counts before any time limit", testAway},
		{"deleted while launching leaves no machine", testDeletedWhileLaunching},
		{"deleted after a crash between launch and write leaves no machine", testDeletedAfterCrash},
		{"two nodes of one machine", testTwoNodes},
		{"a failing hook delays but does not wedge", testFailingHook},
		{"the termination deadline is noted", testDeadline},
		{"garbage is collected both ways", testGarbage},
		{"a cloud that finds no machine", testCloudFindsNothing},
		{"a cloud that lists half of the machines", testCloudListsHalf},
		{"a provider ID that is another claim's, then none's", testEditedProviderID},
		{"a machine that may not be terminated", testTerminationRefused},
		{"a machine in a zone that is avoided", testTerminationWaits},
		{"a cloud that stops answering about machines in dispute", testDisputeWithoutAnswers},
		{"a cloud that lists other people's machines", testCloudOfOthers},
		{"machines that neither cloud nor node shows", testCloudAndNodesAgree},
		{"a node with a fresh lease reports", testFreshLease},
		{"repairs one after the other", testRepairsAddUp},
		{"nodes that disappear", testNodesVanish},
		{"many claims at once", testManyClaims},
		{"a budget holds the drain, and the drain the machine", testBudgetHoldsDrain},
		{"a drain that goes well is quiet", testQuietDrain},
		{"daemons leave after workloads", testGroupsInOrder},
		{"pods that stay or forbid", testPodsThatStayOrForbid},
		{"a deleted node takes its claim along", testNodeDeleted},
		{"a dead node is not drained", testDeadNode},
		{"a do-not-disrupt that cannot be read", testUnreadableProtection},
		{"a node removed by force takes its claim along", testNodeRemovedByForce},
		{"a node removed by force may come back", testNodeComesBack},
		{"the pool's label is put back", testPoolLabel},
		{"a pool's conditions", testPoolConditions},
		{"a pool without a controller", testPoolWithoutController},
		{"two providers side by side", testPoolsSideBySide},
		{"a pool's counts", testPoolCounts},
		{"hashes of another version are stamped again", testPoolHash},
		{"registration health", testPoolHealth},
		{"a pool with a pause", testPoolPauses},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

func testLife(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.slow = 2
	w.start()
	claim := newClaim("life")
	claim.Spec.StartupTaints = []corev1.Taint{{Key: "warming", Effect: corev1.TaintEffectNoExecute}}
	w.create(claim)

	w.launched(claim)
	if !controllerutil.ContainsFinalizer(claim, karpv1.FinalizerTermination) {
		t.Error("launched without a finalizer")
	}
	for key, want := range map[string]string{"team": "a", corev1.LabelInstanceTypeStable: "m-4x", corev1.LabelTopologyZone: "zone-a"} {
		if got := claim.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if got := claim.Status.Capacity.Cpu().String() + " " + claim.Status.Allocatable.Memory().String(); got != "4 15Gi" || claim.Status.ImageID != "image-1" {
		t.Errorf("capacity cpu, allocatable memory: %s, image %s", got, claim.Status.ImageID)
	}
	w.untilCondition(claim, karpv1.ConditionRegistered, "Unknown", karpv1.ReasonNodeNotFound)

	node := w.boot(claim)
	w.untilCondition(claim, karpv1.ConditionRegistered, "True", "")
	w.read(node)
	checkRegistered(t, claim, node)
	switch hooked := w.hooks(); {
	case len(hooked) == 0:
		t.Errorf("len(hooked) is 0, the hook received %v", hooked)
	case hooked[0].Labels["team"] != "a":
		t.Errorf(`hooked[0].Labels["team"] is %v, want "a"`, hooked[0].Labels["team"])
	case hasKey(hooked[0].Spec.Taints, karpv1.TaintKeyUnregistered):
		t.Errorf("hasKey(hooked[0].Spec.Taints, karpv1.TaintKeyUnregistered) is true, the hook received %v", hooked)
	}

	w.untilCondition(claim, karpv1.ConditionInitialized, "Unknown", karpv1.ReasonNodeNotReady)
	w.report(node, corev1.ConditionTrue)
	w.untilCondition(claim, karpv1.ConditionInitialized, "Unknown", karpv1.ReasonStartupTaintsExist)
	node.Spec.Taints = node.Spec.Taints[:1] // the first taint is the claim's own, checked above
	w.must(w.client.Update(t.Context(), node))
	w.untilCondition(claim, karpv1.ConditionInitialized, "True", "")
	w.untilCondition(claim, "Ready", "True", "")
	w.read(node)
	if node.Labels[karpv1.LabelInitialized] != "true" {
		t.Error("the node is not labeled as initialized")
	}

	w.remove(claim)
	w.gone(claim)
	w.gone(node)
	if machines, launches := w.cloud.count(); machines != 0 || launches != 1 {
		t.Errorf("%d machines after %d launches, want none after one", machines, launches)
	}
	w.counted("nodes created", 1, w.metrics.NodesCreated.WithLabelValues("general", "zone-a"))
	w.counted("nodes drained", 1, w.metrics.NodesDrained.WithLabelValues("general"))
	w.counted("nodes terminated", 1, w.metrics.NodesTerminated.WithLabelValues("general", "zone-a"))
	w.counted("claims terminated", 1, w.metrics.NodeClaimsTerminated.WithLabelValues("general", "spot", "zone-a"))
	for name, durations := range map[string]prometheus.Collector{
		"claims": w.metrics.NodeClaimsTermination, "machines": w.metrics.NodeClaimsInstanceTermination,
	} {
		w.until("the end of "+name+" is timed", func() bool { return testutil.CollectAndCount(durations) == 1 })
	}
	for _, e := range w.said() {
		if e[:7] == "Warning" {
			t.Errorf("event: %s", e)
		}
	}
}

func checkRegistered(t *testing.T, claim *karpv1.NodeClaim, node *corev1.Node) {
	t.Helper()
	if claim.Status.NodeName != node.Name {
		t.Errorf("node name %q, want %q", claim.Status.NodeName, node.Name)
	}
	for key, want := range map[string]string{"team": "a", "boot": "strap", karpv1.LabelRegistered: "true", karpv1.LabelNodePool: "general"} {
		if got := node.Labels[key]; got != want {
			t.Errorf("node label %s is %q, want %q", key, got, want)
		}
	}
	if node.Annotations["note"] != "kept" || node.Annotations[karpv1.AnnotationCommand] != "" {
		t.Errorf("node annotations %v: want those of the claim except the controller's own notes", node.Annotations)
	}
	var taints []string
	for _, taint := range node.Spec.Taints {
		if taint.Key != corev1.TaintNodeNotReady {
			taints = append(taints, taint.ToString())
		}
	}
	if diff := cmp.Diff([]string{"dedicated=a:NoSchedule", "warming:NoExecute"}, taints); diff != "" {
		t.Error("taints: " + diff)
	}
	switch {
	case !controllerutil.ContainsFinalizer(node, karpv1.FinalizerTermination):
		t.Errorf("finalizers %v: controllerutil.ContainsFinalizer(node, karpv1.FinalizerTermination) is false", node.Finalizers)
	case len(node.OwnerReferences) != 1:
		t.Errorf("finalizers %v: len(node.OwnerReferences) is %v, want 1, owners %v", node.Finalizers, len(node.OwnerReferences),
			node.OwnerReferences)
	case node.OwnerReferences[0].UID != claim.UID:
		t.Errorf("finalizers %v: node.OwnerReferences[0].UID is %v, want %v", node.Finalizers, node.OwnerReferences[0].UID, claim.UID)
	}
}

func hasKey(taints []corev1.Taint, key string) bool {
	for _, taint := range taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

func testInsufficientCapacity(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.refuse = func(*karpv1.NodeClaim) error {
		return fmt.Errorf("buying: %w", &cloud.InsufficientCapacityError{Message: "zone-a has none"})
	}
	w.start()
	claim := newClaim("none-left")
	w.create(claim)
	w.gone(claim)
	w.untilSaid("InsufficientCapacityError")
	if _, launches := w.cloud.count(); launches != 1 {
		t.Errorf("%d launches, want 1", launches)
	}
	w.counted("by reason", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedInsufficientCapacity,
		"general", "", "", "graceful"))
}

// testEventsAreWritten verifies that the API server accepts what the recorder writes about an object without a
// namespace and with a long message.
func testEventsAreWritten(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.written = true
	w.cloud.refuse = func(*karpv1.NodeClaim) error {
		return &cloud.InsufficientCapacityError{Message: strings.Repeat("no zone has any; ", 200)}
	}
	w.start()
	claim := newClaim("unheard")
	w.create(claim)
	var found eventsv1.Event
	w.until("the event is in the API", func() bool {
		var list eventsv1.EventList
		w.must(w.client.List(t.Context(), &list))
		i := slices.IndexFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == claim.Name })
		if i >= 0 {
			found = list.Items[i]
		}
		return i >= 0
	})
	switch {
	case found.Reason != telemetry.ReasonInsufficientCapacity:
		t.Errorf("found.Reason is %v, want %v", found.Reason, telemetry.ReasonInsufficientCapacity)
	case found.ReportingController != "karpenter":
		t.Errorf(`found.ReportingController is %v, want "karpenter"`, found.ReportingController)
	case found.Type != corev1.EventTypeWarning:
		t.Errorf("found.Type is %v, want %v", found.Type, corev1.EventTypeWarning)
	}
}

// testClaimByHand verifies the lifecycle of a claim without a pool and without labels.
func testClaimByHand(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim := newClaim("by-hand")
	claim.Labels = nil
	w.create(claim)
	node := w.boot(claim)
	w.report(node, corev1.ConditionTrue)
	w.untilCondition(claim, "Ready", "True", "")
	w.remove(claim)
	w.gone(claim)
	w.gone(node)
}

func testClassNotReady(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.refuse = func(*karpv1.NodeClaim) error { return &cloud.NodeClassNotReadyError{Message: "no image"} }
	w.start()
	claim := newClaim("class-not-ready")
	w.create(claim)
	w.gone(claim)
	w.untilSaid("NodeClassNotReady")
	w.counted("by reason", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedNodeClassNotReady,
		"general", "", "", "graceful"))
}

func testCreateError(t *testing.T, s *apiServer) {
	w := in(t, s)
	fixed := make(chan struct{})
	w.cloud.refuse = func(claim *karpv1.NodeClaim) error {
		select {
		case <-fixed:
			return nil
		default:
			if claim.Name == "odd" {
				return errors.New("something else")
			}
			return &cloud.CreateError{Reason: "ImageMissing", Message: "image 7 is gone"}
		}
	}
	w.start()
	claim, odd := newClaim("image"), newClaim("odd")
	w.create(claim)
	w.create(odd)
	w.untilCondition(claim, karpv1.ConditionLaunched, "Unknown", "ImageMissing")
	if got := claim.Condition(karpv1.ConditionLaunched).Message; got != "image 7 is gone" {
		t.Errorf("message %q", got)
	}
	w.untilCondition(odd, karpv1.ConditionLaunched, "Unknown", karpv1.ReasonLaunchFailed)
	close(fixed)
	w.launched(claim)
	w.launched(odd)
}

// testCreateErrorPauses verifies that a refused launch does not start the next attempt. A cloud words each refusal
// differently (request IDs), and a launch writes its claim; neither may trigger a launch.
func testCreateErrorPauses(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.Retry, w.timers.RetryMax = 5*time.Minute, 5*time.Minute
	asked := atomic.Int32{}
	w.cloud.refuse = func(claim *karpv1.NodeClaim) error {
		if claim.Name != "refused" {
			return nil
		}
		n := fmt.Sprint(asked.Add(1))
		noted := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&noted.ObjectMeta, "memory.example.com/attempt", n)
		if err := w.client.Patch(t.Context(), noted, client.MergeFrom(claim)); err != nil {
			return err
		}
		return &cloud.CreateError{Reason: "Unauthorized", Message: "request " + n + " is not allowed"}
	}
	w.start()
	claim := newClaim("refused")
	w.create(claim)
	w.untilCondition(claim, karpv1.ConditionLaunched, "Unknown", "Unauthorized")
	for i := range 5 { // each iteration waits for a whole lifecycle, in which an unlimited loop would have repeated often
		other := newClaim(fmt.Sprintf("beside-%d", i))
		w.create(other)
		w.launched(other)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the cloud was called %d times, want once in five minutes", n)
	}
	if w.read(claim); claim.Condition(karpv1.ConditionLaunched).Message != "request 1 is not allowed" {
		t.Errorf("condition %+v", claim.Condition(karpv1.ConditionLaunched))
	}
}

func testNeverRegisters(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.Registration = 1500 * time.Millisecond
	w.start()
	claim := newClaim("never")
	w.create(claim)
	w.launched(claim)
	id := claim.Status.ProviderID
	w.gone(claim)
	if w.cloud.has(id) {
		t.Error("the machine is still there")
	}
	w.counted("by reason", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedRegistrationTimeout,
		"general", "spot", "", "graceful"))
}

func testNeverLaunches(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.Launch = 1500 * time.Millisecond
	w.cloud.hold = make(chan struct{}) // creates the machine, and never responds
	w.start()
	claim := newClaim("silent")
	w.create(claim)
	w.gone(claim)
	if machines, _ := w.cloud.count(); machines != 0 {
		t.Errorf("%d machines remain", machines)
	}
	w.counted("by reason", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedLaunchTimeout, "general", "", "", "graceful"))
}

// testAway covers an outage longer than the time limits: afterward, a node that has joined is registered, and a claim
// that was not launched gets its attempt, with the whole time to register.
func testAway(t *testing.T, s *apiServer) {
	w := in(t, s)
	joined, unlaunched := newClaim("joined-meanwhile"), newClaim("not-launched-yet")
	w.create(joined)
	w.create(unlaunched)
	w.cloud.put(machine("memory://joined", joined.Name, time.Now()))
	joined.Status.ProviderID = "memory://joined"
	joined.StatusConditions().SetTrue(karpv1.ConditionLaunched)
	unlaunched.StatusConditions().SetUnknown(karpv1.ConditionLaunched)
	for _, claim := range []*karpv1.NodeClaim{joined, unlaunched} {
		for i := range claim.Status.Conditions {
			claim.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-16 * time.Minute))
		}
		w.must(w.client.Status().Update(t.Context(), claim))
	}
	w.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "joined"},
		Spec:       corev1.NodeSpec{ProviderID: "memory://joined", Taints: []corev1.Taint{karpv1.UnregisteredTaint()}},
	})
	w.start()
	w.untilCondition(joined, karpv1.ConditionRegistered, "True", "")
	w.launched(unlaunched)
	w.boot(unlaunched)
	w.untilCondition(unlaunched, karpv1.ConditionRegistered, "True", "")
	for _, claim := range []*karpv1.NodeClaim{joined, unlaunched} {
		if w.read(claim); !claim.DeletionTimestamp.IsZero() {
			t.Errorf("claim %s was deleted", claim.Name)
		}
	}
}

func testDeletedWhileLaunching(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.hold = make(chan struct{})
	w.start()
	claim := newClaim("hasty")
	w.create(claim)
	w.until("the machine is bought", func() bool { machines, _ := w.cloud.count(); return machines == 1 })
	w.remove(claim)
	close(w.cloud.hold)
	w.gone(claim)
	if machines, _ := w.cloud.count(); machines != 0 {
		t.Errorf("%d machines remain", machines)
	}
}

func testDeletedAfterCrash(t *testing.T, s *apiServer) {
	w := in(t, s)
	claim := newClaim("forgotten")
	claim.Finalizers = []string{karpv1.FinalizerTermination}
	w.create(claim)
	if _, err := w.cloud.Launch(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	other := machine("memory:///other", "other", time.Now())
	w.cloud.put(other)
	w.remove(claim)
	w.start() // the process that starts after the crash
	w.gone(claim)
	if machines, _ := w.cloud.count(); machines != 1 || !w.cloud.has(other.ProviderID) {
		t.Errorf("%d machines remain, want only that of another claim", machines)
	}
}

func testTwoNodes(t *testing.T, s *apiServer) {
	w := in(t, s)
	claim := newClaim("twins")
	claim.Finalizers = []string{karpv1.FinalizerTermination}
	w.create(claim)
	bought, err := w.cloud.Launch(t.Context(), claim)
	w.must(err)
	for _, name := range []string{"castor", "pollux"} {
		w.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: bought.ProviderID}})
	}
	w.start()
	w.untilCondition(claim, karpv1.ConditionRegistered, "False", karpv1.ReasonMultipleNodesFound)
	w.untilCondition(claim, "Ready", "False", "")
}

func testFailingHook(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.hook = func(*karpv1.NodeClaim, *corev1.Node) error { return errors.New("no plan for this node") }
	w.start()
	claim := newClaim("hooked")
	w.create(claim)
	w.boot(claim)
	w.untilCondition(claim, karpv1.ConditionRegistered, "True", "")
	if got := len(w.hooks()); got < 5 {
		t.Errorf("the hook was called %d times, want at least 5", got)
	}
}

func testDeadline(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.slow = 1 << 30 // never ends
	w.start()
	claim := newClaim("hurried")
	claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	w.create(claim)
	w.launched(claim)
	w.remove(claim)
	w.untilCondition(claim, karpv1.ConditionInstanceTerminating, "True", "")
	want := claim.DeletionTimestamp.Add(time.Hour).UTC().Format(time.RFC3339)
	if got := claim.Annotations[karpv1.AnnotationTerminationTimestamp]; got != want {
		t.Errorf("deadline %s, want %s", got, want)
	}
	w.untilSaid("TerminationGracePeriodExpiring")
}

func testGarbage(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.timers.Leak = time.Minute
	w.start()
	lost, node := w.running("lost")
	kept, _ := w.running("kept")
	talking, _ := w.running("talking")
	old := machine("memory:///old", "absent", time.Now().Add(-time.Hour))
	young := machine("memory:///young", "absent", time.Now())
	ageless := machine("memory:///ageless", "absent", time.Time{})
	for _, m := range []*cloud.Machine{old, young, ageless} {
		w.cloud.put(m)
	}
	w.report(node, corev1.ConditionUnknown)
	w.cloud.lose(lost.Status.ProviderID)
	w.cloud.lose(talking.Status.ProviderID) // the cloud's list is wrong: the kubelet of the machine reports
	w.gone(lost)
	w.gone(node)
	w.until("the old machine is gone", func() bool { return !w.cloud.has(old.ProviderID) })
	switch {
	case !w.cloud.has(young.ProviderID):
		t.Errorf("a machine was collected that is young, of unknown age, or of a claim: w.cloud.has(young.ProviderID) is false")
	case !w.cloud.has(ageless.ProviderID):
		t.Errorf("a machine was collected that is young, of unknown age, or of a claim: w.cloud.has(ageless.ProviderID) is false")
	case !w.cloud.has(kept.Status.ProviderID):
		t.Errorf("a machine was collected that is young, of unknown age, or of a claim: w.cloud.has(kept.Status.ProviderID) is false")
	}
	for _, claim := range []*karpv1.NodeClaim{kept, talking} {
		if !w.read(claim) || !claim.DeletionTimestamp.IsZero() {
			t.Errorf("claim %s was collected", claim.Name)
		}
	}
	w.counted("by reason", 1, w.metrics.CloudLeakedMachines.WithLabelValues("memory"))
}

func testManyClaims(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	const many = 200
	claims := make([]*karpv1.NodeClaim, many)
	var creating errgroup.Group
	creating.SetLimit(50)
	for i := range claims {
		claims[i] = newClaim(fmt.Sprintf("many-%d", i))
		creating.Go(func() error { return w.client.Create(t.Context(), claims[i]) })
	}
	w.must(creating.Wait())
	for _, claim := range claims {
		w.launched(claim)
	}
	if machines, launches := w.cloud.count(); machines != many || launches != many {
		t.Errorf("%d machines after %d launches, want %d of each", machines, launches, many)
	}
}

// podGone reports whether a pod has been deleted.
func (w *world) podGone(pod *corev1.Pod) bool { return !w.read(pod.DeepCopy()) }

func testBudgetHoldsDrain(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("held")
	free, held := w.pod("free", node, nil), w.pod("held", node, nil)
	budget := w.budget("held")
	w.remove(claim)
	w.until("the free pod is evicted", func() bool { return w.podGone(free) })
	w.untilSaid("evicting pod default/held")
	w.untilCondition(claim, karpv1.ConditionDrained, "Unknown", karpv1.ReasonDraining)
	w.read(node)
	if w.podGone(held) || !w.cloud.has(claim.Status.ProviderID) {
		t.Error("the pod or the machine was removed although a budget forbids it")
	}
	if !hasKey(node.Spec.Taints, karpv1.TaintKeyDisrupted) || node.Labels[karpv1.LabelExcludeBalancers] != karpv1.ExcludeBalancersValue {
		t.Errorf("taints %v, labels %v: want a cordoned node", node.Spec.Taints, node.Labels)
	}
	w.remove(budget)
	w.gone(claim)
	w.gone(node)
	if machines, _ := w.cloud.count(); machines != 0 || !w.podGone(held) {
		t.Error("the machine or the pod still exists")
	}
	w.counted("evictions that succeeded", 2, w.metrics.PodsEvictionRequests.WithLabelValues("200"))
	if got := testutil.ToFloat64(w.metrics.PodsEvictionRequests.WithLabelValues("429")); got == 0 {
		t.Error("no eviction was refused")
	}
}

// testQuietDrain covers a normal rollout, in which evictions are refused too: a drain reports what it waits for only
// after a while.
func testQuietDrain(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.DrainQuiet = time.Hour
	w.start()
	claim, node := w.running("quiet")
	w.pod("kept", node, nil)
	budget := w.budget("kept")
	w.remove(claim)
	w.until("the eviction is refused", func() bool { return testutil.ToFloat64(w.metrics.PodsEvictionRequests.WithLabelValues("429")) >= 3 })
	w.remove(budget)
	w.gone(claim)
	for _, e := range w.said() {
		if strings.Contains(e, telemetry.ReasonFailedDraining) {
			t.Errorf("event %q", e)
		}
	}
}

func testGroupsInOrder(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("ordered")
	daemonOf := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: types.UID("d")}}
	}
	critical := func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" }
	pods := []*corev1.Pod{
		w.pod("workload", node, nil), w.pod("daemon", node, daemonOf), w.pod("critical", node, critical),
		w.pod("critical-daemon", node, func(p *corev1.Pod) { daemonOf(p); critical(p) }),
	}
	budget := w.budget(pods[0].Name)
	w.remove(claim)
	for i, pod := range pods {
		w.untilSaid("evicting pod default/" + pod.Name + ":") // its eviction is requested, and its budget refuses
		for _, later := range pods[i:] {
			if w.podGone(later) {
				t.Errorf("%s was removed before %s", later.Name, pod.Name)
			}
		}
		w.counted("evictions before that of "+pod.Name, float64(i), w.metrics.PodsEvictionRequests.WithLabelValues("200"))
		mine := budget
		if i+1 < len(pods) {
			budget = w.budget(pods[i+1].Name) // before its turn
		}
		w.remove(mine)
		w.until(pod.Name+" is evicted", func() bool { return w.podGone(pod) })
	}
	w.gone(node)
}

func testPodsThatStayOrForbid(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("mixed")
	tolerant := w.pod("tolerant", node, func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	precious := w.pod("precious", node, func(p *corev1.Pod) {
		p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	})
	plain := w.pod("plain", node, nil)
	w.remove(claim)
	w.until("the plain pod is evicted", func() bool { return w.podGone(plain) })
	w.untilSaid("waiting to be evicted")
	switch {
	case w.podGone(precious):
		t.Errorf("a protected pod was evicted, or the machine ended: w.podGone(precious) is true")
	case w.podGone(tolerant):
		t.Errorf("a protected pod was evicted, or the machine ended: w.podGone(tolerant) is true")
	case !w.cloud.has(claim.Status.ProviderID):
		t.Errorf("a protected pod was evicted, or the machine ended: w.cloud.has(claim.Status.ProviderID) is false")
	}
	precious.Annotations = nil
	w.read(precious)
	delete(precious.Annotations, karpv1.AnnotationDoNotDisrupt)
	w.must(w.client.Update(t.Context(), precious))
	w.gone(node)
	w.gone(claim)
	if w.podGone(tolerant) {
		t.Error("the pod that tolerates the taint was evicted")
	}
}

func testNodeDeleted(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("direct")
	pod := w.pod("app", node, nil)
	w.remove(node)
	w.gone(node)
	w.gone(claim)
	if machines, _ := w.cloud.count(); machines != 0 || !w.podGone(pod) {
		t.Error("the machine or the pod still exists")
	}
}

func testDeadNode(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("dead")
	pod := w.pod("app", node, nil)
	w.budget("app")
	w.report(node, corev1.ConditionUnknown)
	w.cloud.lose(claim.Status.ProviderID)
	w.remove(node)
	w.gone(node)
	w.gone(claim)
	if w.podGone(pod) {
		t.Error("the pod was evicted, although its machine does not exist")
	}
}

// force removes the node despite the termination finalizer, as a forced deletion by a user would.
func (w *world) force(node *corev1.Node) {
	w.t.Helper()
	w.must(w.wipe(w.t.Context(), node))
	w.gone(node)
}

func testNodeRemovedByForce(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.timers.NodeGone = 300 * time.Millisecond
	w.start()
	claim, node := w.running("forced")
	kept, _ := w.running("kept-beside")
	w.pod("left", node, nil)
	w.force(node)
	w.untilSaid("NodeGone")
	w.gone(claim)
	if w.cloud.has(claim.Status.ProviderID) || !w.cloud.has(kept.Status.ProviderID) {
		t.Error("the machine without a node still exists, or another one does not")
	}
	if !w.read(kept) || !kept.DeletionTimestamp.IsZero() {
		t.Error("a claim with a node was collected")
	}
	w.counted("by reason", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedGarbageCollected,
		"general", "spot", "", "graceful"))
	w.counted("pods", 1, w.metrics.PodsDisruptionInitiated.WithLabelValues(telemetry.DisruptedGarbageCollected,
		"general", "spot", "", "graceful"))
}

// testNodeComesBack verifies that within the grace period the claim only reports that its node is gone. A restarted
// kubelet creates the node again.
func testNodeComesBack(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.timers.NodeGone = time.Hour
	w.start()
	claim, node := w.running("restarted")
	w.force(node)
	w.untilCondition(claim, karpv1.ConditionInitialized, "Unknown", karpv1.ReasonNodeNotFound)
	if conditions := claim.StatusConditions(); conditions.Get("Ready").IsTrue() || !conditions.Get(karpv1.ConditionRegistered).IsTrue() {
		t.Errorf("conditions %+v, want registered and not ready", claim.Status.Conditions)
	}
	again := w.boot(claim)
	w.report(again, corev1.ConditionTrue)
	w.untilCondition(claim, "Ready", "True", "")
	w.read(again)
	switch {
	case !controllerutil.ContainsFinalizer(again, karpv1.FinalizerTermination):
		t.Errorf("the new node has finalizers %v: controllerutil.ContainsFinalizer(again, karpv1.FinalizerTermination) is false",
			again.Finalizers)
	case again.Labels["team"] != "a":
		t.Errorf(`the new node has finalizers %v: again.Labels["team"] is %v, want "a"`, again.Finalizers, again.Labels["team"])
	case hasKey(again.Spec.Taints, karpv1.TaintKeyUnregistered):
		t.Errorf("the new node has finalizers %v: hasKey(again.Spec.Taints, karpv1.TaintKeyUnregistered) is true, taints %v",
			again.Finalizers, again.Spec.Taints)
	}
	w.counted("nodes created", 1, w.metrics.NodesCreated.WithLabelValues("general", "zone-a"))
}

func testPoolLabel(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	pool := newPool("owner")
	w.create(pool)
	claim := newClaim("unlabeled")
	claim.Labels[karpv1.LabelNodePool] = pool.Name
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool",
		Name: pool.Name, UID: pool.UID}}
	w.create(claim)
	w.launched(claim)
	for _, value := range []any{nil, "another"} {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{karpv1.LabelNodePool: value}}})
		w.must(err)
		w.must(w.client.Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, patch)))
		w.until("the label is back", func() bool { return w.read(claim) && claim.Labels[karpv1.LabelNodePool] == pool.Name })
	}
}

// testVanishingClaims verifies that claims that disappear without a finalizer during the launch of their machines
// leave no machine behind. No removal limit applies, however many they are, and garbage collection has no part in it.
// A claim of the same name keeps its machine.
func testVanishingClaims(t *testing.T, s *apiServer) {
	w := in(t, s)
	hold := make(chan struct{})
	w.cloud.hold = hold
	w.start()
	var claims []*karpv1.NodeClaim
	for i := range 8 {
		claim := newClaim(fmt.Sprintf("vanishing-%d", i))
		w.create(claim)
		claims = append(claims, claim)
	}
	w.until("all machines are bought", func() bool { machines, _ := w.cloud.count(); return machines == len(claims) })
	for _, claim := range claims {
		w.until(claim.Name+" has no finalizer", func() bool {
			w.read(claim)
			claim.Finalizers = nil
			return w.client.Update(t.Context(), claim) == nil
		})
		w.remove(claim)
		w.gone(claim)
	}
	again := newClaim("vanishing-0")
	w.create(again)
	close(hold)
	w.launched(again)
	w.until("one machine is left", func() bool { machines, _ := w.cloud.count(); return machines == 1 })
	if !w.cloud.has(again.Status.ProviderID) || w.cloud.launched() != len(claims)+1 {
		t.Errorf("%d launches, and the existing claim has the machine %s: want one of its own", w.cloud.launched(), again.Status.ProviderID)
	}
	// A write for the previous claim is refused as stale.
	before, other := again.DeepCopy(), again.DeepCopy()
	before.UID, other.UID = "", claims[0].UID
	metav1.SetMetaDataLabel(&other.ObjectMeta, "example.org/of", "another")
	if err := w.client.Patch(t.Context(), other, client.MergeFrom(before)); err == nil || !controller.Stale(err) {
		t.Errorf("a patch for a claim that was replaced under its name has the error %v, want a stale one", err)
	}
}
