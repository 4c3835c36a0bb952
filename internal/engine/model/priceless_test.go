package model

import (
	"testing"
	"time"
)

// TestPriceWithoutPool checks that the machine of a claim whose pool does not exist has the price of its type, zone and
// capacity type in the catalog of any pool, whatever the order in which pools and nodes appear.
func TestPriceWithoutPool(t *testing.T) {
	catalog := func(price int64) *Catalog {
		offering := Offering{Zone: "a", CapacityType: "spot", Price: price, Available: true}
		return &Catalog{Types: []InstanceType{{Name: "m", Offerings: []Offering{offering}}}}
	}
	node := func(zone string) NodeSpec {
		return NodeSpec{Name: "n", Claim: "c", Pool: "gone", Stage: Initialized,
			Labels: map[string]string{LabelType: "m", LabelZone: zone, LabelCapacityType: "spot"}}
	}
	b := NewBuilder()
	b.UpsertNode(node("a"))
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"no pool", func() {}, 0},
		{"a pool without the type", func() { b.UpsertPool(PoolSpec{Name: "other", Catalog: &Catalog{}}) }, 0},
		{"a pool with the type", func() { b.UpsertPool(PoolSpec{Name: "z", Catalog: catalog(3)}) }, 3},
		{"the first of two", func() { b.UpsertPool(PoolSpec{Name: "y", Catalog: catalog(2)}) }, 2},
		{"that one is deleted", func() { b.DeletePool("y") }, 3},
		{"the pool is made again", func() { b.UpsertPool(PoolSpec{Name: "gone", Catalog: catalog(5)}) }, 5},
		{"it is deleted again", func() { b.DeletePool("gone") }, 3},
		{"no pool has it", func() { b.DeletePool("z") }, 0},
		{"the provider has it", func() { b.OfferPrices(catalog(4)) }, 4},
		{"another zone", func() { b.UpsertNode(node("b")) }, 0},
	} {
		step.do()
		if got := b.Snapshot(time.Unix(0, 0)).Node("n").Price; got != step.want {
			t.Errorf("%s: the price is %d, want %d", step.name, got, step.want)
		}
	}
}

// TestUnchangedPriceWithoutPool checks that a node without a pool is only encoded again if another pool's catalog
// changes its price.
func TestUnchangedPriceWithoutPool(t *testing.T) {
	offer := func(price int64) PoolSpec {
		offering := Offering{Zone: "a", CapacityType: "spot", Price: price, Available: true}
		return PoolSpec{Name: "other", Catalog: &Catalog{Types: []InstanceType{{Name: "m", Offerings: []Offering{offering}}}}}
	}
	b := NewBuilder()
	b.UpsertNode(NodeSpec{Name: "n", Claim: "c", Pool: "gone", Stage: Initialized,
		Labels: map[string]string{LabelType: "m", LabelZone: "a", LabelCapacityType: "spot"}})
	b.UpsertPool(offer(3))
	before := b.Snapshot(time.Unix(0, 0)).Node("n")
	b.UpsertPool(offer(3))
	if same := b.Snapshot(time.Unix(0, 0)).Node("n"); same != before {
		t.Error("the node is encoded again at the same price")
	}
	b.UpsertPool(offer(4))
	if after := b.Snapshot(time.Unix(0, 0)).Node("n"); before.Price != 3 || after.Price != 4 {
		t.Errorf("the prices are %d and %d", before.Price, after.Price)
	}
}
