package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// TestCSV checks that a spreadsheet takes no text for a formula, and that numbers have all digits.
func TestCSV(t *testing.T) {
	s := view.Sheet{Columns: []view.Column{{Key: "name", Title: "Name"}, {Key: "price", Title: "Price", Number: true}},
		Rows: []view.Row{{ID: "1", Cells: []view.Cell{view.Words("=cmd|' /C calc'!A0"), view.Money(-0.12345, 2)}},
			{ID: "2", Cells: []view.Cell{view.Words("a,\"b\"\nc"), view.Words("unknown")}}}}
	var out bytes.Buffer
	if err := s.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	want := "name,price\n'=cmd|' /C calc'!A0,-0.12345\n\"a,\"\"b\"\"\nc\",unknown\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestObjects checks that rows are valid JSON whatever their text, with the columns in order.
func TestObjects(t *testing.T) {
	s := view.Sheet{Columns: []view.Column{{Key: "b"}, {Key: "a", Number: true}},
		Rows: []view.Row{{ID: "1", Cells: []view.Cell{view.Words("</script>\"\x00"), view.Count(3)}}}}
	text, err := json.Marshal(s.Objects())
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"b":"\u003c/script\u003e\"\u0000","a":3}]`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// TestSort checks the order of numbers and text, both ways, with the ID as the last key.
func TestSort(t *testing.T) {
	rows := func() *view.Sheet {
		return &view.Sheet{Columns: []view.Column{{Key: "name"}, {Key: "n", Number: true}}, Rows: []view.Row{
			{ID: "c", Cells: []view.Cell{view.Words("x"), view.Count(1)}}, {ID: "a", Cells: []view.Cell{view.Words("y"), view.Count(5)}},
			{ID: "b", Cells: []view.Cell{view.Words("x"), view.Count(5)}}}}
	}
	for _, tt := range []struct {
		key     string
		reverse bool
		want    string
	}{{"name", false, "bca"}, {"name", true, "abc"}, {"n", false, "abc"}, {"n", true, "cab"}, {"none", false, "cab"}} {
		s := rows()
		s.Sort(tt.key, tt.reverse)
		got := ""
		for _, r := range s.Rows {
			got += r.ID
		}
		if got != tt.want {
			t.Errorf("by %s, reverse %v: %s, want %s", tt.key, tt.reverse, got, tt.want)
		}
	}
}

func fleet() *view.Fleet {
	f := &view.Fleet{Workloads: []view.Workload{{Namespace: "b", Name: "two"}, {Namespace: "a", Kind: "Job",
		Name: "one"}}, Nodes: []view.Node{
		{Name: "n2", Pool: "p", Zone: "z", Price: 1, Managed: true, CPUShare: 0.25, MemoryShare: 0.5, Age: 26 * time.Hour,
			Pods: []view.Pod{{Workload: 0, Share: 0.1}, {Workload: 1, Share: 0.2}, {Workload: 1, Share: 0.3}}},
		{Name: "n1", Pool: "p", Zone: "z", Managed: true, Unpriced: true}, {Name: "n0", Pool: "", CPUShare: 2}}}
	f.Normalize()
	return f
}

// TestNormalize checks the order of nodes and pods, and that pods keep their workload.
func TestNormalize(t *testing.T) {
	f := fleet()
	if f.Nodes[0].Name != "n0" || f.Nodes[2].Name != "n2" || f.Workloads[0].Name != "one" {
		t.Fatalf("nodes %v, workloads %v", f.Nodes, f.Workloads)
	}
	if pods := f.Nodes[2].Pods; pods[0] != (view.Pod{Workload: 0, Share: 0.3}) || pods[2] != (view.Pod{Workload: 1, Share: 0.1}) {
		t.Errorf("pods %v", pods)
	}
	if f.Workloads[0].Key() != "a/one (Job)" || f.Workloads[1].Key() != "b/two" {
		t.Errorf("keys %s, %s", f.Workloads[0].Key(), f.Workloads[1].Key())
	}
}

// TestSheets checks that a row says of an unknown price that it is unknown, and of a node without a claim nothing.
func TestSheets(t *testing.T) {
	s := fleet().Sheet()
	var out bytes.Buffer
	if err := s.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"node,pool,type,zone,capacity,state,cpu,memory,pods,price,waste,age,drift", "n0,,,,,,2,0,0,–,–,0,",
		"n1,p,,z,,,0,0,0,unknown,unknown,0,", "n2,p,,z,,,0.25,0.5,3,1,0.5,93600,"} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	if kept := fleet().Filter(" N2 ").Kept(); len(kept.Nodes) != 1 || kept.Nodes[0].Name != "n2" {
		t.Errorf("the filter keeps %v", kept.Nodes)
	}
	places := fleet().Places()
	if len(places) != 1 || places[0].Nodes != 2 || places[0].Unpriced != 1 || places[0].Price != 1 || places[0].Waste != 0.5 {
		t.Errorf("places %+v", places)
	}
}

// TestPlanAt checks which nodes there are after each step, and with which shares.
func TestPlanAt(t *testing.T) {
	f := &view.Fleet{Nodes: []view.Node{{Name: "a", CPUShare: 0.1}, {Name: "b", CPUShare: 0.2}, {Name: "c", CPUShare: 0.9}}}
	p := &view.Plan{Fleet: f, Steps: []view.Step{{Remove: []string{"a"}, Shares: map[string]view.Shares{"b": {CPU: 0.3}}},
		{Remove: []string{"b"}, Add: []string{"c"}}}}
	for step, want := range []string{"a stays 0.1 b stays 0.2 ", "a removed 0.1 b stays 0.3 ", "a removed 0.1 b removed 0.3 c added 0.9 "} {
		got := ""
		for _, n := range p.At(step).Nodes {
			got += n.Name + " " + n.Change.String() + " " + view.Money(n.CPUShare, 1).Text + " "
		}
		if got != want {
			t.Errorf("after %d steps: %s, want %s", step, got, want)
		}
	}
	if f.Nodes[1].CPUShare != 0.2 {
		t.Errorf("the fleet of the plan has changed")
	}
}

// TestFind checks what a filter finds: the words of nodes, and the names, namespaces and workloads of pods.
func TestFind(t *testing.T) {
	f := &view.Fleet{Workloads: []view.Workload{{Namespace: "shop", Kind: "Deployment", Name: "web"}, {Namespace: "data", Name: "db"}},
		Nodes: []view.Node{{Name: "n1", Zone: "shop-zone", Pods: []view.Pod{{Name: "db-0", Workload: 1}}},
			{Name: "n2", Pods: []view.Pod{{Name: "web-x", Workload: 0}, {Name: "db-1", Workload: 1}}}, {Name: "n3"}},
		Waiting: []view.Pod{{Name: "web-y", Workload: 0}}}
	f.Normalize()
	for text, want := range map[string]string{
		"":           "n1 n2 n3 |",
		"shop":       "n1 n2 | shop/web-y shop/web-x",
		"SHOP/web":   "n2 | shop/web-y shop/web-x",
		"deployment": "n2 | shop/web-y shop/web-x",
		"data/db-1":  "n2 | data/db-1",
		"db-":        "n1 n2 | data/db-0 data/db-1",
		"n3":         "n3 |",
		"none":       "|",
	} {
		got := ""
		for _, n := range f.Filter(text).Kept().Nodes {
			got += n.Name + " "
		}
		got += "|"
		found, of := f.Find(text, 10)
		for _, p := range found {
			got += " " + p.Key
		}
		if got != want || of != len(found) {
			t.Errorf("%q finds %q of %d, want %q", text, got, of, want)
		}
	}
	if found, of := f.Find("db-", 1); len(found) != 1 || of != 2 || found[0].Node != "n1" {
		t.Errorf("at most one of two: %v of %d", found, of)
	}
	if diff := strings.Join(f.Namespaces(), " "); diff != "data shop" {
		t.Errorf("the namespaces are %s", diff)
	}
}
