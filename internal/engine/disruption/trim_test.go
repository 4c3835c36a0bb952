package disruption_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestNoEqualNode checks which of the types of removed nodes a replacement may have: none for a single node, and the
// cheapest for several nodes, whose saving is that of all of them.
func TestNoEqualNode(t *testing.T) {
	snap := worldOf(t, `type one cpu=4 price=0.20
type two cpu=4 price=0.21
type ten cpu=4 price=0.22
type big cpu=16 price=1
pool p policy=WhenEmptyOrUnderutilized move-price=0 budget=100%
node a pool=p type=one
node b pool=p type=two
node c pool=p type=big
pod a1 node=a cpu=1
pod b1 node=b cpu=1
pod c1 node=c cpu=1
`).snapshot(nil)
	for name, c := range map[string]struct {
		nodes   []string
		options []string
		want    []string // nil for a refusal
	}{
		"another type":               {[]string{"c"}, []string{"one", "two", "ten"}, []string{"one", "two", "ten"}},
		"not the type of the node":   {[]string{"b"}, []string{"one", "two"}, []string{"one"}},
		"the cheapest is a node's":   {[]string{"a", "c"}, []string{"one", "two", "ten"}, []string{"one", "two", "ten"}},
		"the second is a node's":     {[]string{"b", "c"}, []string{"one", "two", "ten"}, []string{"one", "ten"}},
		"both are types of nodes":    {[]string{"a", "b", "c"}, []string{"one", "two", "ten"}, []string{"one", "ten"}},
		"several, and no saving":     {[]string{"a", "b"}, []string{"big"}, nil},
		"one node, and itself alone": {[]string{"b"}, []string{"two"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			claim := plan.NewClaim{Name: "p-1", Pool: "p", PoolUID: snap.Pool("p").UID,
				Requirements: []label.Requirement{in(model.LabelPool, "p"), in(model.LabelType, c.options...), in(model.LabelCapacityType, "on-demand")}}
			prices := map[string]float64{"one": 0.20, "two": 0.21, "ten": 0.22, "big": 1}
			for _, o := range c.options {
				claim.Options = append(claim.Options, plan.Option{Type: o, Zone: "z", CapacityType: "on-demand", Price: int64(prices[o] * model.Nano)})
			}
			for _, n := range c.nodes {
				claim.Pods = slices.Concat(claim.Pods, snap.Node(n).Pods)
			}
			v, claims := disruption.Decided(snap, []plan.NewClaim{claim}, c.nodes...)
			var got []string
			if v.OK() {
				got = claims[0].Types()
			} else if v.Code != plan.NoSaving {
				t.Errorf("verdict %+v, want NoSaving", v)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMinValuesOfReplacements checks which replacement is found for a node that is too large: a minimum of one prevents
// none, and larger minimums count the zones and capacity types of the replacement, not those of the types.
func TestMinValuesOfReplacements(t *testing.T) {
	for name, c := range map[string]struct {
		pool, pod string
		relax     bool
		want      []string // capacity type, zones and minValues of the replacement; nil for none
	}{
		"no minimum":        {want: []string{"on-demand", "a,b", ""}},
		"one zone":          {pool: "min-zones=1", want: []string{"on-demand", "a,b", "zone=1"}},
		"one capacity type": {pool: "min-capacity-types=1", want: []string{"on-demand", "a,b", "capacity-type=1"}},
		"one of each": {pool: "min-zones=1 min-capacity-types=1 min-types=1", want: []string{"on-demand", "a,b",
			"capacity-type=1 instance-type=1 zone=1"}},
		"one zone, pinned":       {pool: "min-zones=1", pod: "zone=a", want: []string{"on-demand", "a", "zone=1"}},
		"two zones":              {pool: "min-zones=2", want: []string{"on-demand", "a,b", "zone=2"}},
		"two zones, pinned":      {pool: "min-zones=2", pod: "zone=a"},
		"two pinned, relaxed":    {pool: "min-zones=2", pod: "zone=a", relax: true, want: []string{"on-demand", "a", "relaxed zone=1"}},
		"three zones, two there": {pool: "min-zones=3"},
		"two capacity types":     {pool: "min-capacity-types=2"},
		"two types":              {pool: "min-types=2", want: []string{"on-demand", "a,b", "instance-type=2"}},
		"four types of three":    {pool: "min-types=4"},
	} {
		t.Run(name, func(t *testing.T) {
			f := worldOf(t, `type small cpu=2 price=0.2 zone=a zone=b
type medium cpu=4 price=0.4 zone=a zone=b
type large cpu=16 price=1.6 zone=a zone=b
pool p policy=WhenEmptyOrUnderutilized `+c.pool+`
node a pool=p type=large zone=a
pod a1 node=a cpu=1 `+c.pod)
			opts := usual
			opts.Placement.RelaxMinValues = c.relax
			p := disruption.Propose(f.snapshot(nil), opts)
			var got []string
			for _, cmd := range p.Commands {
				for i := range cmd.Replacements {
					got = append(got, described(&cmd.Replacements[i])...)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("replacement (-want +got):\n%s", diff)
			}
		})
	}
}

// described returns the capacity types, the zones and the minValues of a claim.
func described(claim *plan.NewClaim) []string {
	values := map[string]string{}
	var minimums []string
	for _, r := range claim.Requirements {
		values[r.Key] = strings.Join(r.Values, ",")
		if r.MinValues > 0 {
			minimums = append(minimums, r.Key[strings.Index(r.Key, "/")+1:]+"="+strconv.Itoa(r.MinValues))
		}
	}
	if claim.MinValuesRelaxed {
		minimums = append(minimums, "relaxed")
	}
	slices.Sort(minimums)
	return []string{values[model.LabelCapacityType], values[model.LabelZone], strings.Join(minimums, " ")}
}
