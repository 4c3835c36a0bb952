package label

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// req parses "key Operator value value".
func req(text string) Requirement {
	fields := strings.Fields(text)
	op, ok := ParseOperator(fields[1])
	if !ok {
		panic("no operator: " + text)
	}
	return Requirement{Key: fields[0], Operator: op, Values: fields[2:]}
}

func parse(texts ...string) []Requirement {
	var reqs []Requirement
	for _, text := range texts {
		reqs = append(reqs, req(text))
	}
	return reqs
}

func spaceOf(reqs ...Requirement) *Space {
	m := NewMentions()
	for _, r := range reqs {
		m.Requirement(r)
	}
	return m.Space()
}

func render(reqs []Requirement) string {
	var texts []string
	for _, r := range reqs {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, "; ")
}

// TestRequirementsComeBack shows how sets are returned as requirements. The first, third and fifth cases combine
// bounds with other operators. Two of them differ from upstream Karpenter: an empty intersection stays a
// contradiction (upstream: DoesNotExist, which fits nodes without the label), and Exists combined with NotIn still
// requires the label (upstream: NotIn alone).
func TestRequirementsComeBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want string
	}{
		{"values within bounds", []string{"k Gt 1", "k Lt 4", "k In 0 2 3 x"}, "k In [2 3]"},
		{"bounds", []string{"k Gt 1", "k Lt 4"}, "k Gte 2; k Lte 3"},
		{"crossed bounds are a contradiction", []string{"k Gt 5", "k Lt 6"}, "k Exists; k DoesNotExist"},
		{"bounds less a value", []string{"k Gt 1", "k Lt 9", "k NotIn 4 x 12"}, "k Gte 2; k Lte 8; k NotIn [4]"},
		{"Exists keeps its demand", []string{"k Exists", "k NotIn a"}, "k Exists; k NotIn [a]"},
		{"NotIn allows absence", []string{"k NotIn b a"}, "k NotIn [a b]"},
		{"absence", []string{"k NotIn a", "k DoesNotExist"}, "k DoesNotExist"},
		{"In and DoesNotExist contradict", []string{"k In a", "k DoesNotExist"}, "k Exists; k DoesNotExist"},
		{"In and NotIn", []string{"k In c b a", "k NotIn b"}, "k In [a c]"},
		{"In without values", []string{"k In"}, "k Exists; k DoesNotExist"},
		{"NotIn without values", []string{"k NotIn"}, ""},
		{"nothing is above the largest integer", []string{"k Gt 9223372036854775807"}, "k Exists; k DoesNotExist"},
		{"nothing is below the smallest integer", []string{"k Lt -9223372036854775808"}, "k Exists; k DoesNotExist"},
		{"any integer", []string{"k Lte 9223372036854775807", "k NotIn x 5"},
			"k Gte -9223372036854775808; k NotIn [5]"},
		{"a bound that is no integer", []string{"k Gt many"}, "k Exists; k DoesNotExist"},
		{"keys are sorted", []string{"z In a", "b Exists"}, "b Exists; z In [a]"},
		{"an alias is its key", []string{"beta.kubernetes.io/arch In amd64 arm64", "kubernetes.io/arch NotIn arm64"},
			"kubernetes.io/arch In [amd64]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reqs := parse(tt.in...)
			s := spaceOf(reqs...)
			row, k, ok := s.Encode(reqs)
			if got := render(s.Requirements(row, s.All())); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if contradiction := strings.Contains(tt.want, "Exists; k DoesNotExist"); ok == contradiction {
				t.Errorf("Encode returns %v", ok)
			}
			if !ok && s.Name(k) != "k" {
				t.Errorf("Encode reports a conflict on %s", s.Name(k))
			}
		})
	}
}

// TestUndefinedLabels covers requirements of a pod on a label that the pool does not define.
func TestUndefinedLabels(t *testing.T) {
	const region = "topology.kubernetes.io/region"
	pod := map[string]Requirement{}
	for _, text := range []string{"team NotIn a", "team DoesNotExist", "team In a", "team Exists", region + " NotIn r1",
		region + " In r1", "failure-domain.beta.kubernetes.io/region In r1"} {
		pod[text] = req(text)
	}
	m := NewMentions()
	for _, r := range pod {
		m.Requirement(r)
	}
	s := m.Space()
	fresh, _, ok := s.Template(func(key string) bool { return key == region }, nil)
	if !ok {
		t.Fatal("a template without requirements is contradictory")
	}
	node := s.Labels(map[string]string{"zone": "a"})
	for _, tt := range []struct {
		pod         string
		onNew, onIt bool
	}{
		{"team NotIn a", true, true},
		{"team DoesNotExist", true, true},
		{"team In a", false, false},
		{"team Exists", false, false},
		{region + " NotIn r1", true, true},
		{region + " In r1", true, false},
		{"failure-domain.beta.kubernetes.io/region In r1", true, false},
	} {
		row, _, _ := s.Encode([]Requirement{pod[tt.pod]})
		if got := s.Compatible(fresh, row); got != tt.onNew {
			t.Errorf("%s on a new node: compatible: %v", tt.pod, got)
		}
		if got := s.Compatible(node, row); got != tt.onIt {
			t.Errorf("%s on a node without the label: compatible: %v", tt.pod, got)
		}
	}
}

