package picture_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

var update = flag.Bool("update", false, "write the golden files again")

// fleet is two pools and a node of no pool, with names that would be markup if they were not escaped.
func fleet() *view.Fleet {
	f := &view.Fleet{Workloads: []view.Workload{{Namespace: "shop", Kind: "Deployment", Name: "web"},
		{Namespace: "shop", Kind: "StatefulSet", Name: "db"}, {Namespace: "<b>", Kind: "Job", Name: `"&'`}}}
	zones, kinds := []string{"zone-a", "zone-b"}, []string{"on-demand", "spot"}
	for i := range 18 {
		n := view.Node{Name: fmt.Sprintf("default-%02d", i), Pool: "default", Type: []string{"m.large", "m.xlarge",
			"m.4xlarge"}[i%3], Zone: zones[i%2],
			CapacityType: kinds[i/2%2], State: "ready", CPU: []int64{3900, 7900, 31900}[i%3], CPUShare: float64(i) / 18, MemoryShare: 0.3,
			Price: []float64{0.1, 0.2, 0.8}[i%3], Managed: true, Age: time.Duration(1+i*i*i) * time.Hour,
			Code: []string{"NoSaving", "PDBBlocks"}[i%2]}
		for j := range i % 7 {
			n.Pods = append(n.Pods, view.Pod{Workload: j % 3, Share: float64(i) / 18 / float64(i%7)})
		}
		if i%5 == 0 {
			n.Drifted = "NodePoolDrifted"
		}
		f.Nodes = append(f.Nodes, n)
	}
	f.Nodes = append(f.Nodes, view.Node{Name: "gpu-0", Pool: "gpu", Type: "g.large", Zone: "zone-a",
		CapacityType: "on-demand", State: "not ready",
		CPU: 15900, CPUShare: 1.2, Price: 3, Managed: true}, view.Node{Name: `<script>alert("1")</script>`,
		State: "ready", CPU: 1900, CPUShare: 0.05})
	f.Normalize()
	return f
}

// shuffled is the same fleet in another order, with the workloads renumbered.
func shuffled(f *view.Fleet, r *rand.Rand) *view.Fleet {
	other := &view.Fleet{Nodes: slices.Clone(f.Nodes)}
	at := r.Perm(len(f.Workloads))
	other.Workloads = make([]view.Workload, len(at))
	for i, to := range at {
		other.Workloads[to] = f.Workloads[i]
	}
	for i := range other.Nodes {
		pods := slices.Clone(other.Nodes[i].Pods)
		for j := range pods {
			pods[j].Workload = at[pods[j].Workload]
		}
		r.Shuffle(len(pods), func(a, b int) { pods[a], pods[b] = pods[b], pods[a] })
		other.Nodes[i].Pods = pods
	}
	r.Shuffle(len(other.Nodes), func(a, b int) { other.Nodes[a], other.Nodes[b] = other.Nodes[b], other.Nodes[a] })
	other.Normalize()
	return other
}

func pending() []view.Pending {
	return []view.Pending{
		{Pod: "shop/train-0", Count: 3, Outcome: "NoPlace", Pools: []view.PoolFilter{
			{Pool: "default", Code: "ResourceTooLarge", Text: "needs 64 of cpu, the largest of 2 types has 31900m",
				Nearest: "2 types would fit if cpu were 31900m",
				Rules:   []view.Filter{{Rule: "label kubernetes.io/arch", Before: 12, After: 4}, {Rule: "cpu", Before: 4}}},
			{Pool: "gpu", Code: "TaintNotTolerated", Text: "taint nvidia.com/gpu is not tolerated"}}},
		{Pod: `x/<img src=x onerror=alert(1)>`, Count: 1, Outcome: "NewNode", Why: "a new m.large of pool default"},
	}
}

