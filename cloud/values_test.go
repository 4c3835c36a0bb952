package cloud

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// universe returns values of every kind that the random requirements in this file can distinguish. nil is absence.
func universe() []*string {
	values := []*string{nil}
	for n := -3; n <= 12; n++ {
		values = append(values, new(strconv.Itoa(n)))
	}
	for _, word := range []string{"a", "b", "c", "never-mentioned", "", "1.5"} {
		values = append(values, new(word))
	}
	return values
}

// satisfies is a simple reference implementation of Values: it checks one value against one requirement by the
// definition of the operator.
func satisfies(value *string, operator string, values []string) bool {
	switch operator {
	case "In":
		return value != nil && slices.Contains(values, *value)
	case "NotIn":
		return value == nil || !slices.Contains(values, *value)
	case "Exists":
		return value != nil
	case "DoesNotExist":
		return value == nil
	}
	if value == nil {
		return false
	}
	n, err := strconv.Atoi(*value)
	if err != nil {
		return false
	}
	bound, _ := strconv.Atoi(values[0])
	return map[string]bool{"Gt": n > bound, "Lt": n < bound, "Gte": n >= bound, "Lte": n <= bound}[operator]
}

type condition struct {
	operator string
	values   []string
}

func randomConditions(random *rand.Rand) []condition {
	operators := []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}
	words := []string{"a", "b", "c", "1", "2", "3", "4", "5"}
	var conditions []condition
	for range random.IntN(4) {
		c := condition{operator: operators[random.IntN(len(operators))]}
		switch c.operator {
		case "In", "NotIn":
			for range 1 + random.IntN(4) {
				c.values = append(c.values, words[random.IntN(len(words))])
			}
		case "Gt", "Lt", "Gte", "Lte":
			c.values = []string{strconv.Itoa(random.IntN(8))}
		}
		conditions = append(conditions, c)
	}
	return conditions
}

func narrowed(conditions []condition) Values {
	v := AnyValue()
	for _, c := range conditions {
		v = v.Narrow(c.operator, c.values)
	}
	return v
}

func allSatisfied(value *string, conditions []condition) bool {
	return !slices.ContainsFunc(conditions, func(c condition) bool { return !satisfies(value, c.operator, c.values) })
}

func checkAgainstTwin(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	left, right := randomConditions(random), randomConditions(random)
	l, r := narrowed(left), narrowed(right)
	meet := false
	for _, value := range universe() {
		want := allSatisfied(value, left)
		meet = meet || want && allSatisfied(value, right)
		got, name := l.HasAbsence(), "absence"
		if value != nil {
			got, name = l.Has(*value), *value
		}
		if got != want {
			t.Errorf("seed %d: %v has %s: %t, want %t", seed, left, name, got, want)
		}
	}
	if l.Meets(r) != meet || r.Meets(l) != meet {
		t.Errorf("seed %d: %v meets %v: %t and, with operands swapped, %t, want %t", seed, left, right, l.Meets(r), r.Meets(l), meet)
	}
}

func TestValuesAgainstTwin(t *testing.T) {
	for seed := range uint64(20_000) {
		checkAgainstTwin(t, seed)
	}
}

func FuzzValues(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(checkAgainstTwin)
}

func TestValuesThatCannotBeRead(t *testing.T) {
	for _, c := range []condition{
		{"Gt", []string{"many"}}, {"Gt", nil}, {"Gt", []string{"1", "2"}}, {"Like", []string{"a"}},
		{"Gt", []string{fmt.Sprint(math.MaxInt64)}}, {"Lt", []string{fmt.Sprint(math.MinInt64)}}, {"In", nil},
	} {
		v := narrowed([]condition{c})
		if v.Meets(AnyValue()) {
			t.Errorf("%v allows some value, want none", c)
		}
	}
	if v := narrowed([]condition{{"Gte", []string{fmt.Sprint(math.MaxInt64)}},
		{"NotIn", []string{fmt.Sprint(math.MaxInt64)}}}); v.Meets(AnyValue()) {
		t.Error("the largest integer is excluded but still allowed")
	}
}

func TestValuesSingle(t *testing.T) {
	for _, test := range []struct {
		conditions []condition
		single     string
	}{
		{conditions: nil},
		{conditions: []condition{{"NotIn", []string{"a"}}}},
		{conditions: []condition{{"In", []string{"b", "a", "b"}}}},
		{conditions: []condition{{"In", []string{"a", "b"}}, {"NotIn", []string{"a"}}}, single: "b"},
		{conditions: []condition{{"Gt", []string{"4"}}, {"In", []string{"4", "5", "a"}}}, single: "5"},
		{conditions: []condition{{"DoesNotExist", nil}}},
	} {
		v := narrowed(test.conditions)
		single, _ := v.Single()
		if single != test.single {
			t.Errorf("%v: single %q, want %q", test.conditions, single, test.single)
		}
	}
}

// Narrow returns a new set and does not change the old one.
func TestNarrowDoesNotChangeItsReceiver(t *testing.T) {
	v := narrowed([]condition{{"NotIn", []string{"a"}}})
	v.Narrow("NotIn", []string{"b"})
	if !v.Has("b") {
		t.Error("the receiver no longer has b")
	}
	l := narrowed([]condition{{"In", []string{"a", "b"}}})
	l.Narrow("NotIn", []string{"b"})
	if !l.Has("a") || !l.Has("b") {
		t.Error("the receiver no longer has both a and b")
	}
}
