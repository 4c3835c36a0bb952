package removal

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// leaseDuration is the duration of a node's Lease that does not specify it: the kubelet's default
// (nodeLeaseDurationSeconds, https://kubernetes.io/docs/concepts/architecture/leases/).
const leaseDuration = 40 * time.Second

// Reports returns whether a node reports. The kubelet writes the condition Ready as True and False. The node lifecycle
// controller changes either to Unknown when the kubelet has not reported for node-monitor-grace-period, by its own clock,
// so that a wrong clock of the node has no effect. A fresh Lease shows a kubelet that reports again, or that cannot write
// its status.
func (l *Limiter) Reports(ctx context.Context, node *corev1.Node) (bool, error) {
	if ready := karpv1.ReadyCondition(node); ready != nil && ready.Status != corev1.ConditionUnknown {
		return true, nil
	}
	lease := &coordinationv1.Lease{}
	err := l.Live.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node.Name}, lease)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err): // then only the condition counts
		l.logMissingPermission(ctx, err)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the lease of node %s: %w", node.Name, err)
	}
	duration := leaseDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		duration = time.Duration(*seconds) * time.Second
	}
	return lease.Spec.RenewTime != nil && l.serverTime().Sub(lease.Spec.RenewTime.Time) < duration, nil
}

// logMissingPermission logs once that the permission to read Leases is missing.
func (l *Limiter) logMissingPermission(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.blind {
		l.blind = true
		ctrl.LoggerFrom(ctx).Info("node leases may not be read; whether a node reports is taken from its condition Ready alone", "reason", err.Error())
	}
}

// MachineReports returns whether a node of the machine reports. It reads a silent node again from the API server, so that a
// stale cache does not cause the removal of a node that reports again.
func (l *Limiter) MachineReports(ctx context.Context, providerID string) (bool, error) {
	var nodes corev1.NodeList
	if err := l.Client.List(ctx, &nodes, client.MatchingFields{controller.FieldNodeProviderID: providerID}); err != nil {
		return false, fmt.Errorf("listing the nodes of machine %s: %w", providerID, err)
	}
	for i := range nodes.Items {
		if reports, err := l.Reports(ctx, &nodes.Items[i]); err != nil || reports {
			return reports, err
		}
		node := &corev1.Node{}
		if err := l.Live.Get(ctx, client.ObjectKeyFromObject(&nodes.Items[i]), node); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return false, fmt.Errorf("reading node %s again: %w", nodes.Items[i].Name, err)
		}
		if reports, err := l.Reports(ctx, node); err != nil || reports {
			return reports, err
		}
	}
	return false, nil
}
