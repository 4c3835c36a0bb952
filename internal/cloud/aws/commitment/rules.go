package commitment

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// Reserved is a purchase of reserved instances: Linux, shared tenancy.
type Reserved struct {
	ID, Type string
	// Zone is empty for the whole region.
	Zone  string
	Count int
	End   time.Time
}

// Instance is an instance that may use commitments: on demand, Linux, shared tenancy.
type Instance struct{ Type, Zone string }

// Plan is a Savings Plan that covers machines: at its own rates, up to an amount per hour.
type Plan struct {
	ID string
	// Family is empty for a Compute Savings Plan. Plans of a family are those of the region.
	Family string
	// Years and Payment are what the plan was bought for. Its rates depend on them.
	Years   int
	Payment string
	// USD is the commitment per hour, and Rates are in USD per hour by instance type.
	USD   float64
	Rates map[string]float64
	End   time.Time
}

// Facts are what AWS answers.
type Facts struct {
	Reserved []Reserved
	Plans    []Plan
	// Others are the instances of the account and region that the controller has not launched. They use commitments first.
	Others []Instance
}

// Type is an instance type of the region.
type Type struct {
	Name  string
	VCPUs int64
	// USD is its on-demand price per hour, 0 if it is not known.
	USD float64
}

// Rules returns the rules for the commitments that have not ended. The order is that in which AWS applies them: first
// reserved instances of a zone, then those of the region (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/apply_ri.html),
// then Savings Plans.
func (f *Facts) Rules(types []Type, now time.Time) []pricerule.Rule {
	a := account{types: map[string]Type{}, left: make([]float64, len(f.Others)), others: f.Others}
	for _, t := range types {
		a.types[t.Name] = t
	}
	for i := range a.left {
		a.left[i] = 1
	}
	fixed, flexible := map[Instance]float64{}, map[string]float64{}
	for _, r := range f.Reserved {
		switch family, _, _ := strings.Cut(r.Type, "."); {
		case !r.End.After(now) || r.Count <= 0:
		case r.Zone == "" && isFlexible(family) && a.units(r.Type) > 0:
			flexible[family] += float64(r.Count) * a.units(r.Type)
		default:
			fixed[Instance{r.Type, r.Zone}] += float64(r.Count)
		}
	}
	var rules []pricerule.Rule
	for _, at := range slices.SortedFunc(maps.Keys(fixed), compareFixed) {
		rules = append(rules, a.fixed(at, fixed[at])...)
	}
	for _, family := range slices.Sorted(maps.Keys(flexible)) {
		rules = append(rules, a.flexible(family, flexible[family])...)
	}
	return append(rules, a.plans(f.Plans, now)...)
}

// compareFixed orders those of a zone before those of the region.
func compareFixed(a, b Instance) int {
	if (a.Zone == "") != (b.Zone == "") {
		return strings.Compare(b.Zone, a.Zone)
	}
	return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Zone, b.Zone))
}

// account is the account while commitments are applied to its instances.
type account struct {
	types  map[string]Type
	others []Instance
	// left is the part of each instance that no commitment covers yet.
	left []float64
}

// fixed returns the rule for reserved instances of one size.
func (a *account) fixed(at Instance, count float64) []pricerule.Rule {
	for i, o := range a.others {
		if o.Type == at.Type && (at.Zone == "" || o.Zone == at.Zone) {
			took := min(a.left[i], count)
			a.left[i], count = a.left[i]-took, count-took
		}
	}
	vCPUs := count * float64(a.types[at.Type].VCPUs)
	if vCPUs <= 0 {
		return nil
	}
	r := rule("ri-" + at.Type)
	r.InstanceTypes = []string{at.Type}
	if at.Zone != "" {
		r.Name, r.Zones = label("ri-"+at.Type+"-"+at.Zone), []string{at.Zone}
	}
	r.Factor, r.UpTo.VCPUs = new(1.0), vCPUs
	return []pricerule.Rule{r}
}

// flexible returns the rule for regional reserved instances of a family, which apply from the smallest size to the largest.
func (a *account) flexible(family string, units float64) []pricerule.Rule {
	var order []int
	for i, o := range a.others {
		if strings.HasPrefix(o.Type, family+".") && a.units(o.Type) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(a.units(a.others[i].Type), a.units(a.others[k].Type)) })
	for _, i := range order {
		size := a.units(a.others[i].Type)
		took := min(a.left[i]*size, units)
		a.left[i], units = a.left[i]-took/size, units-took
	}
	if units <= 0 {
		return nil
	}
	r := rule("ri-" + family)
	even, unit, prices := true, 0.0, map[string]float64{}
	for name, t := range a.types {
		if size := a.units(name); size > 0 && strings.HasPrefix(name, family+".") {
			even = even && size == unitsPerCPU*float64(t.VCPUs)
			prices[name], unit = size, max(unit, t.USD/size)
		}
	}
	if even {
		r.Families, r.Factor, r.UpTo.VCPUs = []string{family}, new(1.0), units/unitsPerCPU
		return []pricerule.Rule{r}
	}
	if unit <= 0 {
		return nil
	}
	// Plans round prices up to three binary digits: a power of two keeps those of the sizes exact.
	unit = math.Exp2(math.Round(math.Log2(unit)))
	for name, size := range prices {
		prices[name] = size * unit
	}
	r.Prices, r.UpTo.USDPerHour = prices, units*unit
	return []pricerule.Rule{r}
}

// rule returns a rule of a paid commitment, for machines of Linux.
func rule(name string) pricerule.Rule {
	return pricerule.Rule{Name: label(name), CapacityTypes: []string{karpv1.CapacityTypeOnDemand}, UpTo: &pricerule.Limit{Paid: true},
		Requirements: []karpv1alpha1.Requirement{{Key: "kubernetes.io/os", Operator: karpv1.OperatorIn, Values: []string{"linux"}}}}
}

// label makes a DNS label.
func label(name string) string {
	return strings.NewReplacer(".", "-", " ", "-").Replace(strings.ToLower(name))
}

// sizes are the normalization factors of sizes that do not follow from the name.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/apply_ri.html#ri-instance-size-flexibility
var sizes = map[string]float64{"nano": 0.25, "micro": 0.5, "small": 1, "medium": 2, "large": 4, "xlarge": 8}

// unitsPerCPU is the normalization factor of a vCPU, in families whose sizes are multiples of each other. In those of
// burstable performance, several sizes have as many vCPUs.
const unitsPerCPU = 2

// units returns the normalization factor of a type, 0 if it is not known. That of bare metal is that of the virtual size
// with as many vCPUs.
func (a *account) units(name string) float64 {
	_, size, _ := strings.Cut(name, ".")
	if units, known := sizes[size]; known {
		return units
	}
	if strings.HasPrefix(size, "metal") {
		return unitsPerCPU * float64(a.types[name].VCPUs)
	}
	if times, is := strings.CutSuffix(size, "xlarge"); is {
		if n, err := strconv.Atoi(times); err == nil && n > 0 {
			return sizes["xlarge"] * float64(n)
		}
	}
	return 0
}

// isFlexible reports whether reserved instances of a family are for all of its sizes. AWS excludes many families of
// accelerated and high-performance computing, and adds new ones; all of these count as excluded here, so that at most too
// little is covered. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/apply_ri.html
func isFlexible(family string) bool {
	for _, prefix := range []string{"g", "hpc", "inf", "p", "trn", "dl", "u", "vt", "f", "mac"} {
		if strings.HasPrefix(family, prefix) {
			return false
		}
	}
	return true
}
