package demo

import (
	"encoding/json"
	"testing"
)

// TestWhatIsAhead checks that the story ends only when no step, no command in progress and no temporary reason is left.
func TestWhatIsAhead(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{`{"steps": [{"reason": "Empty"}], "underWay": 1}`, "1 step to start"},
		{`{"steps": [], "underWay": 2}`, "started steps are in progress"},
		{`{"kept": [{"node": "a", "reasons": [{"code": "NoSaving"}, {"code": "NodeTooYoung"}]}]}`, "1 node temporarily kept"},
		{`{"kept": [{"node": "a", "reasons": [{"code": "NoSaving"}]}]}`, noStepLeft},
	} {
		var answer disruptAnswer
		if err := json.Unmarshal([]byte(c.answer), &answer); err != nil {
			t.Fatal(err)
		}
		if got := answer.ahead(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.answer, got, c.want)
		}
	}
}
