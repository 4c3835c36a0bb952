package model

import (
	"cmp"
	"slices"
	"strings"
)

// Source is what makes a Reservation known. The sources are in order of precedence: if a pod has reservations on
// several nodes, the one with the lowest source is used. docs/reservations.md has the life of a reservation.
type Source uint8

// The sources of reservations. A nomination is recorded on the pod (Pod.Nominated) and has no Reservation.
const (
	// FromLastPlan: the last plan placed the pod on the node. Only memory has it.
	FromLastPlan Source = iota
	// FromNomination: the pod is nominated to the node.
	FromNomination
	// FromLaunch: the claim was created for the pod, and its node is not initialized yet.
	FromLaunch
	// FromCommand: a command in progress moves the pod to the node.
	FromCommand
	// FromPredecessor: the pod has the controller of a pod that is gone, and takes its place.
	FromPredecessor
)

// Reservation is capacity that a node has for a pod. Every plan places pods with a reservation first, where they have
// it, so that planning again gives the same result.
type Reservation struct {
	Pod    PodRef
	Source Source
}

// PodRef identifies a pod that a plan placed. A pod that still runs on a node being removed has a successor with
// another UID, and a virtual pod of a workload is followed by the pod that the workload creates. Then Controller is the
// UID of the controller, by which the successor is found.
type PodRef struct{ UID, Controller string }

// Ref returns the PodRef of the pod.
func (p *Pod) Ref() PodRef {
	if p.Node != "" || p.Virtual == VirtualReplica {
		return PodRef{UID: p.UID, Controller: p.Controller.UID}
	}
	return PodRef{UID: p.UID}
}

// ParsePodRef parses the text of a PodRef, as stored in annotations.
func ParsePodRef(text string) PodRef {
	uid, controller, _ := strings.Cut(text, "/")
	return PodRef{UID: uid, Controller: controller}
}

// ParsePodRefs parses a list as JoinPodRefs returns it. The result is nil for none.
func ParsePodRefs(list string) []PodRef {
	texts := strings.Fields(list)
	if len(texts) == 0 {
		return nil
	}
	refs := make([]PodRef, len(texts))
	for i, text := range texts {
		refs[i] = ParsePodRef(text)
	}
	return refs
}

// String returns the text of the PodRef: the UID and, if there is a controller, a slash and its UID.
func (r PodRef) String() string {
	if r.Controller == "" {
		return r.UID
	}
	return r.UID + "/" + r.Controller
}

// MarshalText implements encoding.TextMarshaler.
func (r PodRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *PodRef) UnmarshalText(text []byte) error {
	*r = ParsePodRef(string(text))
	return nil
}

// JoinPodRefs returns the texts of the references, separated by spaces, as stored in annotations.
func JoinPodRefs(refs []PodRef) string {
	texts := make([]string, len(refs))
	for i, r := range refs {
		texts[i] = r.String()
	}
	return strings.Join(texts, " ")
}

// Names reports whether one of the references is to the pod with that UID.
func Names(refs []PodRef, uid string) bool {
	return slices.ContainsFunc(refs, func(r PodRef) bool { return r.UID == uid })
}

// Reservations are the result of reserve.Derive for one snapshot, see Snapshot.WithReservations.
type Reservations struct {
	// Nodes holds the reservations by name of the node, in the order in which the pods are placed: an earlier pod may
	// affect the admission of later ones. Nodes that are not listed keep those of their claims.
	Nodes map[string][]Reservation
	// Turns holds, by UID, the position of still pending pods in the order of binding of the last plan.
	Turns map[string]int
	// ClaimNames holds the names of those claims of the last plan that do not have their first name, by that first name
	// (plan.Provision.Renamed). The next plan keeps them, because they may have been created without a reply.
	ClaimNames map[string]string
}

// WithReservations returns the snapshot with the reservations. Unaffected parts are shared; the receiver is unchanged.
func (s *Snapshot) WithReservations(r Reservations) *Snapshot {
	if len(r.Nodes) == 0 && len(r.Turns) == 0 && len(r.ClaimNames) == 0 {
		return s
	}
	fresh := map[*Node]*Node{}
	for _, n := range s.Nodes {
		if list, derived := r.Nodes[n.Name]; derived {
			node := *n
			node.Reservations = list
			fresh[n] = &node
		}
	}
	what := s.replacing(fresh)
	what.Turns, what.ClaimNames = r.Turns, r.ClaimNames
	return what
}

// recorded returns the reservations that the claim of the node records, each pod once. The pods that the claim was
// created for have one until the node is initialized.
func recorded(n *NodeSpec) []Reservation {
	if n.Stage >= Initialized || len(n.LaunchedFor) == 0 {
		return nil
	}
	list := make([]Reservation, 0, len(n.LaunchedFor))
	known := make(map[string]bool, len(n.LaunchedFor))
	for _, ref := range n.LaunchedFor {
		if !known[ref.UID] {
			known[ref.UID] = true
			list = append(list, Reservation{Pod: ref, Source: FromLaunch})
		}
	}
	return list
}

// CompareLaunches orders nodes whose claims were created for one pod: the newest first. A second claim is launched
// because the pod did not fit on the node of the first. Creation timestamps have a resolution of one second; plans that
// launch for the same pod are at least a second apart.
func CompareLaunches(a, b *Node) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Claim, b.Claim))
}
