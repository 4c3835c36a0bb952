// Package cloud defines the contract that a cloud provider implements. It uses plain strings, integers and standard
// errors, and no types of the engine, so that a provider can be written without knowledge of the engine.
//
//	     nodeclaim controller            cluster.Store (refresh)
//	Launch | Terminate | Machines            | Catalog
//	       v                                 v
//	  +---------------- Provider ----------------+
//	  |  kwok (simulated)      aws (EC2)         |
//	  +------------------------------------------+
//
// The most important rule: repeated calls of Launch for the same claim result in one machine, also after a lost
// response or a crash of the controller at any point. Terminate is repeated until it returns ErrNotFound.
//
// A provider declares its labels as data (Declared) and changes no package variable of another package. Capabilities
// beyond the Provider interface (drift detection, interruption notices, repair policies, registration hooks) are
// further interfaces, found by type assertion when the binary is wired.
//
// The package must not depend on the engine, the store or any controller. Provider packages import this package and the
// API types, and nothing else of this module.
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

// Provider launches and terminates machines. Every method that takes a context does I/O, honors the context's deadline,
// and is safe for concurrent use.
type Provider interface {
	// Name returns the short lower-case name that is used in metrics, logs and --cloud-provider.
	Name() string
	// NodeClasses returns empty objects of the node class kinds that the provider owns. The first is the default when a
	// reference names no kind. The controller ignores pools and claims that refer to another group and kind.
	NodeClasses() []client.Object
	// Declared returns the labels that the provider adds to the well-known ones.
	Declared() Declared
	// Ready reports whether machines can be launched with the node class. It returns nil, or an error with the reason:
	// a *NodeClassNotReadyError, or ErrNotFound if the class does not exist.
	Ready(ctx context.Context, class ClassRef) error
	// Catalog returns all instance types that the pool can ever launch, including those without an available
	// offering, in a deterministic order. If the node class excludes them all, it returns a *NoTypesError.
	Catalog(ctx context.Context, pool *karpv1.NodePool) ([]InstanceType, error)
	// Launch launches a machine for the claim: the cheapest available offering of the types, zones and capacity types
	// that the claim's requirements allow. It is idempotent per claim UID. Errors: *InsufficientCapacityError,
	// *NodeClassNotReadyError (also if the class does not exist), *CreateError, or any other error (retried).
	Launch(ctx context.Context, claim *karpv1.NodeClaim) (*Machine, error)
	// Terminate starts or continues the termination of the machine. It returns nil while the termination is in progress
	// and ErrNotFound when the machine is gone.
	Terminate(ctx context.Context, providerID string) error
	// Machine returns one machine, or ErrNotFound.
	Machine(ctx context.Context, providerID string) (*Machine, error)
	// Machines returns every machine that this cluster owns, including terminating ones.
	Machines(ctx context.Context) ([]Machine, error)
}

// ClassRef refers to a node class.
type ClassRef struct {
	Group string
	Kind  string
	Name  string
}

// Declared holds the labels that a provider adds to the well-known ones, as data.
type Declared struct {
	// WellKnown lists label keys that a NodePool does not have to define: they are unconstrained unless it does.
	WellKnown []string
	// Restricted lists label domains that users may not set on NodePools or select in pods, except for the keys in
	// WellKnown.
	Restricted []string
	// Aliases maps a deprecated label key to its replacement.
	Aliases map[string]string
	// ValueAliases maps, per canonical key, a deprecated value to its replacement.
	ValueAliases map[string]map[string]string
	// ReservationKey is the label key for the ID of a capacity reservation. It is empty if the provider has none.
	ReservationKey string
	// UnsupportedTopology lists label keys that the allowedTopologies of a StorageClass cannot use with this provider,
	// because none of its nodes has them. UnsupportedProvisioners lists StorageClass provisioners whose volumes no node
	// of the provider can use. Pods that need either are unschedulable, and their verdict has the reason.
	UnsupportedTopology     []string
	UnsupportedProvisioners []string
}

