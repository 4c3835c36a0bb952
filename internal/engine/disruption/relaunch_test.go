package disruption_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// freedLimit is a fleet whose node b1 takes the whole limit of its pool, the only one in zone b. Its pods are spread over
// the zones.
const freedLimit = `type m cpu=16 price=0.6 zone=a zone=b
pool one policy=WhenEmptyOrUnderutilized zone=b node-limit=1
pool rest policy=WhenEmptyOrUnderutilized zone=a
node b1 pool=one type=m zone=b
node a1 pool=rest type=m zone=a
pod p1 node=a1 cpu=2 spread
pod p2 node=a1 cpu=2 spread
pod p3 node=b1 cpu=2 spread
pod p4 node=b1 cpu=2 spread
`

// TestLaunchedAgainIfAlone checks that the effect of removing only the node, as explain node reports it, names the pool
// that would launch the node again.
func TestLaunchedAgainIfAlone(t *testing.T) {
	_, v := disruption.IfAlone(worldOf(t, freedLimit).snapshot(nil), usual, "b1")
	if v.Code != plan.LaunchedAgain || v.Pool != "one" || v.Have != 2 {
		t.Errorf("IfAlone(b1) = %+v, want LaunchedAgain by pool one for 2 pods", v)
	}
}
