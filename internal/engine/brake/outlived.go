package brake

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// unseenFor is the time after which a claim that no snapshot has shown, and whose lifetime is shorter, counts as gone.
const unseenFor = 5 * time.Second

// lives records the lifetime of the claim: from the claim itself or, until it is observed, from its pool.
func (l *launch) lives(snap *model.Snapshot, n *model.Node) {
	switch pool := snap.Pool(l.pool); {
	case n != nil && !n.ExpiresAt.IsZero():
		l.life, l.expires = n.ExpiresAt.Sub(n.Created), n.ExpiresAt
	case n == nil && l.uid == "" && l.expires.IsZero() && pool != nil && pool.ExpireAfter != nil:
		l.life = *pool.ExpireAfter
		l.expires = l.at.Add(max(l.life, unseenFor))
	}
}

// outlived reports whether the claim is removed because it has reached its expireAfter, before any of its pods was on
// the node for a minute, while the controller has pending pods.
func (l *launch) outlived(w *brakeView, owner string) bool {
	now := w.snap.Now
	if l.expires.IsZero() || now.Before(l.expires) || !l.arrived.IsZero() && now.Sub(l.arrived) >= ranEnough || !w.lacks(owner) {
		return false
	}
	l.fail(now)
	l.fate = fmt.Sprintf("it expired %s after its creation (expireAfter), and none of the pods had run on it for a minute", l.life)
	return true
}

// lacks reports whether pods of the controller are pending.
func (w *brakeView) lacks(owner string) bool {
	w.settled(owner)
	return w.waiting[owner]
}

// fates describes the outcome of launches, the newest first. Launches with the same outcome are described together. A
// claim name repeats where a claim was launched again for the same pods.
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

// named returns the names of the claims, with the number of launches where names repeat.
func named(claims []string, launches int) string {
	names := strings.Join(claims, ", ")
	if launches > len(claims) {
		return fmt.Sprintf("%d launches as %s", launches, names)
	}
	return names
}
