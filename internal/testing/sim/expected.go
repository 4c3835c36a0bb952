package sim

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Expected: emptiness does not remove a node to which pods were moved a moment ago, while they are evicted, not
// recreated yet and not bound: another node would be launched for them.
const Expected = "expected"

// expecting is the minimum time during which such a node does not count as empty.
const expecting = 50 * time.Second

// sending holds the pods that commands moved to a claim, by UID with their apps.
type sending struct {
	at   time.Time
	pods map[string]string
}

// sends records where the pods move when a command deletes its first claims.
func (d departure) sends() {
	if d.command.Reason == plan.Empty {
		return
	}
	apps := map[string]string{}
	for _, q := range d.pods {
		apps[q.uid] = q.app
	}
	send := func(name string, pods []model.PodRef) {
		of, _ := d.claims[name].(*claim)
		if of == nil || len(pods) == 0 {
			return
		}
		s := sending{at: d.w.now, pods: map[string]string{}}
		for _, pod := range pods {
			if app := apps[pod.UID]; app != "" {
				s.pods[pod.UID] = app
			}
		}
		d.sent[of.uid] = s
	}
	for _, l := range d.command.Destinations {
		send(l.Claim, l.Pods)
	}
	for i := range d.command.Replacements {
		send(d.command.Replacements[i].Name, d.command.Replacements[i].PodRefs())
	}
}

// expected checks Expected, from what the process knows of the claim and from the state of the world.
func (d departure) expected(of *claim) {
	s, sent := d.sent[of.uid]
	if !sent || d.w.now.Sub(s.at) >= expecting || of.lastPodEvent.After(s.at) {
		return
	}
	there, running := map[string]bool{}, map[string]int{}
	for _, q := range d.w.api.pods() {
		there[q.uid] = true
		if q.deleting.IsZero() && !q.daemon {
			running[q.app]++
		}
	}
	for uid, name := range s.pods {
		if a := d.w.setting.app(name); a != nil && !there[uid] && running[name] < a.replicas {
			d.fail(Expected, "node %s is removed as empty, a pod of %s that was sent to it at %.3f has not been made again", of.node, name, s.at.Sub(epoch).Seconds())
			return
		}
	}
}
