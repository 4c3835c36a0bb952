package history

import (
	"strings"
	"time"
	"unicode"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// step is what a line says about a node.
type step int

// The steps of a node, in the order in which they follow each other.
const (
	found        step = iota + 1 // upstream's plan has pods for new nodes
	created                      // the NodeClaim exists
	failed                       // the cloud does not launch a machine
	launched                     // the machine exists
	registered                   // the node has joined
	initialized                  // the node takes pods
	disrupting                   // a command removes nodes
	abandoned                    // the command is rolled back
	claimDeleted                 // the NodeClaim is deleted without a command
	draining                     // the drain begins
	drained                      // the drain has ended
	nodeGone                     // the Node object is gone
	deleted                      // the machine and the NodeClaim are gone
)

// event is what a line says.
type event struct {
	at   time.Time
	step step
	// claim and node are names; one of them may be unknown.
	claim, node, pool            string
	kind, zone, capacity, id     string // of the machine
	price                        int64  // nano-USD per hour; 0 if unknown
	reason, detail               string
	pods                         podList
	lifetime                     time.Duration // 0 if unknown
	command                      *Command
	commandID, reconcile, logger string
	// nodes says how many new nodes upstream's plan has for the pods.
	nodes int
	// line is the position of the line in all that was read.
	line int
}

// podList is how many pods a line is about, and the names that it has.
type podList struct {
	count int
	names []string
}

// clean replaces control characters, which a terminal would follow, in all that the event has from its line.
func (e *event) clean() {
	texts := []*string{&e.claim, &e.node, &e.pool, &e.kind, &e.zone, &e.capacity, &e.id, &e.reason, &e.detail, &e.commandID}
	lists := [][]string{e.pods.names}
	if c := e.command; c != nil {
		texts = append(texts, &c.ID, &c.Reason, &c.Decision, &c.Method, &c.Abandoned)
		lists = append(lists, c.Nodes, c.NodeClaims, c.Replacements, c.kinds, c.capacities)
	}
	for _, list := range lists {
		for i := range list {
			texts = append(texts, &list[i])
		}
	}
	for _, text := range texts {
		*text = strings.Map(printable, *text)
	}
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// Command is a decision to remove nodes.
type Command struct {
	ID       string    `json:"id,omitempty"`
	Time     time.Time `json:"time"`
	Reason   string    `json:"reason"`
	Decision string    `json:"decision"`
	Method   string    `json:"method,omitempty"`
	// Nodes and NodeClaims are names; only one of them may be known.
	Nodes        []string `json:"nodes,omitempty"`
	NodeClaims   []string `json:"nodeClaims,omitempty"`
	Replacements []string `json:"replacements,omitempty"`
	Pods         int      `json:"pods"`
	// SavingPerHour is what the fleet costs less afterward, USD per hour; nil if the log does not say it.
	SavingPerHour *bill.USD `json:"savingPerHour,omitempty" jsonschema:"type=number"`
	// Saved is the saving until the end of the time of the answer, USD: nil as above, and for commands that are not for cost.
	Saved *bill.USD `json:"saved,omitempty" jsonschema:"type=number"`
	// Abandoned is why the command was rolled back; empty if it was not.
	Abandoned string `json:"abandoned,omitempty"`

	kinds, capacities []string // of the nodes, as far as upstream's line has them
	reconcile         string
	new               int // nodes, as far as upstream's line counts them
}

// consolidates reports whether the command was for cost.
func (c *Command) consolidates() bool { return c.Reason == "empty" || c.Reason == "underutilized" }
