package nodeclaim

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// hookTries is how often BeforeReady may fail before the node accepts pods anyway.
const hookTries = 5

// joining is the result of join: whether the node has just registered, and when to check again in addition to events.
type joining struct {
	registered bool
	again      time.Duration
}

// join registers and initializes the claim's node as far as its state allows.
func (r *Reconciler) join(ctx context.Context, claim *karpv1.NodeClaim) (joining, error) {
	conditions := claim.StatusConditions()
	if conditions.Get(karpv1.ConditionRegistered).IsFalse() {
		return joining{}, nil
	}
	nodes, err := nodesOf(ctx, r.Client, claim.Status.ProviderID)
	if err != nil || conditions.Get(karpv1.ConditionInitialized).IsTrue() && len(nodes) > 0 {
		return joining{}, err
	}
	node, missing := pick(nodes)
	done := joining{}
	switch {
	case conditions.Get(karpv1.ConditionRegistered).IsUnknown():
		if done, err = r.register(ctx, claim, node, missing); err != nil || !done.registered {
			return done, err
		}
	case node == nil && len(nodes) == 0: // deleted by force; Collector deletes the claim unless the node comes back
		missing.message = fmt.Sprintf("Node %s is gone from the cluster", claim.Status.NodeName)
	case node != nil && node.Labels[karpv1.LabelRegistered] == "": // the kubelet created it again
		again, err := r.register(ctx, claim, node, missing)
		if err != nil || !again.registered {
			return again, err
		}
	}
	return done, r.initialize(ctx, claim, node, missing)
}

// register makes the node accept pods, once it has everything that the claim specifies. The write updates node.
func (r *Reconciler) register(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, missing unmet) (joining, error) {
	conditions := claim.StatusConditions()
	if missing.final {
		conditions.SetFalse(karpv1.ConditionRegistered, missing.reason, missing.message)
		return joining{}, nil
	}
	if node == nil {
		conditions.SetUnknownWithReason(karpv1.ConditionRegistered, missing.reason, missing.message)
		conditions.SetUnknownWithReason(karpv1.ConditionInitialized, missing.reason, missing.message)
		return joining{}, nil
	}
	owner, err := r.owner(ctx, claim)
	if err != nil {
		return joining{}, err
	}
	if owner != "" {
		conditions.SetFalse(karpv1.ConditionRegistered, karpv1.ReasonMachineTaken,
			fmt.Sprintf("Machine %s and its node are those of claim %s", claim.Status.ProviderID, owner))
		return joining{}, nil
	}
	if err := r.completeLabels(ctx, claim); err != nil {
		return joining{}, err
	}
	opened := registered(claim, node)
	if !equality.Semantic.DeepEqual(node, opened) {
		r.warnOpen(claim, node)
		if again := r.beforeReady(ctx, claim, opened); again > 0 {
			return joining{again: again}, nil
		}
		if err := r.Client.Patch(ctx, opened, controller.Locked(node)); err != nil {
			return joining{}, fmt.Errorf("registering node %s: %w", node.Name, err)
		}
		opened.DeepCopyInto(node)
	}
	claim.Status.NodeName = node.Name
	conditions.SetTrue(karpv1.ConditionRegistered)
	return joining{registered: true}, nil
}

// showWait shows why a node does not accept pods yet. A claim that was registered stays so while a node that the kubelet
// has created again waits: the time limit for the registration would begin again.
func showWait(claim *karpv1.NodeClaim, why error) {
	if conditions := claim.StatusConditions(); !conditions.Get(karpv1.ConditionRegistered).IsTrue() {
		conditions.SetUnknownWithReason(karpv1.ConditionRegistered, karpv1.ReasonRegistrationHookPending, telemetry.Truncate(why.Error()))
	}
}

// completeLabels adds the labels to the claim that its machine got after the launch.
func (r *Reconciler) completeLabels(ctx context.Context, claim *karpv1.NodeClaim) error {
	if r.Registering == nil {
		return nil
	}
	labels, err := r.Registering(ctx, claim)
	if err != nil {
		showWait(claim, err)
		return fmt.Errorf("completing the labels of claim %s: %v", claim.Name, err) // not an error of the Kubernetes API
	}
	if len(labels) == 0 {
		return nil
	}
	complete := claim.DeepCopy()
	maps.Copy(complete.Labels, labels)
	if err := r.Client.Patch(ctx, complete, client.MergeFrom(claim)); err != nil {
		return fmt.Errorf("completing the labels of claim %s: %w", claim.Name, err)
	}
	claim.Labels, claim.ResourceVersion = complete.Labels, complete.ResourceVersion
	return nil
}

// warnOpen reports that a node accepted pods from the start.
func (r *Reconciler) warnOpen(claim *karpv1.NodeClaim, node *corev1.Node) {
	if node.Labels[karpv1.LabelRegistered] == "" && !hasTaint(node.Spec.Taints, karpv1.UnregisteredTaint()) {
		r.Recorder.Emit(telemetry.UnregisteredTaintMissing(claim, node.Name))
	}
}

// beforeReady calls the hook for the node and returns the pause before the next call. Zero means continue, also after
// too many failures: a hook may improve a node, but must not keep capacity out of the cluster.
func (r *Reconciler) beforeReady(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) time.Duration {
	if r.BeforeReady == nil {
		return 0
	}
	err := r.BeforeReady(ctx, claim, node)
	if err == nil {
		return 0
	}
	failures := r.launches.hookFailed(claim.UID, r.Clock.Now())
	ctrl.LoggerFrom(ctx).Error(err, "asking the registration hook", "node", node.Name, "failures", failures)
	if failures >= hookTries {
		return 0
	}
	showWait(claim, err)
	return r.Timers.HookRetry
}

// initialize marks the node as initialized, once it is ready for its pods.
func (r *Reconciler) initialize(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, missing unmet) error {
	if node != nil {
		missing = initialized(claim, node)
	}
	conditions := claim.StatusConditions()
	if missing.reason != "" {
		conditions.SetUnknownWithReason(karpv1.ConditionInitialized, missing.reason, missing.message)
		return nil
	}
	if node.Labels[karpv1.LabelInitialized] != "true" {
		base := node.DeepCopy()
		node.Labels[karpv1.LabelInitialized] = "true"
		if err := r.Client.Patch(ctx, node, client.MergeFrom(base)); err != nil {
			return fmt.Errorf("labeling node %s as initialized: %w", node.Name, err)
		}
	}
	conditions.SetTrue(karpv1.ConditionInitialized)
	return nil
}

// nodesOf returns the nodes of a machine.
func nodesOf(ctx context.Context, reader client.Reader, providerID string, options ...client.ListOption) ([]corev1.Node, error) {
	if providerID == "" {
		return nil, nil
	}
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, append(options, client.MatchingFields{controller.FieldNodeProviderID: providerID})...); err != nil {
		return nil, fmt.Errorf("listing the nodes of machine %s: %w", providerID, err)
	}
	return nodes.Items, nil
}
