package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/version"

	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// readOptions returns the options for a command line and an environment.
func readOptions(t *testing.T, environment map[string]string, arguments ...string) (*controllerOptions, error) {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	o := newControllerOptions()
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if err := cli.FromEnvironment(flags); err != nil {
		return nil, err
	}
	return o, o.complete()
}

// TestControllerFlagsAreKarpenters checks flags, defaults and the types that --help shows against
// https://karpenter.sh/docs/reference/settings/.
func TestControllerFlagsAreKarpenters(t *testing.T) {
	want := map[string]string{
		"cluster-name": "", "cluster-endpoint": "", "cluster-ca-bundle": "", "isolated-vpc": "false", "eks-control-plane": "false",
		"vm-memory-overhead-percent": "0.075", "interruption-queue": "", "reserved-enis": "0", "disable-dry-run": "false",
		"enable-zonal-shift": "false", "commitments-from-aws": "false", "ami-refresh-interval": "1m0s", "subnet-refresh-interval": "1m0s",
		"aws-feature-gates": "",
		"karpenter-service": "", "webhook-port": "8443", "metrics-port": "8080", "health-probe-port": "8081", "kube-client-qps": "200", "kube-client-burst": "300",
		"enable-profiling": "false", "disable-controller-warmup": "true", "disable-leader-election": "false",
		"disable-cluster-state-observability": "false", "leader-election-name": "karpenter-leader-election", "leader-election-namespace": "",
		"memory-limit": "-1", "cpu-requests": "1000", "log-level": "info", "log-encoding": "json", "log-output-paths": "stdout", "log-error-output-paths": "stderr",
		"batch-max-duration": "10s", "batch-idle-duration": "1s", "preference-policy": "Respect", "min-values-policy": "Strict",
		"ignore-dra-requests": "true", "feature-gates": "", "scheduler-config": "", "node-overhead-price": "0.005", "instance-types-file-path": "",
		// Flags that upstream does not have.
		"cloud-provider": "aws", "pod-placement": "", "kubeconfig": "",
		"disruption-validation": "15s", "metrics-detail": "false", "cost-label": "", "honor-safe-to-evict": "false",
		"default-instance-profile": "", "work-budget": "20000000", "webhook-client-ca": "", "proactive-scale-up": "true",
		"expendable-pods-priority-cutoff": "", "new-pod-delay": "0s", "unready-brake": "off", "pool-selector": "", "price-file": "",
		"interruption-backoff": "3m0s",
	}
	got := map[string]string{}
	newControllerCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			got[f.Name] = f.DefValue
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags and defaults (-want +got):\n%s", diff)
	}
}

func TestControllerReadsTheEnvironment(t *testing.T) {
	o, err := readOptions(t, map[string]string{
		"CLOUD_PROVIDER": "kwok", "METRICS_PORT": "9000", "HEALTH_PROBE_PORT": "9001", "DISABLE_LEADER_ELECTION": "true",
		"BATCH_MAX_DURATION": "30s", "BATCH_IDLE_DURATION": "2s", "KUBE_CLIENT_QPS": "50", "LOG_LEVEL": "",
		"FEATURE_GATES": "ReservedCapacity=true,NodeOverlay=false,SpotToSpotConsolidation=true,NodeRepair=true,Whatever=true,CapacityBuffer=true",
	}, "--metrics-port=7000", "--timers", "drain-min=1s")
	if err != nil {
		t.Fatal(err)
	}
	wantOption(t, "port of metrics", o.metricsPort, 7000)
	wantOption(t, "port of probes", o.healthPort, 9001)
	wantOption(t, "leader election off", o.noElection, true)
	wantOption(t, "queries per second", o.qps, 50)
	wantOption(t, "log level", o.logLevel, "info")
	timers := o.timers
	wantOption(t, "idle time of a batch", timers.BatchIdle, 2*time.Second)
	wantOption(t, "longest batch", timers.BatchMax, 30*time.Second)
	wantOption(t, "time of a nomination", timers.Nomination, time.Minute)
	wantOption(t, "shortest drain", timers.DrainMin, time.Second)
	if diff := cmp.Diff([]string{"feature gate Whatever is not known and ignored"}, o.notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for gate, on := range map[string]bool{"NodeRepair": true, "SpotToSpotConsolidation": true, "NodeOverlay": false,
		"StaticCapacity": false, "ReservedCapacity": true} {
		wantOption(t, "gate "+gate, o.on.On(gate), on)
	}
}

// TestControllerPlacement checks that flags about placing pods are passed to the engine.
func TestControllerPlacement(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      placement.Options
		spread    int
	}{
		{nil, placement.Options{NodePrice: placement.ProductionNodePrice, WorkBudget: defaultWorkBudget}, 0},
		{[]string{"--preference-policy=Ignore", "--min-values-policy=BestEffort", "--node-overhead-price=0", "--work-budget=0"},
			placement.Options{IgnorePreferences: true, RelaxMinValues: true, NodePrice: -1}, 0},
		{[]string{"--node-overhead-price=0.25", "--scheduler-config={podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}"},
			placement.Options{NodePrice: 250_000_000, WorkBudget: defaultWorkBudget}, 1},
	} {
		o, err := readOptions(t, nil, append(c.arguments, "--cloud-provider=kwok")...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, o.placement); diff != "" || len(o.defaultSpread) != c.spread {
			t.Errorf("%v: %d default constraints, want %d; placement (-want +got):\n%s", c.arguments, len(o.defaultSpread), c.spread, diff)
		}
	}
}

