package plan

import (
	"slices"
	"strconv"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// HoldLaunches notes on a pool that launches for the pods of a controller wait.
type HoldLaunches struct {
	Pool, UID string
	Hold      model.LaunchHold
}

// ReleaseLaunches notes on a pool that they wait no longer.
type ReleaseLaunches struct{ Pool, UID, Owner string }

func (HoldLaunches) action()    {}
func (ReleaseLaunches) action() {}

func (a HoldLaunches) String() string {
	return "note on pool " + a.Pool + " that launches for " + a.Hold.Name + " wait after " + strconv.Itoa(a.Hold.Failures) + " that led to nothing"
}
func (a ReleaseLaunches) String() string {
	return "note on pool " + a.Pool + " that launches for " + a.Owner + " wait no longer"
}

// hasRoom reports whether the pool keeps the pause beside those of other controllers.
func hasRoom(pool *model.Pool, hold *model.LaunchHold) bool {
	longer := 0
	for i := range pool.Holds {
		if h := &pool.Holds[i]; h.Owner != hold.Owner && !h.Until.Before(hold.Until) {
			longer++
		}
	}
	return longer < model.MostHolds
}

// Restrain returns the plan without the claims that are for nothing but pods whose launches wait (see Brake), and refuses
// those pods. They still go onto nodes that are there or in flight, and onto new nodes that others need too.
func Restrain(snap *model.Snapshot, p *Provision) *Provision { return restrain(heldNow(snap), p) }

// Restrain is the function of that name, which also goes by the pauses that are on no pool, and not by those that are over and
// could not be taken off their pool yet.
func (b *Brake) Restrain(snap *model.Snapshot, p *Provision) *Provision {
	var all holds
	for _, h := range b.lasting(snap.Now) { // first: a pool may lack what became of the nodes
		all = all.with(launchPause{LaunchHold: h})
	}
	for owner, h := range heldNow(snap) {
		if !b.released[owner] {
			all = all.with(h)
		}
	}
	return restrain(all, p)
}

// Unwritten is how many pauses last that are on no pool: a restart forgets them.
func (b *Brake) Unwritten(snap *model.Snapshot) int {
	on, n := heldNow(snap), 0
	for _, h := range b.lasting(snap.Now) {
		if _, written := on[h.Owner]; !written {
			n++
		}
	}
	return n
}

// lasting are the pauses in memory that last.
func (b *Brake) lasting(now time.Time) []model.LaunchHold {
	var holds []model.LaunchHold
	for _, o := range b.owners {
		if o.hold != nil && o.hold.Until.After(now) {
			holds = append(holds, *o.hold)
		}
	}
	return holds
}

// holds are pauses that last, by owner, the longest of each.
type holds map[string]launchPause

// launchPause is a pause and the pool that it stands on, empty where it is in memory only.
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

func restrain(holds holds, p *Provision) *Provision {
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
			restrained.Refused = append(restrained.Refused, Refusal{Pods: pods, Verdict: Verdict{Code: LaunchesHeld,
				Have: int64(hold.Failures), Need: secondAfter(hold.Until), Pool: hold.pool, Rejection: &model.Rejection{Field: hold.Name, Reason: hold.Why}}})
		}
	}
	if len(dropped) == 0 {
		return p
	}
	restrained.Order = slices.DeleteFunc(slices.Clone(p.Order), func(pod *model.Pod) bool { return dropped[pod.UID] })
	return &restrained
}

// heldNow are the pauses on pools that last.
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

// byOwner are the pods of each controller, in the order in which the controllers first appear.
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

// ownerOf is the UID of the pod's controller, or its own where it has none.
func ownerOf(p *model.Pod) string {
	if p.Controller.UID != "" {
		return p.Controller.UID
	}
	return p.UID
}

// ownerName is the controller in words.
func ownerName(p *model.Pod) string {
	if p.Controller.UID != "" {
		return p.Controller.Kind + " " + p.Namespace + "/" + p.Controller.Name
	}
	return "pod " + p.Key()
}

// holdPause is for how long launches wait after that many pauses before it.
func holdPause(level int) time.Duration { return min(leastHold<<min(level, 10), mostHold) }
