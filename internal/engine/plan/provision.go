package plan

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// MaxTypes is the longest list of types that a claim carries (core specification 3.10).
const MaxTypes = 600

// Provision is the answer to the pending pods of a snapshot, and to those that will be: see Ahead.
type Provision struct {
	// Claims to create, in the order of pools and bins.
	Claims []NewClaim
	// Placed are pods that go onto nodes that exist or are in flight, by node.
	Placed []Placement
	// Refused pods, by group.
	Refused []Refusal
	// Order is all placed pods, in an order in which each is admissible at its turn.
	Order []*model.Pod
	// Work is how many questions were asked to make the plan, see placement.Options.
	Work int
}

// Unfinished reports whether the work budget ended the plan before every pod was reached.
func (p *Provision) Unfinished() bool {
	return slices.ContainsFunc(p.Refused, func(r Refusal) bool { return r.Verdict.Code == NotReached })
}

// Waiting are those of the pods that are pending. The others still run, on nodes that are leaving: they have their
// places in a plan, but nobody need hear of that.
func Waiting(pods []*model.Pod) []*model.Pod {
	running := func(p *model.Pod) bool { return p.Node != "" }
	if !slices.ContainsFunc(pods, running) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), running)
}

// Placement is what goes onto one node of the snapshot.
type Placement struct {
	// Node is the name of the node (or of the claim while there is no node).
	Node string
	Pods []*model.Pod
}

// NewClaim is a node to buy.
type NewClaim struct {
	// Name is deterministic: the same pods on the same pool always get the same name, so that a repeated create says
	// AlreadyExists and means success.
	Name    string
	Pool    string
	PoolUID string
	// PoolGeneration is that of the pool's specification the requirements were computed from, see Stamp; 0 if unknown.
	PoolGeneration int64
	// Requirements in API form, the type list (cheapest first) and the capacity types included.
	Requirements []label.Requirement
	// Labels are custom labels that the pool leaves open, with the one value chosen.
	Labels map[string]string
	// Requests of all pods and of the daemons that will come, to be found on any of the types.
	Requests []quantity.Amount
	// Options are the types that can hold the pods, cheapest first; at most MaxTypes.
	Options []Option
	Pods    []*model.Pod
	// Promised are the words of the pods of a claim that was stored with a command, see model.Pod.Promise; Pods is nil then.
	Promised []string
	// MinValuesRelaxed: the types have fewer values of some label than the pool's minValues asks for, and the policy
	// allows it.
	MinValuesRelaxed bool
}

// Option is a type of a claim at its cheapest offering.
type Option struct {
	Type         string
	Zone         string
	CapacityType string
	// Price in nano-USD per hour.
	Price int64
}

// Stamp notes on each claim the generation of its pool in the snapshot that the plan was made on: taints, labels and
// the drift hash are taken from the pool when the claim is created, and must belong to the same specification.
func (p *Provision) Stamp(snap *model.Snapshot) {
	StampClaims(snap, p.Claims)
}

// StampClaims does what Stamp does for claims that are of no plan yet.
func StampClaims(snap *model.Snapshot, claims []NewClaim) {
	for i := range claims {
		if pool := snap.Pool(claims[i].Pool); pool != nil {
			claims[i].PoolGeneration = pool.Generation
		}
	}
}

// OfGeneration reports whether the claim was planned for that generation of its pool, as far as is known.
func (c *NewClaim) OfGeneration(generation int64) bool {
	return c.PoolGeneration == 0 || generation == 0 || c.PoolGeneration == generation
}

// Types are the names of the types that the claim may become, cheapest first; nil for one made from the template alone,
// which may become any. The options of a claim that was stored with a command are not known; its requirements are.
func (c *NewClaim) Types() []string {
	if len(c.Options) == 0 {
		for _, r := range c.Requirements {
			if r.Key == model.LabelType && r.Operator == label.In {
				return r.Values
			}
		}
		return nil
	}
	types := make([]string, len(c.Options))
	for i, o := range c.Options {
		types[i] = o.Type
	}
	return types
}

// Promises are the words of the pods that the claim is bought for, see model.Pod.Promise.
func (c *NewClaim) Promises() []string {
	if c.Pods == nil {
		return c.Promised
	}
	words := make([]string, len(c.Pods))
	for i, p := range c.Pods {
		words[i] = p.Promise()
	}
	return words
}

// Price is that of the cheapest option, nano-USD per hour.
func (c *NewClaim) Price() int64 {
	if len(c.Options) == 0 {
		return 0
	}
	return c.Options[0].Price
}

// ClaimName derives the name of a claim from what makes it this claim: the pool and the pods it is bought for. A name
// that is taken by another claim (one that is on its way out, say) is passed over; taken answers for the snapshot.
// The result is at most 63 characters, a DNS label when the pool's name is.
func ClaimName(pool string, poolUID string, pods []*model.Pod, taken func(string) bool) string {
	uids := make([]string, len(pods))
	length := len(poolUID) + 16
	for i, p := range pods {
		uids[i] = p.UID
		length += len(p.UID) + 1
	}
	slices.Sort(uids)
	identity := append(append(make([]byte, 0, length), poolUID...), '\n')
	for i, uid := range uids {
		if i > 0 {
			identity = append(identity, '\n')
		}
		identity = append(identity, uid...)
	}
	return claimName(pool, identity, taken)
}

// lowercase is base32 as names of objects may have it.
var lowercase = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567")

// claimName derives a name from the identity, to which the number of the attempt is appended.
func claimName(pool string, identity []byte, taken func(string) bool) string {
	identity = append(identity, '\n')
	for attempt := 0; ; attempt++ {
		sum := sha256.Sum256(strconv.AppendInt(identity, int64(attempt), 10))
		var hash [16]byte
		lowercase.Encode(hash[:], sum[:10])
		name := cut(pool, 52) + "-" + string(hash[:10])
		if !taken(name) {
			return name
		}
	}
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(s[:n], "-.")
}
