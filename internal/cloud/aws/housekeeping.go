package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
)

// SetupWithManager registers the loops of the provider with the manager. It must be called once, before the manager is
// started.
func (p *Provider) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &karpv1.NodeClaim{}, FieldInstance, instanceOfClaim); err != nil {
		return fmt.Errorf("indexing claims by instance: %w", err)
	}
	reconciler := &class.Reconciler{
		Client: p.opts.Client, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, IsolatedVPC: p.opts.IsolatedVPC,
		ReservedENIs: p.opts.ReservedENIs, KubeletExpressions: p.opts.KubeletExpressions, Evaluate: p.evaluate,
		Now:                p.opts.Clock.Now,
		UserData:           p.opts.Observer.UserData,
		IgnoreReservations: p.opts.OpenReservations, Counted: p.counted,
		Emit: func(class *awsv1.EC2NodeClass, reason, message string) {
			p.opts.Observer.Event(class, interruption.Event{Reason: reason, Message: message})
		},
	}
	if !p.opts.NoDryRun {
		reconciler.DryRun = &class.DryRun{EC2: p.opts.Clients.EC2, Calls: p.sources.Calls, Cluster: p.opts.Cluster, Orders: p.orders}
	}
	watcher, err := p.watcher()
	if err != nil {
		return err
	}
	if err := p.followClasses(ctx, mgr); err != nil {
		return err
	}
	tagger := &upkeep.Tagger{Client: p.opts.Client, Cluster: p.opts.Cluster, Tag: p.tag}
	if err := errors.Join(reconciler.SetupWithManager(mgr), observer{p}.setup(mgr), tagger.SetupWithManager(mgr)); err != nil {
		return err
	}
	log := mgr.GetLogger()
	named := func(name string, run func(context.Context) error) manager.Runnable {
		return manager.RunnableFunc(func(ctx context.Context) error { return run(ctrl.LoggerInto(ctx, log.WithName(name))) })
	}
	loops := []manager.Runnable{onEveryReplica{named("catalogue", p.followRefusals)}, p.rounds(log.WithName("upkeep")),
		named("interruption.instancestatus", watcher.RunStatus)}
	if p.shifts != nil {
		p.shifts.elected = mgr.Elected()
		loops = append(loops, onEveryReplica{p.shifts.rounds(log.WithName("zonalshift"))})
	}
	if p.commitments != nil {
		loops = append(loops, onEveryReplica{p.commitments.rounds(log.WithName("commitments"))})
	}
	if !p.opts.OpenReservations {
		examined := (&reservedUpkeep{Provider: p}).rounds(log.WithName("capacityreservation"))
		loops = append(loops, named("capacityreservation", examined.Start))
	}
	if p.opts.Queue != "" {
		loops = append(loops, named("interruption", watcher.RunQueue))
	}
	for _, loop := range loops {
		if err := mgr.Add(loop); err != nil {
			return fmt.Errorf("setting up the AWS provider: %w", err)
		}
	}
	return nil
}

// onEveryReplica is a runnable that also runs on replicas that are not the leader.
type onEveryReplica struct{ manager.Runnable }

// NeedLeaderElection implements controller-runtime's LeaderElectionRunnable.
func (onEveryReplica) NeedLeaderElection() bool { return false }

// followClasses triggers a new read of the catalogs when the spec or the status of a class changes.
func (p *Provider) followClasses(ctx context.Context, mgr ctrl.Manager) error {
	informer, err := mgr.GetCache().GetInformer(ctx, &awsv1.EC2NodeClass{})
	if err != nil {
		return fmt.Errorf("watching EC2NodeClasses: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.opts.Changed() },
		UpdateFunc: func(before, after any) {
			old, isClass := before.(*awsv1.EC2NodeClass)
			if now, ok := after.(*awsv1.EC2NodeClass); ok && isClass && (old.Generation != now.Generation ||
				!maps.Equal(old.Annotations, now.Annotations) || !equality.Semantic.DeepEqual(old.Status, now.Status)) {
				p.opts.Changed()
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			if class, ok := object.(*awsv1.EC2NodeClass); ok {
				p.catalogs.forget(class.UID)
				p.recountFailed.Delete(class.UID)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching EC2NodeClasses: %w", err)
	}
	return nil
}

// followRefusals restores the memory observations, and triggers a new read of the catalogs whenever a refusal expires,
// until ctx ends.
func (p *Provider) followRefusals(ctx context.Context) error {
	if err := p.restoreMemory(ctx); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "memory of instance types is estimated until nodes are seen")
	}
	for ctx.Err() == nil {
		wait, marked := time.Hour, false
		if at, any := p.unavailable.NextExpiry(); any {
			wait, marked = max(at.Sub(p.opts.Clock.Now()), time.Millisecond), true
		}
		timer := p.opts.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer.C():
			if marked {
				p.opts.Changed()
			}
		}
		timer.Stop()
	}
	return nil
}
