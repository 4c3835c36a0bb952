package history

import (
	"cmp"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// These are the messages of docs/log.md. Those that begin with "deleted a claim" are one kind. Upstream has some of them
// too, with keys in another form.
var steps = map[string]step{
	"created nodeclaim": created, "created machine": created,
	"launched nodeclaim": launched, "launched machine": launched,
	"registered nodeclaim": registered, "registered machine": registered,
	"initialized nodeclaim": initialized, "initialized machine": initialized,
	"disrupting nodes": disrupting, "abandoned disruption": abandoned,
	"draining node": draining, "drained node": drained,
	"tainted node": draining, "cordoned node": draining,
	"deleted node":      nodeGone,
	"deleted nodeclaim": deleted, "deleted machine": deleted,
}

// eventOf returns what a line says about a node, nil if it is about something else.
func eventOf(l *line) *event {
	e := &event{at: l.when(), step: steps[l.Message],
		claim: cmp.Or(string(l.NodeClaim), string(l.Machine)), node: string(l.Node), pool: cmp.Or(string(l.NodePool), string(l.Provisioner)),
		kind: cmp.Or(l.InstanceType, l.InstanceType2), zone: l.Zone, capacity: cmp.Or(l.CapacityType, l.CapacityType2),
		id: cmp.Or(l.ProviderID, l.ProviderID2), price: int64(bill.USDOf(l.PricePerHour)),
		reason: l.Reason, pods: podList{max(l.Pods.count, len(l.PodNames)), l.PodNames},
		commandID: cmp.Or(l.CommandID, l.CommandID2), reconcile: l.ReconcileID, logger: cmp.Or(l.Controller, l.Logger)}
	switch {
	case e.step == disrupting || e.step == abandoned:
		e.command = commandOf(l)
	case strings.HasPrefix(l.Message, "deleted a claim"):
		e.step, e.detail = claimDeleted, strings.TrimSpace(l.Message+" "+l.Cause)
	case e.step == deleted:
		e.lifetime, _ = time.ParseDuration(l.Lifetime) // 0 if there is none
	case e.step == 0:
		return upstream(l, e)
	}
	if e.claim == "" && e.node == "" && e.command == nil {
		return nil
	}
	return e
}

// commandOf returns the command of a line of this project's controller.
func commandOf(l *line) *Command {
	c := &Command{ID: l.CommandID, Time: l.when(), Reason: strings.ToLower(l.Reason), Decision: l.Decision, Method: l.Method,
		Nodes: l.Nodes, NodeClaims: l.NodeClaims, Pods: l.Pods.count, reconcile: l.ReconcileID, Abandoned: l.Cause}
	if l.Saving != nil {
		saving := bill.USDOf(*l.Saving)
		c.SavingPerHour = &saving
	}
	for _, r := range l.Replacements {
		r, _, _ = strings.Cut(strings.TrimPrefix(r, "nodeclaim/"), " ")
		c.Replacements = append(c.Replacements, r)
	}
	return c
}
