package overlay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// compiled is one valid overlay.
type compiled struct {
	name   string
	weight int32
	// wants holds the allowed values per label key, sorted by key.
	wants []want
	// changesPrice reports whether it has a price or an adjustment; stack whether the adjustment is applied to the
	// outcome of earlier overlays instead of losing to them.
	changesPrice, stack bool
	// adjusts reports whether the price depends on the one before, and opens whether offerings without a price are
	// available with that of the overlay.
	adjusts, opens bool
	adjust         func(usd float64) float64
	// rule is a rule of the price file, nil for a NodeOverlay, and rank its place.
	rule *pricerule.Rule
	rank int
	// capacity in the units of cloud.InstanceType.
	capacity  map[string]int64
	resources []string // the keys of capacity, sorted
}

// want is what an overlay requires of one label.
type want struct {
	key    string
	values cloud.Values
}

// Set holds the overlays of a cluster.
type Set struct {
	overlays []*compiled // the valid ones, in order
	invalid  map[string]string
	// keys are the labels that overlays require something of. Facts about others are not collected.
	keys  map[string]bool
	rules karpv1.LabelRules
	// reservation is the label key for the ID of a capacity reservation, "" if the provider has none.
	reservation string
}

// New reads the overlays. Those that are being deleted count until they are gone.
func New(objects []*karpv1alpha1.NodeOverlay, rules karpv1.LabelRules, reservation string) *Set {
	s := &Set{invalid: map[string]string{}, keys: map[string]bool{}, rules: rules, reservation: reservation}
	for _, object := range objects {
		o, problem := compile(object, rules)
		if problem != "" {
			s.invalid[object.Name] = problem
			continue
		}
		s.overlays = append(s.overlays, o)
		for _, w := range o.wants {
			s.keys[w.key] = true
		}
	}
	slices.SortFunc(s.overlays, func(a, b *compiled) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(b.name, a.name))
	})
	return s
}

// compile returns the overlay, or why it is invalid.
func compile(object *karpv1alpha1.NodeOverlay, rules karpv1.LabelRules) (o *compiled, problem string) {
	o = &compiled{name: object.Name, stack: object.Annotations[karpv1.AnnotationStack] == "true"}
	if object.Spec.Weight != nil {
		o.weight = *object.Spec.Weight
	}
	if problem := o.require(object.Spec.Requirements, rules); problem != "" {
		return nil, "spec." + problem
	}
	if problem := o.readPrice(&object.Spec); problem != "" {
		return nil, problem
	}
	return o, o.readCapacity(object.Spec.Capacity)
}

// require reads the requirements, or returns which of them is invalid.
func (o *compiled) require(list []karpv1alpha1.Requirement, rules karpv1.LabelRules) (problem string) {
	wants := map[string]cloud.Values{}
	for i, r := range list {
		if problem := checkRequirement(r, rules); problem != "" {
			return fmt.Sprintf("requirements[%d]%s", i, problem)
		}
		key := rules.Key(r.Key)
		values, seen := wants[key]
		if !seen {
			values = cloud.AnyValue()
		}
		usual := make([]string, len(r.Values))
		for j, value := range r.Values {
			usual[j] = rules.Value(key, value)
		}
		wants[key] = values.Narrow(string(r.Operator), usual)
	}
	for _, key := range slices.Sorted(maps.Keys(wants)) {
		o.wants = append(o.wants, want{key, wants[key]})
	}
	return ""
}

func checkRequirement(r karpv1alpha1.Requirement, rules karpv1.LabelRules) string {
	if problems := validation.IsQualifiedName(r.Key); len(problems) > 0 {
		return fmt.Sprintf(".key: %q is not a label key: %s", r.Key, strings.Join(problems, "; "))
	}
	if why := rules.Restriction(rules.Key(r.Key)); why != "" {
		return fmt.Sprintf(".key: %s: %s", r.Key, why)
	}
	for j, value := range r.Values {
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return fmt.Sprintf(".values[%d]: %q is not a label value: %s", j, value, strings.Join(problems, "; "))
		}
	}
	return ""
}

// maxPrice is the highest price in USD per hour that an overlay may give. No instance costs as much; sums of much higher
// prices would overflow.
const maxPrice = 1e6

// dearPrice is above every provider's price in USD per hour. An adjustment that raises it beyond maxPrice would make the
// prices of all types equal, because none is higher.
const dearPrice = 1000

