package commitment_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/commitment"
)

// TestPlanRules shows how Savings Plans apply: the scenarios of AWS's page, as far as they concern Linux, and the order of
// what saves more. https://docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html
func TestPlanRules(t *testing.T) {
	sold := []commitment.Type{{"r5.4xlarge", 16, 1}, {"m5.xlarge", 4, 0.2}, {"m5.2xlarge", 8, 0.4}, {"c5.xlarge", 4, 0.2}}
	compute := commitment.Plan{ID: "b", Years: 1, Payment: "Partial Upfront", End: noon.Add(time.Hour),
		Rates: map[string]float64{"r5.4xlarge": 0.7, "m5.xlarge": 0.15, "m5.2xlarge": 0.3, "c5.xlarge": 0.16, "new.large": 0.01}}
	family := commitment.Plan{ID: "a", Family: "r5", Years: 1, Payment: "Partial Upfront", End: noon.Add(time.Hour),
		Rates: map[string]float64{"r5.4xlarge": 0.6}}
	of := func(p commitment.Plan, usd float64) commitment.Plan { p.USD = usd; return p }
	other := func(p commitment.Plan, id string, rates map[string]float64) commitment.Plan {
		p.ID, p.Rates = id, rates
		return p
	}
	four := []string{"r5.4xlarge", "r5.4xlarge", "r5.4xlarge", "r5.4xlarge"}
	for _, test := range []struct {
		name     string
		plans    []commitment.Plan
		reserved int // r5.4xlarge
		others   []string
		want     string
	}{
		{"scenario 1: all usage is covered", []commitment.Plan{of(compute, 50)}, 0, four, "sp-compute-1y-partial-upfront 47.2"},
		{"scenario 2: a part is covered", []commitment.Plan{of(compute, 2)}, 0, four, ""},
		{"scenario 3: reserved instances come first", []commitment.Plan{of(compute, 18.2)}, 2, four, "sp-compute-1y-partial-upfront 16.8"},
		{"scenario 4: the plan of the family comes first", []commitment.Plan{of(compute, 16.8), of(family, 3)}, 0, four,
			"sp-r5-1y-partial-upfront 0.6, sp-compute-1y-partial-upfront 16.8"},
		{"what the plan of the family leaves", []commitment.Plan{of(compute, 16.8), of(family, 1.5)}, 0, four,
			"sp-compute-1y-partial-upfront 15.75"},
		{"what saves more is covered first",
			[]commitment.Plan{of(compute, 0.7), of(other(compute, "c", map[string]float64{"c5.xlarge": 0.12}), 1)},
			0, []string{"c5.xlarge", "m5.xlarge", "r5.4xlarge"}, "sp-compute-1y-partial-upfront-2 0.88"},
		{"of what saves as much, the lower rate", []commitment.Plan{of(compute, 0.15)}, 0, []string{"m5.2xlarge", "m5.xlarge"}, ""},
		{"no price is known", []commitment.Plan{of(compute, 0.16)}, 0, []string{"new.large", "m5.xlarge"}, ""},
		{"equal rates are one rule", []commitment.Plan{of(compute, 1), of(other(compute, "d", compute.Rates), 2)}, 0, nil,
			"sp-compute-1y-partial-upfront 3"},
		{"no rates", []commitment.Plan{of(other(compute, "e", nil), 2)}, 0, nil, ""},
		{"an ended plan", []commitment.Plan{{ID: "f", USD: 2, Rates: compute.Rates, End: noon}}, 0, nil, ""},
	} {
		f := commitment.Facts{Plans: test.plans,
			Reserved: []commitment.Reserved{{Type: "r5.4xlarge", Zone: "z", Count: test.reserved, End: noon.Add(time.Hour)}}}
		for _, name := range test.others {
			f.Others = append(f.Others, commitment.Instance{Type: name, Zone: "z"})
		}
		var got []string
		for _, r := range f.Rules(sold, noon) {
			got = append(got, fmt.Sprintf("%s %v", r.Name, math.Round(r.UpTo.USDPerHour*1e9)/1e9))
			if !r.UpTo.Paid || len(r.Prices) == 0 {
				t.Errorf("%s: the rule is %+v", test.name, r)
			}
		}
		if diff := gocmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

// TestPlansAsBilled compares what the rules leave with a bill in exact numbers: of all plans with something left and all
// instances with something left, again and again the pair that saves most.
func TestPlansAsBilled(t *testing.T) {
	const seeds = 500
	partly := 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 45))
		var f commitment.Facts
		rates := map[string]map[string]float64{}
		for id := range random.IntN(6) {
			p := commitment.Plan{ID: fmt.Sprint(id), Years: 1 + 2*random.IntN(2), Payment: "No Upfront", USD: 0.01 + random.Float64()*0.3,
				End: noon.Add(time.Duration(random.IntN(4)) * time.Hour)}
			if random.IntN(2) == 0 {
				p.Family = []string{"m7g", "t3"}[random.IntN(2)]
			}
			sort := fmt.Sprint(p.Family, p.Years, random.IntN(2))
			if rates[sort] == nil {
				rates[sort] = map[string]float64{}
				for _, x := range types {
					if strings.HasPrefix(x.Name, p.Family) && random.IntN(4) > 0 {
						rates[sort][x.Name] = x.USD * (0.3 + 0.6*random.Float64())
					}
				}
			}
			p.Rates = rates[sort]
			f.Plans = append(f.Plans, p)
		}
		for range random.IntN(8) {
			f.Others = append(f.Others, commitment.Instance{Type: types[random.IntN(len(types))].Name})
		}
		want, used := planBill(f)
		got := map[string]float64{}
		for _, r := range f.Rules(types, noon) {
			for name := range r.Prices {
				got[name] += r.UpTo.USDPerHour / r.Of(name, 0)
			}
		}
		for _, x := range types {
			if math.Abs(got[x.Name]-want[x.Name]) > 1e-4 {
				t.Errorf("seed %d: the rules cover %v machines of %s, the bill %v, of %+v", seed, got[x.Name], x.Name, want[x.Name], f)
			}
		}
		if used && len(got) > 0 {
			partly++
		}
	}
	if partly < seeds/4 {
		t.Errorf("only in %d of %d accounts a part is left", partly, seeds)
	}
}

