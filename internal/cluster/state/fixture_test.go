package state

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// start is the time of the snapshots in these tests.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newState returns a state whose provider has the node classes of kwok.
func newState(config Config) *State {
	config.Classes = []schema.GroupKind{{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}}
	return New(config)
}

// lost shows the state that an object is gone.
func lost(s *State, obj client.Object) {
	at, _ := RefOf(obj)
	s.Gone(at)
}

// changed reports whether a change of the kind has occurred since the last call.
func changed(s *State, of Change) bool { return s.Drain().Changes&of != 0 }

// smallType returns a catalog of one type.
func smallType(s *State) *model.Catalog {
	catalog, _ := convert.Catalog([]cloud.InstanceType{{
		Name:         "small",
		Requirements: []cloud.Requirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}}},
		Capacity:     map[string]int64{"cpu": 4000, "memory": 16 << 30, "pods": 110},
		Offerings:    []cloud.Offering{{Zone: "a", CapacityType: "on-demand", Price: 1, Available: true}},
	}}, s.vocabulary)
	return catalog
}
