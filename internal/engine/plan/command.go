package plan

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Phase is the progress of a command.
//
//	              written on every        replacements         replacements          claims
//	              claim, all tainted      seen in the API      initialized           gone
//	proposed ------------> cordoned ----------> launching ----------> draining ----------> done
//	   |  15 s, judged        |  \                  |  safe and judged    ^
//	   | no longer valid      |   `-- no replacements, quiet and judged --´
//	   v                      v                     v
//	   +----------------- abandoned <---------------+   replacement lost, deadline passed
//	              (untaint, clear the reason, then the annotation)
//
// A command that moves pods to reduce cost is written and then waits for Guard.Validation, without a visible effect on
// its nodes. After that wait, and again before the first deletion, Guard.Judge checks it. Steps that taint nodes or
// delete claims call Guard.Admit first. Draining cannot be reverted: the claims are being deleted, and Kubernetes has
// no undelete. State that the cluster shows is not stored a second time: tainted nodes, existing replacements and
// deleted claims are visible. So only launching is written over proposed in the annotation: from then on a missing
// replacement means "lost" instead of "not yet created".
type Phase string

// The phases of a command.
const (
	Proposed  Phase = "proposed"
	Cordoned  Phase = "cordoned"
	Launching Phase = "launching"
	Draining  Phase = "draining"
	Done      Phase = "done"
	Abandoned Phase = "abandoned"
)

// order returns the position of the phase in the sequence. It is -1 for an unknown phase.
func (p Phase) order() int {
	return slices.Index([]Phase{Proposed, Cordoned, Launching, Draining, Done, Abandoned}, p)
}

// Before reports whether the phase comes before the other one in the sequence.
func (p Phase) Before(other Phase) bool { return p.order() < other.order() }

// Over reports whether nothing is left to do or revert once the cluster shows no trace of the command.
func (p Phase) Over() bool { return p == Done || p == Abandoned }

// Reason is why nodes are removed, in the spelling of disruption budgets.
type Reason string

// The reasons of commands. The API of budgets knows the first three: https://karpenter.sh/docs/concepts/disruption/
const (
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
	Underutilized Reason = "Underutilized"
	// Expired nodes are replaced before expireAfter deletes them. A budget cannot name this reason in the API. Budgets
	// without reasons apply to it, and the conversion of pools adds a rule for pools that have no such budget.
	Expired Reason = "Expired"
)

// CommandTimeout is the default time in which a command must reach the deletion of its claims. The executor may set
// another Deadline.
const CommandTimeout = 10 * time.Minute

// Candidate is a node that a command removes. It is identified by names and UIDs, so a later object of the same name
// does not match.
type Candidate struct {
	Claim    string `json:"claim"`
	ClaimUID string `json:"claimUID"`
	Node     string `json:"node"`
	NodeUID  string `json:"nodeUID"`
	Pool     string `json:"pool"`
}

// CandidateOf describes a node of the snapshot that has a claim.
func CandidateOf(n *model.Node) Candidate {
	return Candidate{Claim: n.Claim, ClaimUID: n.ClaimUID, Node: n.Name, NodeUID: n.UID, Pool: n.Pool}
}

// Command is a decided change: remove these nodes and add those, for one reason. The whole command is written on every
// candidate's claim before its first visible effect, so that after a crash the next process can continue or revert it.
type Command struct {
	// ID is unique. It is a hash of the reason, the method, the candidates and the time.
	ID     string
	Reason Reason
	// Method names the search that found the command, with the values of the consolidation_type label of metrics:
	// "empty", "multi", "single", or "" for drift.
	Method     string
	Candidates []Candidate
	// Replacements are created before the candidates are removed. Their Options are not stored with the command. Of
	// their Pods, only the PodRefs are stored.
	Replacements []NewClaim
	// Destinations are the existing nodes that receive pods of the candidates.
	Destinations []Destination
	// Assignments are the target nodes of the pods that need no replacement. They are not stored.
	Assignments []model.Assignment
	Worth       Worth
	Phase       Phase
	Created     time.Time
	PhaseSince  time.Time
	// Deadline is when a command that has not reached draining is abandoned.
	Deadline time.Time
	// Vacated is when all candidates were first observed to be gone, zero before. It is not stored, because no object
	// is left to store it on.
	Vacated time.Time
	// Why is the reason for abandoning the command. It is not stored.
	Why Verdict
}

