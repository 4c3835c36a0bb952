package doctor

import (
	"fmt"
	"slices"
	"strings"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// mostPausesNamed is how many pauses a finding names, those that end last.
const mostPausesNamed = 3

// pauses returns findings about operations that are paused for a NodePool: replacements of its nodes, removals of
// machines that neither a user nor a plan requested, or launches of nodes for pods that did not run on the last ones.
func pauses(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Pools {
		pool := &f.Pools[i]
		if !f.owns(pool.Spec.Template.Spec.NodeClassRef) || pool.DeletionTimestamp != nil {
			continue
		}
		object := "nodepool/" + pool.Name
		for _, p := range f.removalPauses(pool) {
			list = append(list, found(RemovalsPaused, object, p.String(),
				"compare the instances in the cloud with the nodes; the event RemovalsPaused (kubectl describe nodepool "+pool.Name+") "+
					"contains the numbers, and a command for each cause"))
		}
		if finding, is := f.paused(pool); is {
			list = append(list, finding)
		}
	}
	return list
}

// ofRemovals reports whether the pause is one of involuntary removals.
func ofRemovals(p pause.Pause) bool { return p.Reason == pause.Removal }

// removalPauses returns the active pauses of involuntary removals that a NodePool has: its own, and that of the fleet.
func (f *Facts) removalPauses(pool *karpv1.NodePool) pause.List {
	active := pause.Parse(pool.Annotations[karpv1.AnnotationPauses]).Active(f.at())
	return slices.DeleteFunc(active, func(p pause.Pause) bool { return !ofRemovals(p) })
}

// paused returns the finding about the active pauses of a NodePool.
func (f *Facts) paused(pool *karpv1.NodePool) (finding cloud.Finding, is bool) {
	active := slices.DeleteFunc(pause.Parse(pool.Annotations[karpv1.AnnotationPauses]).Active(f.at()), ofRemovals)
	if len(active) == 0 {
		return finding, false
	}
	slices.SortStableFunc(active, func(a, b pause.Pause) int { return b.Until.Compare(a.Until) })
	var texts []string
	for _, p := range active[:min(len(active), mostPausesNamed)] {
		texts = append(texts, p.String())
	}
	if more := len(active) - mostPausesNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return found(Paused, "nodepool/"+pool.Name, strings.Join(texts, "; "),
		"kubectl karpenter explain pool "+pool.Name+"; to retry immediately: kubectl annotate nodepool "+pool.Name+" "+karpv1.AnnotationPauses+"-"), true
}
