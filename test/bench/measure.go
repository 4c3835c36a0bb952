package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/testing/scratch"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// bench is one run of the measurements.
type bench struct {
	binary   string
	runs     int
	only     *regexp.Regexp
	folder   string // of the workloads
	seed     int    // the first one of table rest
	fleets   int    // of each size in table rest, one for each seed
	out      io.Writer
	days     int // of table week
	problems int // of tables rest, neutral and week
	// fleetsGiven means that -seeds was given.
	fleetsGiven bool
}

// tables in the order in which they are printed.
var tables = []struct {
	name  string
	print func(*bench) error
}{
	{"speed", (*bench).speed}, {"slopes", (*bench).slopes}, {"price", (*bench).price}, {"seeds", (*bench).seeds},
	{"arrival", (*bench).arrival}, {"memory", (*bench).memory},
	{"disrupt", (*bench).disrupt}, {"course", (*bench).course}, {"whole", (*bench).wholePlan},
	{"rest", (*bench).rest}, {"purchases", (*bench).purchases}, {"neutral", (*bench).neutral}, {"week", (*bench).week},
}

var errProblems = errors.New("answers with problems")

func measure(args []string, out io.Writer) error {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.name
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	binary := flags.String("binary", filepath.Join("..", "bin", "karpenter"), "the karpenter to measure")
	wanted := flags.String("tables", strings.Join(names, ","), "which tables, separated by commas")
	only := flags.String("only", "", "regular expression of the workloads to measure")
	folder := flags.String("folder", "", "where to put the workloads, which stay (default: a temporary folder)")
	fleets := flags.Int("seeds", 60, "number of fleets of each size in table rest, one for each seed (a full run: 200), "+
		"and of inputs in tables purchases and neutral")
	seed := flags.Int("first-seed", 1, "seed of the first of them, and of table week")
	days := flags.Int("days", 7, "number of days in table week")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *fleets < 1 || *seed < 1 || *days < 1 {
		return fmt.Errorf("-seeds, -first-seed and -days: %d, %d and %d, want numbers of 1 or more", *fleets, *seed, *days)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no verb: want workload, digest, or only flags", flags.Arg(0))
	}
	b := &bench{folder: *folder, seed: *seed, fleets: *fleets, days: *days, out: out}
	flags.Visit(func(f *flag.Flag) { b.fleetsGiven = b.fleetsGiven || f.Name == "seeds" })
	var err error
	if b.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if b.runs, err = runsOf(os.Getenv("BENCH_RUNS")); err != nil {
		return err
	}
	if b.binary, err = filepath.Abs(*binary); err != nil {
		return err
	}
	if b.folder == "" {
		workloads, err := scratch.New("karpenter-bench-")
		if err != nil {
			return err
		}
		defer workloads.Remove()
		b.folder = workloads.Path
	}
	return b.print(strings.Split(*wanted, ","))
}

func runsOf(text string) (int, error) {
	if text == "" {
		return 5, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("BENCH_RUNS is %q, want a number of 1 or more", text)
	}
	return n, nil
}

func (b *bench) print(wanted []string) error {
	fmt.Fprintf(b.out, "%s, %s/%s, %d processors; median of %d\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), b.runs)
	for _, name := range wanted {
		i := slices.IndexFunc(tables, func(t struct {
			name  string
			print func(*bench) error
		},
		) bool {
			return t.name == name
		})
		if i < 0 {
			return fmt.Errorf("-tables: there is no table %q", name)
		}
		if err := tables[i].print(b); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	if b.problems > 0 {
		return fmt.Errorf("%d %w", b.problems, errProblems)
	}
	return nil
}

// made returns the folder of a workload. It writes the workload if it does not exist.
func (b *bench) made(name string, seed int) (string, error) {
	folder := filepath.Join(b.folder, fmt.Sprintf("%s-s%d", name, seed))
	if _, err := os.Stat(folder + ".done"); err == nil {
		return folder, nil
	}
	set, err := workload.Named(name, seed)
	if err != nil {
		return "", err
	}
	if err := set.Write(folder); err != nil {
		return "", err
	}
	return folder, os.WriteFile(folder+".done", nil, 0o600)
}

// decide decides a workload once.
func (b *bench) decide(name string, seed int) (*answer, error) {
	folder, err := b.made(name, seed)
	if err != nil {
		return nil, err
	}
	a, _, err := b.answer(folder)
	return a, err
}

// cost returns the CPU seconds of one decision, including the conversion: the usage of additional rounds, divided by
// their number. It returns the median of the runs.
func (b *bench) cost(folder string, rounds, procs int) (float64, error) {
	runs := make([]float64, b.runs)
	for i := range runs {
		_, one, err := b.simulate(folder, 1, procs)
		if err != nil {
			return 0, err
		}
		_, more, err := b.simulate(folder, 1+rounds, procs)
		if err != nil {
			return 0, err
		}
		runs[i] = (more.CPU - one.CPU) / float64(rounds)
	}
	return median(runs), nil
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	n := len(xs)
	if n%2 == 1 {
		return xs[n/2]
	}
	return (xs[n/2-1] + xs[n/2]) / 2
}

// table prints the head of a Markdown table and returns a function that prints a row.
func (b *bench) table(title string, columns ...string) func(cells ...string) {
	fmt.Fprintf(b.out, "\n### %s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	return func(cells ...string) { fmt.Fprintf(b.out, "| %s |\n", strings.Join(cells, " | ")) }
}

// seconds formats seconds with three significant digits.
func seconds(s float64) string {
	if s < 0.1 {
		return strconv.FormatFloat(s, 'f', 4, 64)
	}
	return strconv.FormatFloat(s, 'f', 3, 64)
}

func usd(x float64) string   { return strconv.FormatFloat(x, 'f', 2, 64) }
func ratio(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// verdict returns the figure, in bold if it misses the requirement.
func verdict(figure string, missed bool) string {
	if missed {
		return "**" + figure + "**"
	}
	return figure
}
