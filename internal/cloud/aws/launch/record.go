package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// AnnotationFleetLaunch describes the fleet launch that a claim is part of: a Record as JSON. It is written before
// CreateFleet is called. On the coordinator it also holds the CreateFleet requests for an hour, so that every process
// sends the same ones.
const AnnotationFleetLaunch = karpv1.OwnAnnotationPrefix + "purchase"

// Tags of instances. TagFleetLaunch is the token of the fleet launch that the instance came from. TagIndexes has the
// indexes that the request is for, if not all (see indexSet).
const (
	TagFleetLaunch = "karpenter-go.github.io/purchase"
	TagIndexes     = "karpenter-go.github.io/purchase-places"
)

// Record describes a claim's part in a fleet launch. The zero Record means none.
type Record struct {
	// Batch is a unique ID. Attempt counts the fleet launches of the batch, from 1.
	Batch   string `json:"batch"`
	Attempt int    `json:"attempt"`
	// Size is the number of requested instances. Index is the claim's index among the members, sorted by name, from 0.
	Size  int `json:"size"`
	Index int `json:"place"`
	// RecordedAt is when the record was written.
	RecordedAt time.Time `json:"at"`
	// Origin describes what the machine is made from. The class may have changed when the claim is launched again.
	Origin Origin `json:"made,omitzero"`
	// PreviousTokens holds the tokens of the fleet launches that the claim was part of before, newest first, separated
	// by spaces. It is empty if there are none.
	PreviousTokens string `json:"was,omitempty"`
	// Coordinator is the coordinator: the claim that stores the requests of the fleet launch. Records of earlier
	// versions have none.
	Coordinator Coordinator `json:"lead,omitzero"`
	// Requests, on the coordinator, are those that may have been sent with the token (see requests.text).
	Requests string `json:"requests,omitempty"`
}

// Coordinator is the coordinator: the claim with index 0 of a fleet launch.
type Coordinator struct {
	Claim string    `json:"claim"`
	UID   types.UID `json:"uid"`
	// PreviousToken is the token that the claim had on record when the fleet launch began.
	PreviousToken string `json:"was,omitempty"`
}

// object returns a claim with the fields that a RecordStore needs.
func (l Coordinator) object() *karpv1.NodeClaim {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: l.Claim, UID: l.UID}}
}

// Origin describes the class that a machine was made from. It holds what drift detection and the tracking of used
// profiles need.
type Origin struct {
	// Hash is the value of awsv1.EC2NodeClass.Hash, and HashVersion its awsv1.HashVersion.
	Hash        string `json:"hash"`
	HashVersion string `json:"hashVersion"`
	// Profile is the name of the instance profile.
	Profile string `json:"profile"`
}

// origin returns the origin of a machine that is launched for the order.
func (o *Order) origin() Origin {
	return Origin{Hash: o.Class.Hash(), HashVersion: awsv1.HashVersion, Profile: o.Class.Status.InstanceProfile}
}

// Token returns the client token of the fleet launch, which is also the value of TagFleetLaunch. It has at most 64
// characters and is empty for the zero Record.
func (e Record) Token() string {
	if e.Batch == "" {
		return ""
	}
	return e.Batch + "-" + strconv.Itoa(e.Attempt)
}

// maxPreviousTokens is the number of earlier tokens that are kept per claim. A claim that takes part in more fleet
// launches is deleted soon anyway.
const maxPreviousTokens = 20

const unknownTokens = "?"

// previousTokens returns the value of PreviousTokens for the record after this one.
func (e Record) previousTokens() string {
	if e.Batch == "" {
		return ""
	}
	past := append([]string{e.Token()}, strings.Fields(e.PreviousTokens)...)
	if len(past) > maxPreviousTokens {
		past = append(past[:maxPreviousTokens], unknownTokens)
	} else if e.Coordinator == (Coordinator{}) { // written by an earlier version
		past = append(past, unknownTokens)
	}
	return strings.Join(past, " ")
}

// neverHad reports whether the claim certainly was not part of the fleet launch with the given token, and will not be:
// its record went from the token was (empty for none) to other tokens.
func (e Record) neverHad(token, was string) bool {
	past := strings.Fields(e.PreviousTokens)
	if e.Coordinator == (Coordinator{}) || e.Token() == was || e.Token() == token || slices.Contains(past, token) {
		return false
	}
	if was == "" {
		return !slices.Contains(past, unknownTokens)
	}
	return slices.Contains(past, was)
}

func (e Record) check() error {
	switch {
	case e.Batch == "":
		return errors.New("batch is missing")
	case e.Attempt < 1:
		return fmt.Errorf("attempt is %d, want 1 or more", e.Attempt)
	case e.Index < 0 || e.Index >= e.Size:
		return fmt.Errorf("place is %d of %d, want 0 or more and less than the size", e.Index, e.Size)
	}
	return nil
}

// RecordOf parses AnnotationFleetLaunch. It returns the zero Record if the claim has none.
func RecordOf(claim *karpv1.NodeClaim) (Record, error) {
	text := claim.Annotations[AnnotationFleetLaunch]
	if text == "" {
		return Record{}, nil
	}
	var e Record
	err := json.Unmarshal([]byte(text), &e)
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: reading annotation %s of NodeClaim %q: %w; if no instance is tagged %s with its batch, remove it",
			ErrNoRecord, AnnotationFleetLaunch, claim.Name, err, TagFleetLaunch)
	}
	return e, nil
}

// ErrChanged is returned by a RecordStore if a claim has another record than expected: another process launches for it.
var ErrChanged = errors.New("another launch has begun for the claim")

// ErrNoRecord is returned by a RecordStore if a claim cannot store a record: the claim is gone, it may not be changed,
// or its record is invalid.
var ErrNoRecord = errors.New("the claim cannot store the record of a launch")

// RecordStore stores records with the claims, so that they survive the process. Annotations is one implementation.
type RecordStore interface {
	// Read returns the claim's record, or the zero Record if there is none. Errors: ErrNoRecord, and temporary ones.
	Read(ctx context.Context, claim *karpv1.NodeClaim) (Record, error)
	// Replace replaces the record before by after, and returns when the change is durable. If the claim has a record
	// other than before, nothing is written and the error is ErrChanged. Other errors: ErrNoRecord, and temporary ones.
	Replace(ctx context.Context, claim *karpv1.NodeClaim, before, after Record) error
	// Records returns the current records of all claims that have one, by claim name. It must not read from a cache.
	Records(ctx context.Context) (map[string]Record, error)
}
