package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKinds checks that Services and controllers, which are numerous, are needed only for default spread, and that each
// kind is found by its objects.
func TestKinds(t *testing.T) {
	plain, spread := Config{}, Config{DefaultSpread: rackSpread}
	without := plain.Kinds()
	if diff := cmp.Diff(append(without[:len(without)-1:len(without)-1], Services, ReplicaSets, StatefulSets, Controllers, CapacityQuotas),
		spread.Kinds()); diff != "" || len(without) != int(Services)+1 {
		t.Errorf("%d kinds are needed without default spread; with it (-want +got):\n%s", len(without), diff)
	}
	for k := range kinds {
		if got, ok := RefOf(k.New()); !ok || got.Kind != k {
			t.Errorf("an empty object of %s is a %s", k, got.Kind)
		}
	}
}
