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

// AnnotationPurchase, on a claim, is the purchase that it is part of: an Entry as JSON. It is written before EC2 is asked. On
// the first of the claims it holds for an hour what EC2 is asked for as well, so that whoever goes on asks for the same.
const AnnotationPurchase = karpv1.OwnAnnotationPrefix + "purchase"

// Tags of instances: TagPurchase is the token of the purchase that one came from. TagPlaces are the places that were
// bought for, if not all; see places.
const (
	TagPurchase = "karpenter-go.github.io/purchase"
	TagPlaces   = "karpenter-go.github.io/purchase-places"
)

// Entry is a claim's part in a purchase. The zero Entry is none.
type Entry struct {
	// Batch is an id that nobody else uses. Attempt counts the purchases of the batch, from 1.
	Batch   string `json:"batch"`
	Attempt int    `json:"attempt"`
	// Size is how many instances are asked for, Place the claim's among the members, sorted by name, from 0.
	Size  int `json:"size"`
	Place int `json:"place"`
	// At is when it was written.
	At time.Time `json:"at"`
	// Made is what the machine is made from. The class may be another when the claim is launched again.
	Made Origin `json:"made,omitzero"`
	// Was is the token of the purchase that the claim was part of before, empty for none.
	Was string `json:"was,omitempty"`
	// Lead is the claim that keeps the requests of the purchase. Entries of earlier versions name none.
	Lead Lead `json:"lead,omitzero"`
	// Requests, on the lead, are those that may have been sent under the token; see requests.text.
	Requests string `json:"requests,omitempty"`
}

// Lead is the claim in the first place of a purchase.
type Lead struct {
	Claim string    `json:"claim"`
	UID   types.UID `json:"uid"`
	// Was is the token that it had on record when the purchase was begun.
	Was string `json:"was,omitempty"`
}

// object is as much of the claim as a Recorder needs.
func (l Lead) object() *karpv1.NodeClaim {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: l.Claim, UID: l.UID}}
}

// Origin is the class that a machine was made from, as far as drift and the profiles in use are told by it.
type Origin struct {
	// Hash is awsv1.EC2NodeClass.Hash, HashVersion its awsv1.HashVersion.
	Hash        string `json:"hash"`
	HashVersion string `json:"hashVersion"`
	// Profile is the name of the instance profile.
	Profile string `json:"profile"`
}

// origin of a machine that is bought for the order.
func (o *Order) origin() Origin {
	return Origin{Hash: o.Class.Hash(), HashVersion: awsv1.HashVersion, Profile: o.Class.Status.InstanceProfile}
}

// Token is the client token of the purchase, and the value of TagPurchase. At most 64 characters; empty for the zero Entry.
func (e Entry) Token() string {
	if e.Batch == "" {
		return ""
	}
	return e.Batch + "-" + strconv.Itoa(e.Attempt)
}

// mostPast is how many tokens are kept of a claim's past. One that takes part in more purchases is soon gone.
const mostPast = 20

const unknownPast = "?"

// past is what the entry after this one has as Was.
func (e Entry) past() string {
	if e.Batch == "" {
		return ""
	}
	past := append([]string{e.Token()}, strings.Fields(e.Was)...)
	if len(past) > mostPast {
		past = append(past[:mostPast], unknownPast)
	} else if e.Lead == (Lead{}) { // an earlier version wrote it
		past = append(past, unknownPast)
	}
	return strings.Join(past, " ")
}

// never says that the claim was not part of the purchase with the token and will not be: it went from was, empty for none, to
// others.
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

// EntryOf reads AnnotationPurchase; the zero Entry if the claim has none.
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
		return Entry{}, fmt.Errorf("%w: reading annotation %s of NodeClaim %q: %w; if no instance is tagged %s with its batch, remove it", ErrNoRecord, AnnotationPurchase, claim.Name, err, TagPurchase)
	}
	return e, nil
}

// ErrChanged is what a Recorder says when a claim has another entry than expected: somebody else buys for it.
var ErrChanged = errors.New("another purchase has begun for the claim")

// ErrNoRecord is what a Recorder says of a claim that can keep no entry: it is gone, or may not be changed, or nobody can read
// what it has.
var ErrNoRecord = errors.New("the claim can keep no record of a purchase")

// Recorder keeps entries with the claims, where they outlive this process. Annotations is one.
type Recorder interface {
	// Recorded is the claim's entry, the zero Entry without one. Errors: ErrNoRecord, and those that pass.
	Recorded(ctx context.Context, claim *karpv1.NodeClaim) (Entry, error)
	// Record replaces the entry before by after, durably before it returns. If the claim has another one than before,
	// nothing is written and the error is ErrChanged. Other errors: ErrNoRecord, and those that pass.
	Record(ctx context.Context, claim *karpv1.NodeClaim, before, after Entry) error
	// Entries are those of all claims that have one, by name of the claim, as they are now: no cache may answer.
	Entries(ctx context.Context) (map[string]Entry, error)
}
