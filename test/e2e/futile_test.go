package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// TestLimitRangeMakesDaemonsLarger has a DaemonSet pod without requests that gets them from a LimitRange, and may
// preempt. The node that is launched for a pod has room for both. Otherwise the daemon pod would preempt the pod, and
// nodes would be launched without end.
func TestLimitRangeMakesDaemonsLarger(t *testing.T) {
	s := onShared(t, "limited")
	t.Cleanup(s.removeClusterScoped(priorityClass))
	s.scale("app", 1)
	await(t, patience, "the pod and the daemon to run on one node", func(ctx context.Context) error {
		if err := s.running("app", 1)(ctx); err != nil {
			return err
		}
		at := s.pods("app")[0].Spec.NodeName
		for _, daemon := range s.pods("daemon") {
			if daemon.Spec.NodeName == at && daemon.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return fmt.Errorf("no daemon runs on %s", at)
	})
	if cpu := s.node(s.pods("app")[0]).Labels[kwok.LabelCPU]; cpu != "8" {
		t.Errorf("the node has %s CPUs, want 8: 2 for the pod, 2 for the daemon, 0.1 for the system", cpu)
	}
	if c := s.ledger.count("limited"); c.claims != 1 || c.claimsEver > 2 {
		t.Errorf("%d claims are there and %d were created, want one, and at most two", c.claims, c.claimsEver)
	}
}

// TestLaunchesThatLeadToNothingWait checks plans that are wrong for a reason that is not visible: the daemon pod
// preempts the pod on each node that is launched for it. After four launches the next one waits, and the pod's event,
// the pool and a metric report it.
func TestLaunchesThatLeadToNothingWait(t *testing.T) {
	policy := mutatingPolicy(t)
	s := onShared(t, "swollen")
	t.Cleanup(s.removeClusterScoped(priorityClass, policy.GroupVersion().WithKind(policy.Kind+"Binding"), policy))
	await(t, patience, "admission to make daemons larger", func(ctx context.Context) error {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "probe", Labels: map[string]string{"app": "daemon"}}}
		probe.Spec.Containers = []corev1.Container{{Name: "pause", Image: "pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}}
		probe.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Mi")
		if err := s.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if cpu := probe.Spec.Containers[0].Resources.Requests.Cpu(); cpu.Value() != 3 {
			return fmt.Errorf("a daemon requests %s CPUs", cpu)
		}
		return nil
	})
	s.scale("app", 1)
	await(t, patience, "a pod to be told that launches for it wait", func(ctx context.Context) error {
		err := fmt.Errorf("there is no pod")
		for _, pod := range s.pods("app") {
			if err = s.says(pod, "FailedScheduling", "launches for ReplicaSet swollen/app-", "are paused until",
				"after 4 failures in a row")(ctx); err == nil {
				return nil
			}
			// If three nodes were seen short of what the daemon takes before the preemptions were, the pool pauses first.
			if s.says(pod, "FailedScheduling", "launches from NodePool swollen for pods of namespace swollen", "are paused until",
				"after 3 failures in a row")(ctx) == nil {
				return nil
			}
		}
		return err
	})
	if c := s.ledger.count("swollen"); c.claimsEver < 4 || c.claimsEver > 6 {
		t.Errorf("%d claims were created, want four, and one or two more where a pass launched two", c.claimsEver)
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "swollen"}}
	if s.mustGet(pool).Annotations[karpv1.AnnotationPauses] == "" {
		t.Error("the pool has no annotation about the pause")
	}
	if n := s.metric(`karpenter_nodepools_paused{nodepool="swollen",reason="Launch"}`); n == "" || n == "0" {
		t.Errorf("%q pauses were counted", n)
	}
}

// TestNodesThatCannotTakeTheirPodsWait checks that nodes that join with a taint that the pod does not tolerate are
// kept, although none is usable. After three launches those of the pool wait, and the pod's event names the taint.
func TestNodesThatCannotTakeTheirPodsWait(t *testing.T) {
	policy := mutatingPolicy(t)
	s := onShared(t, "surprised")
	t.Cleanup(s.removeClusterScoped(policy.GroupVersion().WithKind(policy.Kind+"Binding"), policy))
	await(t, patience, "admission to taint nodes", s.taintsNodes)
	s.scale("app", 1)
	await(t, patience, "the pod to be told that launches for it wait", func(ctx context.Context) error {
		err := fmt.Errorf("there is no pod")
		for _, pod := range s.pods("app") {
			if err = s.says(pod, "FailedScheduling", "launches from NodePool surprised", "are paused until",
				"has the taint example.org/surprise:NoSchedule, which the pods do not tolerate", "startupTaints")(ctx); err == nil {
				return nil
			}
		}
		return err
	})
	if c := s.ledger.count("surprised"); c.claimsEver < 3 || c.claimsEver > 4 {
		t.Errorf("%d claims were created, want three, and one more where the first pause is over", c.claimsEver)
	}
}

// taintsNodes fails until admission taints the nodes of the case's pool.
func (s *stage) taintsNodes(ctx context.Context) error {
	probe := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-probe", Labels: map[string]string{karpv1.LabelNodePool: s.name}}}
	probe.Spec.Taints = []corev1.Taint{{Key: "example.org/probe", Effect: corev1.TaintEffectNoSchedule}}
	if err := s.Create(ctx, probe, client.DryRunAll); err != nil {
		return err
	}
	if !slices.ContainsFunc(probe.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "example.org/surprise" }) {
		return fmt.Errorf("a node has the taints %v", probe.Spec.Taints)
	}
	return nil
}

// mutatingPolicy returns the kind of mutating policies. The test is skipped if the cluster does not serve it.
func mutatingPolicy(t *testing.T) schema.GroupVersionKind {
	t.Helper()
	policy := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"}
	if _, err := common.RESTMapper().RESTMapping(policy.GroupKind(), policy.Version); meta.IsNoMatchError(err) {
		t.Skip("this Kubernetes has no MutatingAdmissionPolicy of version v1, which came with 1.36")
	}
	return policy
}

var priorityClass = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}

// removeClusterScoped returns a function that removes the case's objects of these kinds.
func (s *stage) removeClusterScoped(kinds ...schema.GroupVersionKind) func() {
	return func() {
		for _, kind := range kinds {
			all := &unstructured.Unstructured{}
			all.SetGroupVersionKind(kind)
			if err := s.DeleteAllOf(context.WithoutCancel(s.t.Context()), all, client.MatchingLabels{caseLabel: s.name}); err != nil {
				s.t.Errorf("removing the objects of the case: %v", err)
			}
		}
	}
}