// planBill returns how many machines of each type the plans cover beside the others, and whether those use some.
func planBill(f commitment.Facts) (machines map[string]float64, used bool) {
	exact := func(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }
	prices := map[string]*big.Rat{}
	for _, x := range types {
		prices[x.Name] = exact(x.USD)
	}
	money, hours := make([]*big.Rat, len(f.Plans)), make([]*big.Rat, len(f.Others))
	for p := range money {
		money[p] = new(big.Rat)
		if f.Plans[p].End.After(noon) {
			money[p] = exact(f.Plans[p].USD)
		}
	}
	for i := range hours {
		hours[i] = big.NewRat(1, 1)
	}
	for _, compute := range []bool{false, true} {
		for {
			plan, instance, least := -1, -1, (*big.Rat)(nil) // what is paid of the price
			for p := range money {
				for i := range hours {
					rate, priced := f.Plans[p].Rates[f.Others[i].Type]
					if !priced || (f.Plans[p].Family == "") != compute || money[p].Sign() == 0 || hours[i].Sign() == 0 {
						continue
					}
					share := new(big.Rat).Quo(exact(rate), prices[f.Others[i].Type])
					if least == nil || share.Cmp(least) < 0 {
						plan, instance, least = p, i, share
					}
				}
			}
			if plan < 0 {
				break
			}
			used = true
			rate := exact(f.Plans[plan].Rates[f.Others[instance].Type])
			cost := new(big.Rat).Mul(hours[instance], rate)
			if cost.Cmp(money[plan]) > 0 {
				cost = new(big.Rat).Set(money[plan])
			}
			money[plan].Sub(money[plan], cost)
			hours[instance].Sub(hours[instance], new(big.Rat).Quo(cost, rate))
		}
	}
	machines = map[string]float64{}
	for p, left := range money {
		for name, rate := range f.Plans[p].Rates {
			n, _ := new(big.Rat).Quo(left, exact(rate)).Float64()
			machines[name] += n
		}
	}
	return machines, used
}
