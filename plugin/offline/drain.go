package offline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// DrainOutcome is the state of the drain of a node that is being deleted.
type DrainOutcome struct {
	// Since is when node or claim was deleted, and EndsAt when the remaining pods are deleted regardless of what
	// protects them (terminationGracePeriod, or a notice of the cloud).
	Since  *time.Time `json:"since,omitempty"`
	EndsAt *time.Time `json:"endsAt,omitempty"`
	// Pods is the number of pods for which the drain waits.
	Pods int `json:"pods"`
	// Blocked are the pods that cannot be evicted now, or that have not ended with their grace period, by their obstacle.
	Blocked []BlockedPods `json:"blocked,omitempty"`
	// Waiting names pods within a long grace period. Without such pods, and if no pod is blocked, it is what the claim
	// waits for, by its conditions.
	Waiting string `json:"waiting,omitempty"`
}

// BlockedPods are pods that keep a node from being drained for the same reason.
type BlockedPods struct {
	// Code is PDBBlocks, PDBsConflict, NodeProtected or PodTerminating.
	Code string `json:"code"`
	// Pod is the first of Count pods, and PDB their PodDisruptionBudget, if it is the obstacle.
	Pod   string `json:"pod"`
	Count int    `json:"count"`
	PDB   string `json:"podDisruptionBudget,omitempty"`
	// Until is when the obstacle ends by time alone.
	Until   *time.Time `json:"until,omitempty"`
	Message string     `json:"message"`

	verdict plan.Verdict
}

// removals is what the objects, unlike the engine's model, say about the end of pods and nodes.
type removals struct {
	// ends are the times by which terminating pods should have ended, by namespace and name.
	ends map[string]time.Time
	// waiting is what a claim that is being deleted waits for, by its conditions.
	waiting map[string]string
}

// removals has to be called before the objects are released.
func (o *objects) removals() removals {
	d := removals{map[string]time.Time{}, map[string]string{}}
	for _, p := range o.pods {
		if at := p.object.DeletionTimestamp; at != nil && p.object.Spec.NodeName != "" {
			d.ends[key(p.object)] = at.UTC()
		}
	}
	for _, c := range o.claims {
		if c.object.DeletionTimestamp == nil {
			continue
		}
		for i := range c.object.Status.Conditions {
			at := &c.object.Status.Conditions[i]
			if (at.Type == karpv1.ConditionDrained || at.Type == karpv1.ConditionVolumesDetached) &&
				at.Status != metav1.ConditionTrue && at.Message != "" {
				d.waiting[c.object.Name] = at.Message
				break
			}
		}
	}
	return d
}

// drainOf returns the state of the drain of a managed node that is being deleted.
func (d removals) drainOf(snap *model.Snapshot, n *model.Node) *DrainOutcome {
	o := &DrainOutcome{}
	if at := n.DeletingSince; !at.IsZero() {
		o.Since = &at
	}
	if at := n.DrainEnds; !at.IsZero() {
		o.EndsAt = &at
	}
	for _, p := range n.Pods {
		if eviction.Awaited(p) {
			o.Pods++
			o.add(snap, p, d.ends[p.Key()])
		}
	}
	for i := range o.Blocked {
		o.Blocked[i].setMessage(snap)
	}
	if ending := slices.IndexFunc(o.Blocked, func(p BlockedPods) bool { return p.ends(snap.Now) }); ending >= 0 {
		o.Waiting = o.Blocked[ending].Message
		o.Blocked = slices.Delete(o.Blocked, ending, ending+1)
	} else if len(o.Blocked) == 0 {
		o.Waiting = d.waiting[n.Claim]
	}
	return o
}

