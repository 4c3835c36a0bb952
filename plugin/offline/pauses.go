package offline

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// pausesOutcome is what the controller has paused for a pool.
type pausesOutcome struct {
	// RemovalsPaused names the count of machines that pauses involuntary removals: nodepool or fleet.
	RemovalsPaused string `json:"removalsPaused,omitempty"`
	// Pauses are what is paused after failures.
	Pauses []string `json:"pauses,omitempty"`
}

// pausesOf reads the active pauses of a pool. Removals have a line of their own (aboutRemovals): to remove their pause would
// forget how many machines were removed.
func pausesOf(pool *model.Pool, now time.Time) pausesOutcome {
	o := pausesOutcome{}
	for _, p := range pool.Pauses.Active(now) {
		if p.Reason != pause.Removal {
			o.Pauses = append(o.Pauses, p.String())
		}
	}
	return o
}

// removalsPaused returns which limit pauses involuntary removals of the pool's machines: nodepool, fleet or "" for none. The
// pause of the fleet is stored on any pool.
func (d *DisruptDecision) removalsPaused(pool string) string {
	scope := ""
	for _, p := range d.first.Pools {
		for _, paused := range p.Pauses.Active(d.first.Now) {
			switch {
			case paused.Reason != pause.Removal:
			case paused.Scope == pool:
				return "nodepool"
			case paused.Scope == pause.Fleet:
				scope = "fleet"
			}
		}
	}
	return scope
}

func (o *pausesOutcome) write(b *strings.Builder, pool string) {
	for _, p := range o.Pauses {
		fmt.Fprintf(b, "  %s\n", p)
	}
	if len(o.Pauses) > 0 {
		fmt.Fprintf(b, "    to try again at once: kubectl annotate nodepool %s %s-\n", pool, karpv1.AnnotationPauses)
	}
	if o.RemovalsPaused != "" {
		b.WriteString(aboutRemovals(o.RemovalsPaused, pool))
	}
}

// aboutRemovals returns a line about the pause of involuntary removals.
func aboutRemovals(scope, pool string) string {
	return fmt.Sprintf("  involuntary removals are paused by the limit of the %s; the event RemovalsPaused has the causes and their "+
		"commands: kubectl describe nodepool %s\n", scope, pool)
}

// disputeMemory is how long an event about a dispute is considered current. The event is repeated every 15 minutes.
const disputeMemory = 20 * time.Minute

// Dispute returns the newest event about a claim's machine that the cloud does not find. It is empty if there is
// none, or if events may not be read.
func (l *Cluster) Dispute(ctx context.Context, claim string, now time.Time) string {
	of := client.MatchingFields{"involvedObject.kind": "NodeClaim", "involvedObject.name": claim, "reason": telemetry.ReasonMachineDisputed}
	for _, event := range l.events(ctx, corev1.NamespaceDefault, of) {
		if event.InvolvedObject.Name == claim && event.Reason == telemetry.ReasonMachineDisputed && now.Sub(observed(&event)) < disputeMemory {
			return event.Message
		}
	}
	return ""
}

// refusalMemory is how long an event about an unschedulable pod is considered current. It is repeated every 5 minutes.
const refusalMemory = 6 * time.Minute

// Refusals returns by NAMESPACE/NAME why the controller launches no node for pods of a namespace ("" for all), or for
// one pod, as the newest events of the pods say. What the controller alone knows, such as a shortage of the cloud, is
// there and in no object. It is empty if events may not be read.
func (l *Cluster) Refusals(ctx context.Context, namespace, pod string, now time.Time) map[string]string {
	of := client.MatchingFields{"involvedObject.kind": "Pod"}
	if pod != "" {
		of["involvedObject.name"] = pod
	}
	newest := map[string]corev1.Event{}
	for _, event := range l.events(ctx, namespace, of) {
		ours := event.Reason == telemetry.ReasonNominated || strings.HasPrefix(event.Message, telemetry.FailedSchedulingPrefix)
		name := event.InvolvedObject.Namespace + "/" + event.InvolvedObject.Name
		last, known := newest[name]
		if ours && now.Sub(observed(&event)) < refusalMemory && (!known || observed(&event).After(observed(&last))) {
			newest[name] = event
		}
	}
	refusals := map[string]string{}
	for name, event := range newest {
		if why, refused := strings.CutPrefix(event.Message, telemetry.FailedSchedulingPrefix); refused {
			refusals[name] = why + ", at " + observed(&event).UTC().Format(time.RFC3339)
		}
	}
	return refusals
}

// events returns the events of a namespace ("" for all) with these fields, none if they may not be read.
func (l *Cluster) events(ctx context.Context, namespace string, of client.MatchingFields) []corev1.Event {
	c, err := l.connect()
	if err != nil {
		return nil
	}
	var events corev1.EventList
	if c.List(ctx, &events, client.InNamespace(namespace), client.Limit(PageSize), of) != nil {
		return nil
	}
	return events.Items
}

// observed returns when an event was last observed.
func observed(event *corev1.Event) time.Time {
	if event.Series != nil && event.Series.LastObservedTime.After(event.CreationTimestamp.Time) {
		return event.Series.LastObservedTime.Time
	}
	return event.CreationTimestamp.Time
}
