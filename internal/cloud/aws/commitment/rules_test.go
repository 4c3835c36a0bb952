package commitment_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/commitment"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

var types = []commitment.Type{
	{"m7g.medium", 1, 0.0408}, {"m7g.large", 2, 0.0816}, {"m7g.xlarge", 4, 0.1632}, {"m7g.2xlarge", 8, 0.3264}, {"m7g.metal", 64, 2.6112},
	{"t3.nano", 2, 0.0052}, {"t3.small", 2, 0.0208}, {"t3.large", 2, 0.0832}, {"t3.xlarge", 4, 0.1664},
	{"g5.xlarge", 4, 1.006}, {"g5.2xlarge", 8, 1.212},
}

// TestRules shows the rule of each kind of reserved instances, and what other instances leave.
func TestRules(t *testing.T) {
	f := commitment.Facts{
		Reserved: []commitment.Reserved{
			{ID: "1", Type: "m7g.xlarge", Count: 10, End: noon.Add(time.Hour)},
			{ID: "2", Type: "m7g.metal", Count: 1, End: noon.Add(time.Hour)},
			{ID: "3", Type: "m7g.large", Zone: "us-east-1a", Count: 3, End: noon.Add(time.Hour)},
			{ID: "4", Type: "g5.xlarge", Count: 2, End: noon.Add(time.Hour)},
			{ID: "5", Type: "t3.large", Count: 3, End: noon.Add(time.Hour)},
			{ID: "6", Type: "m7g.large", Count: 100, End: noon},
			{ID: "7", Type: "unknown.large", Zone: "us-east-1a", Count: 100, End: noon.Add(time.Hour)},
		},
		Others: []commitment.Instance{{"m7g.large", "us-east-1a"}, {"m7g.large", "us-east-1b"}, {"t3.xlarge", "us-east-1b"},
			{"t3.xlarge", "us-east-1b"}, {"g5.2xlarge", "us-east-1b"}, {"c7g.large", "us-east-1b"}},
	}
	var got []string
	for _, r := range f.Rules(types, noon) {
		limit := fmt.Sprintf("%v vCPUs", r.UpTo.VCPUs)
		if r.UpTo.USDPerHour > 0 {
			limit = fmt.Sprintf("%v USD at %v", r.UpTo.USDPerHour, r.Prices)
		}
		got = append(got, fmt.Sprintf("%s %v%v%v: %s, paid %t", r.Name, r.InstanceTypes, r.Families, r.Zones, limit, r.UpTo.Paid))
	}
	want := []string{
		"ri-m7g-large-us-east-1a [m7g.large][][us-east-1a]: 4 vCPUs, paid true",
		"ri-g5-xlarge [g5.xlarge][][]: 8 vCPUs, paid true",
		// 40 and 64 vCPUs, less those of the instance in zone b.
		"ri-m7g [][m7g][]: 102 vCPUs, paid true",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f.Others = f.Others[:3] // one t3.xlarge leaves 4 of 12 units, at 1/64 USD
	rules := f.Rules(types, noon)
	last := rules[len(rules)-1]
	if diff := gocmp.Diff(map[string]float64{"t3.nano": 0.00390625, "t3.small": 0.015625, "t3.large": 0.0625, "t3.xlarge": 0.125},
		last.Prices); diff != "" ||
		last.UpTo.USDPerHour != 0.0625 || last.Name != "ri-t3" {
		t.Errorf("the rule of burstable instances is %+v, prices -want +got:\n%s", last, diff)
	}
}

// TestAsBilled compares what the rules leave to the cluster with a bill: each purchase is split into pieces of a quarter of a
// unit, and each piece covers a piece of an instance, in the order that AWS documents.
func TestAsBilled(t *testing.T) {
	const seeds = 500
	covered := 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 44))
		f := commitment.Facts{}
		zones := []string{"us-east-1a", "us-east-1b"}
		for range random.IntN(5) {
			r := commitment.Reserved{Type: types[random.IntN(len(types))].Name, Count: 1 + random.IntN(4),
				End: noon.Add(time.Duration(random.IntN(4)) * time.Hour)}
			if random.IntN(2) == 0 {
				r.Zone = zones[random.IntN(2)]
			}
			f.Reserved = append(f.Reserved, r)
		}
		for range random.IntN(8) {
			f.Others = append(f.Others, commitment.Instance{Type: types[random.IntN(len(types))].Name, Zone: zones[random.IntN(2)]})
		}
		ours := commitment.Instance{Type: types[random.IntN(len(types))].Name, Zone: zones[random.IntN(2)]}
		want := billed(f, ours)
		got := 0.0
		for _, r := range f.Rules(types, noon) {
			if !r.Matches(ours.Type, &cloud.Offering{Zone: ours.Zone, CapacityType: "on-demand"}) {
				continue
			}
			i := slices.IndexFunc(types, func(x commitment.Type) bool { return x.Name == ours.Type })
			if r.UpTo.VCPUs > 0 {
				got += r.UpTo.VCPUs / float64(types[i].VCPUs)
			} else {
				got += r.UpTo.USDPerHour / r.Of(ours.Type, types[i].USD)
			}
		}
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("seed %d: the rules cover %v machines like %v, the bill %v, of %+v", seed, got, ours, want, f)
		}
		if want > 0 {
			covered++
		}
	}
	if covered < seeds/10 {
		t.Errorf("only in %d of %d histories something is covered", covered, seeds)
	}
}

// quarters are the sizes of types in quarters of a unit of normalization.
var quarters = map[string]int{"nano": 1, "small": 4, "medium": 8, "large": 16, "xlarge": 32, "2xlarge": 64, "metal": 512}

func size(name string) int { _, s, _ := strings.Cut(name, "."); return quarters[s] }

// billed returns how many machines like ours the purchases cover beside the others.
func billed(f commitment.Facts, ours commitment.Instance) float64 {
	left := make([]int, len(f.Others))
	order := make([]int, len(f.Others))
	for i, o := range f.Others {
		left[i], order[i] = size(o.Type), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(f.Others[a].Type), size(f.Others[b].Type)) })
	total := 0
	for pass := range 2 { // first those of a zone
		for _, r := range f.Reserved {
			if (r.Zone == "") != (pass == 1) || !r.End.After(noon) {
				continue
			}
			flexible := r.Zone == "" && !strings.HasPrefix(r.Type, "g5.")
			matches := func(x commitment.Instance) bool {
				family, _, _ := strings.Cut(r.Type, ".")
				return flexible && strings.HasPrefix(x.Type, family+".") || x.Type == r.Type && (r.Zone == "" || x.Zone == r.Zone)
			}
			pieces := r.Count * size(r.Type)
			for _, i := range order {
				for matches(f.Others[i]) && left[i] > 0 && pieces > 0 {
					left[i]--
					pieces--
				}
			}
			if matches(ours) {
				total += pieces
			}
		}
	}
	return float64(total) / float64(size(ours.Type))
}
