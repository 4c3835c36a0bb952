// Package quantity does arithmetic on resource amounts, such as the requests of a pod and the capacity of a node.
//
// Representation: a resource name is interned once, in a Table, and becomes a small integer, a Resource; an amount of
// several resources is a Vector, one int64 per Resource. The four resources that nearly every pod and node has are
// first in every table:
//
//	index   0            1         2                    3       4...
//	name    cpu          memory    ephemeral-storage    pods    in order of first use
//	unit    millicores   bytes     bytes                count   whole units
//
// Invariant: a table only grows, so an index never changes its meaning, and a vector that was made before the table
// grew stays correct: amounts beyond its end are zero. All operations accept vectors of different lengths. Arithmetic
// saturates at the ends of int64 instead of wrapping, because quantities are written by users ("1M" CPUs, "8Ei" of
// memory) and a wrapped sum would look like free capacity.
//
// Cost: one int64 per resource known when the vector was made (typically four to eight); every operation is one pass.
// Only Intern, Vector, Add, Sub, Max, Min, Scaled and Clone allocate.
//
// The package must not depend on Kubernetes' quantity strings: callers parse and round (requests up, capacity down).
package quantity

import "maps"

// Resource is the index of an interned resource name. It is valid only with its Table and is never used outside the
// engine.
type Resource int

// Resources that have the same index in every Table.
const (
	CPU              Resource = iota // millicores
	Memory                           // bytes
	EphemeralStorage                 // bytes
	Pods                             // count
)

// HoursPerMonth is the average month by which clouds bill: 365 * 24 / 12.
const HoursPerMonth = 730

// Table interns resource names. It only grows. Reading is safe for concurrent use as long as no goroutine interns
// names.
type Table struct {
	names []string
	index map[string]Resource
}

// NewTable returns a table with cpu, memory, ephemeral-storage and pods.
func NewTable() *Table {
	t := &Table{index: map[string]Resource{}}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage", "pods"} {
		t.Intern(name)
	}
	return t
}

// Intern returns the index of a resource name. A new name gets the next free index.
func (t *Table) Intern(name string) Resource {
	if r, ok := t.index[name]; ok {
		return r
	}
	r := Resource(len(t.names))
	t.names = append(t.names, name)
	t.index[name] = r
	return r
}

// Lookup returns the index of a resource name, and false if it is not interned.
func (t *Table) Lookup(name string) (Resource, bool) {
	r, ok := t.index[name]
	return r, ok
}

// Name returns the name of r. It panics if r is not in this table.
func (t *Table) Name(r Resource) string {
	return t.names[r]
}

// Len returns the number of resources known; they are 0 to Len()-1.
func (t *Table) Len() int {
	return len(t.names)
}

// Clone returns an independent table with the same indices.
func (t *Table) Clone() *Table {
	return &Table{names: append([]string(nil), t.names...), index: maps.Clone(t.index)}
}

// Amount is an amount of one resource, in the resource's unit.
type Amount struct {
	Name  string
	Value int64
}

// Vector interns the names of amounts and returns their vector, as long as the table. Amounts of one resource add up.
func (t *Table) Vector(amounts []Amount) Vector {
	for _, a := range amounts {
		t.Intern(a.Name)
	}
	v := make(Vector, len(t.names))
	for _, a := range amounts {
		r := t.index[a.Name]
		v[r] = Add(v[r], a.Value)
	}
	return v
}

// Amounts returns the nonzero amounts of v, in the table's order.
func (t *Table) Amounts(v Vector) []Amount {
	var amounts []Amount
	for r, x := range v {
		if x != 0 {
			amounts = append(amounts, Amount{Name: t.names[r], Value: x})
		}
	}
	return amounts
}
