package convert

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

func TestBackoffs(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)
	drifted, expired := model.Backoff{Reason: "Drifted", Failures: 3, At: at}, model.Backoff{Reason: "Expired", Failures: 1, At: at}
	text := WithBackoff(WithBackoff("", "Expired", &expired), "Drifted", &drifted)
	if diff := cmp.Diff([]model.Backoff{drifted, expired}, Backoffs(text)); diff != "" {
		t.Errorf("read from %s (-want +got):\n%s", text, diff)
	}
	if text = WithBackoff(WithBackoff(text, "Drifted", nil), "Expired", nil); text != "" {
		t.Errorf("with both removed: %q, want nothing", text)
	}
	for _, text := range []string{"", "yes", "[]", `{"Drifted": 3}`, `{"Drifted": {"failures": -1, "at": "2026-05-01T12:00:00Z"}}`, `{"Drifted": {"failures": 2}}`} {
		if got := Backoffs(text); got != nil {
			t.Errorf("%s is read as %v, want nothing", text, got)
		}
	}
	if got := Backoffs(`{"Drifted": {"failures": 99999999, "at": "2026-05-01T12:00:00Z"}}`); len(got) != 1 || got[0].Failures != mostFailures {
		t.Errorf("got %v", got)
	}
}
