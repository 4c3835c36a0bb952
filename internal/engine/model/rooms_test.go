package model_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

func oneOf(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In, Values: values}
}

// daemonOf returns a DaemonSet with a host port, whose pods run where the requirements hold.
func daemonOf(name string, cpu int64, port int32, reqs ...label.Requirement) model.DaemonSpec {
	d := model.DaemonSpec{UID: name, Namespace: "system", Name: name, Requests: []quantity.Amount{{Name: "cpu", Value: cpu}}}
	if port > 0 {
		d.HostPorts = []model.HostPort{{Protocol: "TCP", Port: port}}
	}
	if len(reqs) > 0 {
		d.Alternatives = [][]label.Requirement{reqs}
	}
	return d
}

// keyFree is a label of the provider that no type defines.
const keyFree = "example.com/free"

// roomsWorld is a pool with the custom label team, and one type of 10 CPUs in the zones a and b, spot and on demand.
func roomsWorld(daemons ...model.DaemonSpec) (*model.Snapshot, *model.Pool) {
	known := map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true, keyFree: true}
	catalog := &model.Catalog{WellKnown: known,
		Types: []model.InstanceType{{Name: "ten", Capacity: cpus(10), Allocatable: cpus(10)}}}
	for _, zone := range []string{"a", "b"} {
		for i, capacity := range []string{"on-demand", "spot"} {
			catalog.Types[0].Offerings = append(catalog.Types[0].Offerings,
				model.Offering{Zone: zone, CapacityType: capacity, Price: int64(10 - i), Available: true})
		}
	}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: catalog, Requirements: []label.Requirement{oneOf("team", "red", "blue", "green")}})
	for _, d := range daemons {
		b.UpsertDaemon(d)
	}
	// The pod mentions the values that the rows need.
	b.UpsertPod(model.PodSpec{UID: "pod", Name: "pod", Namespace: "default", Requests: cpus(1), Alternatives: [][]label.Requirement{
		{oneOf(model.LabelZone, "a", "b"), oneOf(model.LabelCapacityType, "spot", "on-demand"), oneOf("team", "red", "blue", "green")}}})
	s := b.Snapshot(epoch)
	return s, s.Pool("p")
}

func cpus(n int64) []quantity.Amount { return []quantity.Amount{{Name: "cpu", Value: n * 1000}} }

// classOf returns the class of offerings.
func classOf(p *model.Pool, zone, capacity string) int {
	return slices.IndexFunc(p.Types.Classes, func(c model.OfferClass) bool { return c.Zone == zone && c.CapacityType == capacity })
}

// pinned returns the start row of the pool with one value of each of the labels.
func pinned(s *model.Snapshot, p *model.Pool, labels map[string]string) label.Row {
	row := slices.Clone(p.Start)
	for key, value := range labels {
		k, _ := s.Space.Lookup(key)
		s.Space.SetOnly(row, k, s.Space.Atom(k, value))
	}
	return row
}

