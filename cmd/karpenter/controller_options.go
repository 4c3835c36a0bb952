package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/gates"
	"github.com/karpenter-go/karpenter/internal/legacy"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// controllerOptions holds the flags of the controller verb. Names, environment variables and defaults are those of
// https://karpenter.sh/docs/reference/settings/.
type controllerOptions struct {
	kubeconfig    string
	cloudProvider string
	podPlacement  string

	metricsPort, healthPort int
	qps                     float32
	burst                   int
	profiling               bool
	noWarmup                bool
	noElection              bool
	noObservability         bool
	metricsDetail           bool
	costLabel               string
	electionName            string
	electionNamespace       string
	electionLease           time.Duration
	selectorText            string
	selection               karpv1.Selection
	memoryLimit             int64
	cpuRequests             int64
	service                 string
	servicePort             int // 0: the webhook's
	webhookPort             int
	// webhookClientCA is a file with certificates.
	webhookClientCA string

	logLevel    string
	logEncoding string
	logOutputs  string
	errorOutput string

	batchMax, batchIdle time.Duration
	validation          time.Duration
	preferencePolicy    string
	minValuesPolicy     string
	ignoreDRA           bool
	featureGates        string
	schedulerConfig     string
	nodePriceText       string
	workBudget          int
	safeToEvict         bool
	proactive           bool
	pods                convert.PodRules
	brakeText           string
	brake               disruption.UnreadyBrake
	// placement and defaultSpread are derived from the flags above.
	placement     placement.Options
	defaultSpread []corev1.TopologySpreadConstraint

	instanceTypesFile string
	priceFile         string
	kwokRepair        time.Duration // how long a node of kwok may be not ready; 0: the provider's value
	aws               awsOptions

	timersText string
	timers     controller.Timers
	// on holds the enabled feature gates.
	on gates.Set
	// notes are log lines about options that were given and have no effect.
	notes []string
	// older holds the settings that were given by names of versions before v1.
	older *legacy.Settings
	// incomplete is the error of complete before older settings were read from the cluster.
	incomplete error
}

// leastMemory, in bytes, is less than the controller needs in any cluster. With a lower limit it would only collect
// garbage.
const leastMemory = 64 << 20

// defaultElection is the Lease of a controller that manages all NodePools.
const defaultElection = "karpenter-leader-election"

// defaultWorkBudget exceeds the work of plans in ordinary clusters (10,000 pods of 500 kinds: 800,000). It takes a
// few seconds of one processor.
const defaultWorkBudget = 20_000_000

// searchBudgets is the number of work budgets for one search for savings. A fleet of 5,000 nodes takes about seven.
const searchBudgets = 25

// longestValidation leaves a command time for its work before it is rolled back.
const longestValidation = 5 * time.Minute

func newControllerOptions() *controllerOptions { return &controllerOptions{} }

