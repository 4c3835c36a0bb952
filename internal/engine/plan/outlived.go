package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// unseenFor is after how long a claim that no snapshot has shown, and that is to live less long, has gone.
const unseenFor = 5 * time.Second

// lives notes for how long the claim lives: what it says itself, or while it has not been seen, what its pool says.
func (l *launch) lives(snap *model.Snapshot, n *model.Node) {
	switch pool := snap.Pool(l.pool); {
	case n != nil && !n.ExpiresAt.IsZero():
		l.life, l.expires = n.ExpiresAt.Sub(n.Created), n.ExpiresAt
	case n == nil && l.uid == "" && l.expires.IsZero() && pool != nil && pool.ExpireAfter != nil:
		l.life = *pool.ExpireAfter
		l.expires = l.at.Add(max(l.life, unseenFor))
	}
}

// outlived reports whether the claim goes or has gone because it is as old as its expireAfter, before any of its pods has been
// on the node for a minute, while the controller has pods that wait.
func (l *launch) outlived(w *brakeView, owner string) bool {
	now := w.snap.Now
	if l.expires.IsZero() || now.Before(l.expires) || !l.arrived.IsZero() && now.Sub(l.arrived) >= ranEnough || !w.lacks(owner) {
		return false
	}
	l.fail(now)
	l.fate = fmt.Sprintf("it expired %s after it was created (expireAfter), and none of the pods had run on it for a minute", l.life)
	return true
}

// lacks reports whether pods of the controller wait.
func (w *brakeView) lacks(owner string) bool {
	w.settled(owner)
	return w.waiting[owner]
}

// fates says what became of launches, the newest first. Those with one fate are told together: a name comes again where a
// claim was launched again for the same pods.
func fates(newest []*launch) []string {
	var told []string
	for i, l := range newest {
		same := func(other *launch) bool { return other.fate == l.fate }
		if slices.ContainsFunc(newest[:i], same) {
			continue
		}
		var claims []string
		launches := 0
		for _, other := range newest[i:] {
			if !same(other) {
				continue
			}
			launches++
			if !slices.Contains(claims, other.claim) {
				claims = append(claims, other.claim)
			}
		}
		told = append(told, named(claims, launches)+": "+l.fate)
	}
	return told
}

// named are the claims, with how many launches they were where names came again.
func named(claims []string, launches int) string {
	names := strings.Join(claims, ", ")
	if launches > len(claims) {
		return fmt.Sprintf("%d launches as %s", launches, names)
	}
	return names
}
