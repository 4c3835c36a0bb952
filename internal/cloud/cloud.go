// Package cloud says what a provider of machines must do. It is written for the person who adds a provider: plain
// strings and integers, standard errors, nothing of the engine's bit sets.
//
//	     nodeclaim controller            cluster.Store (refresh)
//	Launch | Terminate | Machines            | Catalogue
//	       v                                 v
//	  +---------------- Provider ----------------+
//	  |  kwok (simulated)      aws (EC2)         |
//	  +------------------------------------------+
//
// The contract that matters most: a Launch that is asked again for the same claim, also after a lost answer or a
// crash of ours at any line, ends with one machine. Terminate is repeated until it answers ErrNotFound.
//
// A provider declares its labels as data (Declared); it changes no package variable of anybody. What it can do beyond
// the Provider interface (drift detection, interruption notices, repair policies, registration hooks) it implements as
// further interfaces, found by type assertion when the binary is wired.
//
// The package must not know the engine, the store or any controller. Provider packages import this package and the
// API types, nothing else of ours.
package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Provider buys and returns machines. Every method that takes a context does I/O, honours its deadline and may be
// called from several goroutines.
type Provider interface {
	// Name is the short lower-case name used in metrics, logs and --cloud-provider.
	Name() string
	// NodeClasses are empty objects of the kinds the provider owns; the first is the one used when none is named.
	// Pools and claims that refer to another group and kind are not ours.
	NodeClasses() []client.Object
	// Declared is what the provider adds to the vocabulary of labels.
	Declared() Declared
	// Ready reports whether machines can be bought with the class: nil, or an error that says why not (a
	// *NodeClassNotReadyError, or ErrNotFound when the class does not exist).
	Ready(ctx context.Context, class ClassRef) error
	// Catalogue lists all types the pool could ever buy, also those without an available offering, in a
	// deterministic order.
	Catalogue(ctx context.Context, pool *karpv1.NodePool) ([]InstanceType, error)
	// Launch buys a machine for the claim: the cheapest available offering of the types, zones and capacity types
	// that the claim's requirements allow. It is idempotent per claim UID. Errors: *InsufficientCapacityError,
	// *NodeClassNotReadyError, *CreateError, or anything else (retried).
	Launch(ctx context.Context, claim *karpv1.NodeClaim) (*Machine, error)
	// Terminate starts or continues the end of the machine: nil while it goes on, ErrNotFound when it is gone.
	Terminate(ctx context.Context, providerID string) error
	// Machine returns one machine, or ErrNotFound.
	Machine(ctx context.Context, providerID string) (*Machine, error)
	// Machines lists every machine that this cluster owns, terminating ones included.
	Machines(ctx context.Context) ([]Machine, error)
}

// ClassRef names a node class.
type ClassRef struct {
	Group string
	Kind  string
	Name  string
}

// Declared is a provider's addition to the well-known labels, as data.
type Declared struct {
	// WellKnown are label keys that a pool need not mention: unconstrained unless it does.
	WellKnown []string
	// Restricted are label domains that users may not set on pools or ask for on pods, save for keys in WellKnown.
	Restricted []string
	// Aliases maps an old label key to the one that replaced it.
	Aliases map[string]string
	// ValueAliases maps, per canonical key, an old value to the one that replaced it.
	ValueAliases map[string]map[string]string
	// ReservationKey is the label of a capacity reservation's id; empty when the provider has none.
	ReservationKey string
	// UnsupportedTopology are label keys that the allowedTopologies of a storage class may not use here, because no node
	// of the provider carries them; UnsupportedProvisioners are provisioners of storage classes whose volumes no node of
	// the provider can use. Pods that need either are refused with the reason.
	UnsupportedTopology     []string
	UnsupportedProvisioners []string
}

// With is what two providers of one cluster declare together. What one of them supports is supported.
func (d Declared) With(other Declared) Declared {
	together := Declared{
		WellKnown: union(d.WellKnown, other.WellKnown), Restricted: union(d.Restricted, other.Restricted),
		Aliases: maps.Clone(other.Aliases), ValueAliases: map[string]map[string]string{}, ReservationKey: cmp.Or(d.ReservationKey, other.ReservationKey),
		UnsupportedTopology:     common(d.UnsupportedTopology, other.UnsupportedTopology),
		UnsupportedProvisioners: common(d.UnsupportedProvisioners, other.UnsupportedProvisioners),
	}
	if together.Aliases == nil {
		together.Aliases = map[string]string{}
	}
	maps.Copy(together.Aliases, d.Aliases)
	for _, values := range []map[string]map[string]string{other.ValueAliases, d.ValueAliases} {
		for key, aliases := range values {
			if together.ValueAliases[key] == nil {
				together.ValueAliases[key] = map[string]string{}
			}
			maps.Copy(together.ValueAliases[key], aliases)
		}
	}
	return together
}

