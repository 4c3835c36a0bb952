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

// MaxTypes is the largest number of types that a claim lists.
const MaxTypes = 600

// Provision is the plan for the pending pods of a snapshot, and for pods that will be pending: see Ahead.
type Provision struct {
	// Claims to create, ordered by pool and bin.
	Claims []NewClaim
	// Placed are pods on existing nodes and nodes in flight, by node.
	Placed []Placement
	// Refused are unschedulable pods, by group.
	Refused []Refusal
	// Order lists all placed pods, in an order in which each is admissible when the earlier ones are bound.
	Order []*model.Pod
	// Renamed holds the names of those claims that do not have the first name for their pods and pool, by that first
	// name; nil if there are none.
	Renamed map[string]string
	// Work is how many evaluations the plan needed, see placement.Options.
	Work int
	// Virtual is the plan of the virtual pods, on what this plan leaves; nil if there are none. Its nodes may be claims of
	// this plan. Its pods are never nominated.
	Virtual *Provision
}

// AllClaims returns the claims to create: those for pods, then those for virtual pods.
func (p *Provision) AllClaims() []NewClaim {
	if p.Virtual == nil {
		return p.Claims
	}
	return slices.Concat(p.Claims, p.Virtual.Claims)
}

// Unfinished reports whether the work budget ended the plan before every pod was processed.
func (p *Provision) Unfinished() bool {
	return slices.ContainsFunc(p.Refused, func(r Refusal) bool { return r.Verdict.Code == NotReached })
}

// Assignments returns the placements of pods that exist already or will, by node.
func (p *Provision) Assignments() []model.Assignment {
	assignments := make([]model.Assignment, len(p.Placed))
	for i, s := range p.Placed {
		assignments[i] = model.Assignment{Node: s.Node, Pods: s.Pods}
	}
	return assignments
}

// Waiting returns those pods that are pending. The others still run, on nodes that are being removed, or are virtual. A
// plan places them, but reports no events for them.
func Waiting(pods []*model.Pod) []*model.Pod {
	others := func(p *model.Pod) bool { return p.Node != "" || p.Virtual != "" }
	if !slices.ContainsFunc(pods, others) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), others)
}

// Placement lists the pods that a plan places on one node of the snapshot.
type Placement struct {
	// Node is the name of the node, or of the claim while there is no node.
	Node string
	Pods []*model.Pod
}

// NewClaim is a node to launch.
type NewClaim struct {
	// Name is deterministic: the same pods on the same pool get the same name, so that a repeated create returns
	// AlreadyExists, which counts as success. After a claim of the pool is gone they get another one, so that no name is
	// used twice.
	Name    string
	Pool    string
	PoolUID string
	// PoolGeneration is the generation of the pool that the requirements were computed from, see Stamp; 0 if unknown.
	PoolGeneration int64
	// Requirements are in API form and include the type list (cheapest first) and the capacity types.
	Requirements []label.Requirement
	// Labels are custom labels that the pool leaves open, with the selected value.
	Labels map[string]string
	// Requests are the sum for all pods and for the daemons that will run on the node. Each of the types satisfies
	// them.
	Requests []quantity.Amount
	// Options are the types that can hold the pods, cheapest first; at most MaxTypes.
	Options []Option
	Pods    []*model.Pod
	// Refs are the pods of a claim that was stored with a command. Pods is nil then.
	Refs []model.PodRef
	// MinValuesRelaxed reports that the types have fewer values of some label than the pool's minValues requires, and
	// that the policy allows it.
	MinValuesRelaxed bool
	// Reservation is the ReservationID of the offerings that the plan counts on, of a reservation or a commitment, "" for
	// none. It is not stored with a command.
	Reservation string
}

// Option is an instance type of a claim with its cheapest offering.
type Option struct {
	Type         string
	Zone         string
	CapacityType string
	// Price in nano-USD per hour.
	Price int64
}

