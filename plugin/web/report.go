package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/doctor"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/table"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Report is the views of one reading as a document that stands alone.
type Report struct {
	Source, At, PriceSource string
	// Summary is the answer in one sentence.
	Summary              string
	Cost                 []fact
	Sections             []section
	Incomplete, Problems []string

	cost view.Cost
}

// section is a view of the report, by the name of its page.
type section struct {
	Name string
	*shown
}

// reported are the views of a report in their order.
var reported = []struct {
	name, title string
	show        func(*request) (*shown, error)
	query       url.Values
}{
	{"plan", "", showPlan, nil},
	{"savings", "", showSavings, nil},
	{"bill", "", showBill, nil},
	{"workloads", "Cost by workload", showBill, url.Values{"by": {bill.ByWorkload}}},
	{"pending", "", showPending, nil},
	{"fleet", "", showFleet, url.Values{"color": {string(picture.Why)}}},
}

// noTimeout is a patience that outlasts every view.
const noTimeout = 365 * 24 * time.Hour

// NewReport computes all parts of a report. What the doctor found is nil if it was not asked. It ends early with the
// context.
func NewReport(ctx context.Context, o *offline.Overview, source string, examined *doctor.Report) (*Report, error) {
	at := newReading(loaded{Overview: o}, 1)
	var p page
	p.fromReading(ctx, at, noTimeout)
	cost, _, ready := at.cost.ask(ctx, noTimeout)
	if !ready {
		return nil, ctx.Err()
	}
	r := &Report{Source: source, At: p.At, PriceSource: p.PriceSource, Cost: p.Cost, Incomplete: p.Incomplete,
		Problems: p.Problems, cost: cost}
	server := &Server{options: Options{Live: examined != nil}} // the doctor examines live clusters
	for _, of := range reported {
		v, err := of.show(&request{ctx: ctx, query: of.query, server: server, reading: at, width: usualWidth, patience: noTimeout,
			scriptless: true})
		switch {
		case err != nil:
			return nil, fmt.Errorf("computing the view %q: %w", of.name, err)
		case v.Waiting != "":
			return nil, fmt.Errorf("computing the view %q: %w", of.name, context.Cause(ctx))
		}
		v.Title = cmp.Or(of.title, views[of.name].title)
		r.Sections = append(r.Sections, section{of.name, v})
	}
	r.Sections = append(r.Sections, findings(examined))
	plan, _, _ := at.plan.ask(ctx, noTimeout)
	saved, _, _ := at.savings.ask(ctx, noTimeout)
	r.Summary = summary(plan, saved.Blockers)
	return r, nil
}

// summary says what the plan saves and what keeps most of the rest. Both parts are computed already.
func summary(p *view.Plan, blockers []view.Blocker) string {
	g := p.Gains()
	text := "Nothing can be saved now."
	if g.Saving > 0 {
		text = fmt.Sprintf("%.0f USD a month can be saved in %s.", g.Saving*view.HoursPerMonth, plural(g.Removals, "step"))
	}
	var most view.Blocker
	for _, b := range blockers {
		if b.Known && b.Saving > most.Saving {
			most = b
		}
	}
	if most.Saving*view.HoursPerMonth >= 1 {
		text += fmt.Sprintf(" %s %s keeps %.0f more.", most.Kind, most.Name, most.Saving*view.HoursPerMonth)
	}
	if g.Cost > 0 {
		text += fmt.Sprintf(" Nodes for pending pods cost %.0f.", g.Cost*view.HoursPerMonth)
	}
	if p.Homeless > 0 {
		text += " Without a place: " + plural(p.Homeless, "pod") + "."
	}
	return text
}

// verb returns a verb of the third person for a number of things.
func verb(n int, verb string) string {
	if n == 1 {
		return verb + "s"
	}
	return verb
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// WriteHTML writes one file that needs no other, and no script.
func (r *Report) WriteHTML(out io.Writer) error { return templates.Execute(out, "report", r) }

// WriteJSON writes the rows and figures, by the names of their pages.
func (r *Report) WriteJSON(out io.Writer) error {
	document := map[string]any{"source": r.Source, "at": r.At, "summary": r.Summary, "cost": r.cost}
	for key, list := range map[string][]string{"incomplete": r.Incomplete, "problems": r.Problems} {
		if len(list) > 0 {
			document[key] = list
		}
	}
	if r.PriceSource != "" {
		document["priceSource"] = r.PriceSource
	}
	for _, s := range r.Sections {
		part := map[string]any{"rows": []json.RawMessage{}}
		if s.Sheet != nil {
			part["rows"] = s.Sheet.Objects()
		}
		for key, value := range s.Extra {
			part[key] = value
		}
		document[s.Name] = part
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(document)
}

// noTime is said in place of the time of files that contain none.
const noTime = "The files contain no time"

// WriteMarkdown writes the report without pictures.
func (r *Report) WriteMarkdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Karpenter: %s\n\n%s. A month has 730 hours.", table.Escape(r.Source), table.Escape(cmp.Or(r.At, noTime)))
	if r.PriceSource != "" {
		fmt.Fprintf(&b, " Prices: %s.", table.Escape(r.PriceSource))
	}
	b.WriteString("\n\n" + table.Escape(r.Summary) + "\n\n")
	list := func(prefix string, lines []string) {
		for _, text := range lines {
			fmt.Fprintf(&b, "* %s%s\n", prefix, table.Escape(text))
		}
		if len(lines) > 0 {
			b.WriteByte('\n')
		}
	}
	list("Incomplete: ", r.Incomplete)
	list("Cannot be read: ", r.Problems)
	rows := [][]string{}
	for _, f := range r.Cost {
		rows = append(rows, []string{f.Name, f.Value, f.Note})
	}
	b.WriteString(table.Markdown([]string{"Cost", "", ""}, func(column int) bool { return column == 1 }, rows))
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.Title)
		for _, text := range []string{s.Lead, s.Stopped, s.Empty} {
			if text != "" {
				b.WriteString(table.Escape(text) + "\n\n")
			}
		}
		if s.Sheet != nil && len(s.Sheet.Rows) > 0 {
			b.WriteString(s.Sheet.Markdown())
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// findings returns the section of the doctor.
func findings(r *doctor.Report) section {
	v := &shown{Title: "Findings of the doctor", Sheet: &view.Sheet{Columns: []view.Column{{Key: "code", Title: "Code"},
		{Key: "object", Title: "Object"}, {Key: "problem", Title: "Problem"}, {Key: "fix", Title: "Fix"}}}}
	add := func(f cloud.Finding, fix string) {
		v.Sheet.Rows = append(v.Sheet.Rows, view.Row{ID: strconv.Itoa(len(v.Sheet.Rows)),
			Cells: []view.Cell{view.Words(f.Code), view.Words(f.Object), view.Words(f.Problem), view.Words(fix)}})
	}
	if r == nil {
		v.Empty = "The doctor examines a live cluster, and this report is of files."
		return section{"doctor", v}
	}
	v.Lead, v.Extra = strings.Join(r.Notes, " "), map[string]any{"looked": r.Looked}
	for _, f := range r.Findings {
		add(f.Finding, f.Fix)
		for _, symptom := range f.Follows {
			add(symptom, "follows from "+f.Code+" of "+f.Object)
		}
	}
	if len(r.Findings) == 0 {
		v.Empty = "No problems found."
	}
	return section{"doctor", v}
}
