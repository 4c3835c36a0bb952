package chart

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// deployment returns the controller's Deployment, rendered with these values.
func deployment(t testing.TB, with values) *appsv1.Deployment {
	t.Helper()
	return decode[appsv1.Deployment](t, render(t, mainChart, with), "Deployment")
}

// environment returns the environment variables of the controller's container that have a value.
func environment(d *appsv1.Deployment) map[string]string {
	env := map[string]string{}
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		if v.ValueFrom == nil {
			env[v.Name] = v.Value
		}
	}
	return env
}

// TestOldValues checks that values of earlier charts keep their meaning.
func TestOldValues(t *testing.T) {
	for _, test := range []struct {
		file    string
		env     map[string]string // the variables that differ from the defaults
		notices []string          // warnings in the notes
	}{
		{"0.5.yaml", map[string]string{"CLUSTER_NAME": "prod", "CLUSTER_ENDPOINT": "https://prod.example.org"},
			[]string{"controller.clusterEndpoint is renamed to settings.clusterEndpoint", "controller.clusterName is renamed to settings.clusterName",
				"controller.replicas is renamed to replicas", "webhook has no effect: the only webhook converts older versions of the API (conversion.enabled)"}},
		{"0.16.yaml", map[string]string{"CLUSTER_NAME": "prod", "CLUSTER_ENDPOINT": "https://prod.example.org", "BATCH_MAX_DURATION": "20s", "BATCH_IDLE_DURATION": "2s", "LOG_LEVEL": "debug", "LOG_ENCODING": "console"},
			[]string{"clusterEndpoint is renamed to settings.clusterEndpoint", "clusterName is renamed to settings.clusterName",
				"controller.batchIdleDuration is renamed to settings.batchIdleDuration", "controller.batchMaxDuration is renamed to settings.batchMaxDuration"}},
		{"0.27.yaml", map[string]string{"CLUSTER_NAME": "prod", "CLUSTER_ENDPOINT": "https://prod.example.org", "INTERRUPTION_QUEUE": "prod-queue",
			"ISOLATED_VPC": "true", "VM_MEMORY_OVERHEAD_PERCENT": "0", "RESERVED_ENIS": "1", "DEFAULT_INSTANCE_PROFILE": "nodes", "LOG_LEVEL": "debug", "LOG_OUTPUT_PATHS": "stdout,/tmp/log", "METRICS_PORT": "8000"},
			[]string{"controller.logEncoding is renamed to logEncoding", "controller.logLevel is renamed to logLevel", "controller.outputPaths is renamed to logOutputPaths",
				"settings.aws.clusterEndpoint is renamed to settings.clusterEndpoint", "settings.aws.clusterName is renamed to settings.clusterName",
				"settings.aws.defaultInstanceProfile is renamed to settings.defaultInstanceProfile",
				"settings.aws.enablePodENI has no effect: network interfaces of pods are always supported",
				"settings.aws.interruptionQueueName is renamed to settings.interruptionQueue", "settings.aws.isolatedVPC is renamed to settings.isolatedVPC",
				"settings.aws.nodeNameConvention has no effect: the image determines the name of the node",
				"settings.aws.reservedENIs is renamed to settings.reservedENIs", "settings.aws.vmMemoryOverheadPercent is renamed to settings.vmMemoryOverheadPercent",
				`settings.featureGates.driftEnabled has no effect: drift is always on; a budget of nodes "0" with reasons [Drifted] keeps a NodePool's nodes`}},
		{"0.37.yaml", map[string]string{"CLUSTER_NAME": "prod", "INTERRUPTION_QUEUE": "prod-queue", "RESERVED_ENIS": "2", "LOG_LEVEL": "debug",
			"FEATURE_GATES": "CapacityBuffer=false,NodeOverlay=false,NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=true,StaticCapacity=false"},
			[]string{"logConfig.logEncoding is renamed to logEncoding", "logConfig.logLevel.global is renamed to logLevel", "logConfig.outputPaths is renamed to logOutputPaths",
				"settings.assumeRoleDuration has no effect: no role is assumed",
				`settings.featureGates.drift has no effect: drift is always on; a budget of nodes "0" with reasons [Drifted] keeps a NodePool's nodes`,
				"webhook has no effect: the only webhook converts older versions of the API (conversion.enabled)"}},
		{"1.14.yaml", map[string]string{"CLUSTER_NAME": "prod", "INTERRUPTION_QUEUE": "prod-queue", "LOG_LEVEL": "debug", "ISOLATED_VPC": "true", "VM_MEMORY_OVERHEAD_PERCENT": "0", "AWS_REGION": "eu-central-1",
			"FEATURE_GATES": "CapacityBuffer=false,NodeOverlay=false,NodeRepair=true,ReservedCapacity=false,SpotToSpotConsolidation=true,StaticCapacity=true"},
			[]string{"controller.image names upstream's image; this chart's own is used instead"}},
	} {
		t.Run(test.file, func(t *testing.T) {
			r := render(t, mainChart, read(t, "old/"+test.file))
			usual := environment(deployment(t, minimal()))
			env := environment(decode[appsv1.Deployment](t, r, "Deployment"))
			maps.DeleteFunc(env, func(name, value string) bool { return usual[name] == value })
			if diff := cmp.Diff(test.env, env); diff != "" {
				t.Errorf("variables (-want +have):\n%s", diff)
			}
			var notices []string
			for line := range strings.Lines(r.notes) {
				if notice, ok := strings.CutPrefix(line, "  - "); ok {
					notices = append(notices, strings.TrimSpace(notice))
				}
			}
			slices.Sort(notices)
			if diff := cmp.Diff(test.notices, notices); diff != "" {
				t.Errorf("notices (-want +have):\n%s", diff)
			}
		})
	}
}

