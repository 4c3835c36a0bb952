package execute

import (
	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// LogCreated writes a line at level info for each claim that the actions created: for how many pods, and for which, at
// most telemetry.MostPodNames of them. podsOf returns the names NAMESPACE/NAME of a claim's pods, as far as they are
// known. A create that was repeated after a crash has a line each time.
func LogCreated(log logr.Logger, outcomes []Outcome, podsOf func(*plan.NewClaim) []string) {
	for i := range outcomes {
		a, is := outcomes[i].Action.(plan.CreateClaim)
		if !is || outcomes[i].Err != nil {
			continue
		}
		c := &a.NewClaim
		pods, virtual := c.PodCounts()
		keys := []any{"nodeClaim", c.Name, "nodePool", c.Pool, "reason", a.Reason, "pods", pods,
			"podNames", telemetry.PodNames(podsOf(c))}
		if virtual > 0 {
			keys = append(keys, "virtualPods", virtual)
		}
		if len(c.Options) > 0 {
			o := c.Options[0]
			keys = append(keys, "options", len(c.Options), "cheapest",
				telemetry.Instance{ID: o.Type, Zone: o.Zone, CapacityType: o.CapacityType}.String())
		}
		log.Info("created nodeclaim", keys...)
	}
}

// PodsOf returns the names of the pods of a claim that the plan has as objects, without virtual pods.
func PodsOf(c *plan.NewClaim) []string {
	var names []string
	for _, pod := range c.Pods {
		if pod.Virtual == "" {
			names = append(names, pod.Key())
		}
	}
	return names
}
