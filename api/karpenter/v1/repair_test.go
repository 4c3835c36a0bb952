package v1

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseRepairRules(t *testing.T) {
	const p = OwnAnnotationPrefix
	for name, c := range map[string]struct {
		annotations map[string]string
		want        RepairRules
		// wrong are the annotations that are reported.
		wrong []string
	}{
		"none":     {nil, RepairRules{Percent: 20, Count: -1}, nil},
		"off":      {map[string]string{p + "node-repair": "off"}, RepairRules{Off: true, Percent: 20, Count: -1}, nil},
		"on":       {map[string]string{p + "node-repair": "on"}, RepairRules{Percent: 20, Count: -1}, nil},
		"a share":  {map[string]string{p + "repair-threshold": "100%"}, RepairRules{Percent: 100, Count: -1}, nil},
		"a number": {map[string]string{p + "repair-threshold": "3"}, RepairRules{Percent: 20, Count: 3}, nil},
		"one by one": {map[string]string{p + "repair-at-once": "1", p + "repair-grace": "10m"},
			RepairRules{Percent: 20, Count: -1, AtOnce: 1, Grace: 10 * time.Minute}, nil},
		"conditions": {map[string]string{p + "repair-conditions": "KernelDeadlock=True:10m, NetworkUnavailable=True:never"},
			RepairRules{Percent: 20, Count: -1, Conditions: []RepairCondition{
				{"KernelDeadlock", "True", 10 * time.Minute, false}, {"NetworkUnavailable", "True", 0, true}}}, nil},
		"one wrong, one right": {map[string]string{p + "repair-threshold": "101%", p + "repair-grace": "1m"},
			RepairRules{Percent: 20, Count: -1, Grace: time.Minute},
			[]string{"repair-threshold"}},
		"all wrong": {map[string]string{p + "node-repair": "yes", p + "repair-threshold": "-1", p + "repair-at-once": "0",
			p + "repair-grace": "-1s", p + "repair-conditions": "Ready=False:10m,Ready=Perhaps:1m"}, RepairRules{Percent: 20, Count: -1},
			[]string{"node-repair", "repair-threshold", "repair-at-once", "repair-grace", "repair-conditions"}},
		"a condition without a duration": {map[string]string{p + "repair-conditions": "Ready=False"},
			RepairRules{Percent: 20, Count: -1}, []string{"repair-conditions"}},
		"a condition for too long": {map[string]string{p + "repair-conditions": "Ready=False:9000h"},
			RepairRules{Percent: 20, Count: -1}, []string{"8760h"}},
	} {
		got, errs := ParseRepairRules(c.annotations)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if len(errs) != len(c.wrong) {
			t.Errorf("%s: %v, want errors about %v", name, errs, c.wrong)
			continue
		}
		for i, wrong := range c.wrong {
			if text := errs[i].Error(); !strings.Contains(text, wrong) || !strings.Contains(text, "metadata.annotations[") {
				t.Errorf("%s: the error %q does not name %s", name, text, wrong)
			}
		}
	}
}

// TestMaxUnhealthy checks RP-1 and RP-2: in a pool of two, one node may be unhealthy; in a pool of three, two may be only
// with a threshold.
func TestMaxUnhealthy(t *testing.T) {
	for _, c := range []struct {
		threshold   string
		nodes, want int
	}{{"", 2, 1}, {"", 3, 1}, {"3", 3, 3}, {"0", 3, 0}, {"0%", 3, 0}, {"34%", 3, 2}, {"100%", 3, 3}} {
		annotations := map[string]string{}
		if c.threshold != "" {
			annotations[AnnotationRepairThreshold] = c.threshold
		}
		rules, errs := ParseRepairRules(annotations)
		if got := rules.MaxUnhealthy(c.nodes); got != c.want || errs != nil {
			t.Errorf("threshold %q of %d nodes: %d, %v; want %d", c.threshold, c.nodes, got, errs, c.want)
		}
	}
}
