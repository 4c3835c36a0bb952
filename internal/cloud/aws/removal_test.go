package aws

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
)

// unread is a client that cannot read the claim of the given name.
type unread struct {
	client.Client
	name string
}

func (u unread) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if key.Name == u.name {
		return errors.New("the API server is away")
	}
	return u.Client.Get(ctx, key, o, options...)
}

// A claim that cannot be read is not removed, and does not prevent the decision about other claims.
func TestQueryWithoutOneClaim(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	var failing []interruption.Decision
	var ids []string
	for _, name := range []string{"a", "b"} {
		id, _ := instanceOf(w.launched(t, p, name).Status.ProviderID)
		found, err := p.claimsOf(t.Context(), []string{id})
		check(t, err)
		failing, ids = append(failing, interruption.Decision{Claim: found[id], Instance: id, Kind: interruption.SystemStatus}), append(ids, id)
	}
	p.opts.Client = unread{p.opts.Client, "a"}
	p.AskBeforeRemoval(func(_ context.Context, removals []cloud.Removal) ([]bool, error) { return []bool{true}, nil })
	may, err := p.mayReplace(t.Context(), failing)
	if diff := cmp.Diff(map[string]bool{ids[1]: true}, may); diff != "" || err == nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// Claims whose status checks fail are passed to ask together. A result is valid even beside an error. A claim that is
// gone, or replaced by another of the same name, is not passed.
func TestQueryBeforeRemoval(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	var failing []interruption.Decision
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		id, _ := instanceOf(w.launched(t, p, name).Status.ProviderID)
		found, err := p.claimsOf(t.Context(), []string{id})
		check(t, err)
		n := interruption.Notice{Kind: interruption.InstanceStatus, Instances: []string{id}}
		failing, ids = append(failing, interruption.Decide(n, id, found[id],
			interruption.Rules{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)})), append(ids, id)
	}
	may, err := p.mayReplace(t.Context(), failing)
	check(t, err)
	if diff := cmp.Diff(map[string]bool{ids[0]: true, ids[1]: true, ids[2]: true}, may); diff != "" {
		t.Errorf("without a limit (-want +got):\n%s", diff)
	}
	var asked [][]string
	p.AskBeforeRemoval(func(_ context.Context, removals []cloud.Removal) ([]bool, error) {
		var names []string
		for _, r := range removals {
			names = append(names, r.Claim.Name+" "+r.Cause)
		}
		asked = append(asked, names)
		return []bool{false, true}, errors.New("one of them cannot be decided")
	})
	failing[2].Claim.UID = "another"
	may, err = p.mayReplace(t.Context(), failing)
	if diff := cmp.Diff(map[string]bool{ids[0]: false, ids[1]: true}, may); diff != "" || err == nil {
		t.Errorf("with a limit, error %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([][]string{{"a instance_status", "b instance_status"}}, asked); diff != "" {
		t.Errorf("passed to ask (-want +got):\n%s", diff)
	}
}
