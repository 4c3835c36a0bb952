package instance

import (
	"testing"
	"time"
)

func TestUnavailable(t *testing.T) {
	offer := Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a", Class: "web", Subnets: []string{"subnet-1", "subnet-2"}}
	with := func(change func(*Offer)) Offer {
		changed := offer
		change(&changed)
		return changed
	}
	type mark = func(*Unavailable)
	general := func(u *Unavailable) { u.Mark(Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a"}) }
	ofWeb := func(u *Unavailable) {
		u.Mark(Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a", Class: "web"})
	}
	ofGroup := func(u *Unavailable) {
		u.Mark(Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a", Group: "pg-1"})
	}
	ofPartition := func(u *Unavailable) {
		u.Mark(Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a", Group: "pg-1", Partition: 2})
	}
	allTypes := func(u *Unavailable) { u.Mark(Offer{CapacityType: "spot", Zone: "us-east-1a", Group: "pg-1"}) }
	spot := func(u *Unavailable) { u.MarkCapacityType("spot") }
	oneSubnet := func(u *Unavailable) { u.MarkSubnet("subnet-1") }
	subnets := func(u *Unavailable) { u.MarkSubnet("subnet-1"); u.MarkSubnet("subnet-2") }
	inGroup := func(partition int) Offer {
		return with(func(o *Offer) { o.Group, o.Partition = "pg-1", partition })
	}
	for _, test := range []struct {
		name string
		mark mark
		asks Offer
		want bool
	}{
		{"nothing", func(*Unavailable) {}, offer, false},
		{"general", general, offer, true},
		{"general, another class", general, with(func(o *Offer) { o.Class = "batch" }), true},
		{"general, in a group", general, inGroup(1), true},
		{"general, another zone", general, with(func(o *Offer) { o.Zone = "us-east-1b" }), false},
		{"general, another type", general, with(func(o *Offer) { o.Type = "m5.xlarge" }), false},
		{"general, on demand", general, with(func(o *Offer) { o.CapacityType = "on-demand" }), false},
		{"one class", ofWeb, offer, true},
		{"one class, another asks", ofWeb, with(func(o *Offer) { o.Class = "batch" }), false},
		{"group", ofGroup, inGroup(0), true},
		{"group, any partition", ofGroup, inGroup(3), true},
		{"group, no member asks", ofGroup, offer, false},
		{"group, another asks", ofGroup, with(func(o *Offer) { o.Group = "pg-2" }), false},
		{"partition", ofPartition, inGroup(2), true},
		{"partition, another asks", ofPartition, inGroup(3), false},
		{"partition, the group asks", ofPartition, inGroup(0), false},
		{"all types of a group", allTypes, inGroup(1), true},
		{"all types of a group, no member asks", allTypes, offer, false},
		{"capacity type", spot, offer, true},
		{"capacity type, another asks", spot, with(func(o *Offer) { o.CapacityType = "on-demand" }), false},
		{"one of two subnets", oneSubnet, offer, false},
		{"all subnets", subnets, offer, true},
		{"all subnets, another class has one more", subnets,
			with(func(o *Offer) { o.Subnets = []string{"subnet-1", "subnet-2", "subnet-3"} }), false},
		{"subnets not known", subnets, with(func(o *Offer) { o.Subnets = nil }), false},
	} {
		now := noon
		u := NewUnavailable(func() time.Time { return now })
		test.mark(u)
		if got := u.Has(test.asks); got != test.want {
			t.Errorf("%s: unavailable %t, want %t", test.name, got, test.want)
		}
		now = now.Add(UnavailableFor)
		if u.Has(test.asks) {
			t.Errorf("%s: still unavailable after %v", test.name, UnavailableFor)
		}
	}
}

func TestUnavailableTimes(t *testing.T) {
	now := noon
	u := NewUnavailable(func() time.Time { return now })
	if _, any := u.NextExpiry(); any || u.Version() != 0 {
		t.Error("there is a mark initially")
	}
	offer := Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a"}
	u.Mark(offer)
	now = now.Add(time.Minute)
	u.MarkSubnet("subnet-1")
	if at, any := u.NextExpiry(); !any || at != noon.Add(UnavailableFor) {
		t.Errorf("the next mark expires at %v, want %v", at, noon.Add(UnavailableFor))
	}
	version := u.Version()
	now = now.Add(time.Minute)
	u.Mark(offer) // extends the mark
	if u.Version() == version {
		t.Error("marking again does not change the version")
	}
	now = noon.Add(UnavailableFor + time.Second)
	switch {
	case !u.Has(offer):
		t.Errorf("after three minutes: u.Has(offer) is false")
	case !u.HasSubnet("subnet-1"):
		t.Errorf(`after three minutes: u.HasSubnet("subnet-1") is false`)
	case u.HasSubnet("subnet-2"):
		t.Errorf(`after three minutes: u.HasSubnet("subnet-2") is true`)
	}
	if at, any := u.NextExpiry(); !any || at != noon.Add(time.Minute+UnavailableFor) {
		t.Errorf("the next mark expires at %v, want %v", at, noon.Add(time.Minute+UnavailableFor))
	}
	now = noon.Add(time.Hour)
	switch _, any := u.NextExpiry(); {
	case any:
		t.Errorf("a mark remains after its expiry: any is true")
	case u.Has(offer):
		t.Errorf("a mark remains after its expiry: u.Has(offer) is true")
	case u.HasSubnet("subnet-1"):
		t.Errorf(`a mark remains after its expiry: u.HasSubnet("subnet-1") is true`)
	}
	u.Mark(offer)
	if len(u.until) != 1 {
		t.Errorf("%d marks are kept, want the one that is valid", len(u.until))
	}
}