// readPrice reads the price or the adjustment. The definition bounds their syntax; one that was installed by another
// version may not.
func (o *compiled) readPrice(spec *karpv1alpha1.NodeOverlaySpec) (problem string) {
	switch {
	case spec.Price != nil && spec.PriceAdjustment != nil:
		return "spec: price and priceAdjustment cannot both be set"
	case spec.Price != nil:
		price, err := strconv.ParseFloat(*spec.Price, 64)
		if err != nil || !(price >= 0 && price <= maxPrice) {
			return fmt.Sprintf("spec.price: %q is not a price; it is USD per hour, zero to 1000000", *spec.Price)
		}
		o.changesPrice, o.opens, o.adjust = true, o.namesTypes(spec.Requirements), func(float64) float64 { return price }
	case spec.PriceAdjustment != nil:
		amount, percent := strings.CutSuffix(*spec.PriceAdjustment, "%")
		by, err := strconv.ParseFloat(amount, 64)
		if err != nil || math.IsNaN(by) || math.IsInf(by, 0) {
			return fmt.Sprintf("spec.priceAdjustment: %q is neither an amount nor a percentage", *spec.PriceAdjustment)
		}
		adjusted := func(usd float64) float64 { return usd + by }
		if percent {
			adjusted = func(usd float64) float64 { return usd * (1 + by/100) }
		}
		if adjusted(dearPrice) > maxPrice {
			return fmt.Sprintf("spec.priceAdjustment: %q makes %d USD per hour more than %d, the highest price; all types would have it",
				*spec.PriceAdjustment,
				dearPrice, int(maxPrice))
		}
		o.changesPrice, o.adjusts, o.adjust = true, true, func(usd float64) float64 { return min(max(0, adjusted(usd)), maxPrice) }
	}
	return ""
}

// namesTypes reports whether an overlay selects instance types by name, and by nothing else. Only such an overlay opens
// offerings without a price: one that matches more would open types that its author does not know of.
func (o *compiled) namesTypes(list []karpv1alpha1.Requirement) bool {
	return len(list) == 1 && list[0].Operator == karpv1.OperatorIn && o.wants[0].key == corev1.LabelInstanceTypeStable
}

// prices reports whether the overlay changes the price of an offering. Without a price there is nothing to adjust.
func (o *compiled) prices(offering *cloud.Offering) bool {
	return o.changesPrice && !(o.adjusts && offering.Unpriced && offering.Price == 0)
}

func (o *compiled) readCapacity(list corev1.ResourceList) (problem string) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, amount := fmt.Sprintf("spec.capacity[%s]", name), list[name]
		switch problems := validation.IsQualifiedName(string(name)); {
		case len(problems) > 0:
			return at + ": is not a resource name: " + strings.Join(problems, "; ")
		case slices.Contains(karpv1.WellKnownResources(), name):
			return at + ": invalid resource restricted"
		case amount.Sign() < 0:
			return at + ": is negative"
		}
		if o.capacity == nil {
			o.capacity = map[string]int64{}
		}
		o.capacity[string(name)] = cloud.Amount(string(name), amount)
		o.resources = append(o.resources, string(name))
	}
	return ""
}

// facts are the known labels of nodes that overlays require something of: the allowed values per key.
type facts map[string]cloud.Values

// narrow adds a requirement on a label to the facts, which may be nil.
func (s *Set) narrow(f facts, key, operator string, values []string) facts {
	if !s.keys[key] {
		return f
	}
	known, restricted := f[key]
	if !restricted {
		known = cloud.AnyValue()
	}
	if f == nil {
		f = facts{}
	}
	f[key] = known.Narrow(operator, values)
	return f
}

// meets reports whether a wanted label is possible. A label that is unknown, or whose facts contradict each other,
// counts as absent.
func (f facts) meets(w want) bool {
	known, restricted := f[w.key]
	if !restricted || !known.Meets(cloud.AnyValue()) {
		return w.values.HasAbsence()
	}
	return w.values.Meets(known)
}

// ofPool returns the facts about all nodes of a pool.
func (s *Set) ofPool(name string, labels map[string]string) facts {
	var f facts
	for key, value := range labels {
		key = s.rules.Key(key)
		f = s.narrow(f, key, "In", []string{s.rules.Value(key, value)})
	}
	return s.narrow(f, karpv1.LabelNodePool, "In", []string{name})
}

// ofType returns the facts about nodes of a type. Keys of offerings are not among them.
func (s *Set) ofType(pool facts, t *cloud.InstanceType) facts {
	f := maps.Clone(pool)
	named := false
	for _, r := range t.Requirements {
		key := s.rules.Key(r.Key)
		f = s.narrow(f, key, r.Operator, r.Values)
		named = named || key == corev1.LabelInstanceTypeStable
	}
	if !named {
		f = s.narrow(f, corev1.LabelInstanceTypeStable, "In", []string{t.Name})
	}
	return f
}

// ofOffering returns what an offering adds to the facts about its type.
func (s *Set) ofOffering(ofType facts, o *cloud.Offering) facts {
	var f facts
	add := func(key, operator string, values []string) {
		if known, restricted := ofType[key]; restricted {
			if _, added := f[key]; !added {
				if f == nil {
					f = facts{}
				}
				f[key] = known
			}
		}
		f = s.narrow(f, key, operator, values)
	}
	add(corev1.LabelTopologyZone, "In", []string{o.Zone})
	add(karpv1.LabelCapacityType, "In", []string{o.CapacityType})
	own := false
	for _, r := range o.Requirements {
		key := s.rules.Key(r.Key)
		add(key, r.Operator, r.Values)
		own = own || key == s.reservation
	}
	switch {
	case s.reservation == "" || own:
	case o.ReservationID == "":
		add(s.reservation, "DoesNotExist", nil)
	default:
		add(s.reservation, "In", []string{o.ReservationID})
	}
	return f
}
