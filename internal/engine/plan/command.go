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

// Phase is where a command is.
//
//	             written on every        replacements         replacements          claims
//	             claim, all tainted      seen in the API      initialised           gone
//	proposed ------------> cordoned ----------> launching ----------> draining ----------> done
//	   |  15 s, judged        |  \                  |  safe and judged    ^
//	   | no longer right      |   `-- no replacements, quiet and judged --´
//	   v                      v                     v
//	   +----------------- abandoned <---------------+   replacement lost, deadline passed
//	              (untaint, clear the reason, then the annotation)
//
// A command that moves pods to save money is left standing for Guard.Validation after it was written, without anything
// to be seen of it on its nodes; then, and again before the first deletion, Guard.Judge is asked about it. Every step
// asks Guard.Admit. Draining has no way back: its claims are being deleted, and Kubernetes knows no undelete. What the
// cluster shows is not stored twice: that nodes are tainted, replacements there and claims deleted can be seen, so only
// launching (a missing replacement now means "lost", no longer "not yet created") is written over proposed in the
// annotation.
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

// order says how far along a phase is; an unknown phase is -1.
func (p Phase) order() int {
	return slices.Index([]Phase{Proposed, Cordoned, Launching, Draining, Done, Abandoned}, p)
}

// Over reports whether nothing is left to do or undo once the cluster shows no trace of the command.
func (p Phase) Over() bool { return p == Done || p == Abandoned }

// Reason is why nodes leave, as budgets spell it.
type Reason string

// The reasons of commands (core specification 5.1).
const (
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
	Underutilized Reason = "Underutilized"
	// Expired nodes are renewed before expireAfter ends them. It is no reason that a budget of the API can name:
	// those without reasons apply to it, and what is made of pools that have none of these.
	Expired Reason = "Expired"
)

// CommandTimeout is how long a command may usually take until its claims are deleted (core specification 5.16); who
// carries it out may set another Deadline.
const CommandTimeout = 10 * time.Minute

// CordonQuiet is how long the taint must usually have stood before claims are deleted, see Guard: kube-scheduler may have chosen the
// node a moment before it saw the taint, and the binding must have time to reach us.
const CordonQuiet = time.Second

// Validation is how long a command that moves pods to save money usually stands before it is carried out (core
// specification 5.14).
const Validation = 15 * time.Second

// Candidate is a node that a command removes, by names and UIDs: an object of the same name that came later is
// another one.
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

// Command is a decided change: remove these nodes, add those, because. It is written whole on every candidate's claim
// before its first visible effect, so that whoever comes after a crash can continue it or take it back.
type Command struct {
	// ID is unique: what it does, to whom and when, hashed.
	ID     string
	Reason Reason
	// Method is what found it, in the words of the consolidation_type label of metrics: "empty", "multi", "single",
	// or "" for drift.
	Method     string
	Candidates []Candidate
	// Replacements are created before the candidates go. Their Options are not stored with the command, of their Pods only
	// the Promises.
	Replacements []NewClaim
	// Landing are the nodes that are there and that pods of the candidates are sent to.
	Landing []Landing
	// Seats are where the pods go that need no replacement; not stored.
	Seats      []model.Seating
	Worth      Worth
	Phase      Phase
	Created    time.Time
	PhaseSince time.Time
	// Deadline is when a command that has not come to draining is abandoned.
	Deadline time.Time
	// Vacated is when all candidates were first seen to be gone, zero before; not stored, because nothing is left to store it on.
	Vacated time.Time
	// Why it was abandoned; not stored.
	Why Verdict
}

// Landing is a node that takes pods of others, by its claim.
type Landing struct {
	Claim    string `json:"claim"`
	ClaimUID string `json:"claimUID"`
	// Node and NodeUID name a node that is not ours; it has no claim.
	Node    string `json:"node,omitempty"`
	NodeUID string `json:"nodeUID,omitempty"`
	// Pods are the words of those pods, see model.Pod.Promise.
	Pods []string `json:"pods,omitempty"`
}

// LandingOn describes a node of the snapshot that takes the pods.
func LandingOn(n *model.Node, pods []*model.Pod) Landing {
	l := Landing{Claim: n.Claim, ClaimUID: n.ClaimUID, Pods: make([]string, len(pods))}
	if n.Claim == "" {
		l.Node, l.NodeUID = n.Name, n.UID
	}
	for i, p := range pods {
		l.Pods[i] = p.Promise()
	}
	return l
}

// On is the node of the snapshot that is meant, nil when it is gone.
func (l *Landing) On(snap *model.Snapshot) *model.Node {
	n := snap.Claim(l.Claim)
	if l.Claim == "" {
		n = snap.Node(l.Node)
	}
	if n == nil || n.ClaimUID != l.ClaimUID || l.Claim == "" && n.UID != l.NodeUID {
		return nil
	}
	return n
}

// Worth is what a command brings and what it costs.
type Worth struct {
	// Saving is what the fleet costs less afterwards, nano-USD per hour, the node price included; negative when it costs
	// more, as a renewal may.
	Saving int64 `json:"saving"`
	// Price of the disruption, nano-USD: eviction costs times the price of moving.
	Price int64 `json:"price"`
	// Pods that are moved.
	Pods int `json:"pods"`
}

// Decision is "delete", or "replace" when nodes are bought for those that leave.
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

// Shown is the phase that a node shows, one of the command's, where that is further than what is written on its claim: writes
// that the next controller can do without are left out.
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

// enter returns the command in another phase.
func (c Command) enter(phase Phase, now time.Time) Command {
	if c.Phase != phase {
		c.Phase, c.PhaseSince = phase, now
	}
	return c
}

func (c Command) abandon(why Verdict, now time.Time) Command {
	c = c.enter(Abandoned, now)
	c.Why = why
	return c
}

// The wire form of the annotation. Field names are for ever: a newer binary reads what an older one wrote.
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
	Landing      []Landing         `json:"landing,omitempty"`
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
	Pods           []string          `json:"pods,omitempty"`
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
		PhaseSince: c.PhaseSince.UTC(), Deadline: c.Deadline.UTC(), Candidates: c.Candidates, Landing: c.Landing, Worth: c.Worth}
	for i := range c.Replacements {
		wire.Replacements = append(wire.Replacements, wireFrom(&c.Replacements[i]))
	}
	text, err := json.Marshal(wire)
	if err != nil {
		panic("encoding a command: " + err.Error()) // strings, numbers and times between the years 1 and 9999 only
	}
	return string(text)
}

func wireFrom(n *NewClaim) wireReplacement {
	w := wireReplacement{Name: n.Name, Pool: n.Pool, PoolUID: n.PoolUID, PoolGeneration: n.PoolGeneration, Labels: n.Labels, Pods: n.Promises()}
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

// DecodeCommand reads the text of the annotation. Its errors name the field that is wrong.
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
		return Command{}, fmt.Errorf("reading a command: phase is %q, want one of proposed, cordoned, launching, draining, done, abandoned", wire.Phase)
	}
	c := Command{ID: wire.ID, Reason: wire.Reason, Method: wire.Method, Phase: wire.Phase, Created: wire.Created,
		PhaseSince: wire.PhaseSince, Deadline: wire.Deadline, Candidates: wire.Candidates, Landing: wire.Landing, Worth: wire.Worth}
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
	n := NewClaim{Name: w.Name, Pool: w.Pool, PoolUID: w.PoolUID, PoolGeneration: w.PoolGeneration, Labels: w.Labels, Promised: w.Pods}
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
