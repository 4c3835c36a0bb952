package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

// large returns a fleet with the given number of nodes, and a hundred reasons for pending pods.
func large(nodes int) *Fleet {
	f := &Fleet{At: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Pods: 10 * nodes, CPU: 0.61, Memory: 0.4,
		PricePerHour: 100, LowerBoundPerHour: 81}
	for i := range nodes {
		f.Nodes = append(f.Nodes, Node{
			Name: fmt.Sprintf("node-%05d", i), NodePool: "default", InstanceType: []string{"m.large", "c.xlarge"}[i%2],
			Zone: fmt.Sprintf("zone-%d", i%3), CapacityType: "spot",
			State: StateReady, CPU: float64(i%100) / 100, Memory: 0.5, Pods: 10, Places: 58, PricePerHour: float64(i%7) / 10, Age: float64(60 * i),
		})
	}
	for i := range 100 {
		f.Waiting = append(f.Waiting, Waiting{Pod: fmt.Sprintf("default/pod-%d", i), Count: 2, Outcome: noPlace,
			Why: "needs 16 of cpu,\nat most 8 is free"})
	}
	return f
}

// names returns the nodes that the screen shows.
func names(s *Screen) []string {
	var list []string
	for line := range strings.Lines(s.Render()) {
		if strings.HasPrefix(line, "node-") {
			list = append(list, strings.Fields(line)[0])
		}
	}
	return list
}

func TestScreenPages(t *testing.T) {
	s := &Screen{}
	s.Resize(140, 6+3)
	s.Show(large(5000))
	for _, step := range []struct {
		keys   string
		want   []string
		cursor int
	}{
		{"", []string{"node-00000", "node-00001", "node-00002"}, 0},
		{"down j", []string{"node-00000", "node-00001", "node-00002"}, 2},
		{"down", []string{"node-00001", "node-00002", "node-00003"}, 3},
		{"pgdown", []string{"node-00004", "node-00005", "node-00006"}, 6},
		{"up up up", []string{"node-00003", "node-00004", "node-00005"}, 3},
		{"end", []string{"node-04997", "node-04998", "node-04999"}, 4999},
		{"down", []string{"node-04997", "node-04998", "node-04999"}, 4999},
		{"home up", []string{"node-00000", "node-00001", "node-00002"}, 0},
		{"r", []string{"node-04999", "node-04998", "node-04997"}, 0},
		{"r s", []string{"node-00099", "node-00199", "node-00299"}, 0}, // by CPU
		{"/ 0 4 9 9 9", []string{"node-04999"}, 0},
		{"backspace backspace enter", []string{"node-00499", "node-04999", "node-00498"}, 0},
		{"esc", []string{"node-00099", "node-00199", "node-00299"}, 0},
		{"/ Z O N E - 1 enter", []string{"node-00199", "node-00499", "node-00799"}, 0},
	} {
		for _, key := range strings.Fields(step.keys) {
			if s.Press(key).Quit {
				t.Fatalf("%s is not on the screen", key)
			}
		}
		got := names(s)
		if diff := cmp.Diff(step.want, got); diff != "" || s.cursor != step.cursor {
			t.Errorf("after %s: line %d, want %d; -want +got:\n%s", step.keys, s.cursor, step.cursor, diff)
		}
	}
	if !s.Press("q").Quit || !s.Press("ctrl+c").Quit {
		t.Error("q and ctrl+c do not quit")
	}
}

// TestScreenKeepsItsNode verifies that the selection stays on its node when a newer fleet without some other nodes is
// shown.
func TestScreenKeepsItsNode(t *testing.T) {
	s := &Screen{}
	s.Resize(140, 10)
	s.Show(large(100))
	for range 20 {
		s.Press("down")
	}
	newer := large(100)
	newer.Nodes = newer.Nodes[15:]
	s.Show(newer)
	if got := s.chosen(); got == nil || got.Name != "node-00020" {
		t.Errorf("selected is %+v, want node-00020", got)
	}
	newer = large(3)
	s.Show(newer)
	if got := s.chosen(); got == nil || got.Name != "node-00002" {
		t.Errorf("selected is %+v, want the last", got)
	}
	s.Show(&Fleet{})
	s.Press("down")
	if got := s.Render(); !strings.Contains(got, "nodes 0-0 of 0") {
		t.Errorf("an empty fleet:\n%s", got)
	}
}

