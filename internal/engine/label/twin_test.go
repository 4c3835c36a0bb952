package label

import (
	"fmt"
	"math/big"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The reference implementation: a requirement is a predicate over concrete values, and a key's set is the list of
// those values of a small universe that satisfy all predicates. The universe has a value for every atom that the
// package may create.

// node is the value of one label on a node, or its absence.
type node struct {
	value  string
	absent bool
}

func (r Requirement) allows(n node) bool {
	switch r.Operator {
	case In:
		return !n.absent && slices.Contains(r.Values, n.value)
	case NotIn:
		return n.absent || !slices.Contains(r.Values, n.value)
	case Exists:
		return !n.absent
	case DoesNotExist:
		return n.absent
	}
	if n.absent || len(r.Values) != 1 {
		return false
	}
	have, bound := int64Value(n.value), int64Value(r.Values[0])
	if have == nil || bound == nil {
		return false
	}
	switch r.Operator {
	case Gt:
		return have.Cmp(bound) > 0
	case Lt:
		return have.Cmp(bound) < 0
	case Gte:
		return have.Cmp(bound) >= 0
	}
	return have.Cmp(bound) <= 0
}

func int64Value(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || !n.IsInt64() || strings.HasPrefix(s, "+") {
		return nil
	}
	return n
}

func universe(reqs []Requirement) []node {
	values := []string{"", "unmentioned", "123456", "-123456", "0009", "9223372036854775807", "-9223372036854775808",
		"9223372036854775808", "-9223372036854775809", "3.5", "+4"}
	for _, r := range reqs {
		for _, value := range r.Values {
			values = append(values, value)
			if n := int64Value(value); n != nil {
				for d := int64(-1); d <= 1; d++ {
					near := new(big.Int).Add(n, big.NewInt(d)).String()
					digits := strings.TrimPrefix(near, "-")
					padded := strings.TrimSuffix(near, digits) + "000" + digits
					values = append(values, near, padded)
				}
			}
		}
	}
	slices.Sort(values)
	nodes := []node{{absent: true}}
	for _, value := range slices.Compact(values) {
		nodes = append(nodes, node{value: value})
	}
	return nodes
}

// world holds requirement lists, the space of everything they mention, and the universe for each key.
type world struct {
	lists  [][]Requirement
	space  *Space
	values [][]node   // the universe of each key
	sets   [][][]node // what each list allows for each key
}

func (w world) allowed(reqs []Requirement, k Key) []node {
	var mine []Requirement
	for _, r := range reqs {
		if Canonical(r.Key) == w.space.Name(k) {
			mine = append(mine, r)
		}
	}
	var allowed []node
	for _, n := range w.values[k] {
		if !slices.ContainsFunc(mine, func(r Requirement) bool { return !r.allows(n) }) {
			allowed = append(allowed, n)
		}
	}
	return allowed
}

func common(a, b []node) []node {
	var both []node
	for _, n := range a {
		if slices.Contains(b, n) {
			both = append(both, n)
		}
	}
	return both
}

// members returns the set of a row as values of the universe.
func (w world) members(row Row, k Key) []node {
	var members []node
	for _, n := range w.values[k] {
		atom := w.space.Absent(k)
		if !n.absent {
			atom = w.space.Atom(k, n.value)
		}
		if w.space.HasAtom(row, k, atom) {
			members = append(members, n)
		}
	}
	return members
}

// choose returns an integer in [0, n), from a seeded random source or from the bytes of a fuzzer.
type choose func(n int) int

func fromBytes(data []byte) choose {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		c := int(data[0]) % n
		data = data[1:]
		return c
	}
}

var (
	testKeys = []string{"cpus", "zone", "kubernetes.io/arch", "beta.kubernetes.io/arch", "team"}
	testWord = []string{"a", "b", "x", "any", "2", "3", "07", "-1", "7", "8", "0", "9223372036854775807", "abc", "", "+4"}
	testEnds = []string{"-1", "0", "1", "2", "3", "4", "7", "8", "-5", "9223372036854775807", "9223372036854775806",
		"-9223372036854775808", "-9223372036854775807", "abc", "9223372036854775808"}
)

