package offline

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/top"
)

// aligned returns rows with cells between bars as columns, by the standard library.
func aligned(rows ...string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.ReplaceAll(row, "|", "\t"))
	}
	_ = w.Flush() // a builder has no errors
	return b.String()
}

// wideLaunch is an answer whose tables are wider than 120 characters.
func wideLaunch() *LaunchAnswer {
	node := func(name, capacityType string, price float64) NewNode {
		return NewNode{Name: name, NodePool: "general-purpose", InstanceType: "m7i-flex.2xlarge", Zone: "eu-central-1a",
			CapacityType: capacityType, PricePerHour: price, InstanceTypes: []string{"m7i-flex.2xlarge", "m7i.2xlarge"},
			Labels: map[string]string{"example.com/team": "blue"}, Pods: []string{"shop/web-0"}, used: usage{0.76, 0.06}}
	}
	return &LaunchAnswer{Pods: PodCounts{Total: 3, New: 2, Existing: 1}, PricePerHour: 0.5, CostPerHour: 0.51,
		Nodes:         []NewNode{node("general-purpose-2mcxf5szgg", "spot", 0.1), node("general-purpose-qhiwviir7l", "on-demand", 0.4)},
		ExistingNodes: []ExistingNode{{Name: "ip-10-0-17-221.eu-central-1.compute.internal", InFlight: true, Pods: []string{"shop/web-1"}}}}
}

// TestLaunchTables checks what tables of a launch show on terminals and in a file: percentages in place of bars, then
// fewer columns and shorter names.
func TestLaunchTables(t *testing.T) {
	for width, want := range map[int]string{
		0: aligned("NEW NODE|POOL|TYPE|ZONE|CAPACITY|USD/HOUR|PODS|CPU|MEMORY|OTHER TYPES|LABELS CHOSEN",
			"general-purpose-2mcxf5szgg|general-purpose|m7i-flex.2xlarge|eu-central-1a|spot|0.1000|1|"+
				"████████░░  76%|█░░░░░░░░░   6%|1|example.com/team=blue",
			"general-purpose-qhiwviir7l|general-purpose|m7i-flex.2xlarge|eu-central-1a|on-demand|0.4000|1|"+
				"████████░░  76%|█░░░░░░░░░   6%|1|example.com/team=blue") + "\n" +
			aligned("NODE|PODS", "ip-10-0-17-221.eu-central-1.compute.internal|1 (being launched)") + "\n",
		120: `NEW NODE                    POOL        TYPE              ZONE           CAPACITY   USD/H   PODS  CPU   MEMORY  OTHER
general-purpose-2mcxf5szgg  gene…rpose  m7i-flex.2xlarge  eu-central-1a  spot       0.1000  1      76%    6%    1
general-purpose-qhiwviir7l  gene…rpose  m7i-flex.2xlarge  eu-central-1a  on-demand  0.4000  1      76%    6%    1

NODE                                          PODS
ip-10-0-17-221.eu-central-1.compute.internal  1 (being launched)

`,
		80: `NEW NODE          POOL        TYPE              ZONE           CAPACITY   USD/H
general…cxf5szgg  gene…rpose  m7i-flex.2xlarge  eu-central-1a  spot       0.1000
general…iwviir7l  gene…rpose  m7i-flex.2xlarge  eu-central-1a  on-demand  0.4000

NODE                                          PODS
ip-10-0-17-221.eu-central-1.compute.internal  1 (being launched)

`,
		50: `NEW NODE              POOL        TYPE
general-p…2mcxf5szgg  gene…rpose  m7i-flex.2xlarge
general-p…qhiwviir7l  gene…rpose  m7i-flex.2xlarge

NODE                            PODS
ip-10-0-17-221…ompute.internal  1 (being launched)

`,
	} {
		a := wideLaunch()
		want += "3 pods: 2 on 2 new nodes, 1 on existing nodes, 0 unschedulable\n" +
			"price 0.5000 USD per hour, cost 0.5100 including per-node overhead; 2 types to choose from per node (median)\n"
		if diff := cmp.Diff(want, a.Text(width)); diff != "" {
			t.Errorf("on %d characters, -want +got:\n%s", width, diff)
		}
	}
}