// TestControllerRefusesASelector checks that labels of the provider select no pools: their values are chosen for each
// node.
func TestControllerRefusesASelector(t *testing.T) {
	rules := convert.NewVocabulary(aws.Declared()).Rules
	for selector, refused := range map[string]string{
		"example.org/cell=a": "", "karpenter.sh/nodepool in (a, b)": "",
		"karpenter.k8s.aws/instance-family=m5":        "karpenter.k8s.aws/instance-family",
		"example.org/cell=a,kubernetes.io/arch=arm64": "kubernetes.io/arch",
		"karpenter.k8s.aws/ec2nodeclass=default":      "karpenter.k8s.aws/ec2nodeclass",
	} {
		o, err := readOptions(t, nil, "--cloud-provider=aws", "--cluster-name=c", "--pool-selector="+selector, "--leader-election-name=own")
		if err != nil {
			t.Fatal(err)
		}
		switch err := o.checkSelection(rules); {
		case refused == "" && err != nil:
			t.Errorf("%s: %v", selector, err)
		case refused != "" && (err == nil || cli.ExitCode(err) != cli.ExitCode(cli.UsageErrorf("")) ||
			!strings.Contains(err.Error(), fmt.Sprintf("--pool-selector is %q: the label %s is", selector, refused))):
			t.Errorf("%s: error %v, want one of usage that names %s", selector, err, refused)
		}
	}
}