func randomRequirement(pick choose) Requirement {
	r := Requirement{Key: testKeys[pick(len(testKeys))], Operator: Operator(pick(8))}
	switch {
	case r.Key == "zone" && r.Operator <= NotIn && pick(3) == 0:
		r.Values = []string{manyWord(pick(70)), manyWord(pick(70))}
	case r.Operator.isBound():
		r.Values = []string{testEnds[pick(len(testEnds))]}
	case r.Operator == In || r.Operator == NotIn:
		for range pick(5) {
			r.Values = append(r.Values, testWord[pick(len(testWord))])
		}
	}
	return r
}

func randomWorld(pick choose, lists int) world {
	var w world
	m := NewMentions()
	for i := range 70 * pick(2) { // create a key of several words
		m.Value("zone", manyWord(i))
	}
	for range lists {
		var reqs []Requirement
		for range pick(5) {
			reqs = append(reqs, randomRequirement(pick))
			m.Requirement(reqs[len(reqs)-1])
		}
		w.lists = append(w.lists, reqs)
	}
	w.space = m.Space()
	for k := range w.space.Len() {
		var mine []Requirement
		for _, r := range slices.Concat(w.lists...) {
			if Canonical(r.Key) == w.space.Name(Key(k)) {
				mine = append(mine, r)
			}
		}
		if w.space.Name(Key(k)) == "zone" && w.space.Atoms(Key(k)) > 64 {
			mine = append(mine, Requirement{Key: "zone", Values: manyWords()})
		}
		w.values = append(w.values, universe(mine))
	}
	for _, reqs := range w.lists {
		var sets [][]node
		for k := range w.space.Len() {
			sets = append(sets, w.allowed(reqs, Key(k)))
		}
		w.sets = append(w.sets, sets)
	}
	return w
}

func manyWord(i int) string { return fmt.Sprintf("many-%02d", i) }

func manyWords() []string {
	words := make([]string, 70)
	for i := range words {
		words[i] = manyWord(i)
	}
	return words
}

// check compares all results of the package with the reference implementation and returns the number of pairs.
func (w world) check(t *testing.T) (pairs int) {
	t.Helper()
	rows := make([]Row, len(w.lists))
	for i := range w.lists {
		rows[i] = w.checkList(t, i)
	}
	for i := range rows {
		for j := i; j < len(rows); j++ {
			w.checkPair(t, i, j, rows)
			pairs++
		}
	}
	return pairs
}

// checkList compares the row of one list, its values, and its conversion back to requirements.
func (w world) checkList(t *testing.T, list int) Row {
	t.Helper()
	s, reqs := w.space, w.lists[list]
	row, conflict, ok := s.Encode(reqs)
	for k := range s.Len() {
		want, got := w.sets[list][k], w.members(row, Key(k))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(node{})); diff != "" {
			t.Fatalf("%v on %s (-twin +row):\n%s", reqs, s.Name(Key(k)), diff)
		}
		if len(want) == 0 && ok {
			t.Fatalf("%v: Encode does not report the contradiction on %s", reqs, s.Name(Key(k)))
		}
		if len(want) == 0 && Key(k) < conflict {
			t.Fatalf("%v: Encode reports the first conflict on %s, the twin on %s", reqs, s.Name(conflict), s.Name(Key(k)))
		}
		if conflicts := !ok && Key(k) == conflict; conflicts && len(want) > 0 {
			t.Fatalf("%v: Encode reports a conflict on %s, the twin allows %v", reqs, s.Name(conflict), want)
		}
		w.checkPick(t, row, Key(k))
	}
	w.checkRoundTrip(t, row, s.All())
	known := func(key string) bool { return key == "zone" || key == "kubernetes.io/arch" }
	template, _, _ := s.Template(known, reqs)
	for k := range s.Len() {
		w.checkTemplate(t, template, Key(k), list)
	}
	w.checkRoundTrip(t, template, s.All())
	return row
}

func (w world) checkTemplate(t *testing.T, template Row, k Key, list int) {
	t.Helper()
	name, reqs := w.space.Name(k), w.lists[list]
	named := slices.ContainsFunc(reqs, func(r Requirement) bool { return Canonical(r.Key) == name })
	want := w.sets[list][k]
	if !named && name != "zone" && name != "kubernetes.io/arch" {
		want = []node{{absent: true}}
	}
	if got := w.members(template, k); !slices.Equal(got, want) {
		t.Fatalf("template of %v on %s: got %v, want %v", reqs, name, got, want)
	}
}