// union is what is in either list, in order, once.
func union(a, b []string) []string {
	var list []string
	for _, s := range slices.Concat(a, b) {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// common is what is in both lists.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// Requirement is a label requirement of an instance type or an offering.
type Requirement struct {
	Key string
	// Operator is one of In, NotIn, Exists, DoesNotExist.
	Operator string
	Values   []string
}

// InstanceType is a size that one can buy.
type InstanceType struct {
	// Name equals the label node.kubernetes.io/instance-type.
	Name string
	// Requirements are the labels that a node of the type will carry (In, usually one value) and those it will not
	// carry (DoesNotExist). A well-known label that is not listed is left unconstrained.
	Requirements []Requirement
	// Capacity and Overhead by resource name: cpu in millicores, memory, ephemeral-storage and hugepages-* in bytes,
	// pods and extended resources in units. Allocatable is Capacity - Overhead, memory further reduced by every
	// hugepages-* amount, never below zero (core specification 9.3).
	Capacity map[string]int64
	Overhead map[string]int64
	// Offerings are unique by zone, capacity type and reservation.
	Offerings []Offering
	// AttachLimits is how many volumes of a CSI driver a node of this type can hold, by driver name.
	AttachLimits map[string]int
	// Special types (GPU, accelerators, metal) are bought only for a pod that asks or a pool that names them.
	Special bool
}

// Offering is one zone, capacity type and price of a type.
type Offering struct {
	Zone string
	// CapacityType is on-demand, spot or reserved.
	CapacityType string
	// Price in USD per hour.
	Price float64
	// Available is false while the cloud is known to have none left.
	Available bool
	// ReservationID and ReservationCount describe a reserved offering; empty and 0 otherwise.
	ReservationID    string
	ReservationCount int
	// Requirements are labels beyond zone, capacity type and reservation that hold for this offering only.
	Requirements []Requirement
}

// Machine is what the cloud runs.
type Machine struct {
	// ProviderID equals the node's spec.providerID.
	ProviderID string
	// Claim is the name of the claim it was bought for, empty if the cloud does not say.
	Claim string
	// Claimants are the names of all claims that it may turn out to be of, of a provider that notes on claims what it is
	// about to buy for them: as long as one of them has no machine, this one is in use. A provider that does not, or a
	// machine that was bought without such a note, has none.
	Claimants []string
	// Noted says that it was bought with such a note, so that nobody but the Claimants can come to show it.
	Noted bool
	// Labels that the node carries: type, zone, capacity type and the provider's own.
	Labels      map[string]string
	Annotations map[string]string
	ImageID     string
	// Capacity and Allocatable as in InstanceType.
	Capacity    map[string]int64
	Allocatable map[string]int64
	Created     time.Time
	// Terminating is true once the end has begun.
	Terminating bool
}

// RepairPolicy says for how long a node condition is tolerated before the node is replaced.
type RepairPolicy struct {
	ConditionType   string
	ConditionStatus string
	Toleration      time.Duration
}

// Repairer is implemented by providers that know which node conditions call for a replacement.
type Repairer interface {
	RepairPolicies() []RepairPolicy
}

// DriftDetector is implemented by providers that can tell that a machine is not what they would buy for its pool today.
// The pool is the claim's; it may name another class than the claim does by now, and whether that makes a difference is
// the provider's to say; a pool whose class is of another kind is not asked about. The reason is a CamelCase word, empty
// when there is no drift. An error says that nobody can tell, ErrUnstamped that nobody can yet. Without a detector a claim
// has drifted when its pool names another class.
type DriftDetector interface {
	Drifted(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (reason string, err error)
}

// ErrUnstamped means that a claim's drift hash was made another way than today's (by an earlier version, say), and has not
// been written again yet.
var ErrUnstamped = errors.New("its hash has yet to be stamped again")

// Removal is the deletion of a claim that a provider wants because of what its cloud says about the machine.
type Removal struct {
	Claim *karpv1.NodeClaim
	// Cause is a CamelCase word for logs and events, such as InstanceStatus.
	Cause string
}

// Remover is implemented by providers that delete claims because of what their cloud says about machines. The provider
// calls ask before such deletions, and before it writes the ends of the claims' drains, with all that its cloud says at the same
// time, the most urgent first; an answer that is false means that the machine stays for now, and that the provider asks again
// when the cloud says it again. With an error the answers stand, and are false where nothing was decided. Notices with a
// deadline that the cloud sets, such as the interruption of a spot instance, are exempt: a drain that waits would be no drain.
type Remover interface {
	AskBeforeRemoval(ask func(ctx context.Context, removals []Removal) ([]bool, error))
}

// ErrNotFound means that the machine, or the class, does not exist (any more).
var ErrNotFound = errors.New("not found")

// InsufficientCapacityError means that no allowed offering is to be had now. The claim is deleted and its pods are
// planned again.
type InsufficientCapacityError struct {
	Message string
}

func (e *InsufficientCapacityError) Error() string {
	return "insufficient capacity: " + e.Message
}

// NodeClassNotReadyError means that the node class cannot be used now.
type NodeClassNotReadyError struct {
	Class  ClassRef
	Reason string
	// Message is shown to users on the pool.
	Message string
}

func (e *NodeClassNotReadyError) Error() string {
	return fmt.Sprintf("%s %q is not ready: %s", e.Class.Kind, e.Class.Name, e.Message)
}

// CreateError is a launch failure with a reason (CamelCase) and a message for the claim's Launched condition. It is
// retried.
type CreateError struct {
	Reason  string
	Message string
	Err     error
}

func (e *CreateError) Error() string {
	return fmt.Sprintf("%s: %s", e.Reason, e.Message)
}

func (e *CreateError) Unwrap() error { return e.Err }

// TerminateError is a termination that failed, with a reason (CamelCase) for the claim's InstanceTerminating condition. It is
// retried.
type TerminateError struct {
	Reason string
	Err    error
}

func (e *TerminateError) Error() string { return e.Err.Error() }

func (e *TerminateError) Unwrap() error { return e.Err }
