package audit

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// together checks pods that share a volume that is not yet provisioned (WaitForFirstConsumer). The zone of the first
// pod becomes the zone of the volume, so all these pods must go to one zone, whichever of them is first.
func (j *judge) together(p *plan.Provision) {
	var spotOf map[string]*spot
	zones, first := map[string]value{}, map[string]string{}
	for _, pod := range p.Order {
		for _, v := range pod.Shared {
			if !v.Waits {
				continue
			}
			if spotOf == nil {
				_, _, spotOf = j.spots(p)
			}
			s := spotOf[pod.UID]
			if s == nil {
				continue
			}
			zone := s.domain(model.LabelZone)
			switch {
			case len(zone) > 1 || !zone[0].present:
				j.blame("together", pod.Key(), "shares claim %s, whose volume is not made yet, and %s is in no certain zone", v.Claim, s.name)
			case first[v.Claim] == "":
				zones[v.Claim], first[v.Claim] = zone[0], pod.Key()
			case zones[v.Claim] != zone[0]:
				j.blame("together", pod.Key(), "shares claim %s with %s, which goes to zone %s, and %s is in %s",
					v.Claim, first[v.Claim], zones[v.Claim].text, s.name, zone[0].text)
			}
		}
	}
}
