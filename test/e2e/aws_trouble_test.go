package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// testAWSSoldOut makes the ten cheapest capacity pools unavailable. The same fleet request uses the next one, and no
// claim is deleted.
func testAWSSoldOut(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-soldout")
	types := []string{"c5.large", "c6i.large", "m5.large", "m6i.large"}
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand), among(corev1.LabelInstanceTypeStable, types...))
	pools := slices.DeleteFunc(w.sim.Pools(types...), func(p awssim.Pool) bool { return p.CapacityType != karpv1.CapacityTypeOnDemand })
	dry := map[string]bool{}
	for _, p := range pools[:10] {
		if err := w.sim.Drain(p.Type, p.Zone, p.CapacityType, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.sim.Refill(p.Type, p.Zone, p.CapacityType) })
		dry[p.Type+" "+p.Zone] = true
	}
	w.sim.ResetCalls()
	s.scale("app", 4)
	await(t, patience, "all pods to run", s.running("app", 4))
	s.boughtOnce()
	for _, i := range s.instances() {
		if dry[i.Type+" "+i.Zone] {
			t.Errorf("instance %s is a %s in %s, whose pool is dry", i.ID, i.Type, i.Zone)
		}
	}
	if c := s.ledger.count(s.name); c.claimsEver != c.claims {
		t.Errorf("%d of %d claims were deleted", c.claimsEver-c.claims, c.claimsEver)
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSInterrupted sends interruption notices to half of a spot fleet. The replacements run before the pods are
// evicted, all within the two minutes. Other messages in the queue do no harm.
func testAWSInterrupted(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-interrupted")
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeSpot), among("karpenter.k8s.aws/instance-cpu", "2"), among("karpenter.k8s.aws/instance-category", "c", "m"))
	s.scale("app", 6)
	await(t, patience, "all pods to run", s.running("app", 6))
	s.boughtOnce()
	s.guard(6)
	fleet := s.instances()
	if len(fleet) < 4 {
		t.Fatalf("the fleet is of %d instances, want 4 at least", len(fleet))
	}
	for _, how := range []awssim.Spoilage{awssim.SpoilTruncate, awssim.SpoilForeign, awssim.SpoilUnknown} {
		if err := w.sim.Spoil(how); err != nil {
			t.Fatal(err)
		}
	}
	taken := map[string]bool{}
	for _, i := range fleet[:len(fleet)/2] {
		taken["aws:///"+i.Zone+"/"+i.ID] = true
		if err := w.sim.Interrupt(i.ID); err != nil {
			t.Fatal(err)
		}
	}
	// The budget never allows an eviction, but the pods will be deleted at the end of the two minutes: the
	// replacements are launched at the notice.
	await(t, patience, "replacements to be there while no pod has been evicted", func(context.Context) error {
		return s.replaced(taken, len(fleet))
	})
	for _, pod := range s.pods("app") {
		if pod.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s is %s before its node has a replacement", pod.Name, pod.Status.Phase)
		}
	}
	s.unguard()
	await(t, patience, "all pods to run elsewhere", func(ctx context.Context) error {
		if err := s.running("app", 6)(ctx); err != nil {
			return err
		}
		for _, pod := range s.pods("app") {
			if taken[s.node(pod).Spec.ProviderID] {
				return fmt.Errorf("pod %s is on a machine that is taken", pod.Name)
			}
		}
		return nil
	})
	await(t, patience, "the queue to be empty", func(context.Context) error {
		if n := w.sim.Queued(); n > 0 {
			return fmt.Errorf("%d messages are in the queue", n)
		}
		return nil
	})
	s.boughtOnce()
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// guard protects the given number of pods of the Deployment, which has no more, from eviction by a
// PodDisruptionBudget.
func (s *awsStage) guard(pods int32) {
	s.t.Helper()
	least := intstr.FromInt32(pods)
	guard := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: s.name},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}}}
	s.create(guard)
	await(s.t, patience, "the budget to know its pods", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(guard), guard); err != nil {
			return err
		}
		if guard.Status.ExpectedPods != pods || guard.Status.CurrentHealthy != pods {
			return fmt.Errorf("it expects %d pods and knows %d to be healthy", guard.Status.ExpectedPods, guard.Status.CurrentHealthy)
		}
		return nil
	})
}

