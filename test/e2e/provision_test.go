package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// TestPoolsByWeightTaintAndArchitecture checks that the pool with the highest weight among those that admit a pod
// launches its node; taints and architectures are respected.
func TestPoolsByWeightTaintAndArchitecture(t *testing.T) {
	s := onShared(t, "weights")
	for _, step := range []struct{ app, pool string }{
		{"tolerant", "weights-arm"}, {"plain", "weights-amd"}, {"amd-only", "weights-amd"},
	} {
		s.scale(step.app, 2)
		await(t, patience, step.app+" to run", s.running(step.app, 2))
		if got := s.pools(step.app); got[step.pool] != 2 {
			t.Errorf("the pods of %s are in the pools %v, want both in %s", step.app, got, step.pool)
		}
	}
	for _, pod := range s.pods("tolerant") {
		if arch := s.node(pod).Labels[corev1.LabelArchStable]; arch != karpv1.ArchitectureARM64 {
			t.Errorf("node %s of pool weights-arm has the architecture %q", pod.Spec.NodeName, arch)
		}
	}
}

// TestLimit checks that pods beyond the limit stay pending, with an event that gives the reason, and get nodes once
// it is raised.
func TestLimit(t *testing.T) {
	s := onShared(t, "limits")
	s.scale("app", 3)
	await(t, patience, "one pod to run and two to be told of the limit", func(ctx context.Context) error {
		var waiting []*corev1.Pod
		for _, pod := range s.pods("app") {
			if pod.Status.Phase != corev1.PodRunning {
				waiting = append(waiting, pod)
			}
		}
		if len(waiting) != 2 || len(s.pods("app")) != 3 {
			return fmt.Errorf("%d of %d pods wait", len(waiting), len(s.pods("app")))
		}
		for _, pod := range waiting {
			if err := s.says(pod, "FailedScheduling", "limit")(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if c := s.ledger.count("limits"); c.claimsEver != 1 {
		t.Errorf("%d claims were created, want the one that the limit allows", c.claimsEver)
	}
	s.patch(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "limits"}}, `{"spec":{"limits":{"cpu":"12"}}}`)
	await(t, patience, "all pods to run", s.running("app", 3))
	if c := s.ledger.count("limits"); c.claimsEver != 3 {
		t.Errorf("%d claims were created, want one for each pod", c.claimsEver)
	}
}

// TestThousandReplicas checks that a thousand replicas all run, and that every claim was used.
func TestThousandReplicas(t *testing.T) {
	s := onShared(t, "thousand")
	s.scale("app", 1000)
	await(t, 2*patience, "1,000 pods to run", s.running("app", 1000))
	s.checkClaimsUsed()
}

// checkNominations fails for running pods that were nominated to any node but their own.
func (s *stage) checkNominations(app string) {
	s.t.Helper()
	wrong := 0
	for _, pod := range s.pods(app) {
		if pod.Spec.NodeName == "" {
			continue
		}
		if got := s.ledger.nominations(pod.UID); !slices.Equal(got, []string{pod.Spec.NodeName}) {
			if wrong++; wrong < 10 {
				s.t.Errorf("pod %s was nominated to %q and is on %s", pod.Name, got, pod.Spec.NodeName)
			}
		}
	}
	if wrong > 0 {
		s.t.Errorf("%d pods of %s are not where they were planned", wrong, app)
	}
}

// checkClaimsUsed fails for claims of the case without pods. A claim's status names its node after the node is open: on
// a busy machine, pods run there before.
func (s *stage) checkClaimsUsed() {
	s.t.Helper()
	await(s.t, patience, "every claim to name its node", func(context.Context) error {
		for _, claim := range s.ledger.claimsOf(s.name) {
			if !claim.gone && claim.object.Status.NodeName == "" {
				return fmt.Errorf("claim %s names none", claim.object.Name)
			}
		}
		return nil
	})
	used := map[string]bool{}
	for _, pod := range s.ledger.podsOf(s.name) {
		used[pod.Spec.NodeName] = true
	}
	for _, claim := range s.ledger.claimsOf(s.name) {
		if claim.gone || !used[claim.object.Status.NodeName] {
			s.t.Errorf("claim %s, node %q, was never used (gone: %v)", claim.object.Name, claim.object.Status.NodeName, claim.gone)
		}
	}
}

// TestDaemonOverhead checks that the requests of DaemonSet pods are counted before a node is launched.
func TestDaemonOverhead(t *testing.T) {
	s := onShared(t, "daemons")
	s.scale("app", 1)
	await(t, patience, "the pod to run", s.running("app", 1))
	await(t, patience, "the daemon to run beside it", s.running("daemon", 1))
	if cpu := s.node(s.pods("app")[0]).Labels[kwok.LabelCPU]; cpu != "8" {
		t.Errorf("the node has %s CPUs, want 8: 3 for the pod, 1 for the daemon, 0.1 for the system", cpu)
	}
	if c := s.ledger.count("daemons"); c.claimsEver != 1 {
		t.Errorf("%d claims were created, want 1", c.claimsEver)
	}
}

// TestDaemonsOfSomeNodes checks that DaemonSets count on the nodes on which they will run, and only there: those that
// select labels of initialized nodes, a capacity type or a zone. Each pod runs on the first node that was launched for it.
func TestDaemonsOfSomeNodes(t *testing.T) {
	s := onShared(t, "selective")
	cpus := map[string]string{"anywhere": "2", "on-demand": "2", "spot-in-b": "4"}
	// The pod that may run anywhere comes last: kube-scheduler could otherwise bind it to the node of another pod, on a
	// busy machine.
	for _, apps := range [][]string{{"on-demand", "spot-in-b"}, {"anywhere"}} {
		for _, app := range apps {
			s.scale(app, 1)
		}
		for _, app := range apps {
			await(t, patience, "the pod of "+app+" to run", s.running(app, 1))
		}
	}
	for app, n := range map[string]int{"initialized": 3, "spot-only": 1, "zone-a": 0} {
		await(t, patience, "the DaemonSet "+app+" to run where it can", s.running(app, n))
	}
	for app, want := range cpus {
		await(t, patience, "the pod of "+app+" to run beside the DaemonSets", s.running(app, 1))
		if got := s.node(s.pods(app)[0]).Labels[kwok.LabelCPU]; got != want {
			t.Errorf("the node of %s has %s CPUs, want %s", app, got, want)
		}
	}
	if c := s.ledger.count("selective"); c.claimsEver != len(cpus) {
		t.Errorf("%d claims were created, want one for each pod", c.claimsEver)
	}
}

// TestBadPool checks that an invalid pool has a false condition Ready that names the field, and that nothing is
// launched from it until it is corrected.
func TestBadPool(t *testing.T) {
	s := onShared(t, "bad")
	s.scale("app", 1)
	pool := &karpv1.NodePool{}
	ready := func(want metav1.ConditionStatus, field string) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := s.Get(ctx, types.NamespacedName{Name: "bad"}, pool); err != nil {
				return err
			}
			root := pool.Condition(status.ConditionReady)
			validated := pool.Condition(karpv1.ConditionValidationSucceeded)
			if root.Status != want || field != "" && !strings.Contains(validated.Message, field) {
				return fmt.Errorf("Ready is %s, %s is %s: %s", root.Status, karpv1.ConditionValidationSucceeded, validated.Status, validated.Message)
			}
			return nil
		}
	}
	await(t, patience, "the pool to name the bad field", ready(metav1.ConditionFalse, "spec.template.spec.startupTaints[0]"))
	await(t, patience, "the pod to be told that it has no pool", func(ctx context.Context) error {
		for _, pod := range s.pods("app") {
			return s.says(pod, "FailedScheduling")(ctx)
		}
		return fmt.Errorf("there is no pod")
	})
	s.patch(pool, `{"spec":{"template":{"spec":{"startupTaints":null}}}}`)
	await(t, patience, "the pool to be ready", ready(metav1.ConditionTrue, ""))
	await(t, patience, "the pod to run", s.running("app", 1))
}

