package controller_test

import (
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

var _ flag.Value = &controller.Timers{}

// parse returns the timers of a production controller with the changes in text.
func parse(text string) (controller.Timers, error) {
	t := controller.Production()
	err := t.Set(text)
	return t, err
}

func TestParse(t *testing.T) {
	got, err := parse("drain-min=1s, launch=500ms,")
	if err != nil {
		t.Fatal(err)
	}
	want := controller.Production()
	want.DrainMin, want.Launch = time.Second, 500*time.Millisecond
	if got != want {
		t.Errorf("got %s, want %s", got.String(), want.String())
	}
	for text, part := range map[string]string{
		"drain-min":           "name=duration",
		"drain-min=fast":      `"fast" is not a positive duration`,
		"drain-min=0s":        `"0s" is not a positive duration`,
		"drain-min=1s,nap=1s": "drain-min, notice, drain-reserve, pod-stuck", // the known names
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Parse(%q): error %v, want one with %q", text, err, part)
		}
	}
}

// TestTimersAreAllNamed verifies that every field has a production value and a unique name, and that Set reads what
// String prints.
func TestTimersAreAllNamed(t *testing.T) {
	production := controller.Production()
	v := reflect.ValueOf(production)
	for i := range v.NumField() {
		if v.Field(i).Int() <= 0 {
			t.Errorf("%s has no production value", v.Type().Field(i).Name)
		}
	}
	if names := strings.Count(production.String(), "="); names != v.NumField() {
		t.Errorf("%d names for %d fields", names, v.NumField())
	}
	var back controller.Timers
	if err := back.Set(production.String()); err != nil || back != production {
		t.Errorf("read back %s (%v), want %s", back.String(), err, production.String())
	}
}

// TestTimesOfTheEngine verifies that the two durations that the engine defines, for use without a controller, equal
// the controller's.
func TestTimesOfTheEngine(t *testing.T) {
	timers := controller.Production()
	if timers.CordonQuiet != guard.CordonQuiet || timers.CommandTimeout != plan.CommandTimeout {
		t.Errorf("%s and %s, want %s and %s", timers.CordonQuiet, timers.CommandTimeout, guard.CordonQuiet, plan.CommandTimeout)
	}
}
