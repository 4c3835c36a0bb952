package v1

import (
	"testing"

	"github.com/awslabs/operatorpkg/status"
)

// Ready says why, not only which conditions it waits for, and follows what these say.
func TestReadySaysWhy(t *testing.T) {
	pool := &NodePool{}
	conditions := pool.StatusConditions()
	conditions.SetTrue(ConditionValidationSucceeded)
	conditions.SetFalse(ConditionNodeClassReady, "NodeClassNotFound", "there is no node class default")
	for _, c := range []struct{ message, want string }{
		{"there is no node class default", "NodeClassReady=False: there is no node class default"},
		{"node class default is being deleted", "NodeClassReady=False: node class default is being deleted"},
		{"", "NodeClassReady=False: NodeClassNotFound"},
	} {
		conditions.SetFalse(ConditionNodeClassReady, "NodeClassNotFound", c.message)
		if got := conditions.Root(); got.Message != c.want || got.Type != status.ConditionReady || !got.IsFalse() {
			t.Errorf("Ready is %+v, want the message %q", got, c.want)
		}
	}
	pool.Generation = 2
	conditions.SetFalse(ConditionNodeClassReady, "NodeClassNotFound", "a")
	if got, want := conditions.Root().Message, "NodeClassReady=False: a; ValidationSucceeded=True: not checked for the current generation"; got != want {
		t.Errorf("after a change of the pool %q, want %q", got, want)
	}
	conditions.SetTrue(ConditionValidationSucceeded)
	conditions.SetTrue(ConditionNodeClassReady)
	if got := conditions.Root(); !got.IsTrue() || got.Message != "" {
		t.Errorf("Ready is %+v, want True without a message", got)
	}
}