func (o *controllerOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster; inside a cluster none is needed")
	f.StringVar(&o.cloudProvider, "cloud-provider", "aws", "the cloud to launch machines in: aws or kwok (simulated nodes)")
	f.StringVar(&o.podPlacement, "pod-placement", "", gates.Usage("pod-placement"))
	f.IntVar(&o.metricsPort, "metrics-port", 8080, "port of /metrics; 0 for none")
	f.IntVar(&o.healthPort, "health-probe-port", 8081, "port of /healthz and /readyz; 0 for none")
	f.Float32Var(&o.qps, "kube-client-qps", 200, "requests per second to the API server, in the long run")
	f.IntVar(&o.burst, "kube-client-burst", 300, "requests to the API server in one go")
	f.BoolVar(&o.profiling, "enable-profiling", false, "serve /debug/pprof/ on the metrics port")
	f.BoolVar(&o.noWarmup, "disable-controller-warmup", true, "start the controllers' queues only when elected; caches are warm before in any case")
	f.BoolVar(&o.noElection, "disable-leader-election", false, "run without electing a leader: only where there is one replica")
	f.BoolVar(&o.noObservability, "disable-cluster-state-observability", false, "leave out metrics of conditions, utilization and cost, and those per object")
	f.BoolVar(&o.metricsDetail, "metrics-detail", false,
		"metrics with a series for each pod, each condition of a claim and each offering, and more of them for each node: "+
			"many in a large cluster")
	f.StringVar(&o.costLabel, "cost-label", "", "key of a label of pods, such as team: the metric karpenter_cost_by_label shares the cost by its values (default: none)")
	f.StringVar(&o.electionName, "leader-election-name", defaultElection, "name of the Lease")
	f.StringVar(&o.electionNamespace, "leader-election-namespace", "", "namespace of the Lease (default: the one that the program runs in, kube-system outside a cluster)")
	f.DurationVar(&o.electionLease, "leader-election-lease", 15*time.Second, "how long a leader that does not renew its Lease remains leader")
	f.StringVar(&o.selectorText, "pool-selector", "", "label selector of the NodePools that this controller manages, by the labels of their "+
		"templates and "+karpv1.LabelNodePool+"; other controllers, each with its own Lease, manage the others (default: all)")
	f.Int64Var(&o.memoryLimit, "memory-limit", -1, "memory limit of the container, in bytes, 64Mi or more; 90 % of it become Go's soft limit; -1 for none")
	f.Int64Var(&o.cpuRequests, "cpu-requests", 1000, "CPU request of the container, in millicores (accepted; concurrency does not depend on it)")
	f.StringVar(&o.service, "karpenter-service", "", "name of the Service that leads here, by which the API server finds the conversion webhook (NAME:PORT if its port is not --webhook-port); without one older versions of the API are not served")
	f.StringVar(&o.webhookClientCA, "webhook-client-ca", "", "file with the certificates (PEM) of the authority whose clients the conversion webhook answers; empty for any client, because an API server offers no certificate to conversion webhooks by itself")
	f.IntVar(&o.webhookPort, "webhook-port", 8443, "port of the conversion webhook, here and, unless --karpenter-service says another, of the Service; 0 switches it off, and older versions of the API are refused")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
	f.StringVar(&o.logEncoding, "log-encoding", encodingJSON, "json: one JSON object a line; console: lines to read")
	f.StringVar(&o.logOutputs, "log-output-paths", "stdout", "where the log goes, separated by commas")
	f.StringVar(&o.errorOutput, "log-error-output-paths", "stderr", "where errors of logging itself go, separated by commas")
	f.DurationVar(&o.batchMax, "batch-max-duration", 10*time.Second, "longest time for which pending pods are collected before planning")
	f.DurationVar(&o.batchIdle, "batch-idle-duration", time.Second, "time without new pods after which planning begins")
	f.DurationVar(&o.validation, "disruption-validation", 15*time.Second, "how long a consolidation decision must hold before it is validated and executed")
	f.StringVar(&o.preferencePolicy, "preference-policy", "Respect", "Respect or Ignore preferences of pods")
	f.StringVar(&o.minValuesPolicy, "min-values-policy", "Strict", "Strict or BestEffort minValues")
	f.BoolVar(&o.ignoreDRA, "ignore-dra-requests", true, "treat pods with resource claims as unschedulable; false is not supported")
	f.StringVar(&o.featureGates, "feature-gates", "", gates.GatesUsage())
	f.StringVar(&o.schedulerConfig, "scheduler-config", "", "podTopologySpread.defaultConstraints of the cluster's kube-scheduler, YAML or JSON: spread for pods that state none")
	f.StringVar(&o.nodePriceText, "node-overhead-price", "0.005", "cost of a node in addition to its price, in USD per hour; a pool's annotation "+karpv1.AnnotationNodeOverheadPrice+" overrides it")
	f.IntVar(&o.workBudget, "work-budget", defaultWorkBudget, "maximum number of checks whether pods fit a node or pool for one plan, and, 25 times as many, for one search for savings; pods that were not reached are planned next, the namespaces in turn (0: no limit)")
	f.BoolVar(&o.safeToEvict, "honor-safe-to-evict", false, gates.Usage("honor-safe-to-evict"))
	f.BoolVar(&o.proactive, "proactive-scale-up", true, gates.Usage("proactive-scale-up"))
	f.StringVar(&o.brakeText, "unready-brake", "off", gates.Usage("unready-brake"))
	cli.PriorityCutoffFlag(f, &o.pods.PriorityCutoff)
	f.DurationVar(&o.pods.Delay, "new-pod-delay", 0, "least age of a pod for which a node is launched; annotations of a pod increase it")
	f.StringVar(&o.instanceTypesFile, "instance-types-file-path", "", "kwok: file of the available instance types (default: a built-in catalog)")
	f.StringVar(&o.priceFile, "price-file", "", "file with rules for prices and commitments, such as a mounted ConfigMap; it "+
		"is read again when it changes (default: none)")
	o.aws.addFlags(f)
	o.addHiddenFlags(f)
}

