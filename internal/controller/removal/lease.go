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
)

// readLease adds the data of a node's Lease. Without a Lease, or without permission to read it, only the node's
// condition counts.
func (b *Brake) readLease(ctx context.Context, node string, facts *NodeFacts) error {
	lease := &coordinationv1.Lease{}
	err := b.Live.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node}, lease)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		b.logMissingRight(ctx, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the lease of node %s: %w", node, err)
	}
	if lease.Spec.RenewTime != nil {
		facts.Renewed = lease.Spec.RenewTime.Time
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		facts.Duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	return nil
}

// logMissingRight logs once that the permission to read Leases is missing.
func (b *Brake) logMissingRight(ctx context.Context, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.blind {
		b.blind = true
		ctrl.LoggerFrom(ctx).Info("node leases may not be read; whether a node reports is taken from its condition Ready alone", "reason", err.Error())
	}
}
