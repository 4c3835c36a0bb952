package disruption

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// renewalShare is the divisor for the largest part of a claim's lifetime by which its renewal may begin early: a
// tenth.
const renewalShare = 10

// RenewFrom returns the time at which the graceful renewal of the node may begin, before expireAfter deletes its
// claim unconditionally. It is earlier than ExpiresAt by more than zero and at most a tenth of the time from Created
// to ExpiresAt. The offset is derived from the claim's UID and is uniformly distributed, so that nodes of the same
// age are renewed one after the other, and a restart computes the same time. It returns the zero time for a node that
// never expires.
func RenewFrom(n *model.Node) time.Time {
	if n.ExpiresAt.IsZero() {
		return time.Time{}
	}
	window := n.ExpiresAt.Sub(n.Created) / renewalShare
	if window <= 0 {
		return n.ExpiresAt
	}
	sum := sha256.Sum256([]byte(n.ClaimUID))
	early, _ := bits.Mul64(uint64(window), binary.BigEndian.Uint64(sum[:])) // 0 to window-1
	return n.ExpiresAt.Add(-time.Duration(early) - 1)
}