func TestControllerRefuses(t *testing.T) {
	for _, c := range []struct {
		environment map[string]string
		arguments   []string
		want        string
	}{
		{nil, nil, "--cluster-name is missing"},
		{nil, []string{"--cloud-provider=aws", "--cluster-name=c", "--vm-memory-overhead-percent=7.5"}, "--vm-memory-overhead-percent is 7.5, want 0 or more and less than 1"},
		{nil, []string{"--cloud-provider=aws", "--cluster-name=c", "--reserved-enis=-1"}, "--reserved-enis is -1, want 0 or more"},
		{map[string]string{"CLUSTER_NAME": "c", "SUBNET_REFRESH_INTERVAL": "10s"}, nil, "want 1m0s or more"},
		{nil, []string{"--cloud-provider=aws", "--cluster-name=c", "--cluster-endpoint=10.0.0.1"}, `--cluster-endpoint is "10.0.0.1", want a URL`},
		{nil, []string{"--cloud-provider=aws", "--cluster-name=c", "--cluster-ca-bundle=-----BEGIN"}, "--cluster-ca-bundle is not base64"},
		{nil, []string{"--cloud-provider=aws", "--cluster-name=c", "--aws-feature-gates=NodeClassCEL"}, `--aws-feature-gates: "NodeClassCEL", want Name=true or Name=false`},
		{nil, []string{"--cloud-provider=gcp"}, `--cloud-provider is "gcp", want aws, kwok`},
		{map[string]string{"METRICS_PORT": "many"}, nil, `environment variable METRICS_PORT is "many"`},
		{map[string]string{"DISABLE_LEADER_ELECTION": "1"}, nil, `environment variable DISABLE_LEADER_ELECTION is "1", want true or false`},
		{map[string]string{"BATCH_IDLE_DURATION": "1"}, nil, `environment variable BATCH_IDLE_DURATION is "1"`},
		{nil, []string{"--feature-gates=NodeRepair="}, `"NodeRepair=", want Name=true or Name=false`},
		{nil, []string{"--feature-gates=NodeRepair"}, "want Name=true or Name=false"},
		{nil, []string{"--ignore-dra-requests=false"}, "device allocation is not supported"},
		{nil, []string{"--scheduler-config={podTopologySpread: {constraints: []}}"}, "--scheduler-config: reading the scheduler configuration"},
		{map[string]string{"SCHEDULER_CONFIG": "podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}"}, []string{"--cloud-provider=kwok"}, "defaultConstraints[0].maxSkew: is 0"},
		{nil, []string{"--node-overhead-price=-1"}, `--node-overhead-price: "-1" is not a price`},
		{nil, []string{"--cloud-provider=kwok", "--kwok-repair-toleration=-1s"}, "--kwok-repair-toleration is -1s, want zero or more"},
		{nil, []string{"--disruption-validation=-1s"}, "--disruption-validation is -1s, want zero to 5m0s"},
		{nil, []string{"--log-level=loud"}, `--log-level is "loud", want debug, info, error`},
		{nil, []string{"--preference-policy=Maybe"}, "want Respect, Ignore"},
		{nil, []string{"--min-values-policy=Maybe"}, "want Strict, BestEffort"},
		{nil, []string{"--pod-placement=guess"}, `--pod-placement is "guess", want nominate, observe`},
		{nil, []string{"--batch-max-duration=1ms"}, "want a positive time and one that is not shorter"},
		{nil, []string{"--metrics-port=70000"}, "--metrics-port is 70000, want 0 to 65535"},
		{nil, []string{"--karpenter-service=:443"}, `--karpenter-service is ":443", want the name of a Service, or NAME:PORT`},
		{nil, []string{"--karpenter-service=karpenter:https"}, `--karpenter-service is "karpenter:https"`},
		{nil, []string{"--kube-client-qps=0"}, "want positive numbers"},
		{nil, []string{"--memory-limit=-2"}, "--memory-limit is -2 bytes, want at least 67108864 (64Mi), or -1 for none"},
		{nil, []string{"--memory-limit=1000"}, "--memory-limit is 1000 bytes"},
		{map[string]string{"MEMORY_LIMIT": "0"}, []string{}, "--memory-limit is 0 bytes"},
		{nil, []string{"--kwok-repair-toleration=-1s"}, "--kwok-repair-toleration is -1s"},
		{nil, []string{"--timers=nap=1s"}, `--timers: timer "nap" is not known`},
		{nil, []string{"--no-such-flag"}, "unknown flag: --no-such-flag"},
		{nil, []string{"extra"}, "extra"},
		{nil, []string{"--kubeconfig=/no/such/file"}, "reading the kubeconfig"},
		{nil, []string{"--log-output-paths=/no/such/folder/log"}, "opening the log"},
	} {
		t.Run(c.want, func(t *testing.T) {
			for name, value := range c.environment {
				t.Setenv(name, value)
			}
			// Another process may use the default port.
			arguments := append([]string{"controller", "--health-probe-port=0"}, c.arguments...)
			if c.arguments != nil && !strings.HasPrefix(strings.Join(c.arguments, ""), "--cloud-provider") {
				arguments = append(arguments, "--cloud-provider=kwok")
			}
			root := newRootCommand()
			var stderr bytes.Buffer
			root.SetErr(&stderr)
			root.SetArgs(arguments)
			code := cli.Run(t.Context(), root)
			text := stderr.String()
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			wantOneLine(t, "standard error", text, c.want)
		})
	}
}