func TestScreenWaiting(t *testing.T) {
	s := &Screen{}
	s.Resize(100, 10)
	s.Show(large(10))
	s.Press("tab")
	s.Press("down")
	text := s.Render()
	switch {
	case !strings.Contains(text, "default/pod-3 "):
		t.Errorf("waiting pods: text lacks \"default/pod-3 \"\n%s", text)
	case strings.Contains(text, "node-"):
		t.Errorf("waiting pods: text contains \"node-\"\n%s", text)
	case !strings.Contains(text, "needs 16 of cpu, at"):
		t.Errorf("waiting pods: text lacks \"needs 16 of cpu, at\"\n%s", text)
	case !strings.Contains(text, "waiting 1-4 of 100"):
		t.Errorf("waiting pods: text lacks \"waiting 1-4 of 100\"\n%s", text)
	}
	if !strings.Contains(text, "200 pods waiting, 200 unschedulable") {
		t.Errorf("the summary does not count them:\n%s", text)
	}
	s.Fail(errors.New("the API server\nis away"))
	if !strings.Contains(s.Render(), "not fresh: the API server; is away") {
		t.Errorf("a failure is not shown:\n%s", s.Render())
	}
}

// TestScreenFits verifies that output fits any terminal size. Name, CPU and state are shown from 40 characters on,
// name and state from 20, and the line for keys always.
func TestScreenFits(t *testing.T) {
	for _, width := range []int{1, 3, 10, 20, 32, 40, 60, 80, 100, 120, 200} {
		for _, height := range []int{1, 2, 3, 6, 7, 24, 50} {
			s := &Screen{}
			s.Resize(width, height)
			if text := s.Render(); strings.Contains(text, "\n") || utf8.RuneCountInString(text) > width {
				t.Errorf("before there is a fleet, %dx%d has %q", width, height, text)
			}
			f := large(50)
			f.Nodes[3].Name = "ip-" + strings.Repeat("very-long-", 10) + "name"
			s.Show(f)
			for _, view := range []string{"nodes", "waiting"} {
				lines := strings.Split(s.Render(), "\n")
				if len(lines) > height {
					t.Errorf("%s on %dx%d: %d lines", view, width, height, len(lines))
				}
				for _, line := range lines {
					if n := utf8.RuneCountInString(line); n > width {
						t.Errorf("%s on %dx%d: %d characters: %s", view, width, height, n, line)
					}
				}
				if last := lines[len(lines)-1]; width >= 10 && !strings.HasPrefix(last, view) {
					t.Errorf("%s on %dx%d: the last line is %q", view, width, height, last)
				}
				for title, least := range map[string]int{"NODE": 4, "STATE": 20, "CPU": 40} {
					if view == "nodes" && height >= 7 && width >= least {
						if !strings.Contains(lines[4], title) {
							t.Errorf("on %d characters the columns are %s, want %s among them", width, lines[4], title)
						}
					}
				}
				s.Press("tab")
			}
		}
	}
}

// TestScreenBelow verifies that a tall terminal shows pending pods, pools and recent changes below the nodes, as far as
// there is room, and that the other views show their own table only.
func TestScreenBelow(t *testing.T) {
	f := large(3)
	f.Waiting, f.Pools = f.Waiting[:5], []Pool{{Name: "default", Ready: true, Limit: "cpu 1/2"}}
	f.Nodes[1].Leaving, f.Nodes[2].Age = 30, 7200
	for _, c := range []struct {
		height        int
		shown, hidden []string
	}{
		{12, []string{"READY  LIMIT", "cpu 1/2"}, []string{"WAITING POD", "being removed"}},
		{13, []string{"pod-0", "and 4 more"}, []string{"pod-1", "READY  LIMIT", "being removed"}},
		{16, []string{"WAITING POD", "pod-3", "pod-4"}, []string{"more", "READY", "being removed"}},
		{19, []string{"pod-4", "READY", "cpu 1/2"}, []string{"more", "being removed"}},
		{30, []string{"pod-4", "cpu 1/2", "30s  being removed  node-00001", "0s  launched       node-00000"},
			[]string{"more", "7200", "2h0m  launched"}},
	} {
		s := &Screen{}
		s.Resize(140, c.height)
		s.Show(f)
		text := s.Render()
		if n := strings.Count(text, "\n") + 1; n != c.height {
			t.Errorf("height %d has %d lines", c.height, n)
		}
		for _, want := range c.shown {
			if !strings.Contains(text, want) {
				t.Errorf("height %d lacks %q:\n%s", c.height, want, text)
			}
		}
		for _, not := range c.hidden {
			if strings.Contains(text, not) {
				t.Errorf("height %d contains %q:\n%s", c.height, not, text)
			}
		}
		s.Press("tab")
		if strings.Contains(s.Render(), "READY") {
			t.Errorf("the view of pending pods has other tables:\n%s", s.Render())
		}
	}
}

