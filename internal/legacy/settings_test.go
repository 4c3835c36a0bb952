package legacy

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/legacy/settings"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// TestSettingsOfOlderObjects checks that what both sources of old settings say is known where older objects are
// converted, and that the first source of tags is used.
func TestSettingsOfOlderObjects(t *testing.T) {
	before := NewSettings(pflag.NewFlagSet("controller", pflag.ContinueOnError))
	environment := map[string]string{"AWS_ENI_LIMITED_POD_DENSITY": "false"}
	if err := before.ReadEnvironment(func(name string) string { return environment[name] }); err != nil {
		t.Fatal(err)
	}
	for _, data := range []map[string]string{
		{"aws.tags": `{"team":"a"}`}, {"aws.tags": `{"team":"b"}`, "featureGates.driftEnabled": "true"},
	} {
		if err := before.read(settings.FromConfigMap(data), "a ConfigMap", "delete it"); err != nil {
			t.Fatal(err)
		}
	}
	minor := func(context.Context) int { return 34 }
	v := &Versions{Config: Config{Before: before, ClusterName: "blue", InstanceProfile: "nodes", Minor: minor}}
	want := v1alpha5.Settings{ClusterName: "blue", DefaultInstanceProfile: "nodes", KubernetesMinor: 34, MaxPods: 110, Drift: true,
		Tags: map[string]string{"team": "a"}}
	if diff := cmp.Diff(want, v.settings(t.Context())); diff != "" {
		t.Error(diff)
	}
}