func (w world) checkPick(t *testing.T, row Row, k Key) {
	t.Helper()
	value, ok := w.space.Pick(row, k)
	set := w.members(row, k)
	if slices.ContainsFunc(set, func(n node) bool { return !n.absent }) != ok {
		t.Fatalf("Pick returns %v for %v", ok, set)
	}
	if ok && !w.space.HasAtom(row, k, w.space.Atom(k, value)) {
		t.Fatalf("Pick returns %q, which is not in %v", value, set)
	}
}

func (w world) checkRoundTrip(t *testing.T, row, start Row) {
	t.Helper()
	s := w.space
	reqs := s.Requirements(row, start)
	again := slices.Clone(start)
	for _, r := range reqs {
		s.Narrow(again, r)
	}
	if !s.Equal(again, row) {
		t.Fatalf("%v has another row: %x, want %x", reqs, again, row)
	}
	if !slices.IsSortedFunc(reqs, func(a, b Requirement) int { return strings.Compare(a.Key, b.Key) }) {
		t.Fatalf("%v is not sorted by key", reqs)
	}
}

func (w world) checkPair(t *testing.T, i, j int, rows []Row) {
	t.Helper()
	s, a, b := w.space, rows[i], rows[j]
	both := slices.Concat(w.lists[i], w.lists[j])
	compatible, contains, equal, first := true, true, true, Key(-1)
	for k := range s.Len() {
		name := s.Name(Key(k))
		left, right := w.sets[i][k], w.sets[j][k]
		common := common(left, right)
		if len(common) == 0 && compatible {
			compatible, first = false, Key(k)
		}
		contains = contains && len(common) == len(right)
		same := slices.Equal(left, right)
		equal = equal && same
		if s.EqualKey(a, b, Key(k)) != same {
			t.Fatalf("%v, %v: EqualKey(%s) = %v", w.lists[i], w.lists[j], name, !same)
		}
	}
	where := fmt.Sprintf("%v, %v", w.lists[i], w.lists[j])
	if got := s.Compatible(a, b); got != compatible {
		t.Fatalf("%s: Compatible = %v", where, got)
	}
	switch k, ok := s.Conflict(a, b); {
	case ok == compatible:
		t.Fatalf("%s: Conflict = %v, %v, but Compatible = %v", where, k, ok, compatible)
	case ok && k != first:
		t.Fatalf("%s: Conflict = %v, want %v", where, k, first)
	}
	if s.Contains(a, b) != contains || s.Equal(a, b) != equal {
		t.Fatalf("%s: Contains = %v, Equal = %v, want %v, %v", where, s.Contains(a, b), s.Equal(a, b), contains, equal)
	}
	encoded, _, _ := s.Encode(both)
	dst := make(Row, s.Words())
	if got := s.And(dst, a, b); got != compatible || !slices.Equal(dst, encoded) {
		t.Fatalf("%s: And = %v, %x, want %v, %x", where, got, dst, compatible, encoded)
	}
	w.checkRoundTrip(t, dst, a)
}

// TestTwinRandomPairs compares 100,000 pairs of random requirement lists with the reference implementation.
func TestTwinRandomPairs(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for pairs := 0; pairs < 100_000; {
		pairs += randomWorld(random.Intn, 24).check(t)
	}
}

// TestUniverseHasEveryAtom checks that the universe has a value for every atom. An atom without one would not be
// tested.
func TestUniverseHasEveryAtom(t *testing.T) {
	random := rand.New(rand.NewSource(2))
	for range 1000 {
		w := randomWorld(random.Intn, 8)
		for k := range w.space.Len() {
			seen := map[int]bool{}
			for _, n := range w.values[k] {
				if n.absent {
					seen[w.space.Absent(Key(k))] = true
				} else {
					seen[w.space.Atom(Key(k), n.value)] = true
				}
			}
			if len(seen) != w.space.Atoms(Key(k)) {
				t.Fatalf("%v on %s: %d atoms, %d with a value in the universe", w.lists, w.space.Name(Key(k)), w.space.Atoms(Key(k)), len(seen))
			}
		}
	}
}