// TestRenderCostsWhatIsShown verifies that the cost of a frame depends on the visible part, not on the size of the
// fleet.
func TestRenderCostsWhatIsShown(t *testing.T) {
	frame := func(nodes int) float64 {
		s := &Screen{}
		s.Resize(140, 50)
		s.Show(large(nodes))
		return testing.AllocsPerRun(20, func() { _ = s.Render() })
	}
	if few, many := frame(60), frame(5000); many > few*1.1 {
		t.Errorf("a frame of 5,000 nodes allocates %.0f times, one of 60 %.0f times", many, few)
	}
}

func BenchmarkRender(b *testing.B) {
	s := &Screen{paint: colors()}
	s.Resize(140, 50)
	s.Show(large(5000))
	for b.Loop() {
		_ = s.Render()
	}
}

func BenchmarkShow(b *testing.B) {
	s := &Screen{}
	s.Resize(140, 50)
	f := large(5000)
	for b.Loop() {
		s.Show(f)
	}
}

func TestText(t *testing.T) {
	f := large(2)
	f.Waiting = nil
	f.Nodes[1].State, f.Nodes[1].Places = StateNotReady, 0
	f.Pools = []Pool{{Name: "default", Ready: true, Limit: "cpu 6/100"}, {Name: "gpu", NotReady: "there is no class",
		Limit: "nodes 2/2", AtLimit: "its nodes use 2 of the limit of 2 nodes"}}
	want := `2026-11-20 12:00:00  2 nodes, 20 pods; 1 pool not ready
cpu ██████░░░░  61%   memory ████░░░░░░  40%
100.0000 USD per hour, 73000.00 per month; lower bound 81.0000 (81%)

POOL     NODES  PODS  READY  LIMIT       USD/H  USD/MONTH  CPU              MEMORY
default      2    20  yes    cpu 6/100  0.1000      73.00  ░░░░░░░░░░   0%  ░░░░░░░░░░   0%
gpu          0     0  no     nodes 2/2       -          -  ░░░░░░░░░░   0%  ░░░░░░░░░░   0%

NODE        STATE      CPU              MEMORY            USD/H  TYPE      POOL      PODS  CAPACITY  ZONE     AGE
node-00000  ready      ░░░░░░░░░░   0%  █████░░░░░  50%       -  m.large   default  10/58  spot      zone-0    0s
node-00001  not ready  ░░░░░░░░░░   1%  █████░░░░░  50%  0.1000  c.xlarge  default     10  spot      zone-1  1m0s

PROBLEMS
pool gpu launches no nodes: there is no class
pool gpu is at its limit: its nodes use 2 of the limit of 2 nodes
`
	if diff := cmp.Diff(want, Text(f, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f.PricePerHour = 0; strings.Contains(Text(f, 0), "lower bound") {
		t.Error("a fleet without cost is compared with a bound")
	}
}

// TestTextFits verifies which columns of a fleet with long names are shown on 80 and on 120 characters, and that names
// are shortened in the middle.
func TestTextFits(t *testing.T) {
	f := large(2)
	f.Waiting = nil
	f.Nodes[0].Name, f.Nodes[1].Name = "ip-10-0-17-221.eu-central-1.compute.internal", "ip-10-0-17-99.eu-central-1.compute.internal"
	f.Nodes[0].NodePool, f.Nodes[1].NodePool = "a-pool-with-a-name-that-is-much-too-long-for-a-terminal-of-eighty-characters", "gpu"
	for width, want := range map[int]string{
		80: `POOL                          NODES  PODS  READY  LIMIT   USD/H  USD/MONTH  CPU
gpu                               1    10  -      -      0.1000      73.00    0%
a-pool-with-a…hty-characters      1    10  -      -           -          -    0%

NODE                                       STATE  CPU   MEMORY   USD/H  TYPE
ip-10-0-17-221.eu-ce…l-1.compute.internal  ready    0%   50%         -  m.large
ip-10-0-17-99.eu-cen…l-1.compute.internal  ready    1%   50%    0.1000  c.xlarge
`,
		120: `POOL                                      NODES  PODS  READY  LIMIT   USD/H  USD/MONTH  CPU              MEMORY
gpu                                           1    10  -      -      0.1000      73.00  ░░░░░░░░░░   0%  ░░░░░░░░░░   0%
a-pool-with-a-name-…of-eighty-characters      1    10  -      -           -          -  ░░░░░░░░░░   0%  ░░░░░░░░░░   0%

NODE                              STATE  CPU   MEMORY   USD/H  TYPE      POOL               PODS  CAPACITY  ZONE     AGE
ip-10-0-17-221.…compute.internal  ready    0%   50%         -  m.large   a-pool-…aracters  10/58  spot      zone-0    0s
ip-10-0-17-99.e…compute.internal  ready    1%   50%    0.1000  c.xlarge  gpu               10/58  spot      zone-1  1m0s
`,
	} {
		_, tables, _ := strings.Cut(Text(f, width), "\n\n")
		if diff := cmp.Diff(want, tables); diff != "" {
			t.Errorf("on %d characters, -want +got:\n%s", width, diff)
		}
	}
	for _, width := range []int{80, 120} {
		for line := range strings.Lines(Text(f, width)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d characters on %d: %s", n, width, line)
			}
		}
	}
	f = large(20) // names of ordinary length
	s := &Screen{}
	for width, last := range map[int]string{80: "CAPACITY", 120: "AGE"} {
		s.Resize(width, 24)
		s.Show(f)
		if header := s.header(); !strings.HasSuffix(header, last) {
			t.Errorf("on %d characters the columns are %s, want up to %s", width, header, last)
		}
	}
}

// TestScreenPools verifies the totals of pools, and that the orders that s selects are those of visible columns.
func TestScreenPools(t *testing.T) {
	f := large(30)
	for i := range f.Nodes[:10] {
		f.Nodes[i].NodePool = "spare"
	}
	s := &Screen{}
	s.Resize(80, 24)
	s.Show(f)
	s.Press("tab")
	s.Press("tab")
	lines := strings.Split(s.Render(), "\n")
	for i, want := range []string{"POOL", "default     20   200  -      -      6.1000    4453.00", "spare       10   100"} {
		if !strings.HasPrefix(lines[4+i], want) {
			t.Errorf("line %d of the pools is %q, want it to begin with %q", i+1, lines[4+i], want)
		}
	}
	s.Press("tab")
	for range orders {
		s.Press("s")
		if by := orders[s.order].name; by == "age" || by == "zone" {
			t.Errorf("by %s, which has no column on 80 characters", by)
		}
	}
}

// TestProblems verifies that pools without nodes are shown, and that the summary, which is the same on the screen and in
// the text, counts what is wrong.
func TestProblems(t *testing.T) {
	f := large(3)
	f.Waiting, f.Nodes[1].State, f.Nodes[1].Drain, f.Nodes[1].Leaving = nil, StateBlocked,
		"PodDisruptionBudget shop/web allows no eviction", 720
	f.Pools = []Pool{{Name: "default", Ready: true, Limit: "cpu 96/100", AtLimit: "its smallest instance type has 8"},
		{Name: "idle", Ready: true}}
	s := &Screen{}
	s.Resize(140, 24)
	for filter, want := range map[string][]string{
		"": {"3 nodes, 30 pods; 1 pool at the limit, 1 blocked drain\n", "\nidle         0     0  yes    -  ",
			"\npool default is at its limit: its smallest instance type has 8\nnode node-00001, leaving for 12m0s: PodDisruptionBudget shop/web allows no eviction\n"},
		"00001": {"1 of 3 nodes, 10 of 30 pods; 1 pool at the limit, 1 blocked drain\n"},
		"idle":  {"0 of 3 nodes, 0 of 30 pods\n", "\nno node contains \"idle\"\n", "\nidle  "},
		"nope":  {"0 of 3 nodes, 0 of 30 pods\n", "\nno node, pool or pending pod contains \"nope\"\n"},
	} {
		text := Text(f.Filter(filter), 0)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("filter %q: no %q in\n%s", filter, part, text)
			}
		}
		s.filter = filter
		s.Show(f)
		header, _, _ := strings.Cut(text, "\n")
		if screen := s.Render(); !strings.HasPrefix(screen, header+"\n") || filter == "nope" && !strings.Contains(screen, `contains "nope"`) {
			t.Errorf("filter %q: the screen has another header than %s:\n%s", filter, header, screen)
		}
	}
}

