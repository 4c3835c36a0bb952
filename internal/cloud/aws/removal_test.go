package aws

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
)

// A claim whose status checks fail stays, with its deadline, while the brake holds it. Interruptions are not asked about.
func TestAskBeforeRemoval(t *testing.T) {
	w := newWorld(t, "m5.large")
	var told, causes []string
	p := w.provider(t, func(o *Options) {
		o.Observer.Event = func(_ client.Object, e interruption.Event) { told = append(told, e.Reason) }
	})
	may := false
	p.AskBeforeRemoval(func(_ context.Context, r cloud.Removal) (bool, error) {
		causes = append(causes, r.Claim.Name+" "+r.Cause)
		return may, nil
	})
	claim := w.launched(t, p, "ill")
	claim.Finalizers = []string{karpv1.FinalizerTermination}
	check(t, w.api.Update(t.Context(), claim))
	id, _ := instanceOf(claim.Status.ProviderID)
	found, err := p.claimsOf(t.Context(), []string{id})
	check(t, err)
	d := interruption.Decide(interruption.Notice{Kind: interruption.InstanceStatus, Instances: []string{id}}, id, found[id], interruption.Rules{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)})
	if err := p.act(t.Context(), d); !errors.Is(err, interruption.ErrHeld) {
		t.Errorf("acting on a claim that is held: %v, want that it is held", err)
	}
	check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if claim.DeletionTimestamp != nil || claim.Annotations[karpv1.AnnotationTerminationTimestamp] != "" {
		t.Errorf("deleted %v, deadline %q while it is held", claim.DeletionTimestamp, claim.Annotations[karpv1.AnnotationTerminationTimestamp])
	}
	if diff := cmp.Diff([]string{"InstanceUnhealthy"}, told); diff != "" {
		t.Errorf("events of a claim that is held:\n%s", diff)
	}
	may = true
	check(t, p.act(t.Context(), d))
	check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if claim.DeletionTimestamp == nil {
		t.Error("the claim stays though it may go")
	}
	spot := w.launched(t, p, "taken")
	id, _ = instanceOf(spot.Status.ProviderID)
	found, err = p.claimsOf(t.Context(), []string{id})
	check(t, err)
	may = false
	check(t, p.act(t.Context(), interruption.Decision{Claim: found[id], Instance: id, Kind: interruption.SpotInterrupted, Replace: true}))
	if diff := cmp.Diff([]string{"ill instance_status", "ill instance_status"}, causes); diff != "" {
		t.Errorf("asked about:\n%s", diff)
	}
}
