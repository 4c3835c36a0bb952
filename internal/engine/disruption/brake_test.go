package disruption

import (
	"fmt"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestUnreadyBrake verifies (UB-1) that no command begins while more than 45 % and more than three of the nodes are not
// ready, and that every node says so.
func TestUnreadyBrake(t *testing.T) {
	brake, err := ParseUnreadyBrake("45%,3")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		unready, all int
		brake        UnreadyBrake
		want         bool
	}{
		{4, 10, brake, false}, {5, 10, brake, true}, {3, 4, brake, false}, {4, 4, brake, true}, {5, 10, UnreadyBrake{}, false},
	} {
		b := model.NewBuilder()
		b.UpsertPool(model.PoolSpec{Name: "p", Policy: "WhenEmpty"})
		for i := range c.all {
			b.UpsertNode(model.NodeSpec{Name: fmt.Sprint("n", i), Claim: fmt.Sprint("c", i), Pool: "p",
				Stage: model.Initialized, Ready: i >= c.unready})
		}
		b.UpsertNode(model.NodeSpec{Name: "starts", Claim: "starts", Pool: "p", Stage: model.Registered})
		p := Propose(b.Snapshot(time.Unix(1000, 0)), Options{UnreadyBrake: c.brake})
		halted := 0
		for _, k := range p.Kept {
			if k.Verdict.Code == plan.NodesUnready && k.Reason == plan.Empty && k.Verdict.Have == int64(c.unready) {
				halted++
			}
		}
		if c.want != (len(p.Commands) == 0) || c.want != (halted == c.all+1) {
			t.Errorf("%d of %d: %d commands, %d nodes kept by the brake; want the brake to hold: %v",
				c.unready, c.all, len(p.Commands), halted, c.want)
		}
	}
}

// TestParseUnreadyBrake verifies that only a share with a number, or off, is accepted.
func TestParseUnreadyBrake(t *testing.T) {
	for text, want := range map[string]UnreadyBrake{"off": {}, "": {}, "45%,3": {true, 45, 3}, "0%,0": {true, 0, 0}} {
		if got, err := ParseUnreadyBrake(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"45", "45%", "45,3", "x%,3", "45%,x", "101%,3", "45%,-1", "on"} {
		if got, err := ParseUnreadyBrake(text); err == nil {
			t.Errorf("%q is accepted: %+v", text, got)
		}
	}
}
