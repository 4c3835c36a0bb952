package table

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type machine struct {
	name, zone string
	share      float64
}

var machines = []machine{{"ip-10-0-17-221.example.internal", "zone-a", 0.5}, {"ip-10-0-17-9.example.internal", "zone-b", 1}}

func machineColumns() []Column[machine] {
	return []Column[machine]{
		{Title: "NAME", Cell: func(m *machine) string { return m.name }},
		{Title: "USED", Cell: func(m *machine) string { return Bar(m.share) }, Narrow: func(m *machine) string { return Percent(m.share) }},
		{Title: "LENGTH", NarrowTitle: "LEN", Right: true, Cell: func(m *machine) string { return fmt.Sprint(len(m.name)) }},
		{Title: "ZONE", Cell: func(m *machine) string { return m.zone }},
	}
}

// TestText checks the order in which a table becomes smaller: shorter names, narrow columns, fewer columns, and names
// that are shorter still.
func TestText(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, `NAME                             USED             LENGTH  ZONE
ip-10-0-17-221.example.internal  █████░░░░░  50%      31  zone-a
ip-10-0-17-9.example.internal    ██████████ 100%      29  zone-b
`},
		{60, `NAME                         USED             LENGTH  ZONE
ip-10-0-17-22…mple.internal  █████░░░░░  50%      31  zone-a
`},
		{50, `NAME                             USED  LEN  ZONE
ip-10-0-17-221.example.internal   50%   31  zone-a
`},
		{40, `NAME                           USED  LEN
ip-10-0-17-221…ample.internal   50%   31
`},
		{20, `NAME       USED  LEN
ip-1…rnal   50%   31
`},
		{10, `NAME  USED
i…al   50%
`},
		{3, `N…E
i…l
`},
	} {
		got := Text(machineColumns(), machines, c.width)
		if want := strings.Split(c.want, "\n"); c.width > 0 {
			got, c.want = strings.Join(strings.Split(got, "\n")[:2], "\n"), strings.Join(want[:2], "\n")
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("on %d characters, -want +got:\n%s", c.width, diff)
		}
	}
}

// TestTextFits checks that no line is wider than the width, wherever the column of names is.
func TestTextFits(t *testing.T) {
	for names := range machineColumns() {
		columns := machineColumns()
		columns[names].Least = 12
		for width := 1; width < 80; width++ {
			for line := range strings.Lines(Text(columns, machines, width)) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("names in column %d: %d characters on %d: %s", names, n, width, line)
				}
			}
		}
	}
}

// TestPaint checks that the text of each column is painted without the blanks around it.
func TestPaint(t *testing.T) {
	l := Arrange(machineColumns(), machines, 40)
	got := l.Row(&machines[1], func(column int, text string) string { return fmt.Sprintf("<%d %s>", column, text) })
	if want := "<0 ip-10-0-17-9.example.internal>  <1 100%>   <2 29>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if l.Columns() != 3 {
		t.Errorf("%d columns, want 3", l.Columns())
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		width       int
		middle, end string
	}{
		{-1, "", ""}, {0, "", ""}, {1, "…", "…"}, {2, "k…", "k…"}, {3, "k…r", "ka…"}, {6, "ka…ter", "karpe…"}, {9, "karpenter", "karpenter"},
	} {
		if got := CutMiddle("karpenter", c.width); got != c.middle {
			t.Errorf("the middle is cut to %d characters: %q, want %q", c.width, got, c.middle)
		}
		if got := Cut("karpenter", c.width); got != c.end {
			t.Errorf("the end is cut to %d characters: %q, want %q", c.width, got, c.end)
		}
	}
}

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{-1: "░░░░░░░░░░ -100%", 0: "░░░░░░░░░░   0%", 0.25: "███░░░░░░░  25%", 2: "██████████ 200%"} {
		if got := Bar(share); got != want {
			t.Errorf("%v is %q, want %q", share, got, want)
		}
	}
}

// TestNamesStayDifferent checks that names that are shortened stay different where the middle, the start or the end
// of them is the same.
func TestNamesStayDifferent(t *testing.T) {
	for _, names := range [][]string{
		{"ip-10-0-17-221.eu-central-1.compute.internal", "ip-10-0-17-222.eu-central-1.compute.internal"},
		{"a-pool-with-a-very-long-name-x7k2p", "a-pool-with-a-very-long-name-x7k2q"},
		{"first-node-of-a-very-long-name-pool", "other-node-of-a-very-long-name-pool"},
		{"node-of-a-very-long-1-name-of-the-pool-x", "node-of-a-very-long-2-name-of-the-pool-x"},
	} {
		var rows []machine
		for _, name := range names {
			rows = append(rows, machine{name: name, zone: "zone-a"})
		}
		l := Arrange(machineColumns(), rows, 40)
		seen := map[string]bool{}
		for i := range rows {
			line := l.Row(&rows[i], nil)
			if seen[line] = true; utf8.RuneCountInString(line) > 40 || !strings.Contains(line, "…") {
				t.Errorf("%s is %q", names[i], line)
			}
		}
		if len(seen) < len(names) {
			t.Errorf("%q are shown as %v", names, seen)
		}
	}
}

// TestPlural checks the numbers that take another form.
func TestPlural(t *testing.T) {
	for n, want := range []string{"0 nodes", "1 node", "2 nodes"} {
		if got := Plural(n, "node"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
