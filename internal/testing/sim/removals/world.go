package removals

import (
	"errors"
	"time"

	"github.com/karpenter-go/karpenter/cloud"
)

// World is what the controllers read and change. Methods with the parameter live return the watched state if it is
// false.
type World interface {
	// Clock returns the time of the controller's clock, Ahead how much it is ahead of the API server's.
	Clock() time.Time
	Ahead() time.Duration

	Pools() []Pool
	Claims(live bool) []Claim
	Nodes(live bool) []Node
	// Renewed returns when the kubelet of a node last renewed its Lease, zero for never.
	Renewed(node string) time.Time

	// AnnotatePool and AnnotateClaim set annotations; nil removes one. They return ErrConflict if the claim has
	// another version.
	AnnotatePool(name string, annotations map[string]*string) error
	AnnotateClaim(c Claim, annotations map[string]*string) error
	DeleteClaim(c Claim) error

	// Machine, Machines and Terminate call the cloud.
	Machine(id string) (Machine, error)
	Machines() ([]Machine, error)
	Terminate(id string) error

	// Log receives a line of the controllers' log.
	Log(line string)
}

// Errors of a World.
var (
	// ErrNotFound is the cloud's error for a machine that it does not find.
	ErrNotFound = cloud.ErrNotFound
	// ErrConflict: the object has changed. ErrGone: it does not exist.
	ErrConflict = errors.New("the object has been modified")
	ErrGone     = errors.New("the object is gone")
)

// Pool is a NodePool.
type Pool struct {
	Name, UID   string
	Annotations map[string]string
}

// Claim is a NodeClaim.
type Claim struct {
	Name, UID, Pool   string
	Version           int
	Created, Deleting time.Time
	Provider, Node    string
	Registered        bool
	Annotations       map[string]string
}

// Node is a Node. Pool is empty for an unregistered node.
type Node struct {
	Name, UID, Provider, Pool string
	Version                   int
	Deleting                  time.Time
	// Ready is True, False or Unknown, Since the time of its last transition.
	Ready string
	Since time.Time
	// Ill is since when it has the condition that requires repair, zero for never.
	Ill time.Time
}

// Machine is a machine in the cloud's reply.
type Machine struct {
	ID, Claim string
	Created   time.Time
	Ending    bool
}
