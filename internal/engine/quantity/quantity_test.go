package quantity

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The reference implementation: amounts without bounds, clamped to int64 after each operation.

func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func bigAt(v Vector, r int) *big.Int {
	if r < len(v) {
		return big.NewInt(v[r])
	}
	return new(big.Int)
}

func bigAdd(a, b *big.Int) int64 { return clamp(new(big.Int).Add(a, b)) }
func bigSub(a, b *big.Int) int64 { return clamp(new(big.Int).Sub(a, b)) }

func bigMax(a, b *big.Int) int64 {
	if a.Cmp(b) > 0 {
		return a.Int64()
	}
	return b.Int64()
}

func bigMin(a, b *big.Int) int64 {
	if a.Cmp(b) < 0 {
		return a.Int64()
	}
	return b.Int64()
}

// bigFit returns the first resource that is short, or -1, and how many copies of v fit.
func bigFit(v, in Vector) (short int, times int64) {
	short, times = -1, math.MaxInt64
	for r := max(len(v), len(in)) - 1; r >= 0; r-- {
		want, have := bigAt(v, r), bigAt(in, r)
		if have.Sign() < 0 || want.Sign() > 0 && want.Cmp(have) > 0 {
			short = r
		} else if want.Sign() > 0 {
			times = min(times, new(big.Int).Div(have, want).Int64())
		}
	}
	if short >= 0 {
		times = 0
	}
	return short, times
}

func check(t *testing.T, v, w Vector, n int64) {
	t.Helper()
	before := [2]Vector{v.Clone(), w.Clone()}
	length := max(len(v), len(w))
	for _, op := range []struct {
		name string
		got  Vector
		want func(a, b *big.Int) int64
	}{
		{"Add", v.Add(w), bigAdd},
		{"Sub", v.Sub(w), bigSub},
		{"Max", v.Max(w), bigMax},
		{"Raise", v.Clone().Raise(w), bigMax},
		{"Min", v.Min(w), bigMin},
		{"AddScaled", scaled(v, w, n), func(a, b *big.Int) int64 {
			product := clamp(new(big.Int).Mul(b, big.NewInt(n)))
			return bigAdd(a, big.NewInt(product))
		}},
		{"Scaled", pad(w.Scaled(n), length), func(_, b *big.Int) int64 {
			return clamp(new(big.Int).Mul(b, big.NewInt(n)))
		}},
	} {
		want := make(Vector, length)
		for r := range want {
			want[r] = op.want(bigAt(v, r), bigAt(w, r))
		}
		if diff := cmp.Diff(want, op.got); diff != "" {
			t.Fatalf("%v %s %v (n = %d): %s", v, op.name, w, n, diff)
		}
	}
	checkQuestions(t, v, w)
	if diff := cmp.Diff(before, [2]Vector{v, w}); diff != "" {
		t.Fatalf("an operand changed: %s", diff)
	}
}

func pad(v Vector, length int) Vector {
	return append(v, make(Vector, length-len(v))...)
}

// scaled returns v + n*w by AddScaled.
func scaled(v, w Vector, n int64) Vector {
	sum := make(Vector, max(len(v), len(w)))
	copy(sum, v)
	sum.AddScaled(w, n)
	return sum
}

func checkQuestions(t *testing.T, v, w Vector) {
	t.Helper()
	short, times := bigFit(v, w)
	r, isShort := v.FirstShort(w)
	if isShort != (short >= 0) {
		t.Fatalf("%v in %v: FirstShort = %v, %v, want %v", v, w, r, isShort, short)
	}
	if isShort && int(r) != short {
		t.Fatalf("%v in %v: FirstShort = %v, want %v", v, w, r, short)
	}
	if v.Fits(w) == isShort || v.Times(w) != times {
		t.Fatalf("%v in %v: Fits = %v, Times = %v, want %v, %v", v, w, v.Fits(w), v.Times(w), !isShort, times)
	}
	for _, n := range []int64{0, 1, 3, 1 << 15, math.MaxInt64} {
		if got := v.TimesUpTo(w, n); got != min(n, times) {
			t.Fatalf("%v in %v: TimesUpTo(%d) = %d, want %d", v, w, n, got, min(n, times))
		}
	}
	equal, zero := true, true
	for r := range max(len(v), len(w)) {
		equal = equal && bigAt(v, r).Cmp(bigAt(w, r)) == 0
		zero = zero && bigAt(v, r).Sign() == 0
		if v.At(Resource(r)) != bigAt(v, r).Int64() {
			t.Fatalf("%v: At(%d) = %d", v, r, v.At(Resource(r)))
		}
	}
	if v.Equal(w) != equal || w.Equal(v) != equal {
		t.Fatalf("%v, %v: Equal = %v, in the other order %v, want %v", v, w, v.Equal(w), w.Equal(v), equal)
	}
	if v.IsZero() != zero {
		t.Fatalf("%v: IsZero = %v", v, !zero)
	}
}

func TestTwin(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	ends := []int64{0, 0, 1, 2, 3, 7, 1000, -1, -5, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1,
		math.MaxInt64 / 2, 1 << 32, -1 << 32, 1 << 31}
	value := func() int64 {
		if random.Intn(4) == 0 {
			return int64(random.Uint64())
		}
		return ends[random.Intn(len(ends))]
	}
	vector := func() Vector {
		v := make(Vector, random.Intn(6))
		for r := range v {
			v[r] = value()
			if random.Intn(2) == 0 {
				v[r] &= math.MaxInt64 // a node with a negative amount fits nothing, so these must be rare
			}
		}
		return v
	}
	for range 50_000 {
		check(t, vector(), vector(), value())
	}
}

