package disruption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// This test compares the search with exhaustive search. In fleets of a few nodes, in which only cpu matters and moves
// are free, it removes every node and every pair of nodes, in all ways to place the pods on the other nodes and on
// one new node. The search, which does not examine pairs explicitly, must not save less than the best of them, except
// for a few fleets.

// smallSizes are the available sizes: milli-CPUs and nano-USD per hour.
var smallSizes = []struct {
	name  string
	cpu   int
	price int64
}{{"small", 2000, 100_000_000}, {"medium", 4000, 190_000_000}, {"large", 8000, 360_000_000}}

// smallFleet lists the nodes of the fleet: the size of each, and the requests of its pods.
type smallFleet []struct {
	size int
	pods []int
}

func newSmallFleet(seed uint64) smallFleet {
	d := dice{rand.New(rand.NewPCG(seed, 2))}
	f := make(smallFleet, 4+d.IntN(5))
	for i := range f {
		f[i].size = d.IntN(len(smallSizes))
		free := smallSizes[f[i].size].cpu
		for range 1 + d.IntN(2) {
			if cpu := 250 * (1 + d.IntN(8)); cpu <= free {
				f[i].pods, free = append(f[i].pods, cpu), free-cpu
			}
		}
		if f[i].pods == nil {
			f[i].pods = []int{250}
		}
	}
	return f
}

func (f smallFleet) text() string {
	var b strings.Builder
	for _, s := range smallSizes {
		fmt.Fprintf(&b, "type %s cpu=%d price=%v\n", s.name, s.cpu/1000, float64(s.price)/model.Nano)
	}
	b.WriteString("pool p after=0s budget=100% policy=WhenEmptyOrUnderutilized\n")
	for i, n := range f {
		fmt.Fprintf(&b, "node n%d pool=p type=%s\n", i, smallSizes[n.size].name)
		for k, cpu := range n.pods {
			fmt.Fprintf(&b, "pod p%d-%d node=n%d cpu=%v\n", i, k, i, float64(cpu)/1000)
		}
	}
	return b.String()
}

// smallCost returns the cost of a node of the size: in scenarios the price per node is zero.
func smallCost(size int) int64 { return smallSizes[size].price }

// without returns the highest saving when the nodes are removed and at most one is launched.
func (f smallFleet) without(going ...int) int64 {
	var saved int64
	var pods []int
	for _, i := range going {
		saved += smallCost(f[i].size)
		pods = append(pods, f[i].pods...)
	}
	var free []int
	for i, n := range f {
		if slices.Contains(going, i) {
			continue
		}
		left := smallSizes[n.size].cpu
		for _, cpu := range n.pods {
			left -= cpu
		}
		free = append(free, left)
	}
	if fits(pods, free) {
		return saved
	}
	for size := range smallSizes {
		if fits(pods, append(slices.Clone(free), smallSizes[size].cpu)) {
			return saved - smallCost(size)
		}
	}
	return 0
}

// fits reports whether the pods fit into the free room; it tries all ways.
func fits(pods, free []int) bool {
	if len(pods) == 0 {
		return true
	}
	for i := range free {
		if free[i] < pods[0] {
			continue
		}
		free[i] -= pods[0]
		placed := fits(pods[1:], free)
		free[i] += pods[0]
		if placed {
			return true
		}
	}
	return false
}

func TestSearchAgainstPairs(t *testing.T) {
	const fleets = 300
	worse, better := 0, 0
	var found, byHand int64
	for seed := range uint64(fleets) {
		f := newSmallFleet(seed)
		var best int64
		for i := range f {
			best = max(best, f.without(i))
			for k := range i {
				best = max(best, f.without(k, i))
			}
		}
		var saved int64
		for _, c := range disruption.Propose(worldOf(t, f.text()).snapshot(nil), disruption.Options{Economics: disruption.Economics{MovePrice: -1}}).Commands {
			saved += c.Worth.Saving
		}
		found, byHand = found+saved, byHand+best
		switch {
		case saved < best:
			worse++
		case saved > best:
			better++
		}
	}
	t.Logf("%d fleets: the search saves less than the best pair in %d, more in %d; %.2f USD per hour in total, the best pairs %.2f", fleets, worse, better,
		float64(found)/model.Nano, float64(byHand)/model.Nano)
	if worse > fleets/50 || found < byHand {
		t.Errorf("the search saves less than the best pair in %d of %d fleets", worse, fleets)
	}
}