// With merges the declarations of two providers of one cluster. Topology keys and provisioners stay unsupported only if
// neither provider supports them.
func (d Declared) With(other Declared) Declared {
	together := Declared{
		WellKnown: union(d.WellKnown, other.WellKnown), Restricted: union(d.Restricted, other.Restricted),
		Aliases: maps.Clone(other.Aliases), ValueAliases: map[string]map[string]string{},
		ReservationKey:          cmp.Or(d.ReservationKey, other.ReservationKey),
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

// union returns the strings that are in either list, without duplicates, in order.
func union(a, b []string) []string {
	var list []string
	for _, s := range slices.Concat(a, b) {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// common returns the strings that are in both lists.
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

// InstanceType is a machine size that can be launched.
type InstanceType struct {
	// Name equals the label node.kubernetes.io/instance-type.
	Name string
	// Requirements are the labels that a node of the type has (In, usually with one value) and those that it does not
	// have (DoesNotExist). node.kubernetes.io/instance-type is among them, with the name. A well-known label that is not
	// listed is unconstrained.
	Requirements []Requirement
	// Capacity and Overhead by resource name: cpu in millicores; memory, ephemeral-storage and hugepages-* in bytes;
	// pods and extended resources in units. Allocatable is Capacity - Overhead, with memory further reduced by every
	// hugepages-* amount, and never below zero.
	Capacity map[string]int64
	Overhead map[string]int64
	// Offerings are unique by zone, capacity type, reservation and further requirements.
	Offerings []Offering
	// AttachLimits is the maximum number of volumes per CSI driver that a node of this type can attach, by driver name.
	AttachLimits map[string]int
	// Special types (GPU, accelerators, metal) are launched only for a pod that requests them or a NodePool that names
	// them.
	Special bool
}

// Offering is a combination of zone, capacity type and price of a type.
type Offering struct {
	Zone string
	// CapacityType is on-demand, spot or reserved.
	CapacityType string
	// Price is in USD per hour.
	Price float64
	// Available is false while the cloud is known to have no capacity.
	Available bool
	// Unpriced is true if the price is unknown. Such an offering is not available, until a NodeOverlay gives its price;
	// Price is 0, or an upper bound.
	Unpriced bool `json:",omitzero"`
	// RefusedAt is when the cloud last had no capacity, and RetryAt until when that is assumed to hold; zero if unknown.
	RefusedAt time.Time `json:",omitzero"`
	RetryAt   time.Time `json:",omitzero"`
	// Interruptions is because of how many interruptions in a row the offering is avoided until RetryAt, 0 if it is not.
	Interruptions int `json:",omitzero"`
	// ZoneShifted means that the zone is being avoided as a whole: the offering is not available, and the machines of
	// the zone are not removed voluntarily. All offerings in a zone have the same value.
	ZoneShifted bool `json:",omitzero"`
	// ReservationID and ReservationCount describe a reserved offering. They are empty and 0 otherwise.
	ReservationID    string
	ReservationCount int
	// ReservationEnd is when the reservation ends, zero for never. It is not available from then on.
	ReservationEnd time.Time `json:",omitzero"`
	// Requirements are labels beyond zone, capacity type and reservation that apply to this offering only.
	Requirements []Requirement
	// Commitments are lower prices that a part of the fleet has. Providers leave them empty: they are of the user's price
	// rules.
	Commitments []Commitment `json:",omitzero"`
}

// Commitment is the price of an offering up to an amount that is committed to the cloud.
type Commitment struct {
	// Name is that of the rule, and Rank its place: machines use the commitment of the lowest rank first.
	Name string
	Rank int
	// Price is in USD per hour.
	Price float64
	// VCPUs or USD is the limit, in vCPUs or in USD per hour at the price of the commitment times Scale; the other is 0.
	VCPUs float64 `json:",omitzero"`
	USD   float64 `json:",omitzero"`
	// Scale is by how much Price is smaller than the price at which USD is used up; 0 means 1.
	Scale int `json:",omitzero"`
}

// Machine is a machine that the cloud runs.
type Machine struct {
	// ProviderID equals the node's spec.providerID.
	ProviderID string
	// Claim is the name of the claim that the machine was launched for. It is empty if the cloud does not report one.
	Claim string
	// Claimants are the names of all claims that the machine may turn out to belong to. It is used by providers that
	// record a launch on its claims before the request is sent. As long as one of these claims has no machine, this
	// machine is in use. It is empty for other providers and for machines that were launched without such a record.
	Claimants []string
	// Noted reports that the machine was launched with such a record, so that no claim other than the Claimants can
	// have it.
	Noted bool
	// Labels are the labels of the node: type, zone, capacity type and the provider's own.
	Labels      map[string]string
	Annotations map[string]string
	ImageID     string
	// Capacity and Allocatable are in the units of InstanceType.
	Capacity    map[string]int64
	Allocatable map[string]int64
	Created     time.Time
	// Terminating is true once the termination has started.
	Terminating bool
}

// RepairPolicy says how long a node condition is tolerated before the node is replaced.
type RepairPolicy struct {
	ConditionType   string
	ConditionStatus string
	Toleration      time.Duration
}

// Repairer is implemented by providers that know which node conditions require a replacement.
type Repairer interface {
	RepairPolicies() []RepairPolicy
}

// DriftDetector is implemented by providers that can detect that a machine differs from what they would launch for its
// NodePool today. The pool is the claim's. It may name another node class than the claim does by now, and the provider
// decides whether that is a drift. Drifted is not called for a pool whose class is of another kind. The reason is a
// CamelCase word, empty if the claim has not drifted. An error means that drift cannot be determined, and ErrUnstamped
// that it cannot be determined yet. Without a detector, a claim has drifted when its pool names another class.
type DriftDetector interface {
	Drifted(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (reason string, err error)
}

// Registrar is implemented by providers whose machines may get labels after their launch, such as a partition that the
// cloud chooses. Registering is called before the node of a claim accepts pods, and returns the labels to add to the
// claim and the node. As long as it returns an error, the node does not accept pods, until the claim has exceeded the
// time limit for registration. It is not called while the claim has no machine.
type Registrar interface {
	Registering(ctx context.Context, claim *karpv1.NodeClaim) (labels map[string]string, err error)
}

// ErrUnstamped means that a claim's drift hash was computed by another method than today's (for example by an earlier
// version) and has not been updated yet.
var ErrUnstamped = errors.New("its hash is not updated yet")

// Removal is the deletion of a claim that a provider requests because of the state of its machine in the cloud.
type Removal struct {
	Claim *karpv1.NodeClaim
	// Cause is a CamelCase word for logs and events, such as InstanceStatus.
	Cause string
}

// Remover is implemented by providers that delete claims because of the state of machines in the cloud. The provider
// calls ask before such deletions, and before it writes the deadline of the claims' drains. It passes all removals that
// its cloud reports at the same time, the most urgent first. A result of false means that the machine stays for now,
// and that the provider calls ask again when the cloud reports the machine again. If ask returns an error, the results
// are still valid; they are false where no decision was made. Notices with a deadline that the cloud sets, such as the
// interruption of a spot instance, are exempt, because delaying such a drain would defeat it.
type Remover interface {
	AskBeforeRemoval(ask func(ctx context.Context, removals []Removal) ([]bool, error))
}

// Overlaid is implemented by providers whose launches choose among instance types themselves. A claim is planned with
// the prices and the capacity that NodeOverlays give to a pool's types; its launch must use the same. The provider
// passes the types that it lists for a claim of the pool through the function. SetOverlay is called at most once, before
// the first launch. The function does not modify its argument.
type Overlaid interface {
	SetOverlay(overlay func(pool string, types []InstanceType) []InstanceType)
}

// ErrNotFound means that the machine or the node class does not exist, or no longer exists.
var ErrNotFound = errors.New("not found")

// InsufficientCapacityError means that no allowed offering is available now. The claim is deleted and its pods are
// planned again.
type InsufficientCapacityError struct {
	// Message says what was not available. It is not empty.
	Message string
}

func (e *InsufficientCapacityError) Error() string {
	return "insufficient capacity: " + e.Message
}

// NodeClassNotReadyError means that the node class cannot be used now.
type NodeClassNotReadyError struct {
	Class  ClassRef
	Reason string
	// Message is shown to users on the NodePool. It is not empty.
	Message string
}

func (e *NodeClassNotReadyError) Error() string {
	return fmt.Sprintf("%s %q is not ready: %s", e.Class.Kind, e.Class.Name, e.Message)
}

// NoTypesError means that no instance type is left by a node class that is ready.
type NoTypesError struct {
	Class ClassRef
	// Message names what excludes the types. It is shown to users, and not empty.
	Message string
}

func (e *NoTypesError) Error() string {
	return fmt.Sprintf("%s %q excludes every instance type: %s", e.Class.Kind, e.Class.Name, e.Message)
}

// CreateError is a launch failure with a reason (CamelCase) and a message for the claim's Launched condition. The
// launch is retried.
type CreateError struct {
	Reason  string
	Message string
	Err     error
}

func (e *CreateError) Error() string {
	return fmt.Sprintf("%s: %s", e.Reason, e.Message)
}

func (e *CreateError) Unwrap() error { return e.Err }

// ReasonZoneShifted is the reason of a TerminateError for a machine in a zone that is avoided (Offering.ZoneShifted). The
// machine is terminated when that ends.
const ReasonZoneShifted = "ZoneShifted"

// TerminateError is a failed termination with a reason (CamelCase) for the claim's InstanceTerminating condition. The
// termination is retried.
type TerminateError struct {
	Reason string
	Err    error
}

func (e *TerminateError) Error() string { return e.Err.Error() }

func (e *TerminateError) Unwrap() error { return e.Err }
