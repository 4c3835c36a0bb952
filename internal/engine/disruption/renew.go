package disruption

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// renewalShare is the largest part of a claim's whole life by which its renewal may begin early: a tenth.
const renewalShare = 10

// RenewFrom is when the graceful renewal of the node may begin, before expireAfter deletes its claim whatever is on it:
// earlier than ExpiresAt by more than nothing and at most a tenth of the life from Created to ExpiresAt. How much is
// drawn evenly, by the claim's UID, so that nodes born together are renewed one after the other, and a restart draws the
// same. It is zero for a node that never expires.
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