func blockers() []view.Blocker {
	return []view.Blocker{
		{Kind: "PodDisruptionBudget", Name: "shop/db", Nodes: []string{"a", "b"}, Held: 1.6, Saving: 0.9, Known: true},
		{Kind: "Annotation", Name: "shop/<i>", Nodes: []string{"c"}, Held: 0.8, Known: true},
		{Kind: "Budget", Name: "default", Nodes: []string{"d"}, Held: 0.2},
	}
}

func pools() []view.Pool {
	budgets := []view.Allowance{{Reason: "Empty", Remaining: 1, Allowed: 2}, {Reason: "Drifted", Allowed: 2}}
	return []view.Pool{
		{Name: "gpu", Weight: 10, State: "at its limit", Reason: "its nodes use 64 of the limit of 64 of cpu", Nodes: 2, NotReady: 1, Price: 6.2,
			Gauges: []view.Gauge{{Resource: "cpu", Used: "64", Limit: "64", Share: 1, Reached: true}, {Quota: "team-a", Resource: "nodes",
				Used: "2", Limit: "8", Share: 0.25}}, Budgets: budgets, Launches: view.Launches{Types: 3, Price: 1.1, Cheapest: "g in a as spot"}},
		{Name: "default", State: "ready", Budgets: budgets[:1], Launches: view.Launches{Types: 700, Price: 0.0385}},
		{Name: "<b>", State: "not ready", Reason: "NodeClassReady: <i>", Static: true, Replicas: 3},
	}
}

func planned() *view.Plan {
	f := fleet()
	f.Nodes = append(f.Nodes, view.Node{Name: "default-new", Pool: "default", Type: "m.xlarge", CPU: 7900, CPUShare: 0.9,
		Price: 0.2, Managed: true})
	f.Normalize()
	return &view.Plan{Before: view.Figures{Nodes: 19, Price: 9.6}, Fleet: f, Steps: []view.Step{
		{Reason: "Empty", Method: "empty", Remove: []string{"default-00"}, Saving: 0.1, Price: 9.5},
		{Reason: "Underutilized", Method: "multi", Remove: []string{"default-01", "default-02"},
			Add: []string{"default-new"}, AddText: "m.xlarge",
			Moved: 3, Saving: 0.8, Price: 8.7, Shares: map[string]view.Shares{"default-03": {CPU: 0.9, Memory: 0.4}}}}}
}

// billed is a bill with more rows than bars.
func billed() *bill.Bill {
	b := &bill.Bill{Grouping: bill.Grouping{By: bill.ByNamespace}, Nodes: 3}
	for i := range 24 {
		b.Rows = append(b.Rows, bill.Row{Kind: bill.Pods, Namespace: fmt.Sprintf("<b>-%02d", i), Pods: 2, PerHour: bill.USD(3e8 - 1e7*i)})
	}
	b.Rows = append(b.Rows, bill.Row{Kind: bill.Daemons, Namespace: "kube-system", Pods: 3, PerHour: 1e8},
		bill.Row{Kind: bill.Unused, Nodes: 2, PerHour: 1e9}, bill.Row{Kind: bill.Empty, Nodes: 1, PerHour: 2e8})
	for i := range b.Rows {
		b.Rows[i].PerMonth = b.Rows[i].PerHour.PerMonth()
		b.PerHour += b.Rows[i].PerHour
	}
	b.Sort("price", false)
	return b
}

// pictures are all pictures of the values, by name.
func pictures(f *view.Fleet) map[string]*picture.Picture {
	all := map[string]*picture.Picture{
		"map": picture.Map(f.Places(), 1000), "pending": picture.Pending(pending(), 1000), "savings": picture.Savings(blockers(), 1000),
		"plan": picture.Plan(planned(), 2, 1000), "plan-narrow": picture.Plan(planned(), 1, 360),
		"pools": picture.Pools(pools(), 1000), "pools-narrow": picture.Pools(pools(), 360),
		"cost":  picture.Cost(&view.Cost{Price: 9.6, Fresh: 7, Bound: 6.5}, 500),
		"bill":  picture.Bill(billed(), 1000),
		"empty": picture.Fleet(&view.Fleet{}, picture.Fill, 1000),
	}
	for _, mode := range picture.Modes() {
		all["fleet-"+string(mode)] = picture.Fleet(f, mode, 1000)
	}
	return all
}

