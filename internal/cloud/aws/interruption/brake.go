package interruption

import (
	"maps"
	"time"
)

// Brake bounds how many machines are replaced because DescribeInstanceStatus says that they are in trouble, while their nodes
// still report to Kubernetes. EC2 is then the only witness, and an answer that is wrong about many machines would end a fleet.
//
//	in trouble, now or replaced in the last Window, at most Free of the cluster's machines --> all of them are replaced
//	more                                                                                    --> Step in each Window, the others are held
//
// A machine whose node does not report either is not counted and not held. It is not for several goroutines.
type Brake struct {
	replaced map[string]time.Time // by instance
}

// Window is how long a replacement counts.
const Window = 10 * time.Minute

// NewBrake has seen nothing yet.
func NewBrake() *Brake { return &Brake{replaced: map[string]time.Time{}} }

// Free is how many machines of a cluster may be in trouble at the same time without being held: three, or a fifth.
func Free(machines int) int { return max(3, machines/5) }

// Step is how many are replaced in a Window while others are held: a tenth, as the default budget of a NodePool has it, at least
// one.
func Step(machines int) int { return max(1, (machines+9)/10) }

// Held says how many machines a brake keeps.
type Held struct {
	// Machines are all of the cluster, Troubled those in trouble whose nodes report, Held those of them that stay for now.
	Machines, Troubled, Held int
}

// Pass says which of the machines in trouble are replaced now. They are passed in the order in which they are given, each once.
func (b *Brake) Pass(troubled []string, machines int, now time.Time) (map[string]bool, Held) {
	maps.DeleteFunc(b.replaced, func(_ string, at time.Time) bool { return now.Sub(at) >= Window })
	recent, fresh := len(b.replaced), 0
	for _, id := range troubled {
		if b.replaced[id].IsZero() {
			fresh++
		}
	}
	allowed := fresh
	if recent+fresh > Free(machines) {
		allowed = max(Step(machines)-recent, 0)
	}
	held := Held{Machines: machines, Troubled: len(troubled)}
	passed := map[string]bool{}
	for _, id := range troubled {
		switch {
		case !b.replaced[id].IsZero(): // what was begun is finished
			passed[id] = true
		case allowed > 0:
			allowed--
			b.replaced[id], passed[id] = now, true
		default:
			held.Held++
		}
	}
	return passed, held
}
