package settings

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole returns a ConfigMap with every key that it could have.
func whole() map[string]string {
	return map[string]string{
		"batchMaxDuration": "20s", "batchIdleDuration": "2s", "featureGates.driftEnabled": "false",
		"aws.clusterName": "blue", "aws.clusterEndpoint": "https://example.org", "aws.clusterCABundle": "Q0E=",
		"aws.defaultInstanceProfile": "nodes", "aws.enablePodENI": "true", "aws.enableENILimitedPodDensity": "false",
		"aws.isolatedVPC": "true", "aws.nodeNameConvention": "ip-name", "aws.vmMemoryOverheadPercent": "0.05",
		"aws.interruptionQueueName": "queue", "aws.enableInterruptionHandling": "true", "aws.tags": `{"team":"a"}`,
		"aws.tags.cost": "b", "aws.assumeRoleARN": "", "aws.assumeRoleDuration": "15m", "aws.reservedENIs": "1", "aws.regoin": "x",
	}
}

func TestConfigMap(t *testing.T) {
	old := FromConfigMap(whole())
	want := Old{
		Settings: []Setting{
			{"batch-idle-duration", "2s", "batchIdleDuration"},
			{"batch-max-duration", "20s", "batchMaxDuration"},
			{"cluster-ca-bundle", "Q0E=", "aws.clusterCABundle"},
			{"cluster-endpoint", "https://example.org", "aws.clusterEndpoint"},
			{"cluster-name", "blue", "aws.clusterName"},
			{"default-instance-profile", "nodes", "aws.defaultInstanceProfile"},
			{"interruption-queue", "queue", "aws.interruptionQueueName"},
			{"isolated-vpc", "true", "aws.isolatedVPC"},
			{"reserved-enis", "1", "aws.reservedENIs"},
			{"vm-memory-overhead-percent", "0.05", "aws.vmMemoryOverheadPercent"},
		},
		Notes: []string{
			"aws.assumeRoleDuration has no counterpart: no role is assumed",
			"aws.clusterCABundle is renamed to CLUSTER_CA_BUNDLE (settings.clusterCABundle of the chart)",
			"aws.clusterEndpoint is renamed to CLUSTER_ENDPOINT (settings.clusterEndpoint of the chart)",
			"aws.clusterName is renamed to CLUSTER_NAME (settings.clusterName of the chart)",
			"aws.defaultInstanceProfile is renamed to DEFAULT_INSTANCE_PROFILE (settings.defaultInstanceProfile of the chart)",
			"aws.enableENILimitedPodDensity has no counterpart: each EC2NodeClass sets it: spec.kubelet.maxPods: 110",
			"aws.interruptionQueueName is renamed to INTERRUPTION_QUEUE (settings.interruptionQueue of the chart)",
			"aws.isolatedVPC is renamed to ISOLATED_VPC (settings.isolatedVPC of the chart)",
			"aws.nodeNameConvention has no counterpart: the image determines the name of the node",
			"aws.regoin is not known and ignored",
			"aws.reservedENIs is renamed to RESERVED_ENIS (settings.reservedENIs of the chart)",
			"aws.tags has no counterpart: each EC2NodeClass sets it: spec.tags",
			"aws.tags.cost has no counterpart: each EC2NodeClass sets it: spec.tags",
			"aws.vmMemoryOverheadPercent is renamed to VM_MEMORY_OVERHEAD_PERCENT (settings.vmMemoryOverheadPercent of the chart)",
			"batchIdleDuration is renamed to BATCH_IDLE_DURATION (settings.batchIdleDuration of the chart)",
			"batchMaxDuration is renamed to BATCH_MAX_DURATION (settings.batchMaxDuration of the chart)",
			`featureGates.driftEnabled has no counterpart: drift is always on; a budget of nodes "0" with reasons [Drifted] keeps a NodePool's nodes`,
		},
		Cluster: Cluster{Tags: map[string]string{"team": "a", "cost": "b"}, ManyPods: true},
		Unknown: []string{"aws.regoin"},
	}
	for i, note := range old.Notes {
		if old.Notes[i] = strings.TrimPrefix(note, "ConfigMap karpenter-global-settings: "); old.Notes[i] == note {
			t.Errorf("the note does not contain its source: %s", note)
		}
	}
	if diff := cmp.Diff(want, old); diff != "" {
		t.Error(diff)
	}
}

func TestEnvironment(t *testing.T) {
	given := map[string]string{
		"LEADER_ELECT": "false", "AWS_ISOLATED_VPC": "true", "VM_MEMORY_OVERHEAD": "0.1", "AWS_DEFAULT_INSTANCE_PROFILE": "nodes",
		"AWS_ENABLE_POD_ENI": "true", "AWS_ENI_LIMITED_POD_DENSITY": "true", "CLUSTER_NAME": "is today's name",
	}
	old := FromEnvironment(func(name string) string { return given[name] })
	want := Old{
		Settings: []Setting{
			{"default-instance-profile", "nodes", "AWS_DEFAULT_INSTANCE_PROFILE"},
			{"disable-leader-election", "true", "LEADER_ELECT"},
			{"isolated-vpc", "true", "AWS_ISOLATED_VPC"},
			{"vm-memory-overhead-percent", "0.1", "VM_MEMORY_OVERHEAD"},
		},
		Notes: []string{
			"environment variable AWS_DEFAULT_INSTANCE_PROFILE is renamed to DEFAULT_INSTANCE_PROFILE (settings.defaultInstanceProfile of the chart)",
			"environment variable AWS_ISOLATED_VPC is renamed to ISOLATED_VPC (settings.isolatedVPC of the chart)",
			"environment variable LEADER_ELECT is renamed to DISABLE_LEADER_ELECTION (settings.disableLeaderElection of the chart)",
			"environment variable VM_MEMORY_OVERHEAD is renamed to VM_MEMORY_OVERHEAD_PERCENT (settings.vmMemoryOverheadPercent of the chart)",
		},
	}
	if diff := cmp.Diff(want, old); diff != "" {
		t.Error(diff)
	}
}