// TestStepTable checks what the table of steps shows on terminals and in a file.
func TestStepTable(t *testing.T) {
	score := 95.6
	a := &DisruptAnswer{Before: FleetFigures{Nodes: 5, CostPerHour: 2}, After: FleetFigures{Nodes: 2, CostPerHour: 0.1}, Steps: []Step{
		{Reason: "Empty", Method: "empty", Remove: []string{"held"}, Saving: 0.5, After: FleetFigures{CostPerHour: 1.5}},
		{Reason: "Underutilized", Method: "multi", Saving: 1.4, Score: &score, After: FleetFigures{CostPerHour: 0.1},
			Remove: []string{"ip-10-0-0-0.eu-central-1.compute.internal", "ip-10-0-1-7.eu-central-1.compute.internal"},
			Add: []AddedNode{{Name: "a", InstanceType: "m7i-flex.large", Zone: "eu-central-1a", CapacityType: "spot"},
				{Name: "b", InstanceType: "m7i-flex.large", Zone: "eu-central-1b", CapacityType: "spot"}}},
	}}
	for width, want := range map[int]string{
		0: aligned("STEP|REASON|METHOD|NODES OUT|NODES IN|PODS MOVED|SAVES USD/HOUR|SCORE|COST AFTER",
			"1|Empty|empty|held|-|0|0.5000|-|1.5000",
			"2|Underutilized|multi|ip-10-0-0-0.eu-central-1.compute.internal,ip-10-0-1-7.eu-central-1.compute.internal|"+
				"m7i-flex.large eu-central-1a spot, m7i-flex.large eu-central-1b spot|0|1.4000|95.6|0.1000"),
		120: `STEP  REASON         METHOD  NODES OUT                                     NODES IN          PODS  SAVES   SCORE  COST
1     Empty          empty   held                                          -                 0     0.5000  -      1.5000
2     Underutilized  multi   ip-10-0-0-0.eu-central-1.compute.internal +1  2 x m7i…ex.large  0     1.4000  95.6   0.1000
`,
		80: `STEP  REASON         METHOD  NODES OUT            NODES IN          PODS  SAVES
1     Empty          empty   held                 -                 0     0.5000
2     Underutilized  multi   ip-10-0-0…ternal +1  2 x m7i…ex.large  0     1.4000
`,
		40: `STEP  REASON         METHOD  NODES OUT
1     Empty          empty   held
2     Underutilized  multi   ip-10…al +1
`,
	} {
		want += "\n2 steps: 5 nodes become 2, price 0.0000 USD per hour becomes 0.0000, cost 2.0000 becomes 0.1000\n"
		if diff := cmp.Diff(want, a.Text(width)); diff != "" {
			t.Errorf("on %d characters, -want +got:\n%s", width, diff)
		}
	}
}

// TestUnknownPrices checks that no price that is unknown is printed as 0.
func TestUnknownPrices(t *testing.T) {
	unknown := top.SumOf(0, 2, 2)
	none := FleetFigures{Nodes: 2, UnknownPrices: 2, PricePerHour: unknown, CostPerHour: unknown}
	some := FleetFigures{Nodes: 2, UnknownPrices: 1, PricePerHour: 0.5, CostPerHour: 0.51}
	for name, c := range map[string]struct {
		answer *DisruptAnswer
		want   []string
		brief  string
	}{
		"all": {&DisruptAnswer{Before: none, After: none},
			[]string{"0 steps: 2 nodes become 2, of unknown price"}, "0 steps, 2 nodes become 2, of unknown price"},
		"all, and one is replaced": {&DisruptAnswer{Before: none, After: some},
			[]string{"price unknown becomes 0.5000 USD per hour, cost unknown becomes 0.5100", "2 nodes of unknown price: the figures"},
			"0 steps, 2 nodes become 2, cost unknown becomes 0.5100 USD per hour"},
		"one, which is removed": {&DisruptAnswer{Before: some, After: FleetFigures{Nodes: 1, PricePerHour: 0.5, CostPerHour: 0.505},
			Steps: []Step{{Reason: "Empty", Remove: []string{"n"}, Saving: unknown, After: FleetFigures{Nodes: 1, CostPerHour: 0.505}}}},
			[]string{"1  Empty  -  n  -  0  unknown  -  0.5050", "price 0.5000 USD per hour becomes 0.5000", "1 node of unknown price"},
			"1 step, 2 nodes become 1, cost 0.5100 USD per hour becomes 0.5050"},
	} {
		text := strings.Join(strings.Fields(c.answer.Text(0)), " ")
		if strings.Contains(text, "unknown USD") || c.answer.Brief() != c.brief {
			t.Errorf("%s: %s\n%s", name, c.answer.Brief(), c.answer.Text(0))
		}
		for _, want := range c.want {
			if !strings.Contains(text, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s: no %q in\n%s", name, want, c.answer.Text(0))
			}
		}
	}
}