// FutureSpec returns the input for the node that the claim becomes, see model.Snapshot.Future.
func (c *NewClaim) FutureSpec(snap *model.Snapshot) model.NodeSpec {
	spec := model.NodeSpec{Name: c.Name, Claim: c.Name, ClaimUID: c.Name, Pool: c.Pool, Stage: model.Launching, Created: snap.Now,
		Labels: c.Labels, Requirements: c.Requirements}
	if pool := snap.Pool(c.Pool); pool != nil {
		spec.Taints = pool.Taints
	}
	return spec
}

// Stamp records on each claim the generation of its pool in the snapshot of the plan. Taints, labels and the drift hash
// are taken from the pool when the claim is created, and must belong to the same generation.
func (p *Provision) Stamp(snap *model.Snapshot) {
	StampClaims(snap, p.Claims)
	if p.Virtual != nil {
		StampClaims(snap, p.Virtual.Claims)
	}
}

// StampClaims is like Stamp, for claims that belong to no plan yet.
func StampClaims(snap *model.Snapshot, claims []NewClaim) {
	for i := range claims {
		if pool := snap.Pool(claims[i].Pool); pool != nil {
			claims[i].PoolGeneration = pool.Generation
		}
	}
}

// OfGeneration reports whether the claim was planned for that generation of its pool. An unknown generation matches.
func (c *NewClaim) OfGeneration(generation int64) bool {
	return c.PoolGeneration == 0 || generation == 0 || c.PoolGeneration == generation
}

// Types returns the names of the types that the claim may use, cheapest first. It is nil for a claim made from the
// template alone, which may use any type. For a claim that was stored with a command, the list comes from the
// requirements, because its options are unknown.
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

// PodRefs returns references to the pods that the claim is launched for.
func (c *NewClaim) PodRefs() []model.PodRef {
	if c.Pods == nil {
		return c.Refs
	}
	refs := make([]model.PodRef, len(c.Pods))
	for i, p := range c.Pods {
		refs[i] = p.Ref()
	}
	return refs
}

// PodCounts returns for how many pods the claim is, and for how many virtual ones. A claim has pods of one kind.
func (c *NewClaim) PodCounts() (pods, virtual int) {
	all := len(c.Pods) + len(c.Refs)
	if len(c.Pods) > 0 && c.Pods[0].Virtual != "" {
		return 0, all
	}
	return all, 0
}

// Price returns the price of the cheapest option, in nano-USD per hour.
func (c *NewClaim) Price() int64 {
	if len(c.Options) == 0 {
		return 0
	}
	return c.Options[0].Price
}

// ClaimName derives the name of a claim from the pool and the pods it is launched for. Names for which taken returns
// true are skipped: they belong to another claim, for example one that is being deleted. The result has at most 63
// characters, and is a DNS label when the pool's name is one.
func ClaimName(pool *model.PoolSpec, pods []*model.Pod, taken func(string) bool) string {
	uids := make([]string, len(pods))
	length := len(pool.UID) + len(pool.ClaimSeries) + 16
	for i, p := range pods {
		uids[i] = p.UID
		length += len(p.UID) + 1
	}
	slices.Sort(uids)
	identity := append(append(make([]byte, 0, length), pool.UID...), '\n')
	for i, uid := range uids {
		if i > 0 {
			identity = append(identity, '\n')
		}
		identity = append(identity, uid...)
	}
	return claimName(pool, identity, taken)
}

// lowercase is base32 with the characters that object names permit.
var lowercase = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567")

// claimName derives a name from the identity, the series of the pool and the number of the attempt.
func claimName(pool *model.PoolSpec, identity []byte, taken func(string) bool) string {
	if pool.ClaimSeries != "" {
		identity = append(append(identity, '\n'), pool.ClaimSeries...)
	}
	identity = append(identity, '\n')
	for attempt := 0; ; attempt++ {
		sum := sha256.Sum256(strconv.AppendInt(identity, int64(attempt), 10))
		var hash [16]byte
		lowercase.Encode(hash[:], sum[:10])
		name := cut(pool.Name, 52) + "-" + string(hash[:10])
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
