package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// TestRowsOfNewClaims: a plan counts the nodes of its own claims with the same labels as the next plan, when the claims
// are in flight. Otherwise one plan refuses pods because of a domain that the next one does not have.
func TestRowsOfNewClaims(t *testing.T) {
	for _, kind := range []uint8{plain, rich, foreign} {
		for seed := range uint64(*worlds) {
			t.Run(fmt.Sprint(kind, "/", seed), func(t *testing.T) { sameRows(t, diceOf(seed, kind).world()) })
		}
	}
}

func sameRows(t *testing.T, w world) {
	snap := w.snapshot(nil)
	p, rows := placement.ScheduleRows(snap)
	next := w.launching(p.Claims).snapshot(nil)
	for _, n := range next.Nodes {
		row, fresh := rows[n.Claim]
		if !fresh {
			continue
		}
		for k := label.Key(0); int(k) < snap.Space.Len(); k++ {
			key := snap.Space.Name(k)
			if key == model.LabelType || key == model.LabelHostname { // claims list types that have no atom
				continue
			}
			if planned, said := labelsOf(snap.Space, row, snap.Space, key), labelsOf(next.Space, n.Row, snap.Space, key); !slices.Equal(planned, said) {
				t.Errorf("%s, label %s: the plan counts %q, the next one %q", n.Claim, key, planned, said)
			}
		}
	}
}

// labelsOf returns the values of a label that a row allows, of those that the other space names; "-" is its absence.
func labelsOf(space *label.Space, row label.Row, of *label.Space, key string) []string {
	k, known := space.Lookup(key)
	if !known {
		return nil
	}
	there, _ := of.Lookup(key)
	named := of.Values(of.All(), there)
	values := slices.DeleteFunc(space.Values(row, k), func(v string) bool { return !slices.Contains(named, v) })
	if space.AllowsAbsent(row, k) {
		values = append(values, "-")
	}
	return values
}