// TestRefusals checks values that cannot be translated: the installation fails, and the error describes what to do.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		path  string
		value any
		want  string
	}{
		{"settings.aws.tags", values{"team": "a"}, "spec.tags of every EC2NodeClass"},
		{"settings.aws.assumeRoleARN", "arn:aws:iam::1:role/a", "serviceAccount.annotations"},
		{"settings.assumeRoleARN", "arn:aws:iam::1:role/a", "serviceAccount.annotations"},
		{"settings.aws.enableENILimitedPodDensity", false, "maxPods: 110"},
		{"settings.aws.enableInterruptionHandling", true, "settings.interruptionQueue"},
		{"controller.image", "example.org/controller:v0.16.0", "controller.image.repository"},
		{"settings.clusterName", "", "settings.clusterName is required"},
		{"settings.ignoreDRARequests", false, "settings.ignoreDRARequests"},
		// These are rejected by the schema.
		{"settings.preferencePolicy", "Sometimes", "preferencePolicy"},
		{"settings.batchMaxDuration", "10", "batchMaxDuration"},
		{"settings.cloudProvider", "azure", "cloudProvider"},
		{"controller.metrics.port", 80800, "port"},
		{"replicas", "two", "replicas"},
		{"controller.env", []any{values{"value": "x"}}, "name"},
		{"tolerations", "all", "tolerations"},
	} {
		t.Run(test.path, func(t *testing.T) {
			_, err := template(t, mainChart, values(minimal().set(test.path, test.value)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v gives the error %v, want one about %q", test.path, test.value, err, test.want)
			}
		})
	}
}

// TestSeveralRefusals checks that one error names all invalid values, so that users need not try repeatedly.
func TestSeveralRefusals(t *testing.T) {
	_, err := template(t, mainChart, setter{}.set("settings.assumeRoleARN", "arn").set("settings.aws.tags", values{"a": "b"}))
	for _, want := range []string{"settings.assumeRoleARN", "settings.aws.tags", "settings.clusterName"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not name %s", err, want)
		}
	}
}

// TestNewNameWins checks a value that is given under both names.
func TestNewNameWins(t *testing.T) {
	r := render(t, mainChart, setter{}.set("settings.clusterName", "new").set("settings.aws.clusterName", "old"))
	if env := environment(decode[appsv1.Deployment](t, r, "Deployment")); env["CLUSTER_NAME"] != "new" {
		t.Errorf("CLUSTER_NAME is %q, want that of settings.clusterName", env["CLUSTER_NAME"])
	}
	if !strings.Contains(r.notes, "settings.aws.clusterName is ignored") {
		t.Errorf("the notes do not mention that the old one is ignored:\n%s", r.notes)
	}
}