// Destination is an existing node that receives pods of a command's candidates, identified by its claim.
type Destination struct {
	Claim    string `json:"claim"`
	ClaimUID string `json:"claimUID"`
	// Node and NodeUID identify a node that has no claim because Karpenter does not manage it.
	Node    string `json:"node,omitempty"`
	NodeUID string `json:"nodeUID,omitempty"`
	// Pods are the pods that move to the node.
	Pods []model.PodRef `json:"pods,omitempty"`
}

// DestinationOf returns the Destination for a node of the snapshot that receives the pods.
func DestinationOf(n *model.Node, pods []*model.Pod) Destination {
	d := Destination{Claim: n.Claim, ClaimUID: n.ClaimUID, Pods: make([]model.PodRef, len(pods))}
	if n.Claim == "" {
		d.Node, d.NodeUID = n.Name, n.UID
	}
	for i, p := range pods {
		d.Pods[i] = p.Ref()
	}
	return d
}

// On returns the node of the snapshot that the Destination identifies, or nil when it is gone.
func (d *Destination) On(snap *model.Snapshot) *model.Node {
	n := snap.Claim(d.Claim)
	if d.Claim == "" {
		n = snap.Node(d.Node)
	}
	if n == nil || n.ClaimUID != d.ClaimUID || d.Claim == "" && n.UID != d.NodeUID {
		return nil
	}
	return n
}

// Worth is the benefit and the cost of a command.
type Worth struct {
	// Saving is the reduction of the fleet's cost, in nano-USD per hour, including the price of nodes. It is negative
	// when the cost rises, which is possible for a renewal.
	Saving int64 `json:"saving"`
	// Price of the disruption, in nano-USD: eviction costs times the price of moving.
	Price int64 `json:"price"`
	// Pods is how many pods are moved.
	Pods int `json:"pods"`
}

// Decision returns "replace" when the command launches replacements, else "delete".
func (c *Command) Decision() string {
	if len(c.Replacements) > 0 {
		return "replace"
	}
	return "delete"
}

// NewCommand returns a command in its first phase.
func NewCommand(now time.Time, reason Reason, method string, candidates []Candidate) Command {
	c := Command{Reason: reason, Method: method, Candidates: candidates, Phase: Proposed, Created: now, PhaseSince: now,
		Deadline: now.Add(CommandTimeout)}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s\n%d\n", reason, method, now.UnixNano())
	for _, candidate := range candidates {
		text.WriteString(candidate.ClaimUID + "\n")
	}
	sum := sha256.Sum256([]byte(text.String()))
	c.ID = strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:12]
	return c
}

// Shown returns the phase that a node of the command shows, where that is further than the phase written on its claim.
// Phase writes that the next process can derive from the cluster are omitted.
func (c Command) Shown(n *model.Node) Phase {
	switch {
	case c.Phase.Over():
	case n.Deleting || n.Terminating:
		return Draining
	case c.Phase == Proposed && n.Disrupted:
		return Cordoned
	}
	return c.Phase
}

// wireCommand is the wire form of the annotation. Field names never change: a newer binary reads what an older one
// wrote.
type wireCommand struct {
	ID           string            `json:"id"`
	Reason       Reason            `json:"reason"`
	Method       string            `json:"method,omitempty"`
	Phase        Phase             `json:"phase"`
	Created      time.Time         `json:"created"`
	PhaseSince   time.Time         `json:"phaseSince"`
	Deadline     time.Time         `json:"deadline"`
	Candidates   []Candidate       `json:"candidates"`
	Replacements []wireReplacement `json:"replacements,omitempty"`
	Destinations []Destination     `json:"landing,omitempty"`
	Worth        Worth             `json:"worth,omitzero"`
}

