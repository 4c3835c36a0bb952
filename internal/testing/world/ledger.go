package world

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// ledger records what commands promise and what they lead to.
type ledger struct {
	// version counts changes that are not status.
	version int
	// orders holds the command of a node. owed holds the commands that moved pods of a controller, until it creates
	// their successors; cause holds the command that moved the predecessor of a pod.
	orders map[string]string
	owed   map[types.UID][]string
	cause  map[types.UID]string
	pods   map[types.UID]*corev1.Pod
	// worth holds the promised and the actual effect of proposed commands, begun those that were not given up.
	worth map[string]*promise
	begun map[string]bool
	// buyers counts the claims of each pool, and those for each controller of pods.
	buyers map[string]int
}

// promise is the planned saving of a command and the amount that provisioning spent on its pods, nano-USD per hour.
type promise struct{ saving, spent int64 }

func newLedger() ledger {
	return ledger{orders: map[string]string{}, owed: map[types.UID][]string{}, cause: map[types.UID]string{},
		pods: map[types.UID]*corev1.Pod{}, worth: map[string]*promise{}, begun: map[string]bool{}, buyers: map[string]int{}}
}

// Begun returns the number of commands that have been begun and not given up.
func (w *World) Begun() int { return len(w.ledger.begun) }

// Losses returns the number of commands that cost more than they saved.
func (w *World) Losses() int {
	n := 0
	for id := range w.ledger.begun {
		if p := w.ledger.worth[id]; p.spent > p.saving {
			n++
		}
	}
	return n
}

// proposed records the promises of commands.
func (l *ledger) proposed(p disruption.Proposal) disruption.Proposal {
	for _, c := range p.Commands {
		l.worth[c.ID] = &promise{saving: c.Worth.Saving}
	}
	return p
}

// launched adds the price of a machine for pending pods to the commands that moved them.
func (l *ledger) launched(claim *karpv1.NodeClaim, price int64) {
	if claim.Annotations[karpv1.AnnotationBoughtBy] != "provisioned" {
		return
	}
	refs := model.ParsePodRefs(claim.Annotations[karpv1.AnnotationPods])
	for _, ref := range refs {
		id := l.cause[types.UID(ref.UID)]
		if p := l.pods[types.UID(ref.UID)]; p != nil && p.Spec.NodeName != "" {
			id = l.orders[p.Spec.NodeName]
		}
		if p := l.worth[id]; p != nil {
			p.spent += price / int64(len(refs))
		}
	}
}

// saw is called with each change of the API.
func (l *ledger) saw(w *World, before, after client.Object) {
	switch cmp.Or[any](after, before).(type) {
	case *karpv1.NodeClaim:
		was, _ := before.(*karpv1.NodeClaim)
		is, _ := after.(*karpv1.NodeClaim)
		l.sawClaim(w, was, is)
	case *corev1.Pod:
		was, _ := before.(*corev1.Pod)
		is, _ := after.(*corev1.Pod)
		l.sawPod(w, was, is)
	}
}

func (l *ledger) sawPod(w *World, was, is *corev1.Pod) {
	switch {
	case is == nil:
		delete(l.pods, was.UID)
		l.version++
		return
	case was == nil:
		l.version++
		if o := is.OwnerReferences; len(o) > 0 && len(l.owed[o[0].UID]) > 0 {
			l.cause[is.UID], l.owed[o[0].UID] = l.owed[o[0].UID][0], l.owed[o[0].UID][1:]
		}
	case was.Spec.NodeName != is.Spec.NodeName:
		l.version++
	}
	l.pods[is.UID] = is
	h := w.kube.hosts[is.Spec.NodeName]
	if was == nil || h == nil || h.DeletionTimestamp.IsZero() || is.DeletionTimestamp.IsZero() || !was.DeletionTimestamp.IsZero() {
		return
	}
	id := l.orders[h.Name]
	if id == "" {
		w.Tally.Interrupted++
	} else {
		w.Tally.Moved++
	}
	if o := is.OwnerReferences; len(o) > 0 {
		l.owed[o[0].UID] = append(l.owed[o[0].UID], id)
	}
}

func (l *ledger) sawClaim(w *World, was, is *karpv1.NodeClaim) {
	if was == nil || is == nil || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() {
		l.version++
	}
	if was == nil {
		l.bought(w, is)
	}
	before, after := commandOf(was), commandOf(is)
	if before == nil && after == nil {
		return
	}
	l.version++
	if after != nil {
		l.begun[after.ID] = true
		for _, c := range after.Candidates {
			l.orders[c.Node] = after.ID
		}
	} else if is != nil && is.DeletionTimestamp.IsZero() {
		delete(l.begun, before.ID)
		for _, c := range before.Candidates {
			delete(l.orders, c.Node)
		}
	}
}

// bought counts a new claim.
func (l *ledger) bought(w *World, claim *karpv1.NodeClaim) {
	if claim.Annotations[karpv1.AnnotationBoughtBy] == "provisioned" {
		w.Tally.Bought++
	}
	l.buyers["pool "+claim.Labels[karpv1.LabelNodePool]]++
	owners := map[string]bool{}
	for _, ref := range model.ParsePodRefs(claim.Annotations[karpv1.AnnotationPods]) {
		if p := l.pods[types.UID(ref.UID)]; p != nil && len(p.OwnerReferences) > 0 {
			owners["owner "+p.OwnerReferences[0].Name] = true
		}
	}
	for owner := range owners {
		l.buyers[owner]++
	}
}

// commandOf returns the command that a claim shows, nil for none.
func commandOf(claim *karpv1.NodeClaim) *plan.Command {
	if claim == nil || claim.Annotations[karpv1.AnnotationCommand] == "" {
		return nil
	}
	c, err := plan.DecodeCommand(claim.Annotations[karpv1.AnnotationCommand])
	if err != nil {
		return nil
	}
	return &c
}
