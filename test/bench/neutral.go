package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/testing/neutral"
	"github.com/karpenter-go/karpenter/internal/testing/neutral/decide"
)

// neutralInputs are the kinds of inputs of table neutral, and how many there are of each if -seeds is not given.
var neutralInputs = []struct {
	name  string
	make  func(seed int) *neutral.Input
	count int
}{{"P", neutral.Purchase, 36}, {"D", neutral.Fleet, 12}}

// neutralTimes is how often each input is decided; the least CPU time counts.
const neutralTimes = 2

// effect adds up what a change does to the inputs of a kind.
type effect struct {
	tried, changed, dearer int
	// compared are those with as many pods without a place as without the change; stranded are the pods of the others.
	compared, stranded int
	ratios, worst      float64
	where              string
	cpu, cpuBefore     float64
	// refused are inputs with a problem, which count as dearer.
	refused int
	problem error
}

func (e *effect) add(seed int, without, with decide.Decision) {
	e.tried++
	e.cpu, e.cpuBefore = e.cpu+with.CPU, e.cpuBefore+without.CPU
	if with.Changed(without.Outcome) {
		e.changed++
	}
	if with.Dearer(without.Outcome) {
		e.dearer++
	}
	if more := with.Unschedulable - without.Unschedulable; more != 0 {
		e.stranded += max(0, more)
		return
	}
	r := with.Ratio(without.Outcome)
	e.compared++
	e.ratios += r
	if e.compared == 1 || r > e.worst {
		e.worst, e.where = r, strconv.Itoa(seed)
	}
}

func (e *effect) cells() []string {
	if e.refused > 0 {
		return []string{"-", verdict(fmt.Sprintf("%d of %d", e.refused+e.dearer, e.refused+e.tried), true), "refused", "-", "-"}
	}
	if e.tried == 0 {
		return []string{"-", "-", "-", "-", "-"}
	}
	percent := func(r float64) string { return fmt.Sprintf("%+.1f%%", 100*(r-1)) }
	worst := fmt.Sprintf("%s (%s)", percent(e.worst), e.where)
	if e.stranded > 0 {
		worst += fmt.Sprintf(", %d pods stay", e.stranded)
	}
	return []string{
		strconv.Itoa(e.changed), verdict(fmt.Sprintf("%d of %d", e.dearer, e.tried), e.dearer > 0),
		percent(e.ratios / float64(max(1, e.compared))), worst, strconv.FormatFloat(e.cpu/max(e.cpuBefore, 1e-9), 'f', 1, 64),
	}
}

// neutral compares plans with and without changes that do not matter. It decides in this process.
func (b *bench) neutral() error {
	columns := []string{"change"}
	for _, k := range neutralInputs {
		for _, c := range []string{"changed", "dearer", "mean", "worst (seed)", "CPU"} {
			columns = append(columns, k.name+" "+c)
		}
	}
	row := b.table("Changes that must not make a plan dearer (P: purchases, D: fleets at rest; dearer: over 0.5%, or more pods "+
		"without a place; CPU: a multiple of that without the change; bold: misses the aim)", columns...)
	bases := make([][]decide.Decision, len(neutralInputs))
	for i, k := range neutralInputs {
		for n := range b.neutralCount(k.count) {
			d, err := b.neutralDecision(k.make(b.seed + n))
			if err != nil {
				return err
			}
			bases[i] = append(bases[i], d)
		}
	}
	var problems []error
	for _, c := range neutral.Changes() {
		if !b.only.MatchString(c.Name) {
			continue
		}
		cells := []string{c.Name}
		for i, k := range neutralInputs {
			var e effect
			for n, base := range bases[i] {
				if changed := c.Apply(k.make(b.seed+n), base.Outcome); changed != nil {
					with, err := b.neutralDecision(changed)
					if err != nil {
						e.refused, e.problem = e.refused+1, err
						continue
					}
					e.add(b.seed+n, base, with)
				}
			}
			cells = append(cells, e.cells()...)
			if e.problem != nil {
				problems = append(problems, e.problem)
			}
		}
		row(cells...)
	}
	b.problems += len(problems)
	for _, problem := range problems {
		first, _, _ := strings.Cut(problem.Error(), "\n")
		fmt.Fprintf(b.out, "\n%s\n", first)
	}
	return nil
}

// neutralDecision decides an input, whose files are in a folder of its name.
func (b *bench) neutralDecision(in *neutral.Input) (decide.Decision, error) {
	name := strings.NewReplacer(", ", "/", " ", "-", "%", "").Replace(in.Name)
	return decide.Input(in, filepath.Join(b.folder, "neutral", name), neutralTimes)
}

func (b *bench) neutralCount(otherwise int) int {
	if b.fleetsGiven {
		return b.fleets
	}
	return otherwise
}