// TestRefusedClaims checks that a pool whose claims an admission policy rejects reports it, and that its pods get
// nodes of another pool.
func TestRefusedClaims(t *testing.T) {
	s := onShared(t, "refused")
	t.Cleanup(func() {
		for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
			object := &unstructured.Unstructured{}
			object.SetAPIVersion("admissionregistration.k8s.io/v1")
			object.SetKind(kind)
			object.SetName("refused")
			if err := s.Delete(context.WithoutCancel(t.Context()), object); err != nil {
				t.Errorf("removing the policy: %v", err)
			}
		}
	})
	pool := &karpv1.NodePool{}
	await(t, patience, "the policy to work", func(ctx context.Context) error {
		if err := s.Get(ctx, types.NamespacedName{Name: "refused-first"}, pool); err != nil {
			return err
		}
		err := s.Create(ctx, &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "refused-probe", Labels: map[string]string{karpv1.LabelNodePool: pool.Name}},
			Spec:       karpv1.NodeClaimSpec{NodeClassRef: pool.Spec.Template.Spec.NodeClassRef, Requirements: []karpv1.Requirement{}},
		}, client.DryRunAll)
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("a claim of the pool: got %v, want a refusal", err)
		}
		return nil
	})
	s.scale("app", 2)
	await(t, patience, "the pods to run", s.running("app", 2))
	if got := s.pools("app"); got["refused-second"] != 2 {
		t.Errorf("the pods are in %v, want both in refused-second", got)
	}
	await(t, patience, "the pool to say why", s.says(pool, "ClaimRefused", "no nodes on Fridays"))
}

