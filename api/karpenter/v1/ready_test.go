package v1

import (
	"reflect"
	"testing"

	"github.com/awslabs/operatorpkg/status"
)

// The message of Ready includes the messages of the conditions that it depends on, and follows their changes.
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

// Objects of a cache are read concurrently. Reading a condition must not modify the object, even if conditions
// are missing.
func TestConditionChangesNothing(t *testing.T) {
	claim := &NodeClaim{}
	claim.StatusConditions().SetTrue(ConditionLaunched)
	claim.Status.Conditions = claim.Status.Conditions[:1]
	before := claim.DeepCopy()
	for _, conditionType := range []string{ConditionLaunched, ConditionRegistered, status.ConditionReady} {
		if c, want := claim.Condition(conditionType), before.DeepCopy().StatusConditions().Get(conditionType); !reflect.DeepEqual(c, want) {
			t.Errorf("%s is %+v, want %+v", conditionType, c, want)
		}
	}
	if claim.Condition(ConditionDrifted) != nil {
		t.Error("Drifted exists, want nil: nothing sets it")
	}
	if !reflect.DeepEqual(claim, before) {
		t.Errorf("after reading, conditions are %+v, want %+v", claim.Status.Conditions, before.Status.Conditions)
	}
}
