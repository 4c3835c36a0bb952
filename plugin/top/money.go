package top

import (
	"fmt"
	"math"
)

// Sum is an amount of USD of several nodes. It is NaN if there are nodes, and no price of them is known: documents then
// lack the field, and text says unknown.
type Sum float64

// SumOf returns the amount for a number of nodes, of which some have no known price.
func SumOf(usd float64, nodes, unpriced int) Sum {
	if unpriced > 0 && unpriced == nodes {
		return Sum(math.NaN())
	}
	return Sum(usd)
}

// IsZero reports whether a document lacks the amount.
func (s Sum) IsZero() bool { return math.IsNaN(float64(s)) }

func (s Sum) String() string {
	if s.IsZero() {
		return unknown
	}
	return fmt.Sprintf("%.4f", float64(s))
}

// unknown is what text says in place of a price.
const unknown = "unknown"
