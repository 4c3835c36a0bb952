package explain

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Typing mistakes: label keys that are similar to an existing one, and requests that are implausibly large.

// A million CPUs, in millicores: "1M" in place of "1m". A pebibyte of memory: no machine has it.
const (
	absurdCPU    = 1_000_000 * 1000
	absurdMemory = 1 << 50
)

// hints returns the probable typing mistakes in a pool's verdict.
func hints(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict) []string {
	var list []string
	for _, v := range append([]plan.Verdict{p.Verdict}, p.Also...) {
		if text := typoHint(snap, v); text != "" {
			list = append(list, text)
		}
	}
	if p.Verdict.Code == plan.NoCompatibleInstanceTypes {
		if text := strangeValue(snap, snap.Pool(p.Pool), p.Verdict); text != "" {
			list = append(list, text)
		}
	}
	for _, hint := range []func(*model.Snapshot, plan.Refusal, *plan.PoolVerdict) string{strangeZone, shortage} {
		if text := hint(snap, r, p); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// strangeZone returns the existing zones if the pod requires only zones that do not exist.
func strangeZone(snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict) string {
	pool := snap.Pool(p.Pool)
	if p.Verdict.Code != plan.NoOffering || len(r.Pods) == 0 || pool == nil || pool.Types == nil {
		return ""
	}
	zones := map[string]bool{}
	for i := range pool.Types.Classes {
		zones[pool.Types.Classes[i].Zone] = true
	}
	named, known := 0, false
	for _, alternative := range r.Pods[0].Alternatives {
		for _, q := range alternative {
			if label.Canonical(q.Key) != model.LabelZone || q.Operator != label.In {
				continue
			}
			named += len(q.Values)
			known = known || slices.ContainsFunc(q.Values, func(zone string) bool { return zones[zone] })
		}
	}
	if named == 0 || known || len(zones) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(zones))
	if len(names) == 1 {
		return "the only zone is " + names[0]
	}
	return "the zones are " + and(names)
}

// typoHint returns a hint about a probable typing mistake in the subject of a verdict, "" for none.
func typoHint(snap *model.Snapshot, v plan.Verdict) string {
	o := operands{snap, v}
	switch v.Code {
	case plan.LabelUndefined:
		if key := o.label(); key != "" {
			if known := nearest(key, knownKeys(snap)); known != "" {
				return "did you mean label " + known + "?"
			}
		}
	case plan.ResourceTooLarge, plan.CombinationTooLarge:
		switch millions := v.Need / absurdCPU; {
		case o.resource() == "cpu" && v.Need >= absurdCPU && v.Need%absurdCPU == 0:
			return "did you mean " + strconv.FormatInt(millions, 10) + "m? M is a million, m a thousandth"
		case o.resource() == "cpu" && v.Need >= absurdCPU:
			return "more than a million CPUs: is the unit right?"
		case o.resource() == "memory" && v.Need >= absurdMemory:
			return "more than a pebibyte of memory: is the unit right?"
		}
	}
	return ""
}

// knownKeys returns the labels that some node or pool has or may have.
func knownKeys(snap *model.Snapshot) []string {
	known := map[string]bool{model.LabelZone: true, model.LabelType: true, model.LabelCapacityType: true,
		model.LabelPool: true, model.LabelHostname: true, model.LabelRegistered: true, model.LabelInitialized: true}
	for _, p := range snap.Pools {
		for _, r := range p.PoolSpec.Requirements {
			known[r.Key] = true
		}
		if p.Catalog != nil {
			maps.Copy(known, p.Catalog.WellKnown)
		}
	}
	for _, n := range snap.Nodes {
		for key := range n.Labels {
			known[key] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// nearest returns the known key that was probably meant: one with the same name under another domain, else the one
// with the fewest letters changed, if they are few, else the one whose name after the domain has few letters changed;
// "" if there is none. If several are equally close, the first wins.
func nearest(key string, known []string) string {
	best, least := "", max(1, min(3, len(key)/4))+1
	for _, k := range known {
		if k == key {
			continue
		}
		if name := afterSlash(key); name == afterSlash(k) && len(name) > 2 {
			return k
		}
		if d := distance(key, k, least); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return best
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = afterSlash(k)
	}
	if at := slices.Index(names, Nearest(afterSlash(key), names)); at >= 0 {
		return known[at]
	}
	return ""
}

func afterSlash(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// distance returns the number of letters that must be changed, added, dropped or swapped with their neighbor to turn
// a into b (optimal string alignment). It returns at most limit.
func distance(a, b string, limit int) int {
	if diff := len(a) - len(b); diff >= limit || -diff >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}