// TestControllerWithoutCluster checks that an unreachable API server is a failure of the work, reported in one line.
func TestControllerWithoutCluster(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	root := newRootCommand()
	var stderr bytes.Buffer
	root.SetErr(&stderr)
	root.SetArgs([]string{"controller", "--cloud-provider=kwok", "--kubeconfig=" + kubeconfig, "--health-probe-port=0", "--metrics-port=0", "--webhook-port=0"})
	if code := cli.Run(t.Context(), root); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	wantOneLine(t, "standard error", stderr.String(), "reaching the API server at https://127.0.0.1:1: ")
}

func TestNominates(t *testing.T) {
	for _, c := range []struct {
		placement, major, minor string
		want                    bool
	}{
		{"", "1", "34", false}, {"", "1", "35", true}, {"", "1", "36+", true}, {"", "2", "0", true}, {"", "", "", false},
		{"observe", "1", "36", false}, {"nominate", "1", "30", true},
	} {
		if got := nominates(c.placement, &version.Info{Major: c.major, Minor: c.minor}); got != c.want {
			t.Errorf("placement %q on %s.%s: %v, want %v", c.placement, c.major, c.minor, got, c.want)
		}
	}
}

// TestBuildFields checks that log lines contain the commit, if there is one.
func TestBuildFields(t *testing.T) {
	if got := buildFields(""); len(got) != 0 {
		t.Errorf("without a commit: %v", got)
	}
	if got := buildFields("0123abc-dirty"); got["commit"] != "0123abc-dirty" {
		t.Errorf("with a commit: %v", got)
	}
}

// TestControllerLog checks the keys of the log's lines.
func TestControllerLog(t *testing.T) {
	for level, wantKeys := range map[string][]string{
		"info":  {"error", "level", "logger", "message", "time", "took"},
		"debug": {"caller", "error", "level", "logger", "message", "time", "took"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		o := newControllerOptions()
		o.logLevel, o.logOutputs, o.errorOutput = level, path, "stderr"
		log, flush, err := newControllerLog(o)
		if err != nil {
			t.Fatal(err)
		}
		log.WithName("sub").Error(os.ErrNotExist, "something", "took", 1500*time.Millisecond)
		flush()
		line, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var entry map[string]any
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if cli.Commit() != "" { // a test is built without version information unless -buildvcs says otherwise
			wantKeys = slices.Sorted(slices.Values(append(wantKeys, "commit")))
		}
		if diff := cmp.Diff(wantKeys, slices.Sorted(maps.Keys(entry))); diff != "" {
			t.Errorf("keys at level %s (-want +got):\n%s", level, diff)
		}
		for key, want := range map[string]string{"level": "ERROR", "logger": "controller.sub", "took": "1.5s"} {
			if entry[key] != want {
				t.Errorf("%s is %v, want %s, in the entry %s", key, entry[key], want, line)
			}
		}
	}
}

// TestHiddenFlagsHaveNoVariable checks that flags for tests are not read from the environment: a variable named
// TIMERS may belong to another program.
func TestHiddenFlagsHaveNoVariable(t *testing.T) {
	t.Setenv("TIMERS", "nonsense")
	t.Setenv("METRICS_PORT", "9090")
	o := newControllerOptions()
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := cli.FromEnvironment(flags); err != nil {
		t.Fatal(err)
	}
	if o.timersText != "" || o.metricsPort != 9090 {
		t.Errorf("timers %q and metrics port %d, want none and 9090", o.timersText, o.metricsPort)
	}
}

func TestVersion(t *testing.T) {
	for _, arguments := range [][]string{{"version"}, {"--version"}} {
		root := newRootCommand()
		var out strings.Builder
		root.SetOut(&out)
		root.SetArgs(arguments)
		if code := cli.Run(t.Context(), root); code != 0 || !strings.HasPrefix(out.String(), "karpenter version ") {
			t.Errorf("%v: exit code %d, printed %q", arguments, code, out.String())
		}
	}
}