// addHiddenFlags adds the flags for tests that run the real binary.
func (o *controllerOptions) addHiddenFlags(f *pflag.FlagSet) {
	f.StringVar(&o.timersText, "timers", "", "waiting times, name=duration separated by commas")
	f.DurationVar(&o.kwokRepair, "kwok-repair-toleration", 0, "kwok: for how long a node may be not ready before it is replaced (0: 10m)")
	for _, name := range []string{"timers", "kwok-repair-toleration", "leader-election-lease"} {
		_ = f.MarkHidden(name) // the names are those of the lines above
	}
}

// protection returns the annotations by which pods are protected.
func (o *controllerOptions) protection() karpv1.ProtectionRules {
	return karpv1.ProtectionRules{SafeToEvict: o.safeToEvict}
}

// state returns what the meaning of objects depends on.
func (o *controllerOptions) state() *state.Config {
	return &state.Config{DefaultSpread: o.defaultSpread, Protection: o.protection(), Pods: o.pods, Overlays: o.on.On(gates.NodeOverlay),
		Replicas: o.proactive, Selection: o.selection, Arrival: o.timers.Arrival}
}

// complete validates the options and derives the others.
func (o *controllerOptions) complete() error {
	for _, choice := range []struct {
		flag, value string
		allowed     []string
	}{
		{"cloud-provider", o.cloudProvider, []string{"aws", "kwok"}},
		{"pod-placement", o.podPlacement, []string{"", "nominate", "observe"}},
		{"log-level", o.logLevel, []string{"", "debug", "info", "error"}},
		{"log-encoding", o.logEncoding, []string{"", encodingJSON, encodingConsole}},
		{"preference-policy", o.preferencePolicy, []string{"Respect", "Ignore"}},
		{"min-values-policy", o.minValuesPolicy, []string{"Strict", "BestEffort"}},
	} {
		if !slices.Contains(choice.allowed, choice.value) {
			return cli.UsageErrorf("--%s is %q, want %s", choice.flag, choice.value, strings.TrimPrefix(strings.Join(choice.allowed, ", "), ", "))
		}
	}
	switch {
	case !o.ignoreDRA:
		return cli.UsageErrorf("--ignore-dra-requests is false: device allocation is not supported; leave it true, then pods with resource claims stay pending with an event that says so")
	case o.qps <= 0 || o.burst <= 0:
		return cli.UsageErrorf("--kube-client-qps and --kube-client-burst are %v and %d, want positive numbers", o.qps, o.burst)
	case o.batchIdle <= 0 || o.batchMax < o.batchIdle:
		return cli.UsageErrorf("--batch-idle-duration and --batch-max-duration are %s and %s, want a positive time and one that is not shorter", o.batchIdle, o.batchMax)
	case o.validation < 0 || o.validation > longestValidation:
		return cli.UsageErrorf("--disruption-validation is %s, want zero to %s", o.validation, longestValidation)
	case o.pods.Delay < 0:
		return cli.UsageErrorf("--new-pod-delay is %s, want zero or more", o.pods.Delay)
	case o.workBudget < 0:
		return cli.UsageErrorf("--work-budget is %d, want zero or more", o.workBudget)
	case o.electionLease < 2*time.Second:
		return cli.UsageErrorf("--leader-election-lease is %s, want at least 2s", o.electionLease)
	case o.kwokRepair < 0:
		return cli.UsageErrorf("--kwok-repair-toleration is %s, want zero or more", o.kwokRepair)
	case o.memoryLimit != -1 && o.memoryLimit < leastMemory:
		return cli.UsageErrorf("--memory-limit is %d bytes, want at least %d (64Mi), or -1 for none", o.memoryLimit, leastMemory)
	}
	for flag, port := range map[string]int{"metrics-port": o.metricsPort, "health-probe-port": o.healthPort, "webhook-port": o.webhookPort} {
		if port < 0 || port > 65535 {
			return cli.UsageErrorf("--%s is %d, want 0 to 65535", flag, port)
		}
	}
	return errors.Join(o.readService(), o.readSelector(), o.readPlacement(), o.readGates(), o.setTimers(), o.checkProvider(),
		o.checkCostLabel())
}

