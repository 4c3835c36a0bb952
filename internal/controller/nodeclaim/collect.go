package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// CollectorName is the name of garbage collection in logs and metrics.
const CollectorName = "nodeclaim.garbagecollection"

// Collector removes objects whose counterpart is gone: claims whose machine is gone, machines whose claim is gone,
// and claims whose node is gone. Upstream Karpenter removes the first in its core and the second in its providers. A
// machine without a claim is left after a lost response of the cloud and costs money. A claim without a node is left
// when the finalizers of a node are removed and the node is deleted.
type Collector struct {
	// Client reads nodes from the cache and deletes claims.
	Client client.Client
	// Live reads from the API server. A machine is a leak only if its claim does not exist, and a stale cache must
	// not decide that.
	Live     client.Reader
	Provider cloud.Provider
	Metrics  *telemetry.Metrics
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers
	Clock     clock.Clock
	// Recorder may be nil.
	Recorder *telemetry.Recorder
	// Limiter is asked before a machine is removed that the cloud or its node shows.
	Limiter *removal.Limiter

	classes controller.Classes
	log     logr.Logger
	// nodeless records since when claims are known to have no node. It is lost when the process ends, and the wait
	// restarts.
	nodeless map[types.UID]time.Time
	// disputes are by provider ID.
	disputes map[string]dispute
}

// SetupWithManager starts the collection with the manager, on the leader only.
func (c *Collector) SetupWithManager(mgr ctrl.Manager) error {
	if err := c.Recognize(mgr.GetScheme()); err != nil {
		return err
	}
	c.log = mgr.GetLogger().WithName(CollectorName)
	return mgr.Add(c)
}

// Recognize determines which node classes the provider owns. SetupWithManager calls it.
func (c *Collector) Recognize(scheme *runtime.Scheme) (err error) {
	c.classes, err = controller.ClassesOf(c.Provider, scheme)
	c.classes = c.classes.Within(c.Selection)
	return err
}

// firstRounds is how many successful rounds run at the interval Timers.CollectionFirst after a start. Most leaks
// happen while a process ends.
const firstRounds = 20

// Start runs collections until the context ends, first every Timers.CollectionFirst, then every Timers.Collection.
func (c *Collector) Start(ctx context.Context) error {
	ctx = ctrl.LoggerInto(ctx, c.log)
	for well := 0; ctx.Err() == nil; {
		err := c.Collect(ctx)
		if err == nil {
			well++
		} else if ctx.Err() == nil {
			c.log.Error(err, "collecting garbage")
		}
		pause := c.Timers.Collection
		if well < firstRounds {
			pause = min(c.Timers.CollectionFirst, pause)
		}
		timer := c.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C():
		}
	}
	return nil
}

// NeedLeaderElection returns true: only the leader collects.
func (c *Collector) NeedLeaderElection() bool { return true }

// Collect runs one collection. A failure of one step does not prevent the others.
func (c *Collector) Collect(ctx context.Context) error {
	// 1. List the machines first, then the claims, live. The claim of every machine in the first list is then in the
	// second list, unless the claim is gone.
	machines, unlisted := c.Provider.Machines(ctx)
	claims, err := c.listClaims(ctx)
	if err != nil {
		return errors.Join(unlisted, fmt.Errorf("listing claims: %w", err))
	}
	if unlisted != nil {
		return errors.Join(fmt.Errorf("listing machines: %w", unlisted), c.withoutList(ctx, claims))
	}
	// 2. Evaluate.
	now := c.Clock.Now()
	mistaken := mistakenClaims(machines, claims)
	leaked := slices.DeleteFunc(leakedMachines(machines, claims,
		ages{noted: now.Add(-c.Timers.Leak), others: now.Add(-c.Timers.LeakUnnoted)}), func(m cloud.Machine) bool {
		return mistaken[m.ProviderID] != nil
	})
	kept := c.reportMistaken(ctx, mistaken)
	claims = slices.DeleteFunc(claims, func(claim karpv1.NodeClaim) bool { return kept[claim.UID] })
	missing := slices.DeleteFunc(machineless(machines, claims), func(claim *karpv1.NodeClaim) bool {
		return !c.classes.OwnsClaim(claim)
	})
	// 3. Act. Missing machines are handled first: they show how far the list can be trusted.
	return errors.Join(c.removeMachineless(ctx, missing), c.endStrays(ctx, leaked), c.removeNodeless(ctx, claims, running(machines)))
}

