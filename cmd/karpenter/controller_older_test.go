package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// wantOption reports an option that has another value than the wanted one.
func wantOption[T comparable](t *testing.T, option string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", option, got, want)
	}
}

// wantOneLine reports an output that is not one line with the wanted text.
func wantOneLine(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: got %q, want %q in it", what, got, want)
	}
	if lines := strings.Count(got, "\n"); lines != 1 {
		t.Errorf("%s: %d lines, want 1: %q", what, lines, got)
	}
}

// optionsOf returns the options of a command line and an environment, before settings are read from the cluster.
func optionsOf(t *testing.T, environment map[string]string, arguments ...string) (*controllerOptions, error) {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	o := newControllerOptions()
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return o, o.read(flags)
}

// globalSettings returns the connection to an API server that has the ConfigMap of old settings in kube-system, or
// responds with the status code.
func globalSettings(t *testing.T, data map[string]string, code int32) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: data}
		if r.URL.Path != "/api/v1/namespaces/kube-system/configmaps/karpenter-global-settings" {
			code = http.StatusNotFound
		}
		if code != http.StatusOK {
			reasons := map[int32]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden}
			answer = &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reasons[code]}
		}
		w.WriteHeader(int(code))
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}}
}

func TestOlderEnvironment(t *testing.T) {
	o, err := optionsOf(t, map[string]string{
		"LEADER_ELECT": "false", "AWS_ISOLATED_VPC": "true", "VM_MEMORY_OVERHEAD": "0.2", "AWS_DEFAULT_INSTANCE_PROFILE": "nodes",
		"CLUSTER_NAME": "blue", "VM_MEMORY_OVERHEAD_PERCENT": "0.05",
	})
	if err != nil {
		t.Fatal(err)
	}
	wantOption(t, "leader election off", o.noElection, true)
	wantOption(t, "isolated VPC", o.aws.isolatedVPC, true)
	wantOption(t, "memory overhead", o.aws.memoryOverhead, 0.05)
	wantOption(t, "instance profile", o.aws.instanceProfile, "nodes")
	notes := o.older.Notes()
	for _, want := range []string{
		"environment variable LEADER_ELECT is renamed to DISABLE_LEADER_ELECTION (settings.disableLeaderElection of the chart)",
		"VM_MEMORY_OVERHEAD is ignored because VM_MEMORY_OVERHEAD_PERCENT has another value",
	} {
		if !slices.Contains(notes, want) {
			t.Errorf("no note %q in %q", want, notes)
		}
	}
	if again := o.older.Notes(); len(again) > 0 {
		t.Errorf("reported twice: %q", again)
	}
}

// TestOlderConfigMap checks that the ConfigMap is used where neither a flag nor a variable sets anything but the
// default.
func TestOlderConfigMap(t *testing.T) {
	o, err := optionsOf(t, map[string]string{"BATCH_MAX_DURATION": "10s", "INTERRUPTION_QUEUE": "today"}, "--reserved-enis=0")
	if err != nil || !errors.Is(o.incomplete, errNoClusterName) {
		t.Fatalf("before the cluster was read: %v, incomplete: %v", err, o.incomplete)
	}
	err = o.readOlder(t.Context(), globalSettings(t, map[string]string{
		"aws.clusterName": "blue", "batchMaxDuration": "30s", "aws.interruptionQueueName": "before", "aws.reservedENIs": "2",
		"aws.tags": `{"team":"a"}`,
	}, http.StatusOK))
	if err != nil {
		t.Fatal(err)
	}
	wantOption(t, "cluster name", o.aws.clusterName, "blue")
	wantOption(t, "longest batch", o.timers.BatchMax, 30*time.Second)
	wantOption(t, "queue", o.aws.queue, "today")
	wantOption(t, "reserved interfaces", o.aws.reservedENIs, 0)
	notes := strings.Join(o.older.Notes(), "\n")
	for _, want := range []string{"aws.clusterName is renamed to CLUSTER_NAME", "aws.interruptionQueueName is ignored", "aws.reservedENIs is ignored", "aws.tags has no counterpart"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note with %q in:\n%s", want, notes)
		}
	}
}