func FuzzTwin(f *testing.F) {
	f.Add([]byte("16 bytes of v..."), []byte("8 of w.."), int64(-3))
	f.Add([]byte{}, []byte{0, 0, 0, 0, 0, 0, 0, 128}, int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, v, w []byte, n int64) {
		check(t, decode(v), decode(w), n)
	})
}

func decode(data []byte) Vector {
	v := Vector{}
	for ; len(data) >= 8; data = data[8:] {
		v = append(v, int64(binary.LittleEndian.Uint64(data)))
	}
	return v
}

func TestTable(t *testing.T) {
	table := NewTable()
	for r, name := range []string{"cpu", "memory", "ephemeral-storage", "pods"} {
		if got, ok := table.Lookup(name); !ok || got != Resource(r) {
			t.Errorf("Lookup(%s) = %v, %v", name, got, ok)
		}
	}
	if diff := cmp.Diff([]Resource{0, 1, 2, 3}, []Resource{CPU, Memory, EphemeralStorage, Pods}); diff != "" {
		t.Errorf("the constants are not the first four resources (-want +got):\n%s", diff)
	}
	if _, ok := table.Lookup("nvidia.com/gpu"); ok {
		t.Error("a new table contains GPUs")
	}
	gpu := table.Intern("nvidia.com/gpu")
	switch {
	case gpu != 4:
		t.Errorf("the new resource has the index %d, want 4", gpu)
	case table.Intern("nvidia.com/gpu") != gpu:
		t.Errorf("interned again it has the index %d, want %d", table.Intern("nvidia.com/gpu"), gpu)
	case table.Name(gpu) != "nvidia.com/gpu":
		t.Errorf("its name is %s, want nvidia.com/gpu", table.Name(gpu))
	case table.Len() != 5:
		t.Errorf("the table has %d resources, want 5", table.Len())
	}
	clone := table.Clone()
	clone.Intern("fpga")
	if _, ok := table.Lookup("fpga"); ok {
		t.Error("the table contains a resource of its clone")
	}
	if table.Len() != 5 || clone.Len() != 6 {
		t.Errorf("the table has %d resources and its clone %d, want 5 and 6", table.Len(), clone.Len())
	}
}

func TestTableVector(t *testing.T) {
	table := NewTable()
	amounts := []Amount{{"gpu", 2}, {"memory", 1 << 30}, {"cpu", 250}, {"cpu", math.MaxInt64}}
	v := table.Vector(amounts)
	if diff := cmp.Diff(Vector{math.MaxInt64, 1 << 30, 0, 0, 2}, v); diff != "" {
		t.Error(diff)
	}
	want := []Amount{{"cpu", math.MaxInt64}, {"memory", 1 << 30}, {"gpu", 2}}
	if diff := cmp.Diff(want, table.Amounts(v)); diff != "" {
		t.Error(diff)
	}
	table.Intern("later")
	if r, _ := table.Lookup("later"); v.At(r) != 0 {
		t.Error("a resource interned later is not zero")
	}
}

// TestFits covers readable examples; the reference implementation covers the rest.
func TestFits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		v, in Vector
		times int64
	}{
		{"nothing asked", nil, Vector{1}, math.MaxInt64},
		{"nothing asked of nothing", nil, nil, math.MaxInt64},
		{"nothing asked of an overcommitted node", nil, Vector{5, -1}, 0},
		{"negative in what is not asked", Vector{1}, Vector{5, -1}, 0},
		{"exactly", Vector{2, 3}, Vector{2, 3}, 1},
		{"four times", Vector{2, 3}, Vector{9, 12}, 4},
		{"a resource the node does not know", Vector{0, 0, 0, 0, 1}, Vector{5, 5}, 0},
		{"absurd request", Vector{math.MaxInt64}, Vector{math.MaxInt64 - 1}, 0},
	} {
		if got := tt.v.Times(tt.in); got != tt.times || tt.v.Fits(tt.in) != (tt.times > 0) {
			t.Errorf("%s: Times = %d, Fits = %v", tt.name, got, tt.v.Fits(tt.in))
		}
	}
}

func TestAddScaledNeedsLength(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Vector{1}.AddScaled(Vector{1, 2}, 1)
}

func TestQuestionsDoNotAllocate(t *testing.T) {
	v, in := Vector{1, 2, 0, 1}, Vector{100, 200, 300, 110, 0, 0}
	sum := in.Clone()
	fits, equal, zero := true, false, false
	if got := testing.AllocsPerRun(100, func() {
		sum.AddScaled(v, v.Times(in))
		fits, equal, zero = fits && v.Fits(in), equal || v.Equal(in), zero || v.IsZero()
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
	if !fits {
		t.Errorf("%v does not fit in %v", v, in)
	}
	if equal || zero {
		t.Errorf("%v: equal to %v is %v, zero is %v, want false", v, in, equal, zero)
	}
}

func BenchmarkFits(b *testing.B) {
	v, in := Vector{100, 1 << 20, 0, 1}, Vector{16000, 1 << 34, 1 << 34, 110, 0, 0}
	b.ReportAllocs()
	for b.Loop() {
		if !v.Fits(in) {
			b.Fatal("does not fit")
		}
	}
}

func BenchmarkTimes(b *testing.B) {
	v, in := Vector{100, 1 << 20, 0, 1}, Vector{16000, 1 << 34, 1 << 34, 110, 0, 0}
	b.ReportAllocs()
	for b.Loop() {
		if v.Times(in) != 110 {
			b.Fatal("unexpected result")
		}
	}
}
