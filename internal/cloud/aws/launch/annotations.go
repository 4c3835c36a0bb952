package launch

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Annotations is a RecordStore that stores records in AnnotationFleetLaunch.
type Annotations struct {
	// Client reads claims, possibly from a cache, and writes them.
	Client client.Client
	// Live reads claims from the API server, never from a cache.
	Live client.Reader
}

// Read implements RecordStore. It reads from the API server, because a record that a cache does not show yet may
// already have launched machines.
func (a *Annotations) Read(ctx context.Context, claim *karpv1.NodeClaim) (Record, error) {
	now, err := a.live(ctx, claim)
	if err != nil {
		return Record{}, err
	}
	return RecordOf(now)
}

// Replace implements RecordStore.
func (a *Annotations) Replace(ctx context.Context, claim *karpv1.NodeClaim, before, after Record) error {
	now, err := a.live(ctx, claim)
	if err != nil {
		return err
	}
	if found, err := RecordOf(now); err != nil {
		return err
	} else if found.Token() != before.Token() || found.Requests != before.Requests {
		return fmt.Errorf("recording a launch on NodeClaim %q: %w (%s)", claim.Name, ErrChanged, found.Token())
	}
	text, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("writing an rec: %w", err)
	}
	changed := now.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[AnnotationFleetLaunch] = string(text)
	err = a.Client.Patch(ctx, changed, client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: %w", ErrNoRecord, err)
	}
	if err != nil {
		return fmt.Errorf("recording a launch on NodeClaim %q: %w", claim.Name, err)
	}
	return nil
}

// live returns the claim from the API server. A claim with the same name and another UID is another claim.
func (a *Annotations) live(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	now := &karpv1.NodeClaim{}
	err := a.Live.Get(ctx, client.ObjectKeyFromObject(claim), now)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: %w", ErrNoRecord, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading NodeClaim %q: %w", claim.Name, err)
	}
	if now.UID != claim.UID {
		return nil, fmt.Errorf("reading NodeClaim %q: %w: %w: its UID is %s, not %s", claim.Name, ErrChanged, ErrNoRecord, now.UID, claim.UID)
	}
	return now, nil
}

// Records implements RecordStore. It reads from the API server, like Read. Invalid records are skipped; they block
// only their own claims.
func (a *Annotations) Records(ctx context.Context) (map[string]Record, error) {
	var claims karpv1.NodeClaimList
	if err := a.Live.List(ctx, &claims); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	records := map[string]Record{}
	for i := range claims.Items {
		if e, err := RecordOf(&claims.Items[i]); err == nil && e != (Record{}) {
			records[claims.Items[i].Name] = e
		}
	}
	return records, nil
}
