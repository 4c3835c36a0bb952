package review

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/table"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Fleet holds the figures of a fleet at rest, and of the way there from today.
type Fleet struct {
	// PricePerHour is in USD, that of the nodes whose price is known. Unpriced is the number of the others.
	PricePerHour float64
	Unpriced     int
	// Replaced is the number of nodes that are removed because they drift, and Moved that of moves of pods.
	Replaced, Moved int
}

// Effect is what a change does: the fields, and the fleets at rest without it and with it.
type Effect struct {
	Changes  []Change
	Old, New Fleet
	// Removed are nodes that are deleted with their NodePool. Unschedulable are pods that have no place with the change
	// only, Schedulable those that have none without it only: a fleet may cost more because it runs more pods.
	Removed, Unschedulable, Schedulable int
	// Useless are the NodePools that can launch nothing with the change only.
	Useless []string
}

// PerMonth is the difference of the fleets at rest in USD a month: what the change costs. The way from today to the
// fleet at rest without the change is not part of it.
func (e *Effect) PerMonth() float64 {
	return (e.New.PricePerHour - e.Old.PricePerHour) * view.HoursPerMonth
}

// longestValue is the maximum length of a value in the verdict, in characters.
const longestValue = 60

// Verdict returns the effect in a sentence.
func (e *Effect) Verdict() string {
	if e.none() {
		return fmt.Sprintf("%s (%s)", e.changed(), e.atRest())
	}
	clauses := []string{e.cost()}
	clauses = append(clauses, "replaces "+e.apart(e.New.Replaced, e.Old.Replaced, "node")+" by drift")
	if e.Removed > 0 {
		clauses = append(clauses, "deletes "+table.Plural(e.Removed, "node")+" with their NodePool")
	}
	clauses = append(clauses, "moves "+e.apart(e.New.Moved, e.Old.Moved, "pod"))
	if e.Schedulable > 0 {
		clauses = append(clauses, become(e.Schedulable)+" schedulable")
	}
	clauses = append(clauses, become(e.Unschedulable)+" unschedulable")
	return e.changed() + ": " + strings.Join(clauses, ", ")
}

func become(pods int) string {
	if pods == 1 {
		return "1 pod becomes"
	}
	return table.Plural(pods, "pod") + " become"
}

// none reports whether nothing changed, and nothing differs because of that.
func (e *Effect) none() bool {
	return len(e.Changes)+e.Removed+e.Unschedulable+e.Schedulable == 0 && amount(e.PerMonth()) == amount(0) &&
		e.Old.Unpriced == e.New.Unpriced && e.Old.Replaced == e.New.Replaced && e.Old.Moved == e.New.Moved
}

// atRest is the cost of the fleet at rest without the change.
func (e *Effect) atRest() string {
	text := fmt.Sprintf("%.2f USD a month at rest", e.Old.PricePerHour*view.HoursPerMonth)
	if n := e.Old.Unpriced; n > 0 {
		text += ", without " + table.Plural(n, "node") + " of unknown price"
	}
	return text
}

// changed names the first field that changed, and how many more there are.
func (e *Effect) changed() string {
	if len(e.Changes) == 0 {
		return "Nothing changes: no field that decides changed"
	}
	c := e.Changes[0]
	text := c.Kind + " " + c.Name
	if c.Field != "" {
		text += ": " + c.Field
	}
	text += " " + table.CutMiddle(c.Old, longestValue) + " -> " + table.CutMiddle(c.New, longestValue)
	if more := len(e.Changes) - 1; more > 0 {
		text += fmt.Sprintf(" and %s", table.Plural(more, "more change"))
	}
	return text
}

// cost says what the change costs. A fleet that is cheaper because a pool can launch nothing is no saving.
func (e *Effect) cost() string {
	month := e.PerMonth()
	direction := "more"
	if month < 0 && amount(month) != amount(0) {
		direction = "less"
	}
	text := fmt.Sprintf("costs %s USD a month %s at rest (of %.2f", amount(month), direction, e.Old.PricePerHour*view.HoursPerMonth)
	if n := max(e.Old.Unpriced, e.New.Unpriced); n > 0 {
		text += ", without " + table.Plural(n, "node") + " of unknown price"
	}
	text += ")"
	if direction == "less" && len(e.Useless) > 0 {
		text += ", which is no saving: NodePool " + strings.Join(e.Useless, ", ") + " can launch nothing"
	}
	return text
}

// amount returns USD without a sign.
func amount(usd float64) string { return strconv.FormatFloat(math.Abs(usd), 'f', 2, 64) }

// apart returns a number, and how many of them there are without the change as well.
func (e *Effect) apart(now, old int, noun string) string {
	if old == 0 {
		return table.Plural(now, noun)
	}
	return fmt.Sprintf("%s (%d without the change)", table.Plural(now, noun), old)
}
