package history

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// USD is an amount in nano-USD. Documents have it in USD.
type USD int64

const nano = 1_000_000_000

// usdOf returns an amount in nano-USD, the nearest one. An amount that is not finite, or too large, is 0.
func usdOf(usd float64) USD {
	if n := math.Round(usd * nano); math.Abs(n) < math.MaxInt64/2 {
		return USD(n)
	}
	return 0
}

// MarshalJSON implements json.Marshaler. The number has all decimals.
func (u USD) MarshalJSON() ([]byte, error) {
	sign, rest := "", u
	if u < 0 {
		sign, rest = "-", -u
	}
	text := fmt.Sprintf("%s%d.%09d", sign, rest/nano, rest%nano)
	return []byte(strings.TrimSuffix(strings.TrimRight(text, "0"), ".")), nil
}

// text returns the amount with so many decimals.
func (u USD) text(decimals int) string { return fmt.Sprintf("%.*f", decimals, float64(u)/nano) }

// over returns what a price per hour costs over a time, rounded down to nano-USD. A price that is negative is a saving
// that is a loss.
func (u USD) over(d time.Duration) USD {
	if d <= 0 {
		return 0
	}
	if u < 0 {
		return -(-u).over(d)
	}
	high, low := bits.Mul64(uint64(u), uint64(d))
	if high >= uint64(time.Hour) {
		return math.MaxInt64
	}
	cost, _ := bits.Div64(high, low, uint64(time.Hour))
	return USD(min(cost, math.MaxInt64))
}
