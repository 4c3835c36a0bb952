package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// When the pods of a consolidation are evicted, the claims of the nodes that receive them are marked, once, also by a
// process that resumes the command. A claim with another UID is not changed.
func TestLandingIsNoted(t *testing.T) {
	w, cmd := underused(t)
	cmd.Destinations = []plan.Destination{{Claim: "c2", ClaimUID: w.Nodes["c2"].ClaimUID},
		{Claim: "c1", ClaimUID: "another"}, {Claim: "gone", ClaimUID: "gone"}}
	cmd, got := run(w, cmd)
	wantDone(t, cmd)
	wantCount(t, got, "note a consolidation", 1)
	wantCount(t, got, "draining\ndelete claim c0\ndelete claim c1\nnote a consolidation on claim c2", 1)
	if at := w.Nodes["c2"].ConsolidatedAt; at.Before(cmd.Created) {
		t.Errorf("c2 was consolidated at %v, the command is of %v", at, cmd.Created)
	}
	// It is not consolidated again from then on.
	snap := w.Snapshot()
	if v := guard.New(snap).Removable(snap.Claim("c2"), plan.Underutilized); v.Code != plan.NodeUnsettled {
		t.Errorf("verdict %d, want %d", v.Code, plan.NodeUnsettled)
	}
}

// The write of the mark may be lost. A process that resumes the command repeats it.
func TestLandingIsStored(t *testing.T) {
	w, cmd := underused(t)
	cmd.Destinations = []plan.Destination{{Claim: "c2", ClaimUID: w.Nodes["c2"].ClaimUID}}
	again, err := plan.DecodeCommand(cmd.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cmd.Destinations, again.Destinations); diff != "" {
		t.Errorf("landing (-want +got):\n%s", diff)
	}
	again.Phase = plan.Draining
	for _, c := range []string{"c0", "c1"} {
		w.Nodes[c].Command, w.Nodes[c].Disrupted, w.Nodes[c].Deleting = again.Encode(), true, true
	}
	if _, actions := step(w, again, nil); plantest.Texts(actions) != "note a consolidation on claim c2" {
		t.Errorf("actions %q", plantest.Texts(actions))
	}
	w.Now = w.Now.Add(time.Second)
	if _, actions := step(w, again, nil); len(actions) != 0 {
		t.Errorf("and again: %q", plantest.Texts(actions))
	}
}

// A renewal has no saving to pay back: the targets of its pods are stored, and not marked as consolidated.
func TestLandingOfRenewalsIsNotNoted(t *testing.T) {
	w := plantest.New(t, 2)
	w.Nodes["c0"].Drifted = "x"
	cmd := w.Command("c0")
	cmd.Reason, cmd.Method, cmd.Destinations = plan.Drifted, "", []plan.Destination{{Claim: "c1", ClaimUID: "uid-c1"}}
	if cmd, got := run(w, cmd); cmd.Phase != plan.Done || strings.Contains(got, "note a consolidation") {
		t.Errorf("phase %s:\n%s", cmd.Phase, got)
	}
}
