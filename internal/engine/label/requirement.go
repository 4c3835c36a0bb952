package label

import (
	"fmt"
	"strconv"
	"strings"
)

// Representation: a requirement in the form of the API, before it is encoded. Nothing here is on a hot path. An
// operator is a small integer; keys and values are strings as in the API. Every entry point of the package converts
// keys to their canonical spelling, so callers need not.

// Operator says how a requirement's values restrict a label.
type Operator uint8

// The operators of node affinity and of a pool's requirements (only pools have Gte and Lte).
const (
	In           Operator = iota // the label exists with one of the values
	NotIn                        // the label is absent or has none of the values
	Exists                       // the label exists
	DoesNotExist                 // the label is absent
	Gt                           // the label is an integer above the value
	Lt                           // the label is an integer below the value
	Gte                          // the label is an integer, at least the value
	Lte                          // the label is an integer, at most the value
)

var operatorNames = [...]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}

// String returns the operator in the spelling of the API.
func (o Operator) String() string {
	if int(o) < len(operatorNames) {
		return operatorNames[o]
	}
	return fmt.Sprintf("Operator(%d)", uint8(o))
}

// ParseOperator returns the operator with the name in the API. It is case sensitive.
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
// cannot be satisfied, as in Kubernetes. In without values cannot be satisfied either. NotIn without values allows
// everything.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string
	// MinValues is the least number of distinct values that must remain possible; 0 means no such constraint. It is
	// not part of the algebra: rows do not carry it.
	MinValues int
}

// String returns the requirement as text: "topology.kubernetes.io/zone In [a b]".
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

// aliases maps deprecated labels to the keys that replaced them. Source:
// https://kubernetes.io/docs/reference/labels-annotations-taints/
var aliases = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
	"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
	"beta.kubernetes.io/os":                    "kubernetes.io/os",
	"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
}

// Canonical returns the key that replaced a deprecated label key. It returns any other key unchanged.
func Canonical(key string) string {
	if now, ok := aliases[key]; ok {
		return now
	}
	return key
}

// aliasOf returns the deprecated spelling of a canonical key, or "". No key has more than one.
func aliasOf(key string) string {
	for old, now := range aliases {
		if now == key {
			return old
		}
	}
	return ""
}

// parseInteger parses a label value as bounds do: base 10, 64 bits, with an optional minus but no plus sign.
func parseInteger(value string) (int64, bool) {
	if value == "" || value[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}
