package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/scratch"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// binary is the path of the kubectl-karpenter under test.
var binary string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spawnVerb { // this process is the child of a test
		main()
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	folder, err := scratch.New("karpenter-bench-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	defer folder.Remove()
	binary = filepath.Join(folder.Path, "kubectl-karpenter")
	build := exec.Command("go", "build", "-o", binary, "./plugin/kubectl-karpenter")
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: building kubectl-karpenter: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}

func newBench(t *testing.T) (*bench, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &bench{binary: binary, runs: 1, only: regexp.MustCompile(""), folder: t.TempDir(), out: &out}, &out
}

// TestSmallWorkloads checks that the real binary places every pod of the small workloads, and that no cost is below the
// bound.
func TestSmallWorkloads(t *testing.T) {
	for _, name := range append(workload.Small(), "cluster-20-pending-200", "fill-1k") {
		for seed := 1; seed <= 2; seed++ {
			b, _ := newBench(t)
			a, err := b.decide(name, seed)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(a.Unschedulable); n > 0 && name != "fill-1k" { // fill-1k has few nodes with GPUs and a pool with a limit
				t.Errorf("%s, seed %d: %d pods are unschedulable", name, seed, n)
			}
			if a.LowerBoundCostPerHour > a.CostPerHour+1e-6 {
				t.Errorf("%s, seed %d: a cost of %g USD per hour is below its bound, %g", name, seed, a.CostPerHour, a.LowerBoundCostPerHour)
			}
		}
	}
}

// TestRepeats checks that the number of rounds affects only the statistics.
func TestRepeats(t *testing.T) {
	b, _ := newBench(t)
	folder, err := b.made("diverse-200", 1)
	if err != nil {
		t.Fatal(err)
	}
	stats := regexp.MustCompile(`(?s)"stats": \{.*?\}`)
	var answers []string
	for _, rounds := range []int{1, 3} {
		out, u, err := b.simulate(folder, rounds, rounds%2+1)
		if err != nil {
			t.Fatal(err)
		}
		if u.CPU <= 0 || u.Peak <= 1 {
			t.Errorf("%d rounds took %+v", rounds, u)
		}
		answers = append(answers, stats.ReplaceAllString(string(out), ""))
	}
	if answers[0] != answers[1] {
		t.Errorf("the answer after three rounds differs:\n%s\n%s", answers[0], answers[1])
	}
}

func TestTable(t *testing.T) {
	t.Setenv("BENCH_RUNS", "1")
	var out bytes.Buffer
	if err := measure([]string{"-binary", binary, "-tables", "price", "-only", "^antiaffinity-500$"}, &out); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| antiaffinity-500 \|.*\| 0 \|$`).FindAllString(out.String(), -1)
	columns := strings.Count(strings.Split(out.String(), "\n")[4], "|")
	if len(rows) != 1 || strings.Count(rows[0], "|") != columns {
		t.Errorf("want one row of %d columns, and no unschedulable pod:\n%s", columns-1, out.String())
	}
}

func TestRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"-tables", "beauty"}, {"-only", "("}, {"check"}, {"workload", "inflate-0", "x"}, {"measure"},
		{"-tables", "price", "-only", "^inflate-1k$", "-binary", filepath.Join(t.TempDir(), "none")},
	} {
		if err := run(args, &bytes.Buffer{}); err == nil {
			t.Errorf("bench %q returned no error", args)
		}
	}
	t.Setenv("BENCH_RUNS", "0")
	if err := run(nil, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "BENCH_RUNS") {
		t.Errorf("BENCH_RUNS=0: %v", err)
	}
}

func TestFigures(t *testing.T) {
	if got := slope([]int{1000, 10_000, 100_000}, []float64{0.001, 0.01, 0.1}); math.Abs(got-1) > 1e-9 {
		t.Errorf("ten times as much for ten times as many has the slope %g", got)
	}
	if got := slope([]int{10, 100}, []float64{1, 100}); math.Abs(got-2) > 1e-9 {
		t.Errorf("a square has the slope %g", got)
	}
	if a, b := median([]float64{3, 1, 2}), median([]float64{4, 1, 2, 3}); a != 2 || b != 2.5 {
		t.Errorf("medians %g and %g", a, b)
	}
	if got := seconds(0.01234) + seconds(1.2345) + verdict("x", true) + verdict("y", false) + orDash(0) + over(1, 0); got != "0.01231.234**x**y--" && got != "0.01231.235**x**y--" {
		t.Errorf("figures read %s", got)
	}
}

// TestArrival checks that an arriving pod is placed on an existing node, and a large one on a new node.
func TestArrival(t *testing.T) {
	b, _ := newBench(t)
	folder, err := b.made("crowded-20", 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	store, err := storeOf(t.Context(), w, folder)
	if err != nil {
		t.Fatal(err)
	}
	if nodes, pods := len(w.Nodes), len(w.Bound); nodes != 20 || pods < 200 {
		t.Fatalf("%d nodes with %d pods", nodes, pods)
	}
	want := []string{"existing node", "existing node", "existing node", "new node"}
	for i, k := range newcomers {
		elapsed, cpu, decided := k.arrive(store)
		if decided != want[i] {
			t.Errorf("%s: the first arrival is placed on %s, want %s", k.name, decided, want[i])
		}
		if len(elapsed) != arrivals || len(cpu) != arrivals {
			t.Errorf("%s: %d durations and %d CPU times, want %d of each", k.name, len(elapsed), len(cpu), arrivals)
		}
	}
}

// TestPeak checks that the memory of this process is not counted in the peak of its children.
func TestPeak(t *testing.T) {
	large := make([]byte, 300<<20)
	for i := range large {
		large[i] = 1
	}
	_, u, err := child(1, binary, "--help")
	if err != nil {
		t.Fatal(err)
	}
	if u.Peak < 1 || u.Peak > 250 {
		t.Errorf("a child of a process of %d MiB that prints its usage used %g MiB", len(large)>>20, u.Peak)
	}
	if _, _, err := child(1, binary, "no-such-verb"); err == nil {
		t.Error("a child that failed was not reported")
	}
}