// TestFalsyValues checks that false and 0 are passed to the controller, and that unset values are not.
func TestFalsyValues(t *testing.T) {
	d := deployment(t, minimal().set("settings.vmMemoryOverheadPercent", 0).set("settings.featureGates.reservedCapacity", false).
		set("settings.reservedENIs", 0).set("settings.nodeOverheadPrice", 0).set("settings.disableControllerWarmup", false).
		set("settings.disruptionValidation", "0s").set("replicas", 0).set("terminationGracePeriodSeconds", 0).set("settings.kubeClientBurst", 1000000))
	env := environment(d)
	for name, want := range map[string]string{
		"VM_MEMORY_OVERHEAD_PERCENT": "0", "RESERVED_ENIS": "0", "NODE_OVERHEAD_PRICE": "0", "DISABLE_CONTROLLER_WARMUP": "false",
		"DISRUPTION_VALIDATION": "0s", "ISOLATED_VPC": "false", "IGNORE_DRA_REQUESTS": "true", "KUBE_CLIENT_BURST": "1000000",
	} {
		if have, ok := env[name]; !ok || have != want {
			t.Errorf("%s is %q (set: %t), want %q", name, have, ok, want)
		}
	}
	if !strings.Contains(env["FEATURE_GATES"], "ReservedCapacity=false") {
		t.Errorf("FEATURE_GATES is %q, want ReservedCapacity=false in it", env["FEATURE_GATES"])
	}
	if *d.Spec.Replicas != 0 || d.Spec.Template.Spec.TerminationGracePeriodSeconds == nil {
		t.Errorf("replicas %d, grace period %v, want zeros", *d.Spec.Replicas, d.Spec.Template.Spec.TerminationGracePeriodSeconds)
	}
	if _, ok := environment(deployment(t, minimal()))["NODE_OVERHEAD_PRICE"]; ok {
		t.Error("a price that is not set is passed to the controller, which has its own default")
	}
}

// TestOwnVariables checks that variables of controller.env override those of the settings, and that no variable
// occurs twice: the Deployment could not be applied.
func TestOwnVariables(t *testing.T) {
	d := deployment(t, setter{}.set("controller.env", []any{
		values{"name": "CLUSTER_NAME", "value": "mine"}, values{"name": "LOG_LEVEL", "value": "error"}, values{"name": "MEMORY_LIMIT", "value": "-1"},
	}))
	seen := map[string]int{}
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		if seen[v.Name]++; seen[v.Name] > 1 {
			t.Errorf("%s is a duplicate", v.Name)
		}
	}
	for name, want := range map[string]string{"CLUSTER_NAME": "mine", "LOG_LEVEL": "error", "MEMORY_LIMIT": "-1"} {
		if got := environment(d)[name]; got != want {
			t.Errorf("the variable %s is %q, want %q of controller.env", name, got, want)
		}
	}
}

// everything returns values that set every flag to something else than its default.
func everything(provider string) setter {
	return minimal().set("settings.cloudProvider", provider).
		set("settings.batchMaxDuration", "20s").set("settings.batchIdleDuration", "2s").set("settings.preferencePolicy", "Ignore").
		set("settings.minValuesPolicy", "BestEffort").set("settings.disableClusterStateObservability", true).
		set("settings.disruptionValidation", "30s").set("settings.nodeOverheadPrice", "0.01").set("settings.podPlacement", "observe").
		set("settings.honorSafeToEvict", true).set("settings.proactiveScaleUp", false).
		set("settings.expendablePodsPriorityCutoff", -10).set("settings.newPodDelay", "5s").set("settings.unreadyBrake", "45%,3").
		set("settings.schedulerConfig", "podTopologySpread: {}").
		set("settings.kubeClientQPS", 50).set("settings.kubeClientBurst", 100).
		set("settings.enableProfiling", true).set("settings.metricsDetail", true).
		set("settings.costLabel", "team").set("settings.priceFile", "/etc/karpenter/prices.yaml").set("settings.disableControllerWarmup", false).
		set("settings.poolSelector", "cell=a").set("settings.leaderElectionName", "other").set("settings.leaderElectionNamespace", "elsewhere").
		set("settings.clusterEndpoint", "https://example.org").set("settings.clusterCABundle", "Q0E=").set("settings.isolatedVPC", true).
		set("settings.eksControlPlane", true).set("settings.vmMemoryOverheadPercent", 0.1).set("settings.interruptionQueue",
		"queue").set("settings.interruptionBackoff", "1h").
		set("settings.reservedENIs", 1).set("settings.defaultInstanceProfile", "nodes").set("settings.disableDryRun", true).set("settings.enableZonalShift", true).
		set("settings.amiRefreshInterval", "2m").set("settings.subnetRefreshInterval", "2m").set("settings.instanceTypesFilePath", "/types.json").
		set("settings.featureGates", values{"nodeRepair": true, "spotToSpotConsolidation": true, "staticCapacity": true}).
		set("settings.workBudget", 1000000).set("logLevel", "debug").set("conversion.port", 9443).set("conversion.clientCA", "/authority.crt")
}

// notFromValues are flags that no value sets, and why.
var notFromValues = map[string]string{
	"kubeconfig": "the pod is in the cluster",
	"help":       "no setting",
}

