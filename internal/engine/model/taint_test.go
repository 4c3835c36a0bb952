package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestTolerationsOfGroups checks that pods which tolerate the same taints of nodes and pools are one group, whatever
// else they tolerate, and that the groups follow the taints.
func TestTolerationsOfGroups(t *testing.T) {
	b := model.NewBuilder()
	tolerations := [][]model.Toleration{
		nil,
		{{Key: "own/1", Exists: true}, {Key: "team", Value: "blue"}},
		{{Key: "own/2", Exists: true}, {Key: "team", Value: "red"}},
		{{Key: "team", Exists: true, Effect: model.NoSchedule}},
		{{Exists: true}},
	}
	for i, list := range tolerations {
		b.UpsertPod(model.PodSpec{UID: fmt.Sprint("pending-", i), Name: fmt.Sprint(i), Namespace: "default", Tolerations: list,
			Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "pods", Value: 1}}})
		b.UpsertPod(model.PodSpec{UID: fmt.Sprint("bound-", i), Name: fmt.Sprint(i), Namespace: "default", Tolerations: list,
			Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "pods", Value: 1}},
			State:    model.Bound, Node: "node", Reschedulable: true, Labels: map[string]string{"own": fmt.Sprint(i)}})
	}
	b.UpsertNode(model.NodeSpec{Name: "node", Stage: model.Initialized})
	red := model.Taint{Key: "team", Value: "red", Effect: model.NoSchedule}
	soft := model.Taint{Key: "team", Value: "blue", Effect: model.PreferNoSchedule}
	for _, step := range []struct {
		name         string
		nodes, pools []model.Taint
		want         map[string]string
	}{
		{name: "no taint", want: map[string]string{"[]": "0 1 2 3 4"}},
		{name: "a taint of a node", nodes: []model.Taint{red}, want: map[string]string{
			"[]": "0 1", "[{team false red NoSchedule}]": "2 3 4"}},
		{name: "and one of a pool", nodes: []model.Taint{red}, pools: []model.Taint{soft}, want: map[string]string{
			"[]": "0", "[{team false blue PreferNoSchedule}]": "1", "[{team false red NoSchedule}]": "2 3",
			"[{team false blue PreferNoSchedule} {team false red NoSchedule}]": "4"}},
		{name: "none again", want: map[string]string{"[]": "0 1 2 3 4"}},
	} {
		b.UpsertNode(model.NodeSpec{Name: "other", Stage: model.Initialized, Taints: step.nodes})
		b.UpsertPool(model.PoolSpec{Name: "pool", Taints: step.pools})
		snap := b.Snapshot(epoch)
		for of, groups := range map[string][]*model.Group{"pending": snap.Groups, "moving": snap.Without("node").Groups} {
			got := map[string]string{}
			for _, g := range groups {
				got[fmt.Sprint(g.Tolerations)] = names(g.Pods)
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s: %s pods by tolerations (-want +got):\n%s", step.name, of, diff)
			}
		}
	}
}

// names returns the names of the pods, each once.
func names(pods []*model.Pod) string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}