// TestGolden compares each picture with its file. Shuffled input gives the same.
func TestGolden(t *testing.T) {
	f := fleet()
	other := pictures(shuffled(f, rand.New(rand.NewPCG(1, 2))))
	for name, p := range pictures(f) {
		t.Run(name, func(t *testing.T) {
			var got, again bytes.Buffer
			if err := p.WriteSVG(&got, picture.Options{Document: true}); err != nil {
				t.Fatal(err)
			}
			if err := other[name].WriteSVG(&again, picture.Options{Document: true}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), again.Bytes()) {
				t.Errorf("shuffled input gives another picture")
			}
			path := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("the picture differs from %s; -update writes it again, then look at it", path)
			}
		})
	}
}

// TestMarkup checks that names are no markup: the only elements are those that the writer has, and none has a handler.
func TestMarkup(t *testing.T) {
	known := []string{"svg", "defs", "pattern", "path", "circle", "rect", "text", "g", "title", "a"}
	link := func(row string) string { return "?node=" + row }
	for name, p := range pictures(fleet()) {
		var out bytes.Buffer
		if err := p.WriteSVG(&out, picture.Options{Link: link}); err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(&out)
		for {
			token, err := decoder.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			if !slices.Contains(known, element.Name.Local) {
				t.Errorf("%s: element %s", name, element.Name.Local)
			}
			for _, a := range element.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
					t.Errorf("%s: attribute %s", name, a.Name.Local)
				}
			}
		}
	}
}

// TestInside checks that no box of a fleet overlaps another or leaves the picture, at every width and size.
func TestInside(t *testing.T) {
	for _, nodes := range []int{1, 40, 700, 5000} {
		for _, width := range []int{320, 1000} {
			f := &view.Fleet{}
			for i := range nodes {
				f.Nodes = append(f.Nodes, view.Node{Name: fmt.Sprint(i), Pool: fmt.Sprint("p", i%3), CPU: int64(1+i%5*i%7) * 1900})
			}
			f.Normalize()
			p := picture.Fleet(f, picture.Fill, width)
			if len(p.Boxes) != nodes {
				t.Fatalf("%d boxes of %d nodes", len(p.Boxes), nodes)
			}
			taken := map[[2]int]bool{}
			for _, b := range p.Boxes {
				if b.X < 0 || b.Y < 0 || b.X+b.W > p.Width || b.Y+b.H > p.Height {
					t.Fatalf("%d nodes, width %d: box %+v is outside of %d x %d", nodes, width, b, p.Width, p.Height)
				}
				for x := b.X; x < b.X+b.W; x++ {
					for y := b.Y; y < b.Y+b.H; y++ {
						if taken[[2]int{x, y}] {
							t.Fatalf("%d nodes, width %d: two boxes at %d,%d", nodes, width, x, y)
						}
						taken[[2]int{x, y}] = true
					}
				}
			}
		}
	}
}

// TestMapAreas checks that the areas of a map are in the ratio of the prices.
func TestMapAreas(t *testing.T) {
	places := []view.Place{{Pool: "a", Type: "x", Nodes: 1, Price: 6}, {Pool: "b", Type: "y", Nodes: 1, Price: 3},
		{Pool: "c", Type: "z", Nodes: 1, Price: 1}}
	p := picture.Map(places, 1000)
	total, areas := 0.0, map[string]float64{}
	for _, b := range p.Boxes {
		if b.Row != "" {
			areas[b.Row[:1]] = float64(b.W * b.H)
			total += float64(b.W * b.H)
		}
	}
	for name, want := range map[string]float64{"a": 0.6, "b": 0.3, "c": 0.1} {
		if got := areas[name] / total; got < want-0.03 || got > want+0.03 {
			t.Errorf("%s has %.2f of the area, want %.2f", name, got, want)
		}
	}
}

