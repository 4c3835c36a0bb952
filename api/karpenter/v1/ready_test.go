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
		switch got := conditions.Root(); {
		case got.Message != c.want:
			t.Errorf("got.Message is %v, want %v", got.Message, c.want)
		case got.Type != status.ConditionReady:
			t.Errorf("got.Type is %v, want %v", got.Type, status.ConditionReady)
		case !got.IsFalse():
			t.Errorf("got.IsFalse() is false, Ready is %+v", got)
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
