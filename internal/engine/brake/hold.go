package brake

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// hasRoom reports whether the pool can store the pause in addition to longer ones of other controllers.
func hasRoom(pool *model.Pool, hold *model.LaunchHold) bool {
	longer := 0
	for i := range pool.Holds {
		if h := &pool.Holds[i]; h.Owner != hold.Owner && !h.Until.Before(hold.Until) {
			longer++
		}
	}
	return longer < model.MostHolds
}

// Restrain returns the plan without the claims that are only for pods whose launches wait (see Brake), and refuses
// those pods. The pods may still be placed on existing nodes, on nodes in flight, and on new nodes that other pods need
// too.
func Restrain(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	return restrain(heldNow(snap), p)
}

// Restrain is like the function Restrain. It also applies pauses that are stored on no pool, and ignores those that
// have ended and could not be removed from their pool yet.
func (b *Brake) Restrain(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	var all holds
	for _, h := range b.lasting(snap.Now) { // first, because the copy on the pool may lack the fates of nodes
		all = all.with(launchPause{LaunchHold: h})
	}
	for owner, h := range heldNow(snap) {
		if !b.released[owner] {
			all = all.with(h)
		}
	}
	return restrain(all, p)
}

// Unwritten returns how many current pauses are stored on no pool: a restart discards them.
func (b *Brake) Unwritten(snap *model.Snapshot) int {
	on, n := heldNow(snap), 0
	for _, h := range b.lasting(snap.Now) {
		if _, written := on[h.Owner]; !written {
			n++
		}
	}
	return n
}

// lasting returns the pauses in memory that have not ended.
func (b *Brake) lasting(now time.Time) []model.LaunchHold {
	var holds []model.LaunchHold
	for _, o := range b.owners {
		if o.hold != nil && o.hold.Until.After(now) {
			holds = append(holds, *o.hold)
		}
	}
	return holds
}

// holds are pauses that have not ended, the longest of each owner.
type holds map[string]launchPause

// launchPause is a pause and the pool that stores it, empty where it is in memory only.
type launchPause struct {
	model.LaunchHold
	pool string
}

func (all holds) with(h launchPause) holds {
	if !h.Until.After(all[h.Owner].Until) {
		if same := all[h.Owner]; same.pool == "" && h.Until.Equal(same.Until) {
			same.pool = h.pool
			all[h.Owner] = same
		}
		return all
	}
	if all == nil {
		all = holds{}
	}
	all[h.Owner] = h
	return all
}

func restrain(holds holds, p *plan.Provision) *plan.Provision {
	if len(holds) == 0 {
		return p
	}
	restrained := *p
	restrained.Claims, restrained.Refused = nil, slices.Clip(p.Refused)
	dropped := map[string]bool{}
	for i := range p.Claims {
		c := &p.Claims[i]
		if !allHeld(holds, c.Pods) {
			restrained.Claims = append(restrained.Claims, *c)
			continue
		}
		for _, pods := range byOwner(c.Pods) {
			hold := holds[ownerOf(pods[0])]
			for _, pod := range pods {
				dropped[pod.UID] = true
			}
			restrained.Refused = append(restrained.Refused, plan.Refusal{Pods: pods, Verdict: plan.Verdict{Code: plan.LaunchesHeld,
				Have: int64(hold.Failures), Need: plan.SecondAfter(hold.Until), Pool: hold.pool,
				Rejection: &model.Rejection{Field: hold.Name, Reason: hold.Why}}})
		}
	}
	if len(dropped) == 0 {
		return p
	}
	restrained.Order = slices.DeleteFunc(slices.Clone(p.Order), func(pod *model.Pod) bool { return dropped[pod.UID] })
	return &restrained
}

// heldNow returns the pauses on pools that have not ended.
func heldNow(snap *model.Snapshot) holds {
	var all holds
	for _, pool := range snap.Pools {
		for _, h := range pool.Holds {
			if h.Until.After(snap.Now) {
				all = all.with(launchPause{h, pool.Name})
			}
		}
	}
	return all
}

func allHeld(holds holds, pods []*model.Pod) bool {
	return len(pods) > 0 && !slices.ContainsFunc(pods, func(p *model.Pod) bool {
		_, held := holds[ownerOf(p)]
		return p.Node != "" || !held
	})
}

// byOwner groups the pods by controller, in the order in which the controllers first appear.
func byOwner(pods []*model.Pod) [][]*model.Pod {
	var groups [][]*model.Pod
	at := map[string]int{}
	for _, p := range pods {
		i, known := at[ownerOf(p)]
		if !known {
			i = len(groups)
			at[ownerOf(p)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// ownerOf returns the UID of the pod's controller, or the pod's own UID where it has none.
func ownerOf(p *model.Pod) string {
	if p.Controller.UID != "" {
		return p.Controller.UID
	}
	return p.UID
}

// ownerName returns the kind and name of the controller as text.
func ownerName(p *model.Pod) string {
	if p.Controller.UID != "" {
		return p.Controller.Kind + " " + p.Namespace + "/" + p.Controller.Name
	}
	return "pod " + p.Key()
}

// holdPause returns the length of a pause after level earlier pauses.
func holdPause(level int) time.Duration { return min(leastHold<<min(level, 10), mostHold) }
