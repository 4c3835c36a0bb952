package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// mostHoldsNamed is how many controllers of pods with paused launches a finding names.
const mostHoldsNamed = 3

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
		if c := firstNotTrue(conditionsOf(pool.Status.Conditions), karpv1.ConditionReplacementsHealthy); c != nil {
			list = append(list, found(ReplacementsFail, object, "nodes are temporarily not replaced, because replacements did not become ready: "+c.text(),
				"kubectl describe nodepool "+pool.Name+"; fix what prevents new nodes from becoming ready; to retry immediately: kubectl annotate nodepool "+pool.Name+" "+karpv1.AnnotationBackoff+"-"))
		}
		if scope := pool.Annotations[karpv1.AnnotationRemovalsPaused]; scope != "" {
			list = append(list, found(RemovalsPaused, object, "involuntary removals of instances are paused, because too many instances of the "+scope+" were to be removed in a short time",
				"compare the instances in the cloud with the nodes; the event RemovalsPaused (kubectl describe nodepool "+pool.Name+") "+
					"contains the numbers, and a command for each cause"))
		}
		if finding, held := f.launchesPaused(pool); held {
			list = append(list, finding)
		}
	}
	return list
}

// launchHold is the value of the annotation launch-backoff for a controller of pods.
type launchHold struct {
	Name     string    `json:"name"`
	Failures int       `json:"failures"`
	Until    time.Time `json:"until"`
	Why      string    `json:"why"`
}

// launchHolds parses the annotation, the hold that ends last first. What cannot be parsed is ignored.
func launchHolds(text string) (list []launchHold) {
	var byOwner map[string]launchHold
	if text == "" || json.Unmarshal([]byte(text), &byOwner) != nil {
		return nil
	}
	for _, hold := range byOwner {
		list = append(list, hold)
	}
	slices.SortFunc(list, func(a, b launchHold) int { return cmp.Or(b.Until.Compare(a.Until), strings.Compare(a.Name, b.Name)) })
	return list
}

// launchesPaused returns the finding about the active holds of a NodePool.
func (f *Facts) launchesPaused(pool *karpv1.NodePool) (finding cloud.Finding, held bool) {
	var names []string
	n := 0
	for _, hold := range launchHolds(pool.Annotations[karpv1.AnnotationLaunchBackoff]) {
		if !hold.Until.After(f.at()) {
			continue
		}
		if n++; n <= mostHoldsNamed {
			name := fmt.Sprintf("%s until %s, after %d launches without effect", hold.Name, hold.Until.Format(time.RFC3339), hold.Failures)
			if hold.Why != "" {
				name += " (" + hold.Why + ")"
			}
			names = append(names, name)
		}
	}
	if n == 0 {
		return finding, false
	}
	if n > mostHoldsNamed {
		names = append(names, fmt.Sprintf("and %d more", n-mostHoldsNamed))
	}
	return found(LaunchesPaused, "nodepool/"+pool.Name, "no node is launched for pods of "+strings.Join(names, "; "),
		"kubectl karpenter explain pod NAME shows what happened to the nodes; to retry immediately: kubectl annotate nodepool "+pool.Name+" "+karpv1.AnnotationLaunchBackoff+"-"), true
}
