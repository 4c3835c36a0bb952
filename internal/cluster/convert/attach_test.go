package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

func TestAttachLimitsOfNode(t *testing.T) {
	csi := decode[storagev1.CSINode](t, `
metadata: {name: n}
spec:
  drivers:
  - {name: b.example, nodeID: n, allocatable: {count: 25}}
  - {name: none.example, nodeID: n, allocatable: {count: 0}}
  - {name: any.example, nodeID: n}
  - {name: odd.example, nodeID: n, allocatable: {count: -1}}
`)
	spec := model.NodeSpec{Allocatable: []quantity.Amount{{Name: "attachable-volumes-csi-b.example", Value: 7}, {Name: "cpu", Value: 1}}}
	AddAttachLimits(&spec, nil)
	AddAttachLimits(&spec, csi)
	want := []quantity.Amount{
		{Name: "attachable-volumes-csi-b.example", Value: 25}, {Name: "attachable-volumes-csi-none.example"},
		{Name: "attachable-volumes-csi-odd.example"}, {Name: "cpu", Value: 1},
	}
	if diff := cmp.Diff(want, spec.Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
}

func TestAttachLimitsOfType(t *testing.T) {
	catalog, refused := Catalog([]cloud.InstanceType{{
		Name: "small", Capacity: map[string]int64{"cpu": 2000}, AttachLimits: map[string]int{"b.example": 25, "none.example": 0},
	}}, words())
	if len(refused) > 0 {
		t.Fatal(refused)
	}
	want := []quantity.Amount{{Name: "attachable-volumes-csi-b.example", Value: 25}, {Name: "attachable-volumes-csi-none.example"}, {Name: "cpu", Value: 2000}}
	if diff := cmp.Diff(want, catalog.Types[0].Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]quantity.Amount{{Name: "cpu", Value: 2000}}, catalog.Types[0].Capacity); diff != "" {
		t.Errorf("volumes must not be part of the capacity that limits count (-want +got):\n%s", diff)
	}
}