// TestFilterPools verifies that a filter matches what the rows of pools show, and that such a row counts all of its nodes.
func TestFilterPools(t *testing.T) {
	f := large(6)
	f.Waiting = nil
	for i, pool := range []string{"default", "default", "removed", "removed", "removed", ""} {
		f.Nodes[i].NodePool = pool
	}
	f.Pools = []Pool{{Name: "broken", NotReady: "the class does not exist"}, {Name: "default", Ready: true, Limit: "nodes 4/4"}}
	for filter, want := range map[string][]string{
		"gone":           {"removed 3"},
		"yes":            {"default 2"},
		"4/4":            {"default 2"},
		"does not exist": {"broken 0"},
		"DEFAULT":        {"default 2"},
		"node-00002":     {"removed 1"},
		"node-00005":     {"(none) 1"},
		"nope":           nil,
	} {
		s := &Screen{filter: filter, view: poolsView}
		s.Resize(140, 24)
		s.Show(f)
		var got []string
		for i := range s.pools {
			got = append(got, fmt.Sprintf("%s %d", poolColumns[0].Cell(&s.pools[i]), s.pools[i].nodes))
		}
		if !slices.Equal(want, got) {
			t.Errorf("filter %q: pools %q, want %q", filter, got, want)
		}
		text := Text(f.Filter(filter), 0)
		if strings.Contains(text, "\nPOOL ") != (want != nil) || strings.Contains(text, "no node, pool or") != (want == nil) {
			t.Errorf("filter %q: the text is\n%s", filter, text)
		}
	}
}