// TestWire decodes a picture as the script does.
func TestWire(t *testing.T) {
	p := picture.Fleet(fleet(), picture.Workload, 1000)
	var out bytes.Buffer
	if err := p.WriteWire(&out); err != nil {
		t.Fatal(err)
	}
	size := int(binary.LittleEndian.Uint32(out.Next(4)))
	var head struct {
		Boxes, Parts int
		Rows, Titles []string
	}
	if err := json.Unmarshal(out.Next(size), &head); err != nil {
		t.Fatal(err)
	}
	if want := head.Boxes*14 + head.Parts*3; out.Len() != want || len(head.Rows) != head.Boxes || head.Boxes != len(p.Boxes) {
		t.Fatalf("%d bytes of columns, want %d of %d boxes and %d parts", out.Len(), want, head.Boxes, head.Parts)
	}
	columns := out.Bytes()
	for i, b := range p.Boxes {
		if x := int(binary.LittleEndian.Uint16(columns[2*i:])); x != b.X {
			t.Fatalf("box %d is at %d, want %d", i, x, b.X)
		}
	}
}

// TestReasons: each reason for which a node stays has one color and pattern in every fleet, and words that are no code. A click
// on its entry of the legend selects its nodes.
func TestReasons(t *testing.T) {
	codes := []string{"PDBBlocks", "NoSaving", "BudgetExhausted", "NodeProtected", "Proposed", "", "NeverHeardOf"}
	looks, classes := map[string]picture.Key{}, map[string]string{}
	for n := 1; n <= len(codes); n++ { // fleets of different reasons and numbers
		f := &view.Fleet{}
		for i, code := range codes[:n] {
			for j := range n - i {
				f.Nodes = append(f.Nodes, view.Node{Name: fmt.Sprint(code, j), Code: code})
			}
		}
		f.Normalize()
		for _, key := range picture.Legend(f, picture.Why) {
			count := key.Count
			key.Count = 0
			if before, known := looks[key.Text]; known && before != key {
				t.Errorf("%s is %+v in one fleet, %+v in another", key.Text, before, key)
			}
			looks[key.Text], classes[key.Class] = key, key.Text
			if strings.IndexFunc(key.Text, unicode.IsUpper) == 0 {
				t.Errorf("%q is no word", key.Text)
			}
			if kept := picture.Only(f, picture.Why, key.Class).Kept(); len(kept.Nodes) != count {
				t.Errorf("the class of %q has %d nodes, the legend says %d", key.Text, len(kept.Nodes), count)
			}
		}
	}
	if len(looks) != len(codes) || len(classes) != len(codes) {
		t.Errorf("%d looks and %d classes of %d codes", len(looks), len(classes), len(codes))
	}
	drawn := map[[2]int]string{}
	for _, key := range looks {
		at := [2]int{int(key.Role), int(key.Pattern)}
		if other, twice := drawn[at]; twice {
			t.Errorf("%q and %q look the same", key.Text, other)
		}
		drawn[at] = key.Text
	}
}

// TestPlanWithoutHoles: in the fleet of today, the places of a pool are taken from the left without a gap, whatever steps add.
func TestPlanWithoutHoles(t *testing.T) {
	p := picture.Plan(planned(), 0, 1000)
	right := map[int]int{} // where the last box of a line ends
	for _, b := range p.Boxes {
		if b.X >= 500 {
			continue // the fleet after the steps
		}
		if gap := b.X - right[b.Y]; gap > 3 {
			t.Errorf("a gap of %d pixels before %s", gap, b.Row)
		}
		right[b.Y] = b.X + b.W
	}
}
