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

// Restrain returns the plan without the claims that are for nothing but pods whose launches wait (see Brake), and refuses
// those pods. They still go onto nodes that are there or in flight, and onto new nodes that others need too.
func Restrain(snap *model.Snapshot, p *Provision) *Provision {
	holds := heldNow(snap)
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
				Have: int64(hold.Failures), Need: secondAfter(hold.Until), Rejection: &model.Rejection{Field: hold.Name, Reason: hold.Why}}})
		}
	}
	if len(dropped) == 0 {
		return p
	}
	restrained.Order = slices.DeleteFunc(slices.Clone(p.Order), func(pod *model.Pod) bool { return dropped[pod.UID] })
	return &restrained
}

// heldNow are the holds that last, by owner.
func heldNow(snap *model.Snapshot) map[string]model.LaunchHold {
	var holds map[string]model.LaunchHold
	for _, pool := range snap.Pools {
		for _, h := range pool.Holds {
			if !h.Until.After(snap.Now) || !h.Until.After(holds[h.Owner].Until) {
				continue
			}
			if holds == nil {
				holds = map[string]model.LaunchHold{}
			}
			holds[h.Owner] = h
		}
	}
	return holds
}

func allHeld(holds map[string]model.LaunchHold, pods []*model.Pod) bool {
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