// TestRoomsByOffering checks that a DaemonSet counts in the classes of offerings that it selects, with its ports.
func TestRoomsByOffering(t *testing.T) {
	s, p := roomsWorld(daemonOf("spot", 2000, 80, oneOf(model.LabelCapacityType, "spot")), daemonOf("a", 3000, 0, oneOf(model.LabelZone, "a")))
	got := map[string]int64{}
	for _, zone := range []string{"a", "b"} {
		for _, capacity := range []string{"spot", "on-demand"} {
			room := p.Rooms.Of(classOf(p, zone, capacity))
			got[zone+" "+capacity] = room.Net[0].At(quantity.CPU)
			if free := room.PortsFree(0, []model.HostPort{{Protocol: "TCP", Port: 80}}); free != (capacity == "on-demand") {
				t.Errorf("the port is free in %s, %s: %t", zone, capacity, free)
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"a spot": 5000, "a on-demand": 7000, "b spot": 8000, "b on-demand": 10000}, got); diff != "" {
		t.Errorf("cpu by offering (-want +got):\n%s", diff)
	}
	spot, demand := p.Rooms.Of(classOf(p, "b", "spot")), p.Rooms.Of(classOf(p, "b", "on-demand"))
	if !spot.MorePorts(0, demand, 0) || demand.MorePorts(0, spot, 0) {
		t.Error("the ports of spot nodes are not more than those of nodes on demand")
	}
	open, onlyB := p.Rooms.Possible(p.Start), p.Rooms.Possible(pinned(s, p, map[string]string{model.LabelZone: "b"}))
	if got := open.Least(0).At(quantity.CPU); got != 5000 {
		t.Errorf("an open node has %d millicores in any case, want 5000", got)
	}
	if got := onlyB.Least(0).At(quantity.CPU); got != 8000 {
		t.Errorf("a node in zone b has %d millicores in any case, want 8000", got)
	}
	if open.PortsFree(0, []model.HostPort{{Protocol: "TCP", Port: 80}}) {
		t.Error("the port is free on an open node, which may be spot")
	}
}

// TestNarrow checks that a row is narrowed to offerings with enough room, and no further than necessary.
func TestNarrow(t *testing.T) {
	spotInA := []label.Requirement{oneOf(model.LabelZone, "a"), oneOf(model.LabelCapacityType, "spot")}
	for name, c := range map[string]struct {
		daemons        []model.DaemonSpec
		zone, capacity string
		need           int64
		want           map[string][]string
	}{
		"all have enough": {[]model.DaemonSpec{daemonOf("a", 3000, 0, oneOf(model.LabelZone, "a"))}, "a", "spot", 6000,
			map[string][]string{model.LabelZone: {"a", "b"}, model.LabelCapacityType: {"on-demand", "spot"}}},
		"one zone has not": {[]model.DaemonSpec{daemonOf("a", 3000, 0, oneOf(model.LabelZone, "a"))}, "b", "spot", 8000,
			map[string][]string{model.LabelZone: {"b"}, model.LabelCapacityType: {"on-demand", "spot"}}},
		// On demand in a and spot in b have enough, so that each of these values alone may stay open.
		"a pair of values has not": {[]model.DaemonSpec{daemonOf("d", 3000, 0, spotInA...)}, "b", "on-demand", 8000,
			map[string][]string{model.LabelZone: {"a", "b"}, model.LabelCapacityType: {"on-demand"}}},
		"a port is taken": {[]model.DaemonSpec{daemonOf("a", 0, 80, oneOf(model.LabelZone, "a"))}, "b", "spot", 1000,
			map[string][]string{model.LabelZone: {"b"}, model.LabelCapacityType: {"on-demand", "spot"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := roomsWorld(c.daemons...)
			row := p.Rooms.Narrow(p.Start, 0, classOf(p, c.zone, c.capacity), func(room *model.Room) bool {
				return room.Net[0].At(quantity.CPU) >= c.need && room.PortsFree(0, []model.HostPort{{Protocol: "TCP", Port: 80}})
			})
			got := map[string][]string{}
			for key := range c.want {
				k, _ := s.Space.Lookup(key)
				got[key] = s.Space.Values(row, k)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("values that stay open (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecidedLabels checks DaemonSets that select a label that the pool leaves open: values that no DaemonSet tells apart
// have the same rooms, and the greatest possible room counts only the DaemonSets that run in any case.
func TestDecidedLabels(t *testing.T) {
	s, p := roomsWorld(daemonOf("red", 4000, 0, oneOf("team", "red")), daemonOf("spot", 1000, 0, oneOf(model.LabelCapacityType, "spot")))
	roomOf := func(team string) int64 {
		return p.RoomsOf(pinned(s, p, map[string]string{"team": team})).Of(classOf(p, "b", "on-demand")).Net[0].At(quantity.CPU)
	}
	if diff := cmp.Diff([]int64{6000, 10000, 10000}, []int64{roomOf("red"), roomOf("blue"), roomOf("green")}); diff != "" {
		t.Errorf("cpu of red, blue and green (-want +got):\n%s", diff)
	}
	blue, green := pinned(s, p, map[string]string{"team": "blue"}), pinned(s, p, map[string]string{"team": "green"})
	if !p.Decided(blue).Equal(p.Decided(green)) {
		t.Error("blue and green have rooms of their own, although no DaemonSet tells them apart")
	}
	if got := len(p.Decisions(p.Start)); got != 3 {
		t.Errorf("the open row has %d rows, want itself, red, and blue or green", got)
	}
	if got := p.MostRoom(0, classOf(p, "b", "spot")).At(quantity.CPU); got != 9000 {
		t.Errorf("a spot node has at most %d millicores, want 9000", got)
	}
	if got := p.MostRoom(0, classOf(p, "b", "on-demand")).At(quantity.CPU); got != 10000 {
		t.Errorf("a node on demand has at most %d millicores, want 10000", got)
	}
}

// TestDecisionsAreDescribable checks that a row is not divided where the requirements of a claim could not say so: at most 6,
// or no value at all, is no requirement.
func TestDecisionsAreDescribable(t *testing.T) {
	_, p := roomsWorld(daemonOf("many", 1000, 0, label.Requirement{Key: keyFree, Operator: label.Gt, Values: []string{"6"}}))
	if got := len(p.Decisions(p.Start)); got != 1 {
		t.Errorf("the open row has %d rows, want itself alone", got)
	}
	_, p = roomsWorld(daemonOf("some", 1000, 0, label.Requirement{Key: keyFree, Operator: label.In, Values: []string{"7"}}))
	if got := len(p.Decisions(p.Start)); got != 3 {
		t.Errorf("the open row has %d rows, want itself, 7, and anything else", got)
	}
}

// TestFutureWithDaemons checks the room of a claim that is not launched, and that a pool with contradicting requirements has
// no future nodes.
func TestFutureWithDaemons(t *testing.T) {
	s, _ := roomsWorld(daemonOf("a", 3000, 0, oneOf(model.LabelZone, "a")))
	spec := model.NodeSpec{Name: "n", Claim: "n", Pool: "p", Stage: model.Launching}
	if got := s.Future(spec, []string{"ten"}).Usable.At(quantity.CPU); got != 7000 {
		t.Errorf("in an open zone the node has %d millicores, want 7000", got)
	}
	spec.Requirements = []label.Requirement{oneOf(model.LabelZone, "b")}
	if got := s.Future(spec, []string{"ten"}).Usable.At(quantity.CPU); got != 10000 {
		t.Errorf("in zone b the node has %d millicores, want 10000", got)
	}
	b := model.NewBuilder()
	catalog := s.Pool("p").Catalog
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: catalog, Requirements: []label.Requirement{oneOf("team", "red"), oneOf("team", "blue")}})
	if n := b.Snapshot(epoch).Future(model.NodeSpec{Name: "n", Pool: "p"}, []string{"ten"}); n != nil {
		t.Errorf("a pool with contradicting requirements has the future node %+v", n)
	}
}

// TestPoolsShareRooms checks that pools have common rooms unless daemons, labels or offerings tell their nodes apart,
// also when one of the pools is encoded later.
func TestPoolsShareRooms(t *testing.T) {
	tolerant := daemonOf("d", 1000, 0)
	tolerant.Tolerations = []model.Toleration{{Key: "owner", Exists: true}}
	idle := []model.Taint{{Key: "owner", Value: "other", Effect: model.NoSchedule}}
	for name, c := range map[string]struct {
		daemon model.DaemonSpec
		other  model.PoolSpec
		want   int64 // millicores on a node of the other pool
		shared bool
	}{
		"another name":               {daemon: daemonOf("d", 1000, 0), want: 9000, shared: true},
		"a taint without daemons":    {other: model.PoolSpec{Taints: idle}, want: 10000, shared: true},
		"a taint that daemons bear":  {daemon: tolerant, other: model.PoolSpec{Taints: idle}, want: 9000, shared: true},
		"a taint that excludes one":  {daemon: daemonOf("d", 1000, 0), other: model.PoolSpec{Taints: idle}, want: 10000},
		"a daemon of the other pool": {daemon: daemonOf("d", 1000, 0, oneOf(model.LabelPool, "other")), want: 9000},
		"one zone": {daemon: daemonOf("d", 1000, 0), other: model.PoolSpec{Requirements: []label.Requirement{oneOf(model.LabelZone, "a")}},
			want: 9000},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := roomsWorld()
			b := model.NewBuilder()
			if c.daemon.UID != "" {
				b.UpsertDaemon(c.daemon)
			}
			one, other := model.PoolSpec{Name: "one", Catalog: p.Catalog}, c.other
			other.Name, other.Catalog = "other", p.Catalog
			one.Requirements = append(one.Requirements, oneOf(model.LabelPool, "one"))
			other.Requirements = append(other.Requirements, oneOf(model.LabelPool, "other"))
			b.UpsertPool(one)
			b.UpsertPool(other)
			first := b.Snapshot(epoch)
			b.UpsertPool(other)
			for _, s := range []*model.Snapshot{first, b.Snapshot(epoch)} {
				one, other := s.Pool("one"), s.Pool("other")
				if shared := one.Rooms == other.Rooms; shared != c.shared {
					t.Errorf("the pools share rooms: %t, want %t", shared, c.shared)
				}
				if got := other.Rooms.Of(classOf(other, "a", "spot")).Net[0].At(quantity.CPU); got != c.want {
					t.Errorf("a node of the other pool has %d millicores for pods, want %d", got, c.want)
				}
			}
		})
	}
}
