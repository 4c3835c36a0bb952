package viewer

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestGrant checks that the command names the user of a refusal.
func TestGrant(t *testing.T) {
	refused := func(user string) error {
		return fmt.Errorf("listing: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "",
			errors.New(`User "`+user+`" cannot list resource "pods" in API group "" at the cluster scope`)))
	}
	const grant = "the ClusterRole karpenter-view of the chart allows it: kubectl create clusterrolebinding NAME --clusterrole=karpenter-view "
	for _, c := range []struct {
		err              error
		subject, command string
	}{
		{refused("ann"), `user "ann"`, grant + "--user=ann"},
		{refused("system:serviceaccount:shop:viewer"), `user "system:serviceaccount:shop:viewer"`, grant + "--serviceaccount=shop:viewer"},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")), "the user", grant + "--user=NAME"},
	} {
		user, denied := Denied(c.err)
		if !denied {
			t.Errorf("%v is not a refusal", c.err)
		}
		if got := Subject(user); got != c.subject {
			t.Errorf("subject %q, want %q", got, c.subject)
		}
		if got := Grant(user); got != c.command {
			t.Errorf("command %q, want %q", got, c.command)
		}
	}
	if _, denied := Denied(errors.New("connection refused")); denied {
		t.Error("another error counts as a refusal")
	}
}
