package model_test

import (
	"slices"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestVolumesOfYoungNodes checks that the volume limit of the type applies until the drivers of a node report one. An
// initialized node whose drivers report no limit holds any number, as for kube-scheduler.
func TestVolumesOfYoungNodes(t *testing.T) {
	volumes := model.VolumeResource("csi.example")
	catalog := &model.Catalog{Types: []model.InstanceType{{
		Name: "small", Capacity: []quantity.Amount{{Name: "cpu", Value: 4000}},
		Allocatable: []quantity.Amount{{Name: volumes, Value: 3}, {Name: "cpu", Value: 4000}},
		Offerings:   []model.Offering{{Zone: "a", CapacityType: "spot", Price: 1, Available: true}},
	}}}
	const many = 1 << 40
	for _, test := range []struct {
		name  string
		stage model.Stage
		kind  string
		says  int64 // limit reported by its drivers, -1 for none
		want  int64
	}{
		{"launched, silent", model.Launched, "small", -1, 3},
		{"registered, silent", model.Registered, "small", -1, 3},
		{"registered, says so", model.Registered, "small", 5, 5},
		{"registered, holds none", model.Registered, "small", 0, 0},
		{"initialized, silent", model.Initialized, "small", -1, many},
		{"initialized, says so", model.Initialized, "small", 5, 5},
		{"of a type that is not sold any more", model.Registered, "large", -1, many},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := model.NewBuilder()
			b.UpsertPool(model.PoolSpec{Name: "pool", Catalog: catalog})
			node := model.NodeSpec{Name: "n", Pool: "pool", Stage: test.stage, Labels: map[string]string{model.LabelType: test.kind},
				Allocatable: []quantity.Amount{{Name: "cpu", Value: 4000}}}
			if test.says >= 0 {
				node.Allocatable = append(node.Allocatable, quantity.Amount{Name: volumes, Value: test.says})
			}
			b.UpsertNode(node)
			snap := b.Snapshot(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
			r := slices.Index(snap.Resources, volumes)
			if r < 0 {
				t.Fatalf("the driver is unknown: %v", snap.Resources)
			}
			got := snap.Node("n").Usable.At(quantity.Resource(r))
			switch {
			case test.want == many:
				if got < many {
					t.Errorf("the node holds %d volumes, want at least %d", got, many)
				}
			case got != test.want:
				t.Errorf("the node holds %d volumes, want %d", got, test.want)
			}
		})
	}
}
