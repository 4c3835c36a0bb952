package disruption_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

func nodeBorn(uid string, lives time.Duration) *model.Node {
	n := &model.Node{NodeSpec: &model.NodeSpec{}}
	n.ClaimUID, n.Created = uid, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n.ExpiresAt = n.Created.Add(lives)
	return n
}

func TestRenewFromBounds(t *testing.T) {
	never := nodeBorn("a", time.Hour)
	never.ExpiresAt = time.Time{}
	if at := disruption.RenewFrom(never); !at.IsZero() {
		t.Errorf("a node that never expires is renewed from %s", at)
	}
	for _, lives := range []time.Duration{0, 1, 9, time.Second, time.Hour, 720 * time.Hour, 1<<63 - 1} {
		for _, uid := range []string{"", "a", "b", "6c1f0f0e-95a0-4c2f-9d0c-0d0b3f6f1a77"} {
			n := nodeBorn(uid, lives)
			at := disruption.RenewFrom(n)
			early, most := n.ExpiresAt.Sub(at), lives/10
			if early > most {
				t.Errorf("life of %s, claim %q: renewed %s early, want at most %s", lives, uid, early, most)
			}
			if most > 0 && early <= 0 {
				t.Errorf("life of %s, claim %q: renewed %s early, want more than 0", lives, uid, early)
			}
			if again := disruption.RenewFrom(n); !again.Equal(at) {
				t.Errorf("two calls return %s and %s", at, again)
			}
		}
	}
}

// TestRenewalsOfNodesBornTogetherSpreadEvenly checks that each twentieth of the last tenth of the lifetime renews
// about a twentieth of the nodes that were created together.
func TestRenewalsOfNodesBornTogetherSpreadEvenly(t *testing.T) {
	const nodes, parts, life = 1000, 20, 720 * time.Hour
	var starts [parts]int
	for i := range nodes {
		n := nodeBorn(fmt.Sprintf("6c1f0f0e-95a0-4c2f-9d0c-%012d", i), life)
		early := n.ExpiresAt.Sub(disruption.RenewFrom(n)) - 1
		starts[early*parts/(life/10)]++
	}
	for i, count := range starts {
		if count < nodes/parts/2 || count > nodes/parts*3/2 {
			t.Errorf("part %d of %d: %d renewals begin, want about %d; all parts: %v", i, parts, count, nodes/parts, starts)
		}
	}
}