var flagLine = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)`)

// TestEveryFlag compares the chart with the binary: each flag can be set by a value, and the chart sets no unknown
// flag.
func TestEveryFlag(t *testing.T) {
	help, err := exec.Command(karpenter(t), "controller", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("reading the controller's flags: %v\n%s", err, help)
	}
	flags := map[string]bool{}
	for _, match := range flagLine.FindAllStringSubmatch(string(help), -1) {
		flags[variable(match[1])] = true
	}
	set := map[string]bool{}
	for _, provider := range []string{"aws", "kwok"} {
		for _, v := range deployment(t, everything(provider)).Spec.Template.Spec.Containers[0].Env {
			set[v.Name] = true
		}
	}
	for name := range notFromValues {
		delete(flags, variable(name))
	}
	for name := range flags {
		if !set[name] {
			t.Errorf("no value of the chart sets %s", name)
		}
	}
	for name := range set {
		if !flags[name] {
			t.Errorf("the chart sets %s, which is not a flag of the controller", name)
		}
	}
}

// variable returns the environment variable of a flag.
func variable(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// TestMatrix renders the chart with all optional features on or off, such that every two of them occur in every
// combination.
func TestMatrix(t *testing.T) {
	switches := []struct {
		path string
		is   []any
	}{
		{"settings.cloudProvider", []any{"aws", "kwok"}},
		{"serviceAccount.create", []any{true, false}},
		{"serviceMonitor.enabled", []any{false, true}},
		{"prometheusRule.enabled", []any{false, true}},
		{"dashboards.enabled", []any{false, true}},
		{"networkPolicy.enabled", []any{false, true}},
		{"crdGuard.enabled", []any{true, false}},
		{"conversion.enabled", []any{true, false}},
		{"settings.disableLeaderElection", []any{false, true}},
		{"affinity", []any{nil, values{"podAntiAffinity": values{"preferredDuringSchedulingIgnoredDuringExecution": []any{values{"weight": 1, "podAffinityTerm": values{"topologyKey": "kubernetes.io/hostname"}}}}}}},
		{"topologySpreadConstraints", []any{[]any{}, []any{values{"maxSkew": 2, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": values{"matchLabels": values{"a": "b"}}}}}},
		{"hostNetwork", []any{false, true}},
		{"additionalAnnotations", []any{values{}, values{"a": "b"}}},
		{"additionalLabels", []any{values{}, values{"a": "b"}}},
		{"fullnameOverride", []any{"", "other"}},
		{"controller.sidecarContainer", []any{[]any{}, []any{values{"name": "side", "image": "side"}}}},
		{"additionalClusterRoleRules", []any{[]any{}, []any{values{"apiGroups": []any{"a"}, "resources": []any{"b"}, "verbs": []any{"get"}}}}},
	}
	for round, chosen := range pairs(len(switches)) {
		with, name := minimal(), fmt.Sprintf("round %d:", round)
		for i, s := range switches {
			with.set(s.path, s.is[chosen[i]])
			name += fmt.Sprintf(" %s=%v", s.path, s.is[chosen[i]])
		}
		r, err := template(t, mainChart, values(with))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wellFormed(t, name, r)
	}
}

// pairs returns rows of n binary choices, such that every two columns show every combination in some row.
func pairs(n int) [][]int {
	missing := map[[4]int]bool{}
	for i := range n {
		for j := range i {
			for k := range 4 {
				missing[[4]int{i, j, k / 2, k % 2}] = true
			}
		}
	}
	var rows [][]int
	for chance := rand.New(rand.NewPCG(1, 1)); len(missing) > 0; {
		row := make([]int, n)
		for i := range row {
			row[i] = chance.IntN(2)
		}
		for i := range n {
			for j := range i {
				delete(missing, [4]int{i, j, row[i], row[j]})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// wellFormed checks what does not need an API server.
func wellFormed(t *testing.T, name string, r rendered) {
	t.Helper()
	names := map[string]bool{}
	for _, object := range r.objects {
		key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
		if names[key] {
			t.Errorf("%s: %s is a duplicate", name, key)
		}
		if object.GetName() == "" {
			t.Errorf("%s: %s has no name", name, key)
		}
		if by := object.GetLabels()["app.kubernetes.io/managed-by"]; by != "Helm" {
			t.Errorf("%s: %s is managed by %q, want Helm", name, key, by)
		}
		names[key] = true
	}
	d := decode[appsv1.Deployment](t, r, "Deployment")
	for _, constraint := range d.Spec.Template.Spec.TopologySpreadConstraints {
		selected := constraint.LabelSelector.MatchLabels
		if len(selected) == 0 {
			t.Errorf("%s: a spread constraint selects by no label", name)
		}
		if constraint.TopologyKey == "a" && len(selected) != 1 {
			t.Errorf("%s: the spread constraint over a selects %v, want one label", name, selected)
		}
	}
	if slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == "" }) {
		t.Errorf("%s: a container has no name", name)
	}
}