// TestMalformed verifies that the mistake for a value that cannot be parsed contains its key, the value, the expected
// form, and the current flag. The other values are read.
func TestMalformed(t *testing.T) {
	for key, test := range map[string]struct {
		wrong, flag string
		idle        bool
	}{
		"batchMaxDuration": {"10", "batch-max-duration", false}, "batchIdleDuration": {"-1s", "batch-idle-duration", false},
		"aws.clusterEndpoint": {"10.0.0.1", "cluster-endpoint", false}, "aws.clusterCABundle": {"-----BEGIN", "cluster-ca-bundle", false},
		"aws.isolatedVPC": {"yes", "isolated-vpc", false}, "aws.vmMemoryOverheadPercent": {"7.5", "vm-memory-overhead-percent", false},
		"aws.reservedENIs": {"one", "reserved-enis", false}, "aws.tags": {"team=a", "", false}, "featureGates.driftEnabled": {"on", "", false},
		"aws.enableENILimitedPodDensity": {"0", "", false}, "aws.assumeRoleDuration": {"long", "", true}, "aws.enablePodENI": {"1", "", true},
	} {
		old := FromConfigMap(map[string]string{"aws.clusterName": "blue", key: test.wrong})
		want := []Mistake{{From: key, Flag: test.flag, Idle: test.idle, Problem: `is "` + test.wrong + `", want ` + ofConfigMap[key].read.want}}
		if diff := cmp.Diff(want, old.Mistakes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
		switch {
		case len(old.Settings) != 1:
			t.Errorf("%s: len(old.Settings) is %v, want 1, settings %v", key, len(old.Settings), old.Settings)
		case old.Settings[0].Flag != "cluster-name":
			t.Errorf(`%s: old.Settings[0].Flag is %v, want "cluster-name"`, key, old.Settings[0].Flag)
		case len(old.Cluster.Tags) > 0:
			t.Errorf("%s: len(old.Cluster.Tags) is %v, want 0, cluster %+v", key, len(old.Cluster.Tags), old.Cluster)
		case old.Cluster.Drift:
			t.Errorf("%s: old.Cluster.Drift is true, cluster %+v", key, old.Cluster)
		case old.Cluster.ManyPods:
			t.Errorf("%s: old.Cluster.ManyPods is true, cluster %+v", key, old.Cluster)
		}
	}
	old := FromEnvironment(func(name string) string { return map[string]string{"LEADER_ELECT": "no"}[name] })
	switch {
	case len(old.Mistakes) != 1:
		t.Errorf("LEADER_ELECT: len(old.Mistakes) is %v, want 1, %+v", len(old.Mistakes), old.Mistakes)
	case old.Mistakes[0].Error() != `LEADER_ELECT is "no", want true or false`:
		t.Errorf("LEADER_ELECT: old.Mistakes[0].Error() is %v, want `LEADER_ELECT is \"no\", want true or false`", old.Mistakes[0].Error())
	case old.Mistakes[0].Flag != "disable-leader-election":
		t.Errorf(`LEADER_ELECT: old.Mistakes[0].Flag is %v, want "disable-leader-election"`, old.Mistakes[0].Flag)
	}
}

// TestAllMistakes verifies that all mistakes are found at once, by name, and unknown names too.
func TestAllMistakes(t *testing.T) {
	old := FromConfigMap(map[string]string{"batchMaxDuration": "tenseconds", "aws.reservedENIs": "-1",
		"aws.tags": "{not json", "nonsense": "5", "more": "", "aws.isolatedVPC": "true"})
	var from []string
	for _, mistake := range old.Mistakes {
		from = append(from, mistake.From)
	}
	if diff := cmp.Diff([]string{"aws.reservedENIs", "aws.tags", "batchMaxDuration"}, from); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"nonsense"}, old.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

// TestEveryKeySaysSomething verifies that no given value is dropped without a note, except values that equal the
// current behavior.
func TestEveryKeySaysSomething(t *testing.T) {
	for key, row := range ofConfigMap {
		if (row.flag == "") == (row.advice == "") {
			t.Errorf("%s: flag %q, advice %q; want one of them", key, row.flag, row.advice)
		}
	}
	quiet := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(ofConfigMap)) {
		quiet[key] = ofConfigMap[key].quiet
	}
	if old := FromConfigMap(quiet); len(old.Notes)+len(old.Settings)+len(old.Mistakes) > 0 {
		t.Errorf("values of the current behavior: %+v", old)
	}
}