// add adds the pod to those with the same obstacle, if it has one. ends is the end of a terminating pod's grace
// period.
func (o *DrainOutcome) add(snap *model.Snapshot, p *model.Pod, ends time.Time) {
	blocked := BlockedPods{Pod: p.Key(), Count: 1}
	switch v := eviction.Allowed(snap, p); {
	case p.Terminating:
		if ends.IsZero() || ends.Sub(snap.Now).Abs() <= corev1.DefaultTerminationGracePeriodSeconds*time.Second {
			return // an ordinary end
		}
		blocked.Code, blocked.Until = podTerminating, &ends
	case v.OK():
		return
	default:
		blocked.Code, blocked.PDB, blocked.verdict = explain.Code(v.Code), v.Holder.PDB, v
		if at := p.ProtectedUntil; v.Code == plan.NodeProtected && at.Before(model.Forever) {
			blocked.Until = &at
		}
	}
	for i := range o.Blocked {
		if same := &o.Blocked[i]; same.Code == blocked.Code && same.PDB == blocked.PDB && (same.Until == nil) == (blocked.Until == nil) &&
			same.ends(snap.Now) == blocked.ends(snap.Now) {
			same.Count++
			if blocked.Until != nil && blocked.Until.After(*same.Until) {
				same.Until = blocked.Until
			}
			return
		}
	}
	o.Blocked = append(o.Blocked, blocked)
}

// podTerminating is the code of pods that are being deleted.
const podTerminating = "PodTerminating"

// ends reports whether the pods are within their grace period: the drain waits for them, and nothing blocks it.
func (b *BlockedPods) ends(now time.Time) bool { return b.Code == podTerminating && b.Until.After(now) }

// setMessage sets the message.
func (b *BlockedPods) setMessage(snap *model.Snapshot) {
	if b.Code == podTerminating {
		pods, verb := "pod "+b.Pod, "is"
		if b.Count > 1 {
			pods, verb = fmt.Sprintf("%s and %s", pods, plural(b.Count-1, "other pod")), "are"
		}
		b.Message = fmt.Sprintf("%s %s terminating, with a grace period until %s", pods, verb, b.Until.Format(time.RFC3339))
		if !b.ends(snap.Now) {
			b.Message = fmt.Sprintf("%s %s terminating, and the kubelet has not reported the end by %s", pods, verb, b.Until.Format(time.RFC3339))
		}
		return
	}
	v := b.verdict
	if v.Code != plan.PDBsConflict {
		v.Have = int64(b.Count)
	}
	b.Message = explain.Verdict(snap, v)
	if b.Until != nil {
		b.Message += " until " + b.Until.Format(time.RFC3339)
	}
}

// obstacle returns what blocks the drain in one clause, "" for nothing.
func (o *DrainOutcome) obstacle() string {
	if o == nil || len(o.Blocked) == 0 {
		return ""
	}
	text := o.Blocked[0].Message
	if more := len(o.Blocked) - 1; more > 0 {
		text += "; and " + plural(more, "other obstacle")
	}
	return text
}

// write prints the state of the drain.
func (o *DrainOutcome) write(b *strings.Builder, now time.Time) {
	b.WriteString("  is being deleted")
	if o.Since != nil {
		fmt.Fprintf(b, " since %s (%s)", o.Since.Format(time.RFC3339), now.Sub(*o.Since).Round(time.Second))
	}
	if o.Pods > 0 {
		fmt.Fprintf(b, "; its drain waits for %s", plural(o.Pods, "pod"))
	}
	b.WriteByte('\n')
	for i := range o.Blocked {
		fmt.Fprintf(b, "    %s\n", o.Blocked[i].Message)
	}
	switch {
	case o.Waiting != "":
		fmt.Fprintf(b, "    %s\n", o.Waiting)
	case o.Pods == 0:
		return
	}
	if o.EndsAt != nil {
		fmt.Fprintf(b, "    at %s the remaining pods are deleted, regardless of what protects them\n", o.EndsAt.Format(time.RFC3339))
	} else if len(o.Blocked) > 0 {
		b.WriteString("    the drain has no time limit: the claim has no terminationGracePeriod\n")
	}
}