// claimsAtATime is the number of claims that listClaims reads at a time.
const claimsAtATime = 500

// listClaims reads all claims from the API server, as they were at one time, without their managed fields.
func (c *Collector) listClaims(ctx context.Context) ([]karpv1.NodeClaim, error) {
	var all []karpv1.NodeClaim
	for next := ""; ; {
		var page karpv1.NodeClaimList
		if err := c.Live.List(ctx, &page, client.Limit(claimsAtATime), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			page.Items[i].ManagedFields = nil
		}
		all = append(all, page.Items...)
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// withoutList runs the steps that do not depend on the list of machines. Disputed machines are queried one by one, so
// that a dispute can end while only the list fails, and claims without a node are removed.
func (c *Collector) withoutList(ctx context.Context, claims []karpv1.NodeClaim) error {
	var disputed []*karpv1.NodeClaim
	for i := range claims {
		claim := &claims[i]
		if _, is := c.disputes[claim.Status.ProviderID]; is && claim.DeletionTimestamp.IsZero() {
			disputed = append(disputed, claim)
		}
	}
	return errors.Join(c.removeMachineless(ctx, disputed), c.removeNodeless(ctx, claims, nil))
}

// removeNodeless deletes the registered claims whose node has been gone for Timers.NodeGone, as far as the limit on
// removals allows: the cloud still shows most of their machines. listed holds the machines that the cloud lists; it is
// nil if there is no list.
func (c *Collector) removeNodeless(ctx context.Context, claims []karpv1.NodeClaim, listed map[string]bool) error {
	now, still := c.Clock.Now(), map[types.UID]time.Time{}
	var errs []error
	var due []*karpv1.NodeClaim
	for i := range claims {
		claim := &claims[i]
		if !claim.DeletionTimestamp.IsZero() || !c.classes.OwnsClaim(claim) ||
			!claim.Condition(karpv1.ConditionRegistered).IsTrue() {
			continue
		}
		gone, err := c.nodeGone(ctx, claim)
		if err != nil {
			errs = append(errs, err)
		}
		since, known := c.nodeless[claim.UID]
		switch {
		case gone && !known:
			still[claim.UID] = now
		case gone && now.Sub(since) < c.Timers.NodeGone, err != nil && known:
			still[claim.UID] = since
		case gone:
			still[claim.UID] = since
			due = append(due, claim)
		}
	}
	c.nodeless = still
	return errors.Join(append(errs, c.giveBackDue(ctx, due, listed))...)
}

// giveBackDue deletes those of the claims whose removal the Limiter allows.
func (c *Collector) giveBackDue(ctx context.Context, due []*karpv1.NodeClaim, listed map[string]bool) error {
	var errs []error
	var cases []removal.Case
	var claims []*karpv1.NodeClaim
	for _, claim := range due {
		machine, found := claim.Status.ProviderID, true
		if !listed[machine] {
			var err error
			if found, _, err = c.lookup(ctx, claim); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		claims = append(claims, claim)
		cases = append(cases, removal.Case{Machine: machine, Pool: claim.Labels[karpv1.LabelNodePool], Cause: removal.CauseNodeGone,
			Gone: !found})
	}
	if len(cases) == 0 {
		return errors.Join(errs...)
	}
	held, err := c.limited(ctx, cases, func(i int) error { return c.giveBack(ctx, claims[i]) })
	if held > 0 {
		ctrl.LoggerFrom(ctx).Info("kept claims whose node is gone: involuntary removals are paused", "nodeClaims", held)
	}
	return errors.Join(append(errs, err)...)
}

// nodeGone reports whether the claim has no node. It reads the API server if there is none in the cache.
func (c *Collector) nodeGone(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	nodes, err := nodesOf(ctx, c.Client, claim.Status.ProviderID, client.UnsafeDisableDeepCopy)
	if err != nil || len(nodes) > 0 || claim.Status.NodeName == "" {
		return false, err
	}
	node := &corev1.Node{}
	err = c.Live.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for node %s of claim %s: %w", claim.Status.NodeName, claim.Name, err)
	}
	return err != nil || node.Spec.ProviderID != claim.Status.ProviderID, nil
}

// giveBack deletes a claim whose node is gone, which also terminates its machine.
func (c *Collector) giveBack(ctx context.Context, claim *karpv1.NodeClaim) error {
	if err := deleteUnchanged(ctx, c.Client, claim); err != nil {
		if controller.Stale(err) {
			return nil // changed since it was read: the next round decides
		}
		return err
	}
	c.Recorder.Emit(telemetry.NodeGone(claim))
	c.collected(ctx, claim, "node")
	return nil
}

// ages holds the times before which a machine must have been created to count as a leak. noted applies to a machine
// whose launch is recorded on claims, or that names its owner. others applies to a machine for which an unknown claim
// may still appear.
type ages struct{ noted, others time.Time }

// leakedMachines returns the machines that no claim shows and that no claim can show later, and that are old enough. A machine
// of unknown age is kept.
func leakedMachines(machines []cloud.Machine, claims []karpv1.NodeClaim, before ages) []cloud.Machine {
	shown, unlaunched := map[string]bool{}, map[string]bool{}
	for i := range claims {
		if id := claims[i].Status.ProviderID; id != "" {
			shown[id] = true
		} else {
			unlaunched[claims[i].Name] = true
		}
	}
	var leaked []cloud.Machine
	for _, m := range machines {
		limit := before.noted
		if !m.Noted && m.Claim == "" {
			limit = before.others
		}
		old := !m.Created.IsZero() && m.Created.Before(limit)
		underWay := unlaunched[m.Claim] || slices.ContainsFunc(m.Claimants, func(claim string) bool { return unlaunched[claim] })
		if old && !m.Terminating && !shown[m.ProviderID] && !underWay {
			leaked = append(leaked, m)
		}
	}
	return leaked
}

// running returns the IDs of the machines that are not being terminated.
func running(machines []cloud.Machine) map[string]bool {
	ids := map[string]bool{}
	for _, m := range machines {
		if !m.Terminating {
			ids[m.ProviderID] = true
		}
	}
	return ids
}

// machineless returns the registered claims whose machine is not in the list, or is being terminated.
func machineless(machines []cloud.Machine, claims []karpv1.NodeClaim) []*karpv1.NodeClaim {
	alive := running(machines)
	var missing []*karpv1.NodeClaim
	for i := range claims {
		claim := &claims[i]
		if claim.DeletionTimestamp.IsZero() && claim.Status.ProviderID != "" && !alive[claim.Status.ProviderID] &&
			claim.Condition(karpv1.ConditionRegistered).IsTrue() {
			missing = append(missing, claim)
		}
	}
	return missing
}

// collected records that a claim was deleted because its counterpart is gone.
func (c *Collector) collected(ctx context.Context, claim *karpv1.NodeClaim, gone string) {
	ctrl.LoggerFrom(ctx).Info("deleted a claim whose "+gone+" is gone", "nodeClaim", claim.Name, "node",
		claim.Status.NodeName, "providerID", claim.Status.ProviderID, "reason", telemetry.DisruptedGarbageCollected)
	c.Metrics.Disrupted(claim, telemetry.DisruptedGarbageCollected, "")
	c.Metrics.Moving(claim, telemetry.DisruptedGarbageCollected, "", controller.PodsOn(ctx, c.Client, claim.Status.NodeName))
}