func FuzzTwin(f *testing.F) {
	f.Add([]byte{4, 0, 4, 2, 0, 5, 5, 0, 0, 4, 10, 4, 5, 2})
	f.Add([]byte("Gt 1, Lt 4, In 0 2 3 x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		randomWorld(fromBytes(data), 4).check(t)
	})
}

// TestOrderOfMentionsDoesNotMatter mentions and encodes the same requirements in shuffled orders.
func TestOrderOfMentionsDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	for range 2000 {
		w := randomWorld(random.Intn, 6)
		all := slices.Concat(w.lists...)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		m := NewMentions()
		if k, ok := w.space.Lookup("zone"); ok && w.space.Atoms(k) > 64 {
			for _, i := range random.Perm(70) {
				m.Value("zone", manyWord(i))
			}
		}
		for _, r := range all {
			if len(r.Values) > 0 && !r.Operator.isBound() {
				m.Value(r.Key, r.Values[random.Intn(len(r.Values))])
			}
			m.Requirement(r)
			if random.Intn(4) == 0 {
				m.Space()
			}
		}
		shuffled := m.Space()
		for _, reqs := range w.lists {
			want, wantKey, wantOK := w.space.Encode(reqs)
			reqs = slices.Clone(reqs)
			random.Shuffle(len(reqs), func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
			got, gotKey, gotOK := shuffled.Encode(reqs)
			if !slices.Equal(got, want) {
				t.Fatalf("%v: row %x, want %x", reqs, got, want)
			}
			if gotKey != wantKey || gotOK != wantOK {
				t.Fatalf("%v: Encode = %v, %v, want %v, %v", reqs, gotKey, gotOK, wantKey, wantOK)
			}
		}
	}
}

// TestUnion checks that merging alternatives that differ in one requirement does not change their meaning.
func TestUnion(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	merged := 0
	for round := range 3000 {
		var alternatives [][]Requirement
		var all []Requirement
		for range 1 + rng.Intn(6) {
			var reqs []Requirement
			for range rng.Intn(4) {
				r := Requirement{Key: string(rune('a' + rng.Intn(3))), Operator: []Operator{In, In, NotIn, NotIn, Exists, DoesNotExist, Gt}[rng.Intn(7)]}
				switch r.Operator {
				case In, NotIn:
					for range rng.Intn(3) {
						r.Values = append(r.Values, string(rune('x'+rng.Intn(3))))
					}
				case Gt:
					r.Values = []string{"3"}
				}
				reqs, all = append(reqs, r), append(all, r)
			}
			alternatives = append(alternatives, reqs)
		}
		union := Union(alternatives)
		if len(union) < len(alternatives) {
			merged++
		}
		nodes := universe(all)
		nodes = slices.DeleteFunc(nodes, func(n node) bool { return len(n.value) > 2 && n.value != "unmentioned" })
		meets := func(alternatives [][]Requirement, labels map[string]node) bool {
			return slices.ContainsFunc(alternatives, func(reqs []Requirement) bool {
				return !slices.ContainsFunc(reqs, func(r Requirement) bool { return !r.allows(labels[r.Key]) })
			})
		}
		for range 100 {
			labels := map[string]node{"a": nodes[rng.Intn(len(nodes))], "b": nodes[rng.Intn(len(nodes))], "c": nodes[rng.Intn(len(nodes))]}
			if before, after := meets(alternatives, labels), meets(union, labels); before != after {
				t.Fatalf("round %d: %v became %v; %v meets them: %t and %t", round, alternatives, union, labels, before, after)
			}
		}
	}
	if merged < 500 {
		t.Errorf("only %d of 3000 rounds merged anything: the test covers too little", merged)
	}
	many := make([][]Requirement, 6000)
	for i := range many {
		many[i] = []Requirement{{Key: "t", Operator: NotIn, Values: []string{fmt.Sprint(i)}}, {Key: "z", Operator: In, Values: []string{"b", "a"}}}
	}
	if diff := cmp.Diff([][]Requirement{{{Key: "z", Operator: In, Values: []string{"b", "a"}}}}, Union(many)); diff != "" {
		t.Errorf("6,000 alternatives (-want +got):\n%s", diff)
	}
}