func TestCanonical(t *testing.T) {
	for old, want := range map[string]string{
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
		"beta.kubernetes.io/os":                    "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"kubernetes.io/arch":                       "kubernetes.io/arch",
		"team":                                     "team",
	} {
		if got := Canonical(old); got != want {
			t.Errorf("Canonical(%s) = %s, want %s", old, got, want)
		}
	}
}

func TestNodeUnderOldLabels(t *testing.T) {
	s := spaceOf(parse("kubernetes.io/arch In amd64 arm64")...)
	k, _ := s.Lookup("beta.kubernetes.io/arch")
	for _, tt := range []struct {
		labels map[string]string
		want   string
	}{
		{map[string]string{"beta.kubernetes.io/arch": "arm64"}, "arm64"},
		{map[string]string{"beta.kubernetes.io/arch": "arm64", "kubernetes.io/arch": "amd64"}, "amd64"},
	} {
		if got, _ := s.Single(s.Labels(tt.labels), k); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.labels, got, tt.want)
		}
	}
}

func TestOperators(t *testing.T) {
	for o := In; o <= Lte; o++ {
		if got, ok := ParseOperator(o.String()); got != o || !ok {
			t.Errorf("ParseOperator(%q) = %v, %v", o.String(), got, ok)
		}
	}
	for _, name := range []string{"in", "", "Operator(8)", Operator(8).String()} {
		if got, ok := ParseOperator(name); ok {
			t.Errorf("ParseOperator(%q) = %v", name, got)
		}
	}
}

