package offline

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// TestUnknownPricesOfNodes checks that text says unknown where no price is known, and that documents lack the amount.
func TestUnknownPricesOfNodes(t *testing.T) {
	b := model.NewBuilder()
	offering := model.Offering{Zone: "a", CapacityType: "spot", Price: 500_000_000, Available: true}
	catalog := &model.Catalog{Types: []model.InstanceType{{Name: "m", Offerings: []model.Offering{offering}}}}
	b.UpsertPool(model.PoolSpec{Name: "there", Catalog: catalog})
	node := func(name, pool, kind string) {
		b.UpsertNode(model.NodeSpec{Name: name, Claim: "claim-" + name, Pool: pool, Stage: model.Initialized, Ready: true,
			Labels: map[string]string{model.LabelType: kind, model.LabelZone: "a", model.LabelCapacityType: "spot"}})
	}
	node("priced", "there", "m")
	node("odd", "there", "x")
	node("orphan", "gone", "x")
	node("sold", "gone", "m")
	node("by-hand", "", "x")
	d := &DisruptDecision{opts: disruption.Options{}, first: b.Snapshot(time.Unix(0, 0))}
	d.last = d.first
	d.proposal = disruption.Propose(d.first, d.opts)
	for name, want := range map[string][]string{
		"priced": {" of pool there: m in a as spot, 0.5000 USD per hour; "},
		"odd":    {" of pool there: x in a as spot, price unknown\n"},
		"orphan": {" of pool gone, which does not exist: x in a as spot, price unknown\n",
			"NodePool gone of node orphan does not exist; a NodePool of that name would own the node again\n",
			"the price of node orphan is unknown: no NodePool offers its instance type in its zone and capacity type\n"},
		"sold":    {" of pool gone, which does not exist: m in a as spot, 0.5000 USD per hour; "},
		"by-hand": {" without a pool: x in a as spot, price unknown\n", "node by-hand belongs to no NodePool"},
	} {
		outcome := d.nodeOutcome(name)
		document, err := json.Marshal(outcome)
		if err != nil {
			t.Fatal(err)
		}
		known := !strings.Contains(strings.Join(want, ""), "price unknown")
		if strings.Contains(string(document), `"pricePerHour"`) != known || strings.Contains(string(document), `"costPerHour"`) != known {
			t.Errorf("%s: the document is %s", name, document)
		}
		for _, part := range want {
			if text := outcome.Text(); !strings.Contains(text, part) || strings.Contains(text, "0.0000 USD") {
				t.Errorf("%s: no %q in\n%s", name, part, text)
			}
		}
		line := nodeLineOf(d.first, d.first.Node(name), removals{})
		page := top.Text(&top.Fleet{Nodes: []top.Node{line}}, 0)
		if strings.Contains(page, "  unknown  ") == known {
			t.Errorf("%s: top shows\n%s", name, page)
		}
	}
	all := d.figures(d.first)
	if all.Nodes != 5 || all.UnknownPrices != 3 || all.PricePerHour != 1 {
		t.Errorf("the figures of all nodes are %+v", all)
	}
	text := (&DisruptAnswer{Before: all, After: all}).Text(0)
	if !strings.Contains(text, "price 1.0000 USD per hour becomes 1.0000") || !strings.Contains(text,
		"3 nodes of unknown price: the figures") {
		t.Errorf("the summary is\n%s", text)
	}
	none := figuresOf(d.first, d.opts, func(n *model.Node) bool { return n.Name == "odd" })
	document, err := json.Marshal(&none)
	if err != nil || string(document) != `{"nodes":1,"unknownPrices":1}` {
		t.Errorf("without a known price, the figures are %s (%v)", document, err)
	}
	if text := (&PoolOutcome{FleetFigures: none, Budgets: []BudgetOutcome{{}}}).Text(); !strings.Contains(text,
		": 1 node of unknown price\n") {
		t.Errorf("explain pool says\n%s", text)
	}
}