// TestEmptyFleet verifies that a cluster without nodes is explained.
func TestEmptyFleet(t *testing.T) {
	for want, f := range map[string]*Fleet{
		"no NodePool from which some could be launched": {},
		"they are launched for pods":                    {Pools: []Pool{{Name: "default", Ready: true}}},
	} {
		s := &Screen{}
		s.Resize(140, 24)
		s.Show(f)
		for _, text := range []string{Text(f, 0), s.Render()} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}

func TestSort(t *testing.T) {
	for _, by := range Orders() {
		f := large(30)
		Sort(f.Nodes, by, false)
		forward := slices.Clone(f.Nodes)
		Sort(f.Nodes, by, true)
		slices.Reverse(f.Nodes)
		if diff := cmp.Diff(forward, f.Nodes); diff != "" {
			t.Errorf("by %s, the reverse order is not the reverse:\n%s", by, diff)
		}
	}
	f := large(30)
	Sort(f.Nodes, "price", false)
	if f.Nodes[0].PricePerHour != 0.6 || f.Nodes[0].Name != "node-00006" {
		t.Errorf("the most expensive is %+v", f.Nodes[0])
	}
}

// TestProgram verifies that the program reads, shows, reads again after the pause, and quits on request.
func TestProgram(t *testing.T) {
	var readings int
	p := &Program{Interval: time.Millisecond, Read: func(context.Context) (*Fleet, error) {
		if readings++; readings == 2 {
			return nil, errors.New("away")
		}
		return large(3), nil
	}}
	w := &watcher{ctx: t.Context(), program: p, screen: &Screen{}}
	w.Update(tea.WindowSizeMsg{Width: 120, Height: 20})
	_, pause := w.Update(w.Init()())
	if !strings.Contains(w.View().Content, "node-00002") || !w.View().AltScreen {
		t.Errorf("it shows\n%s", w.View().Content)
	}
	_, again := w.Update(pause())
	w.Update(again())
	if !strings.Contains(w.View().Content, "not fresh: away") || !strings.Contains(w.View().Content, "node-00002") {
		t.Errorf("when the cluster is unreachable it shows\n%s", w.View().Content)
	}
	if _, leave := w.Update(tea.KeyPressMsg{Text: "q", Code: 'q'}); leave == nil || leave() != tea.Quit() {
		t.Error("q does not quit")
	}
}

// TestScreenExplains verifies which row enter asks to explain, and how its page is shown, scrolled and left.
func TestScreenExplains(t *testing.T) {
	s := &Screen{}
	s.Resize(60, 10)
	s.Show(large(20))
	for _, step := range []struct {
		keys string
		want Subject
	}{
		{"down down enter", Subject{"node", "node-00002"}},
		{"tab down enter", Subject{"pod", "default/pod-1"}},
		{"tab enter", Subject{"pool", "default"}},
	} {
		request := press(s, step.keys)
		if request.Explain == nil {
			t.Fatalf("%s asks for %+v, want an explanation of %s", step.keys, request, step.want)
		}
		if diff := cmp.Diff(step.want, *request.Explain); diff != "" {
			t.Errorf("%s, -want +got:\n%s", step.keys, diff)
		}
		if got := s.Render(); !strings.HasPrefix(got, step.want.String()+"\n\nreading the cluster ...\n") {
			t.Errorf("after %s the screen is\n%s", step.keys, got)
		}
		press(s, "esc")
	}
	s.Show(&Fleet{})
	if request := s.Press("enter"); request != (Request{}) {
		t.Errorf("without rows, enter asks for %+v", request)
	}
	s.Show(large(3))
	press(s, "tab enter")
	s.Explain(Subject{"node", "another"}, "of a page that is not open")
	s.Explain(Subject{"node", "node-00000"}, strings.Repeat("kept because a word and another word are here\x1b[31m\n", 20))
	if got, want := s.Render(), "node node-00000\n\nkept because a word and another word are here [31m\n"; !strings.HasPrefix(got, want) {
		t.Errorf("the page is\n%s\nwant it to begin with\n%s", got, want)
	}
	for keys, want := range map[string]string{
		"G": "lines 14-20 of 20", "g": "lines 1-7 of 20", "space": "lines 8-14 of 20", "down": "lines 2-8 of 20",
	} {
		if press(s, keys); !strings.Contains(s.Render(), want) {
			t.Errorf("after %s the page lacks %q:\n%s", keys, want, s.Render())
		}
		press(s, "g")
	}
	s.Resize(24, 10)
	if !strings.Contains(s.Render(), "of 60") {
		t.Errorf("on 24 characters the lines are not broken again:\n%s", s.Render())
	}
	if press(s, "q"); !strings.Contains(s.Render(), "nodes 1-3 of 3") {
		t.Errorf("q does not return to the table:\n%s", s.Render())
	}
}

// TestScreenHelp verifies that the help names every key of the footer, and that pages fit any terminal.
func TestScreenHelp(t *testing.T) {
	for _, width := range []int{1, 10, 40, 80, 200} {
		for _, height := range []int{1, 2, 3, 10, 30} {
			s := &Screen{}
			s.Resize(width, height)
			s.Show(large(3))
			press(s, "?")
			lines := strings.Split(s.Render(), "\n")
			if len(lines) > height {
				t.Errorf("%d lines on %dx%d", len(lines), width, height)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%d characters on %dx%d: %s", n, width, height, line)
				}
			}
			if request := press(s, "enter ctrl+c"); !request.Quit {
				t.Errorf("enter and ctrl+c do not quit: %+v", request)
			}
		}
	}
	for _, key := range []string{"enter", "tab", "s", "r", "/", "esc", "?", "q"} {
		if !strings.Contains(helpText, "\n  "+key+" ") {
			t.Errorf("the help does not name %s", key)
		}
	}
}

