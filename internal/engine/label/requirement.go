package label

import (
	"fmt"
	"strconv"
	"strings"
)

// Representation: a requirement as the API spells it, before it is encoded. Nothing here is on a hot path: an operator
// is a small integer, keys and values are the user's strings, and canonical spelling of a key is applied at every
// entrance of the package, so that callers need not.

// Operator says how a requirement's values restrict a label.
type Operator uint8

// The operators of node affinity and of a pool's requirements (Gte and Lte are the pool's own).
const (
	In           Operator = iota // the label is there, with one of the values
	NotIn                        // the label is absent, or has none of the values
	Exists                       // the label is there
	DoesNotExist                 // the label is absent
	Gt                           // the label is an integer above the value
	Lt                           // the label is an integer below the value
	Gte                          // the label is an integer, at least the value
	Lte                          // the label is an integer, at most the value
)

var operatorNames = [...]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}

// String returns the operator as the API spells it.
func (o Operator) String() string {
	if int(o) < len(operatorNames) {
		return operatorNames[o]
	}
	return fmt.Sprintf("Operator(%d)", uint8(o))
}

// ParseOperator returns the operator that the API spells so; case matters.
func ParseOperator(name string) (Operator, bool) {
	for o, known := range operatorNames {
		if name == known {
			return Operator(o), true
		}
	}
	return 0, false
}

// Requirement restricts the values of one label.
//
// Bounds (Gt, Lt, Gte, Lte) take one value, an integer of 64 bits in base 10; with any other values the requirement
// cannot be satisfied, as in Kubernetes. Nor can In without values. NotIn without values allows everything.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string
	// MinValues is the least number of distinct values that must stay possible, 0 for no such demand. It is no part of
	// the algebra: rows do not carry it.
	MinValues int
}

// String renders the requirement for people: "topology.kubernetes.io/zone In [a b]".
func (r Requirement) String() string {
	var b strings.Builder
	b.WriteString(r.Key)
	b.WriteByte(' ')
	b.WriteString(r.Operator.String())
	switch {
	case r.Operator == In || r.Operator == NotIn:
		fmt.Fprintf(&b, " %v", r.Values)
	case len(r.Values) > 0:
		b.WriteByte(' ')
		b.WriteString(strings.Join(r.Values, " "))
	}
	if r.MinValues > 0 {
		fmt.Fprintf(&b, " (at least %d values)", r.MinValues)
	}
	return b.String()
}

// aliases maps labels of old to the keys that replaced them.
// Source: https://kubernetes.io/docs/reference/labels-annotations-taints/
var aliases = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
	"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
	"beta.kubernetes.io/os":                    "kubernetes.io/os",
	"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
}

// Canonical returns today's spelling of a label key that has an alias of old, and any other key as it is.
func Canonical(key string) string {
	if now, ok := aliases[key]; ok {
		return now
	}
	return key
}

// aliasOf returns the old spelling of a canonical key, "" when it has none. No key has two.
func aliasOf(key string) string {
	for old, now := range aliases {
		if now == key {
			return old
		}
	}
	return ""
}

// parseInteger reads a label value as bounds do: base 10, 64 bits, a minus allowed and a plus not.
func parseInteger(value string) (int64, bool) {
	if value == "" || value[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}
