package execute_test

import (
	"fmt"
	"testing"

	"github.com/karpenter-go/karpenter/internal/execute"
)

func TestCauses(t *testing.T) {
	var c execute.Causes
	c.Note("a", "")
	c.Note("a", "first")
	c.Note("a", "second")
	if got := c.Of("a"); got != "second" {
		t.Errorf("the cause is %q, want the last", got)
	}
	c.Note("a", "")
	if got := c.Of("a") + c.Of("unknown"); got != "" {
		t.Errorf("the cause is %q, want none", got)
	}
	for i := range 2000 {
		c.Note(fmt.Sprint("n", i), "full")
	}
	if c.Of("n0") != "" || c.Of("n1999") != "full" {
		t.Error("the claims that were dropped are not the oldest")
	}
}
