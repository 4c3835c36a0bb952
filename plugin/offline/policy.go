package offline

import (
	"fmt"
	"math"
	"os"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// Policy holds the options of a decision.
type Policy struct {
	Preferences     string
	MinValues       string
	NodePrice       float64
	PackingEffort   int
	WorkBudget      int
	SchedulerConfig string
	// PodRules are the controller's about pods for which no node is launched.
	PodRules convert.PodRules
	// UnreadyBrake is the controller's: off, or a share and a number of nodes such as 45%,3.
	UnreadyBrake string
	// Economics and untilStable apply only with --disrupt.
	Economics   Economics
	UntilStable bool
	// FeatureGates are the controller's. Only ReservedCapacity, SpotToSpotConsolidation and StaticCapacity matter here.
	FeatureGates string
	// PriceFile is a file with price rules, "" for none.
	PriceFile string
	// prices are the rules, which Check reads.
	prices []pricerule.Rule
}

// DefaultPolicy returns the policy of a controller without flags.
func DefaultPolicy() Policy {
	return Policy{Preferences: "Respect", MinValues: "Strict", NodePrice: usd(placement.ProductionNodePrice), PackingEffort: 1,
		Economics: Economics{Payback: disruption.ProductionPayback, MinStay: disruption.ProductionMinStay, MovePrice: usd(disruption.ProductionMovePrice)}}
}

// Check rejects values out of range, with the names of the flags that set them.
func (p *Policy) Check() error {
	switch {
	case p.Preferences != "Respect" && p.Preferences != "Ignore":
		return inputErrorf("--preference-policy is %q, want Respect or Ignore", p.Preferences)
	case p.MinValues != "Strict" && p.MinValues != "BestEffort":
		return inputErrorf("--min-values-policy is %q, want Strict or BestEffort", p.MinValues)
	case !(p.NodePrice >= 0) || p.NodePrice > 1e6:
		return inputErrorf("--node-overhead-price is %v, want USD per hour, zero or more", p.NodePrice)
	case p.PackingEffort < 1 || p.PackingEffort > 1000:
		return inputErrorf("--packing-effort is %d, want 1 to 1000", p.PackingEffort)
	case p.PodRules.Delay < 0:
		return inputErrorf("--new-pod-delay is %s, want zero or more", p.PodRules.Delay)
	case p.WorkBudget < 0:
		return inputErrorf("--work-budget is %d, want zero or more", p.WorkBudget)
	}
	if _, err := convert.ParseSchedulerConfig(p.SchedulerConfig); err != nil {
		return inputErrorf("--scheduler-config: %w", err)
	}
	if _, _, err := gates.Read(p.FeatureGates); err != nil {
		return inputErrorf("%w", err)
	}
	if _, err := disruption.ParseUnreadyBrake(p.UnreadyBrake); err != nil {
		return inputErrorf("--unready-brake: %w", err)
	}
	if err := p.readPrices(); err != nil {
		return inputErrorf("--price-file: %w", err)
	}
	return p.Economics.check()
}

// readPrices reads the price file.
func (p *Policy) readPrices() error {
	if p.PriceFile == "" {
		return nil
	}
	text, err := os.ReadFile(p.PriceFile)
	if err != nil {
		return Readable(err)
	}
	if p.prices, err = pricerule.Parse(p.PriceFile, text); err != nil {
		return err
	}
	if _, err := overlay.New(nil, karpv1.CoreRules(), "").WithRules(p.prices); err != nil {
		return fmt.Errorf("%s: %w", p.PriceFile, err)
	}
	return nil
}

// options converts the policy to options of the engine.
func (p *Policy) options() placement.Options {
	nodePrice := int64(math.Round(p.NodePrice * model.Nano))
	if nodePrice == 0 {
		nodePrice = -1
	}
	return placement.Options{NodePrice: nodePrice, IgnorePreferences: p.Preferences == "Ignore", RelaxMinValues: p.MinValues == "BestEffort", Effort: p.PackingEffort, WorkBudget: p.WorkBudget,
		AskNodes: true}
}

// disruptOptions converts the policy to options of the engine.
func (p *Policy) disruptOptions() disruption.Options {
	on, _, _ := gates.Read(p.FeatureGates) // validated before
	opts := disruption.Options{Placement: p.options(), Economics: p.Economics.options(), SpotToSpot: on.On(gates.SpotToSpotConsolidation), Static: on.On(gates.StaticCapacity)}
	opts.UnreadyBrake, _ = disruption.ParseUnreadyBrake(p.UnreadyBrake) // validated before
	opts.Placement.AskNodes, opts.Placement.WorkBudget = false, 0       // what-ifs are not limited
	return opts
}

// Economics are the required savings of a consolidation, from flags, for pools that do not set them.
type Economics struct {
	Payback, MinStay     time.Duration
	MovePrice, MinSaving float64
}

func (e *Economics) check() error {
	money := func(v float64) bool { return v >= 0 && v <= 1e6 }
	switch {
	case e.Payback < 0:
		return inputErrorf("--payback is %v, want a duration such as 1h, zero or more", e.Payback)
	case e.MinStay < 0:
		return inputErrorf("--min-stay is %v, want a duration such as 1h, zero or more", e.MinStay)
	case !money(e.MovePrice):
		return inputErrorf("--move-price is %v, want USD, zero or more", e.MovePrice)
	case !money(e.MinSaving):
		return inputErrorf("--min-saving is %v, want USD per hour, zero or more", e.MinSaving)
	}
	return nil
}

// options converts the economics to those of the engine, where zero means the default and a negative value means
// none.
func (e *Economics) options() disruption.Economics {
	nano := func(v float64) int64 { return int64(math.Round(v * model.Nano)) }
	o := disruption.Economics{Payback: e.Payback, MinStay: e.MinStay, MovePrice: nano(e.MovePrice), MinSaving: nano(e.MinSaving)}
	if o.Payback == 0 {
		o.Payback = -1
	}
	if o.MinStay == 0 {
		o.MinStay = -1
	}
	if o.MovePrice == 0 {
		o.MovePrice = -1
	}
	return o
}

func usd(nano int64) float64 { return float64(nano) / model.Nano }
