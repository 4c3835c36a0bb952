package review

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/table"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Policy is what a change must not do. A NodePool that can launch nothing with the change only is never allowed.
type Policy struct {
	// Increase is the most that a change may cost.
	Increase Increase
	// Unschedulable forbids that pods have no place which had one.
	Unschedulable bool
}

// Increase is an amount in USD a month, or a share of the fleet at rest without the change. The zero value allows all.
type Increase struct {
	text    string
	amount  float64
	percent bool
}

// Set reads an amount, such as 50, or a share, such as 5%.
func (i *Increase) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 || math.IsInf(value, 0) || math.IsNaN(value) {
		return fmt.Errorf("want USD a month, such as 50, or a share, such as 5%%")
	}
	*i = Increase{text, value, percent}
	return nil
}

// String returns the amount or the share as it was written.
func (i *Increase) String() string { return i.text }

// Type names the value in help.
func (i *Increase) Type() string { return "usd|percent" }

// Violation is a part of the policy that a change does not keep.
type Violation struct {
	// Policy is the flag, or uselessNodePool.
	Policy string `json:"policy"`
	// Message says what was found.
	Message string `json:"message"`
}

// cent is the smallest amount that text shows, in USD: a smaller difference is none.
const cent = 0.01

// Violations returns what the change does and must not.
func (p *Policy) Violations(e *Effect) []Violation {
	var list []Violation
	for _, name := range e.Useless {
		list = append(list, Violation{"uselessNodePool", "NodePool " + name + " can launch nothing with the change only"})
	}
	if text := p.Increase.exceeded(e); text != "" {
		list = append(list, Violation{"max-increase", fmt.Sprintf("--max-increase %s: %s", p.Increase.text, text)})
	}
	if n := e.Unschedulable; p.Unschedulable && n > 0 {
		list = append(list, Violation{"forbid-unschedulable",
			fmt.Sprintf("--forbid-unschedulable: %s unschedulable with the change only", table.Plural(n, "pod"))})
	}
	return list
}

// exceeded says by how much the change costs more than is allowed, "" if it does not.
func (i *Increase) exceeded(e *Effect) string {
	month, base := e.PerMonth(), e.Old.PricePerHour*view.HoursPerMonth
	most := i.amount
	if i.percent {
		most = base * i.amount / 100
	}
	switch {
	case i.text == "":
		return ""
	case e.New.Unpriced > e.Old.Unpriced:
		return fmt.Sprintf("what the change costs is not known: the price of %s is unknown with it, of %d without it",
			table.Plural(e.New.Unpriced, "node"), e.Old.Unpriced)
	case month <= most || month < cent/2:
		return ""
	case i.percent && base > 0:
		return fmt.Sprintf("costs %.2f USD a month more at rest, %.1f%% of %.2f", month, month/base*100, base)
	}
	return fmt.Sprintf("costs %.2f USD a month more at rest", month)
}
