package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestTwoControllers runs two controllers that share nothing, each with a pool of its own (--pool-selector). Each launches and
// removes its own nodes only, also while the other one is away, and for pods that both pools take one of them does.
func TestTwoControllers(t *testing.T) {
	only(t)
	c := ownCluster(t)
	var running []*controller
	t.Cleanup(func() { // after the objects of the case are removed, for which the controllers are needed
		for _, p := range running {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
	})
	s := newStage(t, c, "cells")
	c.credentials = c.sandbox.Kubeconfig() // the chart gives permission for one Lease only
	start := func(cell string) *controller {
		p, err := startController(c, filepath.Join(artifacts, "cell-"+cell+".log"),
			append([]string{"--pool-selector=e2e.example.org/cell=" + cell,
				"--leader-election-name=cell-" + cell}, quickTimers...)...)
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, p)
		await(t, patience, "the controller of cell "+cell+" to be ready", p.ready)
		return p
	}
	a := start("a")
	start("b")
	for _, apps := range [][]string{{"in-a", "in-b"}, {"anywhere"}} { // no pod takes the room that is meant for another
		for _, app := range apps {
			s.scale(app, 6)
		}
		for _, app := range apps {
			await(t, patience, "the pods of "+app+" to run", s.running(app, 6))
		}
	}
	// Of two pools with equal weight the last one by name comes first.
	if now, all := s.cells(), s.ledger.count(s.name); now["cells-a"] != 2 || now["cells-b"] != 4 || all.claimsEver != 6 {
		t.Errorf("%v claims, %d ever, want 2 of cells-a and 4 of cells-b, and no other ever", now, all.claimsEver)
	}
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	running = running[1:]
	s.scale("in-a", 0)
	s.scale("in-b", 0)
	await(t, patience, "the nodes of cell b to be removed", s.cellsAre(2, 2))
	s.scale("in-b", 3)
	await(t, patience, "the pods of in-b to run", s.running("in-b", 3))
	await(t, patience, "one node of cell b to be launched", s.cellsAre(2, 3))
	start("a")
	await(t, patience, "the nodes of cell a to be removed", s.cellsAre(0, 3))
}

// cells returns the number of claims of each pool.
func (s *stage) cells() map[string]int {
	found := map[string]int{}
	for _, claim := range s.ledger.claimsOf(s.name) {
		if !claim.gone {
			found[claim.object.Labels[karpv1.LabelNodePool]]++
		}
	}
	return found
}

// cellsAre fails until the pools have these numbers of claims.
func (s *stage) cellsAre(a, b int) func(context.Context) error {
	return func(context.Context) error {
		if now := s.cells(); now["cells-a"] != a || now["cells-b"] != b {
			return fmt.Errorf("%v claims, want %d of cells-a and %d of cells-b", now, a, b)
		}
		return nil
	}
}