func TestRequirementString(t *testing.T) {
	for want, r := range map[string]Requirement{
		"zone In [a b]":                      {Key: "zone", Values: []string{"a", "b"}},
		"zone Exists":                        {Key: "zone", Operator: Exists},
		"cpus Gt 4":                          {Key: "cpus", Operator: Gt, Values: []string{"4"}},
		"zone NotIn [a] (at least 2 values)": {Key: "zone", Operator: NotIn, Values: []string{"a"}, MinValues: 2},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPick(t *testing.T) {
	for _, tt := range []struct {
		reqs []string
		want string
	}{
		{[]string{"k In b a"}, "a"},
		{[]string{"k In b a", "k NotIn a"}, "b"},
		{[]string{"k Gt 4"}, "5"},
		{[]string{"k Gt 4", "k NotIn 5 6"}, "7"},
		{[]string{"k Gte 4", "k Lte 4", "k NotIn 4"}, "04"},
		{[]string{"k Gte 4", "k Lte 4", "k NotIn 4 04"}, "004"},
		{[]string{"k Lt 4"}, "0"},
		{[]string{"k Lt -3"}, "-4"},
		{[]string{"k Lt 0", "k Gt -2", "k NotIn -1"}, "-01"},
		{[]string{"k Gte 9223372036854775807"}, "9223372036854775807"},
		{[]string{"k Gte 9223372036854775807", "k NotIn 9223372036854775807"}, "09223372036854775807"},
		{[]string{"k Exists"}, "any"},
		{[]string{"k NotIn any any-2"}, "any-3"},
		{[]string{"k DoesNotExist"}, ""},
		{[]string{"k In a", "k In b"}, ""},
	} {
		reqs := parse(tt.reqs...)
		s := spaceOf(reqs...)
		row, _, _ := s.Encode(reqs)
		if got, ok := s.Pick(row, 0); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%v: %q, %v, want %q", tt.reqs, got, ok, tt.want)
		}
	}
}

// TestPickPrefersPlainNumbers covers the cut at 5, which leaves the interval 4..4 without an unmentioned plain
// number.
func TestPickPrefersPlainNumbers(t *testing.T) {
	s := spaceOf(parse("k Gt 3", "k NotIn 4", "k Gte 5")...)
	row, _, _ := s.Encode(parse("k Gt 3", "k NotIn 4"))
	if got, _ := s.Pick(row, 0); got != "5" {
		t.Errorf("got %q, want 5", got)
	}
}

func TestValuesAndSingle(t *testing.T) {
	s := spaceOf(parse("k In b a c", "k Gt 4")...)
	for _, tt := range []struct {
		req    string
		values []string
		single bool
		absent bool
	}{
		{"k In c a", []string{"a", "c"}, false, false},
		{"k In b", []string{"b"}, true, false},
		{"k NotIn a c", []string{"b"}, false, true},
		{"k Gt 4", nil, false, false},
		{"k DoesNotExist", nil, false, true},
	} {
		row, _, _ := s.Encode(parse(tt.req))
		if diff := cmp.Diff(tt.values, s.Values(row, 0)); diff != "" {
			t.Errorf("%s: %s", tt.req, diff)
		}
		value, ok := s.Single(row, 0)
		if ok != tt.single {
			t.Errorf("%s: Single = %q, %v, want %v", tt.req, value, ok, tt.single)
		}
		if ok && value != tt.values[0] {
			t.Errorf("%s: Single = %q, want %q", tt.req, value, tt.values[0])
		}
		if got := s.AllowsAbsent(row, 0); got != tt.absent {
			t.Errorf("%s: allows absence: %v", tt.req, got)
		}
	}
}

func TestSetOnly(t *testing.T) {
	s := spaceOf(parse("k In a b", "j Exists")...)
	k, _ := s.Lookup("k")
	row := s.All()
	s.SetOnly(row, k, s.Atom(k, "b"))
	if got := render(s.Requirements(row, s.All())); got != "k In [b]" {
		t.Error(got)
	}
}

// TestSetsBeyondRequirements covers sets that no requirements describe: they are returned as the smallest describable
// set.
func TestSetsBeyondRequirements(t *testing.T) {
	s := spaceOf(parse("k In 2 9 word", "k Gt 4")...)
	for value, want := range map[string]string{
		"other": "k Exists; k NotIn [2 9 word]",
		"5":     "k Gte 5; k NotIn [9]",
		"3":     "k Lte 4; k NotIn [2]",
		"word":  "k In [word]",
	} {
		if got := render(s.Requirements(s.Labels(map[string]string{"k": value}), s.All())); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// TestHullOfScatteredIntegers covers a set of 3 and of 5 or more: its bounds also include the integers between them.
func TestHullOfScatteredIntegers(t *testing.T) {
	s := spaceOf(parse("k In 3", "k Gt 1", "k Gt 3", "k Gt 4")...)
	row := s.Labels(map[string]string{"k": "8"})
	three := s.Labels(map[string]string{"k": "3"})
	for i := range row {
		row[i] |= three[i]
	}
	if got := render(s.Requirements(row, s.All())); got != "k Gte 2" {
		t.Error(got)
	}
}

func TestVersionChangesIfAndOnlyIfSomethingIsNew(t *testing.T) {
	m := NewMentions()
	last, space := m.Version(), m.Space()
	for _, tt := range []struct {
		what string
		do   func()
		same bool
	}{
		{"a key", func() { m.Key("k") }, false},
		{"the key again", func() { m.Key("k") }, true},
		{"Exists on it", func() { m.Requirement(req("k Exists")) }, true},
		{"a value", func() { m.Requirement(req("k In a")) }, false},
		{"the value otherwise", func() { m.Value("k", "a"); m.Requirement(req("k NotIn a")) }, true},
		{"an impossible bound", func() { m.Requirement(req("k Gt 9223372036854775807")) }, true},
		{"a bound that cuts nothing off", func() { m.Requirement(req("k Lte 9223372036854775807")) }, false},
		{"the other such bound", func() { m.Requirement(req("k Gte -9223372036854775808")) }, true},
		{"a bound", func() { m.Requirement(req("k Gt 4")) }, false},
		{"the same cut by three other operators", func() {
			for _, text := range []string{"k Gte 5", "k Lt 5", "k Lte 4"} {
				m.Requirement(req(text))
			}
		}, true},
		{"a key by its alias", func() { m.Key("beta.kubernetes.io/os") }, false},
		{"by its name", func() { m.Key("kubernetes.io/os") }, true},
	} {
		tt.do()
		if same := m.Version() == last; same != tt.same {
			t.Errorf("%s: version same: %v", tt.what, same)
		}
		if same := m.Space() == space; same != tt.same {
			t.Errorf("%s: space same: %v", tt.what, same)
		}
		last, space = m.Version(), m.Space()
	}
}

func TestUnmentionedPanics(t *testing.T) {
	s := spaceOf(parse("k In a", "n Gt 4")...)
	reqs := parse("other Exists", "k In b", "k In a b", "k NotIn b", "k Gt 4", "n Gt 5", "n Lt 4")
	for _, r := range append(reqs, Requirement{Key: "k", Operator: Lte + 1}) {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", r)
				}
			}()
			s.Narrow(s.All(), r)
		}()
	}
}