// press presses keys, and returns the request of the last.
func press(s *Screen, keys string) (last Request) {
	for key := range strings.FieldsSeq(keys) {
		last = s.Press(key)
	}
	return last
}

// TestProgramExplains verifies that enter runs Explain, and that an error is shown as its answer.
func TestProgramExplains(t *testing.T) {
	p := &Program{Interval: time.Minute, Read: func(context.Context) (*Fleet, error) { return large(3), nil },
		Explain: func(_ context.Context, of Subject) (string, error) {
			if of.Name == "node-00001" {
				return "", errors.New("there is no node node-00001")
			}
			return "kept: " + of.String(), nil
		}}
	w := &watcher{ctx: t.Context(), program: p, screen: &Screen{}}
	w.Update(tea.WindowSizeMsg{Width: 120, Height: 20})
	w.Update(w.Init()())
	for _, want := range []string{"kept: node node-00000", "there is no node node-00001"} {
		_, work := w.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		w.Update(work())
		if got := w.View().Content; !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
		w.Update(tea.KeyPressMsg{Code: tea.KeyEscape})
		w.Update(tea.KeyPressMsg{Code: tea.KeyDown})
	}
}

// TestProgramRuns verifies that the program also runs without a terminal, and ends with its context or its input.
func TestProgramRuns(t *testing.T) {
	var out bytes.Buffer
	p := &Program{Interval: time.Minute, In: strings.NewReader("q"), Out: &out, Sort: "price",
		Read: func(context.Context) (*Fleet, error) { return large(3), nil }}
	if err := p.Run(t.Context()); err != nil {
		t.Error(err)
	}
}
