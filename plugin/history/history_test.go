package history

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
	"github.com/karpenter-go/karpenter/plugin/bill"
)

// life is the log of real controllers on a virtual clock, which internal/testing/world writes.
const life = "../../internal/testing/world/testdata/life.log"

func read(t *testing.T, texts ...string) *Log {
	t.Helper()
	l := &Log{}
	for _, text := range texts {
		if err := l.Read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func file(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// all returns all views of a log as text, at a width.
func all(t *testing.T, l *Log, width int) string {
	t.Helper()
	v := l.View(Query{})
	nodes := v.Nodes()
	text := "$ nodes\n" + nodes.Text(width) + "\n$ commands\n" + v.Commands().Text(width) + "\n$ hours\n" + v.Hours(time.Hour).Text(width)
	pods := map[string]bool{}
	for _, n := range nodes.Nodes {
		answer, err := v.Node(n.Name())
		if err != nil {
			t.Fatal(err)
		}
		text += "\n$ node " + n.Name() + "\n" + answer.Text(width)
		for _, p := range []*Pods{n.Pods, n.Evicted} {
			if p != nil && len(p.Names) > 0 {
				pods[p.Names[0]] = true
			}
		}
	}
	var names []string
	for name := range pods {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		answer, err := v.Pod(name)
		if err != nil {
			t.Fatal(err)
		}
		text += "\n$ pod " + name + "\n" + answer.Text(width)
	}
	return text
}

// TestLife shows all views of the log that real controllers write.
func TestLife(t *testing.T) {
	for _, f := range golden.Read(t, "testdata") {
		input := string(f.Section("log"))
		if input == "" {
			input = file(t, life)
		}
		l := read(t, input)
		got := all(t, l, 80)
		if l.Unread > 0 {
			got += "\nnot read: " + l.Example + "\n"
		}
		f.Check(t, "answers", got)
		for _, line := range strings.Split(got, "\n") {
			if len([]rune(line)) > 80 && !strings.HasPrefix(line, "not read") {
				t.Errorf("%d columns: %s", len([]rune(line)), line)
			}
		}
	}
}

// TestForms checks that a line says the same whatever a tool puts before it, and in the console's form.
func TestForms(t *testing.T) {
	const stamp = "2026-05-01T12:00:01.000Z"
	keys := `"nodeClaim":"web-1","nodePool":"web","instanceType":"m5.large","zone":"a","capacityType":"spot","pricePerHour":0.1`
	plain := `{"level":"INFO","time":"` + stamp + `","logger":"controller","message":"launched nodeclaim",` + keys + `}`
	quoted, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, plain).View(Query{}).Nodes()
	for name, text := range map[string]string{
		"carriage return":        plain + "\r\n",
		"kubectl --prefix":       "[pod/karpenter-6c9d-x2/controller] " + plain,
		"kubectl --timestamps":   "2026-05-01T12:00:01.123456789Z " + plain,
		"kubectl with both":      "[pod/karpenter-6c9d-x2/controller] 2026-05-01T12:00:01.123456789Z " + plain,
		"stern":                  "karpenter-6c9d-x2 controller " + plain,
		"containerd":             "2026-05-01T12:00:01.123456789Z stdout F " + plain,
		"a collector":            `{"time":"2026-05-01T12:00:01.2Z","stream":"stdout","log":` + string(quoted) + `}`,
		"time before the object": stamp + "\t" + `{"message":"launched nodeclaim",` + keys + `}`,
		"time with blanks":       "2026-05-01 12:00:01.000\t" + `{"message":"launched nodeclaim",` + keys + `}`,
		"seconds, msg":           `{"level":"info","ts":1777636801,"msg":"launched nodeclaim",` + keys + `}`,
		"console":                stamp + "\tINFO\tcontroller\tlaunched nodeclaim\t{" + keys + "}",
		"console with caller":    stamp + "\tINFO\tcontroller\tlifecycle/launch.go:61\tlaunched nodeclaim\t{" + keys + "}",
		"console, prefix":        "[pod/karpenter-6c9d/controller] " + stamp + "\tINFO\tcontroller\tlaunched nodeclaim\t{" + keys + "}",
		"upstream's keys": `{"time":"` + stamp + `","message":"launched nodeclaim","NodeClaim":{"name":"web-1"},"NodePool":{"name":"web"},` +
			`"instance-type":"m5.large","zone":"a","capacity-type":"spot","pricePerHour":0.1}`,
		"a key of another type": strings.Replace(plain, `"logger":"controller"`, `"logger":"controller","nodes":3,"reason":{"a":1}`, 1),
	} {
		l := read(t, text)
		if diff := cmp.Diff(want, l.View(Query{}).Nodes(), cmp.AllowUnexported(Node{})); diff != "" || l.Unread > 0 {
			t.Errorf("%s: %d lines not read, (-want +got):\n%s", name, l.Unread, diff)
		}
	}
}

// TestUnread checks that what is no line of a log is counted, and that the rest is read.
func TestUnread(t *testing.T) {
	life := file(t, life)
	l := read(t, "panic: no\n\ngoroutine 1 [running]:\n"+life+life[:700])
	if l.Unread != 3 || l.Example != "panic: no" {
		t.Errorf("%d lines not read, the first %q; want 3 and %q", l.Unread, l.Example, "panic: no")
	}
	if want := read(t, life); l.Events != want.Events || l.Repeated == 0 {
		t.Errorf("%d events, %d repeated; want %d and some", l.Events, l.Repeated, want.Events)
	}
	var long Log
	if err := long.Read(strings.NewReader(`{"a":"` + strings.Repeat("x", 2*longest) + "\"}\n" + life)); err != nil || long.Unread != 1 {
		t.Errorf("with a line of %d bytes: %d lines not read, %v; want 1", 2*longest, long.Unread, err)
	}
}

// TestNeutral checks changes that must not matter: the order of lines, replicas and rotated files, and lines that come twice.
func TestNeutral(t *testing.T) {
	lines := strings.SplitAfter(strings.TrimSpace(file(t, life))+"\n", "\n")
	answer := func(texts ...string) string {
		text := all(t, read(t, texts...), 0)
		return text
	}
	want := answer(strings.Join(lines, ""))
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		files := make([]string, 4)
		shuffled := slices.Clone(lines)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for _, line := range shuffled {
			for range 1 + random.IntN(2) {
				files[random.IntN(len(files))] += line
			}
		}
		if diff := cmp.Diff(want, answer(files...)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// TestCost compares the costs with a second implementation, which reads the keys of the lines directly.
func TestCost(t *testing.T) {
	text := file(t, life)
	begin, price, want := map[string]time.Time{}, map[string]float64{}, 0.0
	var last time.Time
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var keys struct {
			Time      time.Time
			Message   string
			NodeClaim string
			Price     float64 `json:"pricePerHour"`
		}
		if err := json.Unmarshal([]byte(line), &keys); err != nil {
			t.Fatal(err)
		}
		last = keys.Time
		switch keys.Message {
		case "launched nodeclaim":
			begin[keys.NodeClaim], price[keys.NodeClaim] = keys.Time, keys.Price
		case "deleted nodeclaim":
			want += price[keys.NodeClaim] * keys.Time.Sub(begin[keys.NodeClaim]).Hours()
			delete(begin, keys.NodeClaim)
		}
	}
	for claim, at := range begin {
		want += price[claim] * last.Sub(at).Hours()
	}
	v := read(t, text).View(Query{})
	for name, got := range map[string]bill.USD{"nodes": *v.Nodes().Total.Cost, "hours": v.Hours(time.Hour).Total.Cost,
		"days": v.Hours(24 * time.Hour).Total.Cost} {
		if off := got - bill.USDOf(want); off > 20 || off < -20 { // nano-USD: parts are rounded down
			t.Errorf("%s cost %s, want %.9f", name, got.Text(9), want)
		}
	}
}

// worked is the log of the example of docs/history.md.
const worked = `{"time":"2026-05-01T10:00:00Z","message":"launched nodeclaim","nodeClaim":"a","pricePerHour":0.2}
{"time":"2026-05-01T10:30:00Z","message":"launched nodeclaim","nodeClaim":"b","pricePerHour":0.1}
{"time":"2026-05-01T11:00:00Z","message":"disrupting nodes","commandID":"c1","reason":"Empty","nodeClaims":["a"],"savingPerHour":0.2}
{"time":"2026-05-01T11:15:00Z","message":"deleted nodeclaim","nodeClaim":"a","providerID":"x"}
{"time":"2026-05-01T11:30:00Z","message":"disrupting nodes","commandID":"c2","reason":"Underutilized","nodeClaims":["b"],"savingPerHour":9}
{"time":"2026-05-01T11:31:00Z","message":"abandoned disruption","commandID":"c2","reason":"Underutilized","cause":"the deadline has passed"}
{"time":"2026-05-01T12:30:00Z","message":"anything"}
`

// TestWorked is the example of docs/history.md: numbers that a reader checks by hand.
func TestWorked(t *testing.T) {
	l := read(t, worked)
	type hour struct {
		from              string
		nodeHours         float64
		cost, saved       bill.USD
		launched, removed int
	}
	var got []hour
	for _, h := range l.View(Query{}).Hours(time.Hour).Hours {
		got = append(got, hour{h.From.Format("15:04"), h.NodeHours, h.Cost, h.Saved, h.Launched, h.Removed})
	}
	want := []hour{
		{"10:00", 1.5, bill.USDOf(0.2 + 0.05), 0, 2, 0},
		{"11:00", 1.25, bill.USDOf(0.05 + 0.1), bill.USDOf(0.2), 0, 1},
		{"12:00", 0.5, bill.USDOf(0.05), bill.USDOf(0.1), 0, 0},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(hour{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	nodes := l.View(Query{}).Nodes()
	if left := nodes.Nodes[1].left(); left != "" || *nodes.Total.Cost != bill.USDOf(0.25+0.2) {
		t.Errorf("b left: %q, cost %v; want that it stays, and 0.45", left, *nodes.Total.Cost)
	}
	within := l.View(Query{Since: time.Date(2026, 5, 1, 11, 30, 0, 0, time.UTC)})
	if n := within.Nodes().Nodes; len(n) != 1 || n[0].NodeClaim != "b" {
		t.Errorf("since 11:30: %d nodes", len(n))
	}
	if h := within.Hours(time.Hour).Hours; len(h) != 2 || h[0].Cost != bill.USDOf(0.05) || h[0].Saved != bill.USDOf(0.1) ||
		h[0].mean() != "1.0" {
		t.Errorf("since 11:30: %+v", h)
	}
	if c := l.View(Query{Filter: "C1"}).Commands().Commands; len(c) != 1 || c[0].ID != "c1" {
		t.Errorf("filter C1: %+v", c)
	}
}

// FuzzRead checks that no line stops the reader, and that no control character of one is printed.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"{", "a\tINFO\t", `{"log":"{\"log\":\"{}\"}"}`, "2026-05-01T12:00:01Z\tINFO\tx\t{}",
		`{"time":"x","message":"deleted node"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := read(t, text, text)
		if got := strings.ReplaceAll(all(t, l, 80), "\n", ""); strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q has control characters", got)
		}
	})
}