// unguard removes that PodDisruptionBudget.
func (s *awsStage) unguard() {
	s.t.Helper()
	s.remove(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: s.name}})
}

// replaced fails until the given number of ready nodes exists beside the interrupted ones.
func (s *awsStage) replaced(taken map[string]bool, want int) error {
	ready := 0
	for _, node := range s.ledger.nodesOf(s.name) {
		if node.Labels[karpv1.LabelInitialized] == "true" && !taken[node.Spec.ProviderID] && node.DeletionTimestamp == nil {
			ready++
		}
	}
	if ready < want {
		return fmt.Errorf("%d nodes are ready beside the %d that are taken, want %d", ready, len(taken), want)
	}
	return nil
}

// testAWSFullSubnets leaves addresses in only one subnet. Instances are launched there, and the full subnets are not
// tried repeatedly.
func testAWSFullSubnets(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-full")
	left := ""
	for _, subnet := range w.sim.Subnets() {
		switch {
		case subnet.Tags["karpenter.sh/discovery"] == "":
		case left == "" && !subnet.Public:
			left = subnet.ID
		default:
			if err := w.sim.TakeAddresses(subnet.ID, subnet.Free); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.sim.TakeAddresses(subnet.ID, -subnet.Free) })
		}
	}
	s.scale("app", 6)
	await(t, patience, "all pods to run", s.running("app", 6))
	s.boughtOnce()
	for _, i := range s.instances() {
		if i.SubnetID != left {
			t.Errorf("instance %s is in subnet %s, which is full", i.ID, i.SubnetID)
		}
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSLostAnswers launches fleets and loses the responses. The instances are found by their tags.
func testAWSLostAnswers(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-lost")
	s.inject(awssim.Fault{Kind: awssim.FaultLose, Service: "ec2", Action: "CreateFleet", Count: 7})
	w.sim.ResetCalls()
	s.scale("app", 8)
	await(t, patience, "all pods to run", s.running("app", 8))
	s.boughtOnce()
	if s.answered("CreateFleet", "Lost") == 0 {
		t.Error("no response was lost")
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSThrottled limits EC2 to one request a second.
func testAWSThrottled(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-throttled")
	s.inject(awssim.Fault{Kind: awssim.FaultThrottle, Service: "ec2", Rate: 1})
	w.sim.ResetCalls()
	s.scale("app", 20)
	await(t, 3*patience, "all pods to run", s.running("app", 20))
	s.boughtOnce()
	s.scale("app", 0)
	await(t, 3*patience, "everything to go", s.empty)
}

// testAWSDown makes all services unavailable for a minute.
func testAWSDown(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-down")
	restore := s.inject(awssim.Fault{Kind: awssim.FaultFail, Status: 503})
	w.sim.ResetCalls()
	began := time.Now()
	s.scale("app", 6)
	await(t, patience, "a minute of failures", func(context.Context) error {
		if time.Since(began) < time.Minute || s.answered("CreateLaunchTemplate", "InternalError")+s.answered("CreateFleet", "InternalError") == 0 {
			return fmt.Errorf("after %s: %v", time.Since(began), w.sim.Calls())
		}
		return nil
	})
	restore()
	await(t, 2*patience, "all pods to run", s.running("app", 6))
	s.boughtOnce()
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSExpired makes the controller's credentials invalid, and then valid again.
func testAWSExpired(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-expired")
	w.sim.ResetCalls()
	w.sim.ExpireCredentials(awsKey)
	t.Cleanup(func() { w.sim.RenewCredentials(awsKey) })
	s.scale("app", 4)
	await(t, patience, "launches to be refused", func(context.Context) error {
		for call, n := range w.sim.Calls() {
			if n > 0 && (call.Action == "CreateFleet" || call.Action == "CreateLaunchTemplate") && call.Code != "OK" {
				return nil
			}
		}
		return fmt.Errorf("calls: %v", w.sim.Calls())
	})
	w.sim.RenewCredentials(awsKey)
	await(t, 2*patience, "all pods to run", s.running("app", 4))
	s.boughtOnce()
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSTwoControllers runs two active controllers for ten seconds.
func testAWSTwoControllers(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-two")
	second, err := startController(w.cluster, w.log+".second", slices.Concat([]string{"--cloud-provider=aws", "--cluster-name=sandbox", "--disable-leader-election"}, quickTimers)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if second.running() {
			second.kill()
		}
	})
	await(t, patience, "the second controller to be ready", second.ready)
	began := time.Now()
	for replicas := 4; time.Since(began) < 10*time.Second; replicas = min(replicas+4, 24) {
		s.scale("app", replicas)
		await(t, patience, "pods to be there", func(context.Context) error {
			if n := len(s.pods("app")); n < replicas {
				return fmt.Errorf("%d of %d pods", n, replicas)
			}
			return nil
		})
	}
	second.kill()
	s.scale("app", 24)
	await(t, patience, "all pods to run", s.running("app", 24))
	s.boughtOnce()
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// testAWSKilled kills the controller at ten points of a launch, and starts it again.
func testAWSKilled(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-killed")
	s.require(among("karpenter.k8s.aws/instance-cpu", "2"), among("karpenter.k8s.aws/instance-category", "c", "m", "r"))
	newest := func(holds func(*karpv1.NodeClaim) bool) func(n int) bool {
		return func(n int) bool {
			claims := slices.DeleteFunc(s.ledger.claimsOf(s.name), func(e entry[*karpv1.NodeClaim]) bool { return e.gone })
			return len(claims) >= n && slices.ContainsFunc(claims[n-1:], func(e entry[*karpv1.NodeClaim]) bool { return holds(e.object) })
		}
	}
	launched := func(state string) func(int) bool {
		return func(n int) bool {
			all := s.instances()
			return len(all) >= n && (state == "" || all[n-1].State == state)
		}
	}
	fleets := func(code string) func(int) bool {
		return func(int) bool { return code == "" || s.answered("CreateFleet", code) > 0 }
	}
	for i, point := range []struct {
		name  string
		fault *awssim.Fault
		there func(n int) bool
	}{
		{"the claim is there", nil, newest(func(*karpv1.NodeClaim) bool { return true })},
		{"the purchase is recorded", nil, newest(func(c *karpv1.NodeClaim) bool { return c.Annotations["karpenter-go.github.io/purchase"] != "" })},
		{"the fleet is asked for", &awssim.Fault{Kind: awssim.FaultFreeze, Action: "CreateFleet"},
			newest(func(c *karpv1.NodeClaim) bool { return c.Annotations["karpenter-go.github.io/purchase"] != "" })},
		{"the fleet's answer is lost", &awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet", Count: 1}, fleets("Lost")},
		{"the fleet is refused for now", &awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Code: "RequestLimitExceeded", Status: 503}, fleets("RequestLimitExceeded")},
		{"the instance is there", nil, launched("")},
		{"the claim knows its machine", nil, newest(func(c *karpv1.NodeClaim) bool { return c.Status.ProviderID != "" })},
		{"the instance runs", nil, launched("running")},
		{"the node is there", nil, func(n int) bool { return len(s.ledger.nodesOf(s.name)) >= n }},
		{"the node is registered", nil, newest(func(c *karpv1.NodeClaim) bool {
			return c.DeepCopy().Condition(karpv1.ConditionRegistered).IsTrue()
		})},
	} {
		n := i + 1
		var restore func()
		w.sim.ResetCalls()
		if point.fault != nil {
			restore = s.inject(*point.fault)
		}
		s.scale("app", n)
		await(t, patience, point.name, func(context.Context) error {
			if !point.there(n) {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		w.controller.kill()
		if restore != nil {
			restore()
		}
		w.run(t)
		await(t, patience, fmt.Sprintf("%d pods to run after a crash when %s", n, point.name), s.running("app", n))
		s.boughtOnce()
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
	if problems := w.controller.lastErrors("panic"); strings.Contains(problems, "panic") {
		t.Errorf("the controller panicked: %s", problems)
	}
}
