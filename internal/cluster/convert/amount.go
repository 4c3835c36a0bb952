package convert

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// rounding says which way a part of a unit goes.
type rounding bool

const (
	up   rounding = true  // what is asked for
	down rounding = false // what is there
)

// amounts converts a resource list, sorted by name. Zero amounts are left out.
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

// units is the amount in the engine's unit: millicores of cpu, else whole units. It saturates at the ends of int64.
func units(name corev1.ResourceName, q resource.Quantity, round rounding) int64 {
	largest, value := int64(math.MaxInt64), q.Value
	scale := resource.Scale(0)
	if name == corev1.ResourceCPU {
		largest, value, scale = math.MaxInt64/1000, q.MilliValue, resource.Milli
	}
	switch {
	case q.CmpInt64(largest) > 0:
		return math.MaxInt64
	case q.CmpInt64(-largest) < 0:
		return math.MinInt64
	}
	n := value()
	if round == down && n > math.MinInt64 && resource.NewScaledQuantity(n, scale).Cmp(q) > 0 {
		n--
	}
	return n
}

// fromMap converts a provider's amounts, sorted by name. Zero amounts are left out.
func fromMap(m map[string]int64) []quantity.Amount {
	to := make([]quantity.Amount, 0, len(m))
	for _, name := range sortedKeys(m) {
		if m[name] != 0 {
			to = append(to, quantity.Amount{Name: name, Value: m[name]})
		}
	}
	return to
}