// TestLongKeys covers keys of several words, and In with more atoms than the buffer of Narrow on the stack holds.
func TestLongKeys(t *testing.T) {
	m := NewMentions()
	var values []string
	for i := range 5000 {
		values = append(values, fmt.Sprintf("v%04d", i))
		m.Value("long", values[i])
	}
	m.Key("a")
	m.Key("z")
	s := m.Space()
	k, _ := s.Lookup("long")
	from, to := s.Span(k)
	switch {
	case to-from != 79:
		t.Fatalf("the key spans the words %d to %d, want 79 words", from, to)
	case s.Words() != 2+to-from:
		t.Fatalf("a row has %d words, want %d", s.Words(), 2+to-from)
	case s.Len() != 3:
		t.Fatalf("%d keys, want 3", s.Len())
	}
	row, other := s.All(), s.All()
	if !s.Narrow(row, Requirement{Key: "long", Operator: In, Values: values[4990:]}) {
		t.Fatal("Narrow reports a contradiction")
	}
	if diff := cmp.Diff(values[4990:], s.Values(row, k)); diff != "" {
		t.Error(diff)
	}
	s.Narrow(other, Requirement{Key: "long", Operator: NotIn, Values: values[4990:]})
	if got, ok := s.Conflict(row, other); got != k || !ok {
		t.Errorf("Conflict = %v, %v, want %v, true", got, ok, k)
	}
	if s.Compatible(row, other) {
		t.Error("Compatible = true for rows without a common value")
	}
	if s.And(row, row, other) {
		t.Error("And = true for rows without a common value")
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	s, a, b := benchmarkRows()
	dst := slices.Clone(a)
	narrow := parse("key-03 In v1 v2", "key-04 NotIn v1", "key-05 Exists", "key-06 DoesNotExist", "key-07 Gt 4")
	for name, f := range map[string]func(){
		"Compatible": func() { s.Compatible(a, b) },
		"Conflict":   func() { s.Conflict(a, b) },
		"And":        func() { s.And(dst, a, b) },
		"Contains":   func() { s.Contains(a, b) },
		"Narrow": func() {
			copy(dst, a)
			for _, r := range narrow {
				s.Narrow(dst, r)
			}
		},
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
}

// benchmarkRows returns two compatible rows over 20 keys, one of them with 700 values, like an instance type key.
func benchmarkRows() (s *Space, a, b Row) {
	m := NewMentions()
	for k := range 20 {
		key := fmt.Sprintf("key-%02d", k)
		m.Requirement(Requirement{Key: key, Operator: Gt, Values: []string{"4"}})
		for v := range 8 {
			m.Value(key, fmt.Sprintf("v%d", v))
		}
	}
	for v := range 700 {
		m.Value("key-19", fmt.Sprintf("type-%d", v))
	}
	s = m.Space()
	a, _, _ = s.Encode(parse("key-00 In v1 v2 v3", "key-01 Exists", "key-19 In v7 v1"))
	b, _, _ = s.Encode(parse("key-00 In v3 v4", "key-01 NotIn v1", "key-19 In v7 v2"))
	return s, a, b
}

func BenchmarkCompatible(b *testing.B) {
	s, x, y := benchmarkRows()
	b.ReportAllocs()
	for b.Loop() {
		if !s.Compatible(x, y) {
			b.Fatal("not compatible")
		}
	}
}

func BenchmarkAnd(b *testing.B) {
	s, x, y := benchmarkRows()
	dst := make(Row, s.Words())
	b.ReportAllocs()
	for b.Loop() {
		if !s.And(dst, x, y) {
			b.Fatal("not compatible")
		}
	}
}

func BenchmarkNarrow(b *testing.B) {
	s, x, _ := benchmarkRows()
	row, r := slices.Clone(x), req("key-00 In v1 v2")
	b.ReportAllocs()
	for b.Loop() {
		copy(row, x)
		if !s.Narrow(row, r) {
			b.Fatal("Narrow reports a contradiction")
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	s, _, _ := benchmarkRows()
	reqs := parse("key-00 In v1 v2 v3", "key-01 Exists", "key-02 Gt 4", "key-19 In type-5 type-6")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := s.Encode(reqs); !ok {
			b.Fatal("Encode reports a contradiction")
		}
	}
}

// BenchmarkSpace measures the creation of a space after one new value among 20 keys, one of them with 700 values.
func BenchmarkSpace(b *testing.B) {
	m := NewMentions()
	for v := range 700 {
		m.Value("type", fmt.Sprintf("type-%d", v))
	}
	for k := range 20 {
		m.Value(fmt.Sprintf("key-%02d", k), "a")
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		delete(m.keys["key-00"].values, fmt.Sprintf("new-%d", i-1))
		m.Value("key-00", fmt.Sprintf("new-%d", i))
		m.Space()
	}
}