// TestOlderSettingsHaveFlags checks that the current flag of every old setting exists.
func TestOlderSettingsHaveFlags(t *testing.T) {
	all := map[string]string{
		"batchMaxDuration": "30s", "batchIdleDuration": "2s", "aws.clusterName": "blue", "aws.clusterEndpoint": "https://example.org",
		"aws.clusterCABundle": "Q0E=", "aws.isolatedVPC": "true", "aws.vmMemoryOverheadPercent": "0.1", "aws.interruptionQueueName": "q",
		"aws.reservedENIs": "1", "aws.defaultInstanceProfile": "nodes",
	}
	o, err := optionsOf(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.readOlder(t.Context(), globalSettings(t, all, http.StatusOK)); err != nil {
		t.Fatal(err)
	}
	if notes := o.older.Notes(); len(notes) != len(all) {
		t.Errorf("%d settings, and the notes %q", len(all), notes)
	}
	a := o.aws
	wantOption(t, "cluster name", a.clusterName, "blue")
	wantOption(t, "cluster endpoint", a.clusterEndpoint, "https://example.org")
	wantOption(t, "CA bundle", a.caBundle, "Q0E=")
	wantOption(t, "isolated VPC", a.isolatedVPC, true)
	wantOption(t, "memory overhead", a.memoryOverhead, 0.1)
	wantOption(t, "queue", a.queue, "q")
	wantOption(t, "reserved interfaces", a.reservedENIs, 1)
	wantOption(t, "instance profile", a.instanceProfile, "nodes")
	wantOption(t, "longest batch", o.batchMax, 30*time.Second)
	wantOption(t, "idle time of a batch", o.batchIdle, 2*time.Second)
}

// TestOlderMistakes checks that all values that cannot be parsed give one error, which describes how to remove them.
// Values that current names override, or that are not used, do not prevent the start: a log line reports them.
func TestOlderMistakes(t *testing.T) {
	data := map[string]string{"aws.clusterName": "blue", "batchMaxDuration": "tenseconds", "aws.reservedENIs": "-1", "aws.enablePodENI": "maybe", "nonsense": "5"}
	for name, test := range map[string]struct {
		arguments   []string
		environment map[string]string
		wrong       string        // the error; empty: the program starts
		notes       []string      // included in the log lines of a start
		batch       time.Duration // of the batch of pods, after a start; 0: the default
	}{
		"nothing new": {
			wrong: `namespace kube-system, ConfigMap karpenter-global-settings: aws.reservedENIs is "-1", want an integer, 0 or more; batchMaxDuration is "tenseconds", want a duration above zero such as 10s ` +
				`(correct it, set RESERVED_ENIS, BATCH_MAX_DURATION to a value other than the default, or set the flag, or delete the ConfigMap if it is no longer needed)`,
		},
		"one by a flag": {
			arguments: []string{"--reserved-enis=0"},
			wrong: `namespace kube-system, ConfigMap karpenter-global-settings: batchMaxDuration is "tenseconds", want a duration above zero such as 10s ` +
				`(correct it, set BATCH_MAX_DURATION to a value other than the default, or set the flag, or delete the ConfigMap if it is no longer needed)`,
		},
		"a variable that says the default, as the chart writes it": {
			arguments: []string{"--reserved-enis=0"}, environment: map[string]string{"BATCH_MAX_DURATION": "10s"},
			wrong: `namespace kube-system, ConfigMap karpenter-global-settings: batchMaxDuration is "tenseconds", want a duration above zero such as 10s ` +
				`(correct it, set BATCH_MAX_DURATION to a value other than the default, or set the flag, or delete the ConfigMap if it is no longer needed)`,
		},
		"both by flags, one of them the default": {
			arguments: []string{"--reserved-enis=1", "--batch-max-duration=10s"},
			notes: []string{
				`batchMaxDuration is "tenseconds", want a duration above zero such as 10s; ignored because BATCH_MAX_DURATION is set`,
			},
		},
		"both, by a flag and a variable": {
			arguments: []string{"--reserved-enis=1"}, environment: map[string]string{"BATCH_MAX_DURATION": "20s"}, batch: 20 * time.Second,
			notes: []string{
				`aws.reservedENIs is "-1", want an integer, 0 or more; ignored because RESERVED_ENIS is set`,
				`batchMaxDuration is "tenseconds", want a duration above zero such as 10s; ignored because BATCH_MAX_DURATION is set`,
				`aws.enablePodENI is "maybe", want true or false; ignored because no setting depends on it`, "nonsense is not known and ignored", "aws.clusterName is renamed to CLUSTER_NAME",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := optionsOf(t, test.environment, test.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			err = o.readOlder(t.Context(), globalSettings(t, data, http.StatusOK))
			switch {
			case err != nil && test.wrong == "":
				t.Fatalf("got error %v, want none", err)
			case err == nil && test.wrong != "":
				t.Fatalf("no error, want one with %q", test.wrong)
			case err != nil && err.Error() != test.wrong:
				t.Fatalf("got error %q, want %q", err, test.wrong)
			}
			notes := strings.Join(o.older.Notes(), "\n")
			for _, want := range test.notes {
				if !strings.Contains(notes, want) {
					t.Errorf("no note with %q in:\n%s", want, notes)
				}
			}
			if err == nil {
				wantOption(t, "cluster name", o.aws.clusterName, "blue")
				wantOption(t, "reserved interfaces", o.aws.reservedENIs, 1)
				wantOption(t, "longest batch", o.timers.BatchMax, cmp.Or(test.batch, 10*time.Second))
			}
		})
	}
}

// TestOlderEnvironmentMistakes checks that variables of old names that cannot be parsed give one error too, and that
// current names take precedence.
func TestOlderEnvironmentMistakes(t *testing.T) {
	wrong := map[string]string{"LEADER_ELECT": "no", "VM_MEMORY_OVERHEAD": "7.5", "AWS_ENABLE_POD_ENI": "1", "CLUSTER_NAME": "blue"}
	_, err := optionsOf(t, wrong)
	want := `the environment: LEADER_ELECT is "no", want true or false; VM_MEMORY_OVERHEAD is "7.5", want 0 or more and less than 1, such as 0.075 ` +
		`(correct it, set DISABLE_LEADER_ELECTION, VM_MEMORY_OVERHEAD_PERCENT to a value other than the default, or set the flag, or unset them)`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	o, err := optionsOf(t, wrong, "--disable-leader-election=false", "--vm-memory-overhead-percent=0.05")
	if err != nil {
		t.Fatalf("with current flags: %v", err)
	}
	wantOption(t, "leader election off", o.noElection, false)
	wantOption(t, "memory overhead", o.aws.memoryOverhead, 0.05)
}

func TestNoOlderConfigMap(t *testing.T) {
	for name, test := range map[string]struct {
		code int32
		data map[string]string
		want string // the error, or a log line if there is no error
	}{
		"none":           {http.StatusNotFound, nil, ""},
		"not to be read": {http.StatusForbidden, nil, "so settings of versions before v1 are not applied"},
		"empty":          {http.StatusOK, nil, ""},
		"malformed": {http.StatusOK, map[string]string{"aws.isolatedVPC": "yes"},
			`namespace kube-system, ConfigMap karpenter-global-settings: aws.isolatedVPC is "yes", want true or false`},
		"still no name": {http.StatusOK, map[string]string{"aws.isolatedVPC": "true"}, "--cluster-name is missing"},
	} {
		arguments := []string{"--cluster-name=blue"}
		if name == "still no name" {
			arguments = nil
		}
		o, err := optionsOf(t, nil, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		err = o.readOlder(t.Context(), globalSettings(t, test.data, test.code))
		text := strings.Join(o.older.Notes(), "\n")
		if wrong := name == "malformed" || name == "still no name"; wrong != (err != nil) {
			t.Errorf("%s: %v", name, err)
		} else if wrong {
			text = err.Error()
		}
		switch {
		case test.want == "" && text != "":
			t.Errorf("%s: got error %q, want none", name, text)
		case !strings.Contains(text, test.want):
			t.Errorf("%s: got error %q, want %q in it", name, text, test.want)
		}
	}
}
