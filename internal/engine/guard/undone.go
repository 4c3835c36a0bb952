package guard

import (
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// A command may do what it should and be undone at once, again and again. Whatever the cause, that is a failure of the
// command's reason in the pool (package pause), and later commands of the reason wait, those without replacements too:
//
//   - A consolidation, if a node is launched for the pods that it moved, or they remain pending, or if it is abandoned
//     after its replacements were launched. Something takes room that no plan knows of, such as the pods of a DaemonSet
//     that selects a label which nodes get later.
//   - The replacement of a drifted node, if its node has drifted soon. Two tools change a NodePool in turn.
//
// This is derived from the snapshot, so a restart changes nothing. A failure is counted once, because a pause covers what
// began before it. The first ones are tolerated: a Deployment may grow, or a template be edited, just after a
// command.

const (
	// savingsTolerated and renewalsTolerated are how many failures in a row begin no pause. In a busy fleet, kube-scheduler
	// binds another pod to the place of a moved one now and then, and a node is launched for that.
	savingsTolerated, renewalsTolerated = 2, 1
	// savingStands is how long the result of a consolidation must last to end the count of failures.
	savingStands = 10 * time.Minute
	// renewalStands is how long a replacement of a drifted node must not drift.
	renewalStands = 30 * time.Minute
)

// undoneKey returns the key of the pauses of commands with the reason whose effect does not last.
func undoneKey(pool string, reason plan.Reason) pause.Key {
	return pause.Key{Reason: string(reason) + pause.Undone, Scope: pool}
}

// Undone returns the writes that record which commands were undone, and that end pauses because later commands were not.
func Undone(snap *model.Snapshot) []plan.Action { return findUndone(snap).actions() }

// undone holds the pauses of the snapshot that change, by key.
type undone struct {
	snap    *model.Snapshot
	changed pause.List
	// lasted is when the last command began whose effect has lasted, by key.
	lasted map[pause.Key]time.Time
	// trial is until when the effect of a command after the pause must be awaited, by key.
	trial map[pause.Key]time.Time
}

func findUndone(snap *model.Snapshot) *undone {
	u := &undone{snap: snap, lasted: map[pause.Key]time.Time{}, trial: map[pause.Key]time.Time{}}
	var moved []destination
	for _, n := range snap.Nodes {
		if !n.Ours() {
			continue
		}
		u.renewal(n)
		if d, is := destinationOf(snap, n); is {
			moved = append(moved, d)
			u.await(n.Pool, plan.Underutilized, d.since, d.until)
		}
	}
	if len(moved) > 0 {
		u.savings(moved)
	}
	return u
}

// of returns the pause of the pool with the key, as it is after this snapshot.
func (u *undone) of(pool *model.Pool, key pause.Key) pause.Pause {
	if p := u.changed.Of(key); p.Failures > 0 {
		return p
	}
	return pool.Pauses.Of(key)
}

// fail counts a failure in the pool of a command that began at that time.
func (u *undone) fail(name string, reason plan.Reason, began time.Time, why string) {
	pool := u.snap.Pool(name)
	if pool == nil {
		return
	}
	before := u.of(pool, undoneKey(name, reason))
	if p := failUndone(before, reason, began, u.snap.Now, why); p != before {
		u.changed = u.changed.With(p)
	}
}

func failUndone(before pause.Pause, reason plan.Reason, began, now time.Time, why string) pause.Pause {
	tolerated := savingsTolerated
	if reason == plan.Drifted {
		tolerated = renewalsTolerated
	}
	p := before.Fail(began, now, tolerated, why)
	if p != before {
		p.Name = "removals (" + strings.ToLower(string(reason)) + ")"
	}
	return p
}

func (u *undone) actions() []plan.Action {
	var actions []plan.Action
	for _, pool := range u.snap.Pools {
		for _, reason := range []plan.Reason{plan.Drifted, plan.Underutilized} {
			key := undoneKey(pool.Name, reason)
			if p := u.changed.Of(key); p.Failures > 0 {
				actions = append(actions, plan.SetPause{Pool: pool.Name, UID: pool.UID, Pause: p})
			} else if p := pool.Pauses.Of(key); p.Failures > 0 && !p.Covers(u.lasted[key]) {
				actions = append(actions, plan.EndPause{Pool: pool.Name, UID: pool.UID, Key: key})
			}
		}
	}
	return actions
}

// last records that the effect of a command has lasted.
func (u *undone) last(pool string, reason plan.Reason, began time.Time) {
	if key := undoneKey(pool, reason); began.After(u.lasted[key]) {
		u.lasted[key] = began
	}
}

// await records that the effect of a command is seen at that time. Only a command after the pause is a trial.
func (u *undone) await(name string, reason plan.Reason, began, until time.Time) {
	pool, key := u.snap.Pool(name), undoneKey(name, reason)
	if pool == nil {
		return
	}
	if p := pool.Pauses.Of(key); !p.Until.IsZero() && !p.Covers(began) && until.After(u.trial[key]) {
		u.trial[key] = until
	}
}

// renewal evaluates the node if it was launched in place of a drifted one.
func (u *undone) renewal(n *model.Node) {
	switch now := u.snap.Now; {
	case !n.Renewal:
	case n.Drifted != "" && n.DriftedSince.Sub(n.Created) < renewalStands && now.Sub(n.DriftedSince) < renewalStands:
		u.fail(n.Pool, plan.Drifted, n.Created, "node "+n.Name+" was launched in place of a drifted node and has drifted after "+
			n.DriftedSince.Sub(n.Created).Round(time.Second).String()+" ("+n.Drifted+"): something changes NodePool "+n.Pool+" repeatedly, or its node class")
	case n.Drifted == "" && n.Stage == model.Initialized && now.Sub(n.InitializedAt) < 2*Settling:
		u.await(n.Pool, plan.Drifted, n.Created, n.InitializedAt.Add(2*Settling))
	case n.Drifted == "" && n.Stage == model.Initialized && now.Sub(n.Created) >= renewalStands:
		u.last(n.Pool, plan.Drifted, n.Created)
	}
}

// destination is a node to which a consolidation has moved pods.
type destination struct {
	*model.Node
	// since is when it began to, until when the last of the pods is created again.
	since, until time.Time
}

// destinationOf returns the node as a destination, if a consolidation has moved pods there recently.
func destinationOf(snap *model.Snapshot, n *model.Node) (destination, bool) {
	d := destination{Node: n, since: n.ConsolidatedAt}
	if n.Replacement && n.Stage == model.Initialized && n.InitializedAt.After(d.since) {
		d.since = n.InitializedAt
	}
	d.until = d.since
	if sent := reserve.SentAt(snap, n); sent.After(d.until) && sent.Sub(d.since) < savingStands { // else of a later command
		d.until = sent
	}
	d.until = d.until.Add(Settling)
	return d, !d.since.IsZero() && snap.Now.Sub(d.until) < 2*savingStands
}

// hasPodsOf reports whether the consolidation moved pods of the controller to the node, or meant to.
func (d *destination) hasPodsOf(controller string) bool {
	if controller == "" {
		return false
	}
	for _, p := range d.Pods {
		if p.Controller.UID == controller {
			return true
		}
	}
	for _, ref := range d.LaunchedFor {
		if ref.Controller == controller {
			return true
		}
	}
	return false
}

// savings evaluates the consolidations that moved pods to the destinations.
func (u *undone) savings(moved []destination) {
	pods := u.pods()
	for _, n := range u.snap.Nodes {
		if n.Ours() && !n.Replacement && !n.Renewal {
			u.launched(n, moved, pods)
		}
	}
	for _, g := range u.snap.Groups {
		for _, p := range g.Pods {
			if p.Node == "" && p.Virtual == "" && u.snap.Now.Sub(p.Created) >= Settling {
				u.pending(p, moved)
			}
		}
	}
	for i := range moved {
		if d := &moved[i]; u.snap.Now.Sub(d.until) >= savingStands && d.Reschedulable() > 0 {
			u.last(d.Pool, plan.Underutilized, d.since)
		}
	}
}

// launched evaluates a node that was launched for pods. The pods are those that ran on removed nodes, or their
// successors, if they were created when these were.
func (u *undone) launched(n *model.Node, moved []destination, pods map[string]*model.Pod) {
	for i := range moved {
		d := &moved[i]
		if n.Claim == d.Claim || n.Created.Before(d.since) || n.Created.After(d.until.Add(Settling)) {
			continue
		}
		for _, ref := range n.LaunchedFor {
			controller := ref.Controller
			if p := pods[ref.UID]; controller == "" && p != nil && d.recreated(p) {
				controller = p.Controller.UID
			}
			if d.hasPodsOf(controller) {
				why := "node " + n.Name + " was launched for pods that had been moved to node " + d.Name
				u.fail(n.Pool, plan.Underutilized, d.since, why)
				u.fail(d.Pool, plan.Underutilized, d.since, why)
				return
			}
		}
	}
}

// pending evaluates a pod that has been pending for a while.
func (u *undone) pending(p *model.Pod, moved []destination) {
	for i := range moved {
		if d := &moved[i]; d.recreated(p) && d.hasPodsOf(p.Controller.UID) {
			u.fail(d.Pool, plan.Underutilized, d.since, "pod "+p.Key()+" remains pending after pods had been moved to node "+d.Name)
		}
	}
}

// recreated reports whether the pod was created when the pods were that the consolidation moved.
func (d *destination) recreated(p *model.Pod) bool {
	return !p.Created.Before(d.since) && !p.Created.After(d.until)
}

// pods returns all pods by UID.
func (u *undone) pods() map[string]*model.Pod {
	all := map[string]*model.Pod{}
	for _, g := range u.snap.Groups {
		for _, p := range g.Pods {
			all[p.UID] = p
		}
	}
	for _, n := range u.snap.Nodes {
		for _, p := range n.Pods {
			all[p.UID] = p
		}
	}
	return all
}
