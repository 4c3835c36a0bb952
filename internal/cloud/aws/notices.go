package aws

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
)

// FieldInstance is an index of the manager's cache: claims by the ID of their instance.
const FieldInstance = "status.instanceID"

func instanceOfClaim(o client.Object) []string {
	if id, ours := instanceOf(o.(*karpv1.NodeClaim).Status.ProviderID); ours {
		return []string{id}
	}
	return nil
}

// watcher returns the interruption watcher, which acts on claims.
func (p *Provider) watcher() (*interruption.Watcher, error) {
	return interruption.NewWatcher(p.opts.Clients.SQS, p.opts.Clients.EC2, interruption.Options{
		Queue: p.opts.Queue, Clock: p.opts.Clock, Claims: p.claimsOf, Act: p.act, Observer: p.opts.Observer.Interruption,
		May: p.mayReplace, Runs: p.launcher.Runs,
		Volumes: func(ctx context.Context, id string) ([]string, error) { return launch.Volumes(ctx, p.launcher, id) },
		SoldOut: p.markUnavailable, Ahead: p.opts.Ahead,
	})
}

// claimsOf returns the claims of instances, by instance ID.
func (p *Provider) claimsOf(ctx context.Context, instances []string) (map[string]interruption.Claim, error) {
	found := map[string]interruption.Claim{}
	for _, id := range instances {
		var claims karpv1.NodeClaimList
		if err := p.opts.Client.List(ctx, &claims, client.MatchingFields{FieldInstance: id}); err != nil {
			return nil, fmt.Errorf("listing the claims of instance %s: %w", id, err)
		}
		for i := range claims.Items {
			c := noticed(&claims.Items[i])
			c.Other = !p.opts.Selection.Admits(claims.Items[i].Labels)
			found[id] = c
		}
	}
	return found, nil
}

// noticed returns the fields of a claim that the interruption package needs.
func noticed(claim *karpv1.NodeClaim) interruption.Claim {
	c := interruption.Claim{
		Name: claim.Name, UID: string(claim.UID), Type: claim.Labels[corev1.LabelInstanceTypeStable],
		Zone:         claim.Labels[corev1.LabelTopologyZone],
		CapacityType: claim.Labels[karpv1.LabelCapacityType], ReservationID: claim.Labels[awsv1.LabelCapacityReservationID],
		Deleting: claim.DeletionTimestamp != nil,
	}
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		c.Grace = &grace.Duration
	}
	c.Deadline, _ = claim.DrainEnds()
	return c
}

// act applies a decision about a claim: events, the deadline of its drain, its deletion. No separate replacement is
// needed: the pods of a node that is being deleted are planned for at once.
func (p *Provider) act(ctx context.Context, d interruption.Decision) error {
	claim := &karpv1.NodeClaim{}
	err := p.opts.Client.Get(ctx, client.ObjectKey{Name: d.Claim.Name}, claim)
	if apierrors.IsNotFound(err) || err == nil && string(claim.UID) != d.Claim.UID {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the claim: %w", err)
	}
	p.announce(ctx, claim, d.Events)
	if d.Kind == interruption.RebalanceRecommendation {
		return p.rebalance(ctx, claim)
	}
	if d.Idle() {
		return nil
	}
	log := ctrl.LoggerFrom(ctx).WithValues("nodeClaim", claim.Name, "instance", d.Instance, "notice", string(d.Kind))
	if !d.Deadline.IsZero() {
		base := claim.DeepCopy()
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[karpv1.AnnotationTerminationTimestamp] = d.Deadline.UTC().Format(time.RFC3339)
		// The patch names the UID: a claim that was created under the same name in the meantime has no deadline.
		base.UID = ""
		if err := p.opts.Client.Patch(ctx, claim, client.MergeFrom(base)); err != nil {
			if apierrors.IsConflict(err) {
				return nil
			}
			return client.IgnoreNotFound(err)
		}
		log.Info("set the end of a claim's drain", "deadline", d.Deadline)
	}
	if !d.Replace {
		return nil
	}
	uid := claim.UID
	if err := p.opts.Client.Delete(ctx, claim, client.Preconditions{UID: &uid}); err != nil {
		return client.IgnoreNotFound(err)
	}
	log.Info("deleted a claim because of an interruption", "reason", string(d.Kind))
	p.opts.Observer.Disrupted(claim, d.Kind)
	return nil
}

// announce emits events about a claim, and about its node if it has one.
func (p *Provider) announce(ctx context.Context, claim *karpv1.NodeClaim, events []interruption.Event) {
	objects := []client.Object{claim}
	if name := claim.Status.NodeName; name != "" {
		node := &corev1.Node{}
		if err := p.opts.Client.Get(ctx, types.NamespacedName{Name: name}, node); err == nil {
			objects = append(objects, node)
		}
	}
	for _, event := range events {
		for _, object := range objects {
			p.opts.Observer.Event(object, event)
		}
	}
}
