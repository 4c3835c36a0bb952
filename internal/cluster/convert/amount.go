package convert

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// rounding is the direction in which fractions of a unit are rounded.
type rounding bool

const (
	up   rounding = true  // for requests
	down rounding = false // for capacity
)

// amounts converts a resource list, sorted by name. It omits zero amounts.
func amounts(list corev1.ResourceList, round rounding) []quantity.Amount {
	return appendAmounts(make([]quantity.Amount, 0, len(list)+1), list, round)
}

func appendAmounts(to []quantity.Amount, list corev1.ResourceList, round rounding) []quantity.Amount {
	for name, q := range list {
		if value := units(name, q, round); value != 0 {
			to = append(to, quantity.Amount{Name: string(name), Value: value})
		}
	}
	slices.SortFunc(to, compareAmounts)
	return to
}

func compareAmounts(a, b quantity.Amount) int { return strings.Compare(a.Name, b.Name) }

// units returns the amount in the engine's unit: millicores of cpu, nano-USD per hour of prices, else whole units. It
// saturates at the ends of int64. The approximation is evaluated first, because exact arithmetic with a quantity such as 1e100000000 takes too
// long.
func units(name corev1.ResourceName, q resource.Quantity, round rounding) int64 {
	value, factor, scale := q.Value, 1.0, resource.Scale(0)
	if name == corev1.ResourceCPU {
		value, factor, scale = q.MilliValue, 1000, resource.Milli
	}
	if name == model.ResourceUSD {
		value, factor, scale = func() int64 { return q.ScaledValue(resource.Nano) }, 1e9, resource.Nano
	}
	switch about := q.AsApproximateFloat64() * factor; {
	case about >= 1<<63:
		return math.MaxInt64
	case about <= -1<<63:
		return math.MinInt64
	case math.Abs(about) < tiny && (q.Sign() <= 0 || round == down):
		return 0
	case math.Abs(about) < tiny:
		return 1
	}
	n := value()
	if round == down && n > math.MinInt64 && resource.NewScaledQuantity(n, scale).Cmp(q) > 0 {
		n--
	}
	return n
}

// tiny is the amount below which a nonzero value is only a rounding error: a quantity has nine decimals.
const tiny = 1e-9

// beyond returns the name of an amount that is negative, too large or too small for the engine's arithmetic, and
// whether there is one.
func beyond(list corev1.ResourceList) (corev1.ResourceName, bool) {
	for name, q := range list {
		if unreasonable(q) {
			return name, true
		}
	}
	return "", false
}

// unreasonable reports whether the amount is negative, too large or too small for the engine's arithmetic.
func unreasonable(q resource.Quantity) bool {
	about := math.Abs(q.AsApproximateFloat64())
	return about > math.MaxInt64 || about < tiny && q.Sign() != 0 || q.Sign() < 0
}

// fromMap converts a provider's amounts, sorted by name. It omits zero amounts.
func fromMap(m map[string]int64) []quantity.Amount {
	to := make([]quantity.Amount, 0, len(m))
	for name, value := range m {
		if value != 0 {
			to = append(to, quantity.Amount{Name: name, Value: value})
		}
	}
	slices.SortFunc(to, compareAmounts)
	return to
}
