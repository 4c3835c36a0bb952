package bill

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// USD is an amount of money, or of money per time, in nano-USD. Documents have it in USD.
type USD int64

// nano is one USD.
const nano = 1_000_000_000

// HoursPerMonth is that of the engine.
const HoursPerMonth = quantity.HoursPerMonth

// USDOf returns an amount of USD, the nearest one. An amount that is not finite, or too large, is 0.
func USDOf(usd float64) USD {
	if n := math.Round(usd * nano); math.Abs(n) < math.MaxInt64/2 {
		return USD(n)
	}
	return 0
}

// Over returns what a price per hour costs over a time, rounded down to nano-USD. A price that is negative is a saving
// that is a loss.
func (u USD) Over(d time.Duration) USD {
	if d <= 0 {
		return 0
	}
	if u < 0 {
		return -(-u).Over(d)
	}
	high, low := bits.Mul64(uint64(u), uint64(d))
	if high >= uint64(time.Hour) {
		return math.MaxInt64
	}
	cost, _ := bits.Div64(high, low, uint64(time.Hour))
	return USD(min(cost, math.MaxInt64))
}

// PerMonth returns an amount per hour as one per month.
func (u USD) PerMonth() USD { return u * HoursPerMonth }

// Float returns the amount in USD, rounded to the precision of the type.
func (u USD) Float() float64 { return float64(u) / nano }

// Text returns the amount in USD, rounded to the decimals.
func (u USD) Text(decimals int) string { return strconv.FormatFloat(u.Float(), 'f', decimals, 64) }

// MarshalJSON writes the amount as a number of USD with all its decimals.
func (u USD) MarshalJSON() ([]byte, error) {
	sign, n := "", uint64(u)
	if u < 0 {
		sign, n = "-", uint64(-u)
	}
	text := fmt.Sprintf("%s%d.%09d", sign, n/nano, n%nano)
	return []byte(strings.TrimSuffix(strings.TrimRight(text, "0"), ".")), nil
}
