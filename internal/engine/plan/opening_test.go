package plan_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// A node opens when its nominations stand. One for which not all pods can be nominated at once comes after nodes that
// keep all their room, as long as pods of another kind are to come to those.
func TestOpening(t *testing.T) {
	const tight, loose = "tight", "loose"
	for name, c := range map[string]struct {
		kinds       map[string]string // of the pods, by the node they are planned onto; those of kind web are spread over zones
		bound       bool              // the pod of the tight node is
		node        string
		nominations int
		want        plan.Opening
	}{
		"just nominated":                   {map[string]string{tight: "db", loose: "web"}, false, tight, 1, plan.Unsettled},
		"keeps all its room":               {map[string]string{tight: "db", loose: "web"}, false, tight, 0, plan.Open},
		"leaves room open":                 {map[string]string{tight: "db", loose: "web"}, false, loose, 0, plan.OthersFirst},
		"leaves room open, nobody else":    {map[string]string{tight: "db", loose: "web"}, true, loose, 0, plan.Open},
		"pods of one kind":                 {map[string]string{tight: "web", loose: "web"}, false, loose, 3, plan.Open},
		"all pods of a node are nominated": {map[string]string{tight: "db", loose: "job"}, false, loose, 0, plan.Open},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0)
			targets := plan.Targets{}
			spread := model.Spread{Key: model.LabelZone, MaxSkew: 1,
				Selector: model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"web"}}}}}
			for _, node := range []string{tight, loose} {
				n, pods := w.add(node, "c-"+node), 1
				n.Stage, n.Labels = model.Launched, map[string]string{model.LabelPool: "p", model.LabelZone: node}
				if node == loose {
					pods = 3
				}
				for i := range pods {
					w.pend(node+"-"+string(rune('0'+i)), node)
					p := &w.pods[len(w.pods)-1]
					if p.Labels = map[string]string{"app": c.kinds[node]}; c.kinds[node] == "web" {
						p.Spread = []model.Spread{spread}
					}
					if p.Requests[0].Value += int64(len(c.kinds[node])); c.bound && node == tight {
						p.State, p.Node = model.Bound, tight
					}
					targets["c-"+node] = append(targets["c-"+node], &model.Pod{Shape: &model.Shape{Namespace: "default"}, UID: p.UID, Name: p.Name})
				}
			}
			if got := targets.Opening(w.snapshot(), "c-"+c.node, c.node, c.nominations); got != c.want {
				t.Errorf("opening is %d, want %d", got, c.want)
			}
		})
	}
}
