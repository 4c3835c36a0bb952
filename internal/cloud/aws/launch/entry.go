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

// AnnotationPurchase, on a claim, describes the fleet launch that the claim is part of: an Entry as JSON. It is written
// before CreateFleet is called. On the coordinator it also holds the CreateFleet requests for an hour, so that every
// process sends the same ones.
const AnnotationPurchase = karpv1.OwnAnnotationPrefix + "purchase"

// Tags of instances. TagPurchase is the token of the fleet launch that the instance came from. TagPlaces has the places
// that the request is for, if not all (see places).
const (
	TagPurchase = "karpenter-go.github.io/purchase"
	TagPlaces   = "karpenter-go.github.io/purchase-places"
)

// Entry describes a claim's part in a fleet launch. The zero Entry means none.
type Entry struct {
	// Batch is a unique ID. Attempt counts the fleet launches of the batch, from 1.
	Batch   string `json:"batch"`
	Attempt int    `json:"attempt"`
	// Size is the number of requested instances. Place is the claim's index among the members, sorted by name, from 0.
	Size  int `json:"size"`
	Place int `json:"place"`
	// At is when the entry was written.
	At time.Time `json:"at"`
	// Made describes what the machine is made from. The class may have changed when the claim is launched again.
	Made Origin `json:"made,omitzero"`
	// Was holds the tokens of the fleet launches that the claim was part of before, newest first, separated by spaces.
	// It is empty if there are none.
	Was string `json:"was,omitempty"`
	// Lead is the coordinator: the claim that stores the requests of the fleet launch. Entries of earlier versions have
	// none.
	Lead Lead `json:"lead,omitzero"`
	// Requests, on the coordinator, are those that may have been sent with the token (see requests.text).
	Requests string `json:"requests,omitempty"`
}

// Lead is the coordinator: the claim in the first place of a fleet launch.
type Lead struct {
	Claim string    `json:"claim"`
	UID   types.UID `json:"uid"`
	// Was is the token that the claim had on record when the fleet launch began.
	Was string `json:"was,omitempty"`
}

// object returns a claim with the fields that a Recorder needs.
func (l Lead) object() *karpv1.NodeClaim {
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

// Token returns the client token of the fleet launch, which is also the value of TagPurchase. It has at most 64
// characters and is empty for the zero Entry.
func (e Entry) Token() string {
	if e.Batch == "" {
		return ""
	}
	return e.Batch + "-" + strconv.Itoa(e.Attempt)
}

// mostPast is the number of earlier tokens that are kept per claim. A claim that takes part in more fleet launches is
// deleted soon anyway.
const mostPast = 20

const unknownPast = "?"

// past returns the value of Was for the entry after this one.
func (e Entry) past() string {
	if e.Batch == "" {
		return ""
	}
	past := append([]string{e.Token()}, strings.Fields(e.Was)...)
	if len(past) > mostPast {
		past = append(past[:mostPast], unknownPast)
	} else if e.Lead == (Lead{}) { // written by an earlier version
		past = append(past, unknownPast)
	}
	return strings.Join(past, " ")
}

// never reports whether the claim certainly was not part of the fleet launch with the given token, and will not be: its
// record went from the token was (empty for none) to other tokens.
func (e Entry) never(token, was string) bool {
	past := strings.Fields(e.Was)
	if e.Lead == (Lead{}) || e.Token() == was || e.Token() == token || slices.Contains(past, token) {
		return false
	}
	if was == "" {
		return !slices.Contains(past, unknownPast)
	}
	return slices.Contains(past, was)
}

func (e Entry) check() error {
	switch {
	case e.Batch == "":
		return errors.New("batch is missing")
	case e.Attempt < 1:
		return fmt.Errorf("attempt is %d, want 1 or more", e.Attempt)
	case e.Place < 0 || e.Place >= e.Size:
		return fmt.Errorf("place is %d of %d, want 0 or more and less than the size", e.Place, e.Size)
	}
	return nil
}

// EntryOf parses AnnotationPurchase. It returns the zero Entry if the claim has none.
func EntryOf(claim *karpv1.NodeClaim) (Entry, error) {
	text := claim.Annotations[AnnotationPurchase]
	if text == "" {
		return Entry{}, nil
	}
	var e Entry
	err := json.Unmarshal([]byte(text), &e)
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return Entry{}, fmt.Errorf("%w: reading annotation %s of NodeClaim %q: %w; if no instance is tagged %s with its batch, remove it",
			ErrNoRecord, AnnotationPurchase, claim.Name, err, TagPurchase)
	}
	return e, nil
}

// ErrChanged is returned by a Recorder if a claim has another entry than expected: another process launches for it.
var ErrChanged = errors.New("another launch has begun for the claim")

// ErrNoRecord is returned by a Recorder if a claim cannot store an entry: the claim is gone, it may not be changed, or
// its entry is invalid.
var ErrNoRecord = errors.New("the claim cannot store the record of a launch")

// Recorder stores entries with the claims, so that they survive the process. Annotations is one implementation.
type Recorder interface {
	// Recorded returns the claim's entry, or the zero Entry if there is none. Errors: ErrNoRecord, and temporary ones.
	Recorded(ctx context.Context, claim *karpv1.NodeClaim) (Entry, error)
	// Record replaces the entry before by after, and returns when the change is durable. If the claim has an entry
	// other than before, nothing is written and the error is ErrChanged. Other errors: ErrNoRecord, and temporary ones.
	Record(ctx context.Context, claim *karpv1.NodeClaim, before, after Entry) error
	// Entries returns the current entries of all claims that have one, by claim name. It must not read from a cache.
	Entries(ctx context.Context) (map[string]Entry, error)
}