func (o *controllerOptions) checkCostLabel() error {
	if problems := validation.IsQualifiedName(o.costLabel); o.costLabel != "" && len(problems) > 0 {
		return cli.UsageErrorf("--cost-label is %q, want the key of a label: %s", o.costLabel, strings.Join(problems, "; "))
	}
	return nil
}

// readSelector reads which pools are this controller's. A Lease of the default name would make another controller its standby.
func (o *controllerOptions) readSelector() error {
	if o.selectorText == "" {
		return nil
	}
	selector, err := labels.Parse(o.selectorText)
	if err != nil {
		return cli.UsageErrorf("--pool-selector is %q: %w", o.selectorText, err)
	}
	if o.electionName == defaultElection && !o.noElection {
		return cli.UsageErrorf("--pool-selector is set and --leader-election-name has its default: " +
			"each controller of a cluster needs a Lease of its own")
	}
	o.selection = karpv1.Selection{Selector: selector}
	return nil
}

// checkSelection refuses a selector by labels that pools and their claims do not have in common.
func (o *controllerOptions) checkSelection(rules karpv1.LabelRules) error {
	if err := o.selection.Validate(rules); err != nil {
		return cli.UsageErrorf("--pool-selector is %q: %w", o.selectorText, err)
	}
	return nil
}

// readService reads the port from the name of the Service.
func (o *controllerOptions) readService() error {
	name, port, hasPort := strings.Cut(o.service, ":")
	if !hasPort {
		return nil
	}
	number, err := strconv.Atoi(port)
	if err != nil || name == "" || number < 1 || number > 65535 {
		return cli.UsageErrorf("--karpenter-service is %q, want the name of a Service, or NAME:PORT with a port from 1 to 65535", o.service)
	}
	o.service, o.servicePort = name, number
	return nil
}

// checkProvider validates the options that only one of the providers reads.
func (o *controllerOptions) checkProvider() error {
	if o.cloudProvider != "aws" {
		return nil
	}
	notes, err := o.aws.check()
	o.notes = append(o.notes, notes...)
	return err
}

// readPlacement reads the flags about placing pods.
func (o *controllerOptions) readPlacement() error {
	o.placement = placement.Options{IgnorePreferences: o.preferencePolicy == "Ignore", RelaxMinValues: o.minValuesPolicy == "BestEffort", WorkBudget: o.workBudget}
	var err error
	if o.brake, err = disruption.ParseUnreadyBrake(o.brakeText); err != nil {
		return cli.UsageErrorf("--unready-brake: %w", err)
	}
	if o.placement.NodePrice, err = convert.NodePrice(o.nodePriceText); err != nil {
		return cli.UsageErrorf("--node-overhead-price: %w", err)
	}
	if o.defaultSpread, err = convert.ParseSchedulerConfig(o.schedulerConfig); err != nil {
		return cli.UsageErrorf("--scheduler-config: %w", err)
	}
	return nil
}

func (o *controllerOptions) setTimers() error {
	o.timers = controller.Production()
	o.timers.BatchIdle, o.timers.BatchMax, o.timers.Validation = o.batchIdle, o.batchMax, o.validation
	o.timers.Nomination = max(2*o.batchMax, 10*time.Second)
	if err := o.timers.Set(o.timersText); err != nil {
		return cli.UsageErrorf("--timers: %w", err)
	}
	return nil
}

func (o *controllerOptions) readGates() (err error) {
	if o.on, o.notes, err = gates.Read(o.featureGates); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	for _, gate := range []string{gates.CapacityBuffer, gates.NodeOverlay} {
		if o.selectorText != "" && o.on.On(gate) {
			return cli.UsageErrorf("--pool-selector and the feature gate %s are set: its objects concern the pools of all controllers", gate)
		}
	}
	return nil
}