type wireReplacement struct {
	Name           string            `json:"name"`
	Pool           string            `json:"pool"`
	PoolUID        string            `json:"poolUID"`
	PoolGeneration int64             `json:"poolGeneration,omitempty"`
	Requirements   []wireRequirement `json:"requirements"`
	Labels         map[string]string `json:"labels,omitempty"`
	Requests       map[string]int64  `json:"requests,omitempty"`
	Pods           []model.PodRef    `json:"pods,omitempty"`
}

type wireRequirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues int      `json:"minValues,omitempty"`
}

// Encode returns the text of the annotation. Equal commands have equal texts.
func (c *Command) Encode() string {
	wire := wireCommand{ID: c.ID, Reason: c.Reason, Method: c.Method, Phase: c.Phase, Created: c.Created.UTC(),
		PhaseSince: c.PhaseSince.UTC(), Deadline: c.Deadline.UTC(), Candidates: c.Candidates, Destinations: c.Destinations, Worth: c.Worth}
	for i := range c.Replacements {
		wire.Replacements = append(wire.Replacements, wireFrom(&c.Replacements[i]))
	}
	text, err := json.Marshal(wire)
	if err != nil {
		panic("encoding a command: " + err.Error()) // strings, numbers and times of years 1 to 9999 only
	}
	return string(text)
}

func wireFrom(n *NewClaim) wireReplacement {
	w := wireReplacement{Name: n.Name, Pool: n.Pool, PoolUID: n.PoolUID, PoolGeneration: n.PoolGeneration, Labels: n.Labels,
		Pods: n.PodRefs()}
	for _, r := range n.Requirements {
		w.Requirements = append(w.Requirements, wireRequirement{r.Key, r.Operator.String(), r.Values, r.MinValues})
	}
	for _, a := range n.Requests {
		if w.Requests == nil {
			w.Requests = map[string]int64{}
		}
		w.Requests[a.Name] += a.Value
	}
	return w
}

// DecodeCommand parses the text of the annotation. Its errors name the invalid field.
func DecodeCommand(text string) (Command, error) {
	var wire wireCommand
	if err := json.Unmarshal([]byte(text), &wire); err != nil {
		return Command{}, fmt.Errorf("reading a command: %w", err)
	}
	switch {
	case wire.ID == "":
		return Command{}, fmt.Errorf("reading a command: id is empty")
	case len(wire.Candidates) == 0:
		return Command{}, fmt.Errorf("reading a command: candidates are empty")
	case wire.Phase.order() < 0:
		return Command{}, fmt.Errorf("reading a command: phase is %q, want one of proposed, cordoned, launching, draining, done, abandoned",
			wire.Phase)
	}
	c := Command{ID: wire.ID, Reason: wire.Reason, Method: wire.Method, Phase: wire.Phase, Created: wire.Created,
		PhaseSince: wire.PhaseSince, Deadline: wire.Deadline, Candidates: wire.Candidates, Destinations: wire.Destinations, Worth: wire.Worth}
	for _, w := range wire.Replacements {
		n, err := w.claim()
		if err != nil {
			return Command{}, fmt.Errorf("reading a command: replacement %q: %w", w.Name, err)
		}
		c.Replacements = append(c.Replacements, n)
	}
	return c, nil
}

func (w wireReplacement) claim() (NewClaim, error) {
	n := NewClaim{Name: w.Name, Pool: w.Pool, PoolUID: w.PoolUID, PoolGeneration: w.PoolGeneration, Labels: w.Labels, Refs: w.Pods}
	for _, r := range w.Requirements {
		operator, ok := label.ParseOperator(r.Operator)
		if !ok {
			return NewClaim{}, fmt.Errorf("operator of %s is %q, want In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", r.Key, r.Operator)
		}
		n.Requirements = append(n.Requirements, label.Requirement{Key: r.Key, Operator: operator, Values: r.Values, MinValues: r.MinValues})
	}
	names := make([]string, 0, len(w.Requests))
	for name := range w.Requests {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		n.Requests = append(n.Requests, quantity.Amount{Name: name, Value: w.Requests[name]})
	}
	return n, nil
}
