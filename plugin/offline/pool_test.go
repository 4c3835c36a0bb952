package offline

import (
	"strings"
	"testing"
)

// TestStaticPoolShort: a pool with a fixed number of nodes says why missing ones are not launched.
func TestStaticPoolShort(t *testing.T) {
	const static = "spec:\n  replicas: 3\n  disruption"
	for name, tt := range map[string]struct{ old, new, want string }{
		"no offering": {"values: [on-demand]}]", "values: [on-demand]}, {key: node.kubernetes.io/instance-type, operator: In, values: " +
			"[none]}]", "3 missing nodes cannot be launched: "},
		"a limit":          {"spec:\n  replicas", "spec:\n  limits: {nodes: \"1\"}\n  replicas", "2 missing nodes cannot be launched: "},
		"nothing is short": {"", "", "0 nodes of 3 replicas\n"},
	} {
		text := strings.Replace(strings.Replace(lightFleet, "spec:\n  disruption", static, 1), tt.old, tt.new, 1)
		o := overviewOf(t, text)
		policy := DefaultPolicy()
		policy.FeatureGates = "StaticCapacity=true"
		outcome, err := o.w.ExplainPool(&policy, "default")
		if err != nil {
			t.Fatal(err)
		}
		got := outcome.Text()
		if !strings.Contains(got, tt.want) || strings.Contains(got, "cannot be launched: \n") {
			t.Errorf("%s: no %q in\n%s", name, tt.want, got)
		}
		if short := strings.Contains(got, "cannot be launched"); short != (tt.old != "") {
			t.Errorf("%s: short %v in\n%s", name, short, got)
		}
	}
}
