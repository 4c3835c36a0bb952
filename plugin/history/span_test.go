package history

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// figures are what the answers about one time have in common.
type figures struct {
	Nodes, Launched, Removed, Commands int
	Cost, HoursCost                    string // USD
	Saved, HoursSaved                  string // USD
}

func figuresOf(v *View) figures {
	nodes, hours, commands := v.Nodes(), v.Hours(time.Hour), v.Commands()
	return figures{nodes.Total.Nodes, nodes.Total.Launched, nodes.Total.Removed, len(commands.Commands),
		price(nodes.Total.Cost), price(&hours.Total.Cost), price(commands.Saved), price(&hours.Total.Saved)}
}

// TestSpan checks the figures within a part of the worked example, whose node b ends with the log, at 12:30.
func TestSpan(t *testing.T) {
	at := func(clock string) time.Time {
		if clock == "" {
			return time.Time{}
		}
		when, err := time.Parse(time.RFC3339, "2026-05-01T"+clock+":00Z")
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	l := read(t, worked+`{"time":"2026-05-01T12:30:00Z","message":"deleted nodeclaim","nodeClaim":"b","providerID":"y"}`)
	for _, c := range []struct {
		since, until string
		want         figures
	}{
		{"", "", figures{2, 2, 2, 2, "0.4500", "0.4500", "0.3000", "0.3000"}},
		// b runs for the hour, a is gone. c1 saves since 11:00, for an hour in the span; c2 is rolled back.
		{"11:30", "", figures{1, 0, 1, 1, "0.1000", "0.1000", "-", "0.2000"}},
		// a 70 minutes, b 40; c1 saves for 10.
		{"", "11:10", figures{2, 2, 0, 1, "0.3000", "0.3000", "0.0333", "0.0333"}},
		{"10:15", "10:45", figures{2, 1, 0, 0, "0.1250", "0.1250", "-", "0.0000"}},
		{"", "10:29", figures{1, 1, 0, 0, "0.0967", "0.0967", "-", "0.0000"}},
	} {
		v := l.View(Query{Since: at(c.since), Until: at(c.until)})
		if diff := cmp.Diff(c.want, figuresOf(v)); diff != "" {
			t.Errorf("from %q until %q (-want +got):\n%s", c.since, c.until, diff)
		}
	}
	v := l.View(Query{Until: at("11:10")})
	var left []string
	for _, n := range v.Nodes().Nodes {
		left = append(left, n.left())
	}
	if diff := cmp.Diff([]string{"leaving", ""}, left); diff != "" {
		t.Errorf("LEFT until 11:10 (-want +got):\n%s", diff)
	}
	_, err := l.View(Query{Until: at("10:29")}).Node("b")
	if err == nil || err.Error() != "the log does not name a node b until 2026-05-01 10:29:00" {
		t.Errorf("b until 10:29: %v", err)
	}
}

// TestSpanOfCutLog compares the answers until the time of each line with those of a log that ends there.
func TestSpanOfCutLog(t *testing.T) {
	whole := read(t, file(t, life))
	ends := map[time.Time]string{} // the lines until then
	for line := range strings.Lines(file(t, life)) {
		var keys struct{ Time time.Time }
		if err := json.Unmarshal([]byte(line), &keys); err != nil {
			t.Fatal(err)
		}
		ends[keys.Time] = ""
	}
	for end := range ends {
		for line := range strings.Lines(file(t, life)) {
			var keys struct{ Time time.Time }
			if json.Unmarshal([]byte(line), &keys) == nil && !keys.Time.After(end) {
				ends[end] += line
			}
		}
		answers := func(v *View) string {
			nodes, commands := v.Nodes(), v.Commands()
			nodes.Head, commands.Head = Head{}, Head{} // which lines were read differs
			return nodes.Text(80) + Timelines(nodes.Nodes) + commands.Text(80)
		}
		if diff := cmp.Diff(answers(read(t, ends[end]).View(Query{})), answers(whole.View(Query{Until: end}))); diff != "" {
			t.Errorf("until %v (-cut +until):\n%s", end, diff)
		}
	}
	if len(ends) < 20 {
		t.Errorf("%d times, want at least 20", len(ends))
	}
}

// TestSpansAddUp checks that the parts of the time add up to the whole, and that nodes and hours agree about each.
func TestSpansAddUp(t *testing.T) {
	l := read(t, file(t, life))
	whole := l.View(Query{})
	from, until := whole.span()
	var cost, saved bill.USD
	launched, removed := 0, 0
	const parts = 7
	for i := range parts {
		step := until.Sub(from) / parts
		q := Query{Since: from.Add(time.Duration(i) * step), Until: from.Add(time.Duration(i+1)*step - 1)}
		if i == parts-1 {
			q.Until = until
		}
		v := l.View(q)
		nodes, hours := v.Nodes().Total, v.Hours(time.Hour).Total
		if nodes.Launched != hours.Launched || nodes.Removed != hours.Removed {
			t.Errorf("part %d: nodes %+v, hours %+v", i, nodes, hours)
		}
		if nodes.Cost != nil {
			cost += *nodes.Cost
		}
		saved, launched, removed = saved+hours.Saved, launched+nodes.Launched, removed+nodes.Removed
	}
	want := whole.Hours(time.Hour).Total
	if off := want.Cost - cost; off < -100 || off > 100 { // nano-USD: parts are rounded down
		t.Errorf("the parts cost %s, the whole %s", cost.Text(9), want.Cost.Text(9))
	}
	if off := want.Saved - saved; off < -100 || off > 100 {
		t.Errorf("the parts saved %s, the whole %s", saved.Text(9), want.Saved.Text(9))
	}
	if launched != want.Launched || removed != want.Removed {
		t.Errorf("the parts launched %d and removed %d, the whole %d and %d", launched, removed, want.Launched, want.Removed)
	}
}
