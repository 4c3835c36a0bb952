package loop

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// A node is promised to as many pods as kube-scheduler can reckon with; a pod beyond that is promised nothing, also
// not what it was promised elsewhere.
func TestPromisesAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		here, elsewhere, nowhere int // pods in this order, by where they are nominated
		nominated, cleared       int
	}{
		"few":                          {0, 0, 3, 3, 0},
		"as many as there may be":      {0, 0, mostPromises, mostPromises, 0},
		"more":                         {0, 0, mostPromises + 5, mostPromises, 0},
		"some are promised already":    {100, 0, 20, mostPromises - 100, 0},
		"all are promised already":     {mostPromises, 0, 20, 0, 0},
		"more than there may be":       {mostPromises + 3, 0, 1, 0, 0},
		"promised elsewhere, room":     {0, 2, 1, 3, 0},
		"promised elsewhere, no room":  {mostPromises, 2, 1, 0, 2},
		"promised elsewhere, one goes": {mostPromises - 1, 2, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*model.Pod
			for node, n := range []int{c.here, c.elsewhere, c.nowhere} {
				for range n {
					pods = append(pods, &model.Pod{Shape: &model.Shape{}, UID: fmt.Sprint(len(pods)), Nominated: []string{"here", "elsewhere", ""}[node]})
				}
			}
			nominated, cleared := 0, 0
			for _, action := range promises(pods, "here") {
				switch action := action.(type) {
				case plan.NominatePod:
					nominated++
					if action.Node != "here" {
						t.Errorf("%s, want node here", action)
					}
				case plan.ClearNomination:
					cleared++
				default:
					t.Errorf("%s is no nomination", action)
				}
			}
			if diff := cmp.Diff([]int{c.nominated, c.cleared}, []int{nominated, cleared}); diff != "" {
				t.Errorf("nominated and cleared (-want +got):\n%s", diff)
			}
		})
	}
}
