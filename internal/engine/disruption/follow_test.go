package disruption_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestPodsFollowIfAlone checks that the effect of removing only the node, as explain node reports it, names the label
// and the pods that would follow each other back.
func TestPodsFollowIfAlone(t *testing.T) {
	const two = `type m cpu=4 price=0.6 zone=a
type n cpu=4 price=0.2 zone=b
pool p policy=WhenEmptyOrUnderutilized zone=a zone=b
node a1 pool=p type=m zone=a
pod p1 node=a1 cpu=2 near
pod p2 node=a1 cpu=2 near
`
	_, v := disruption.IfAlone(worldOf(t, two).snapshot(nil), usual, "a1")
	if v.Code != plan.PodsFollow || v.Name != model.LabelZone || v.Have != 2 {
		t.Errorf("IfAlone(a1) = %+v, want PodsFollow by zone for 2 pods", v)
	}
}