// TestMachineThatNeverRegisters checks that a machine whose node never registers is terminated after a while, and
// that another is launched.
func TestMachineThatNeverRegisters(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	s := newStage(t, c, "silent")
	c.runController(t, artifacts+"/silent.log", "--timers=registration=3s,drain-min=1s")
	s.scale("app", 1)
	await(t, patience, "a machine to be given up", func(context.Context) error {
		claims := s.ledger.claimsOf("silent")
		if len(claims) == 0 || !claims[0].gone {
			return fmt.Errorf("%d claims were created, and the first is still there", len(claims))
		}
		return nil
	})
	first := s.ledger.claimsOf("silent")[0].object
	if first.Status.ProviderID == "" || first.Condition(karpv1.ConditionRegistered).IsTrue() {
		t.Errorf("claim %s has the machine %q and is registered: want a machine, and not registered", first.Name, first.Status.ProviderID)
	}
	s.patch(&kwokClass{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}, `{"spec":{"nodeRegistrationDelay":null}}`)
	await(t, patience, "the pod to run", s.running("app", 1))
	await(t, patience, "only the machine that is used to be left", func(context.Context) error {
		if c := s.ledger.count("silent"); c.claims != 1 || c.machines != 1 || c.nodes != 1 {
			return fmt.Errorf("%d claims, %d machines and %d nodes are there", c.claims, c.machines, c.nodes)
		}
		return nil
	})
}

// TestFleetingClaims checks that claims that are created and deleted at the same moment leave nothing behind and do
// not prevent the launch of nodes.
func TestFleetingClaims(t *testing.T) {
	s := onShared(t, "fleeting")
	const count = 20
	for i := range count {
		claim := &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fleeting-%d", i), Labels: map[string]string{
				caseLabel: "fleeting", karpv1.LabelNodePool: "fleeting", karpv1.NodeClassLabel("karpenter.kwok.sh", "KWOKNodeClass"): "fleeting"}},
			Spec: karpv1.NodeClaimSpec{
				NodeClassRef: karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "fleeting"},
				Requirements: []karpv1.Requirement{{Key: corev1.LabelOSStable, Operator: karpv1.OperatorIn, Values: []string{"linux"}}},
			},
		}
		s.create(claim)
		s.remove(claim)
	}
	s.scale("app", 2)
	await(t, patience, "the pods to run", s.running("app", 2))
	await(t, patience, "the fleeting claims and their machines to be gone", func(context.Context) error {
		for _, e := range s.ledger.claimsOf("fleeting") {
			if strings.HasPrefix(e.object.Name, "fleeting-") && e.object.OwnerReferences == nil && !e.gone {
				return fmt.Errorf("claim %s is still there", e.object.Name)
			}
		}
		if c := s.ledger.count("fleeting"); c.claims != c.machines || c.claims != c.nodes {
			return fmt.Errorf("%d claims, %d machines and %d nodes are there", c.claims, c.machines, c.nodes)
		}
		return nil
	})
}
