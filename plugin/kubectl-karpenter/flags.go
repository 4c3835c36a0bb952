package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// addConnectionFlags adds kubectl's flags that select the cluster and the user.
func addConnectionFlags(flags *pflag.FlagSet, c *offline.Connection) {
	c.Version = programVersion()
	f := genericclioptions.NewConfigFlags(false)
	f.KubeConfig, f.Context = &c.Kubeconfig, &c.Context
	f.CacheDir = nil  // nothing is cached
	f.Namespace = nil // its meaning differs by verb: addNamespaceFlag adds the flag
	kubectl := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(kubectl)
	f.Namespace = &c.Namespace
	c.Loader = func() (clientcmd.ClientConfig, bool) { return f.ToRawKubeConfigLoader(), *f.APIServer != "" }
	kubectl.VisitAll(func(flag *pflag.Flag) {
		flag.Usage = strings.TrimSuffix(flag.Usage, ".")
		if second := flag.Usage[1:2]; second != strings.ToUpper(second) { // not UID
			flag.Usage = strings.ToLower(flag.Usage[:1]) + flag.Usage[1:]
		}
	})
	for name, usage := range connectionUsage {
		kubectl.Lookup(name).Usage = usage
	}
	cli.Share(kubectl)
	flags.AddFlagSet(kubectl)
}

// connectionUsage replaces usage texts of kubectl that are long.
var connectionUsage = map[string]string{
	"kubeconfig":               "kubeconfig file of the cluster (default: as kubectl finds it: KUBECONFIG, the home directory; else the cluster that the program runs in)",
	"context":                  "context of the kubeconfig (default: its current context)",
	"as":                       "user to impersonate, or a service account as system:serviceaccount:NAMESPACE:NAME",
	"as-group":                 "group to impersonate; may be repeated",
	"as-user-extra":            "extra field KEY=VALUE of the user to impersonate; may be repeated",
	"tls-server-name":          "name that the server's certificate must have (default: the host name of its address)",
	"insecure-skip-tls-verify": "do not check the server's certificate: such a connection is not secure",
	"disable-compression":      "ask for responses that are not compressed",
	"request-timeout":          "time limit of a single request, such as 30s; 0: none",
}

// newOptionsCommand returns the help topic for the flags that all verbs share that read a cluster.
func newOptionsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   cli.OptionsCommand,
		Short: "List the flags that select the cluster and the user",
		Long:  "These flags mean the same as with kubectl. All verbs have them that read a cluster.",
		Args:  cli.NoArguments,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	addConnectionFlags(command.Flags(), &offline.Connection{})
	cli.Unshare(command.Flags())
	return command
}

// addNamespaceFlag adds the flag -n with the usage text.
func addNamespaceFlag(flags *pflag.FlagSet, c *offline.Connection, usage string) {
	flags.StringVarP(&c.Namespace, "namespace", "n", "", usage)
}

// addFilesFlag adds the flag -f for what is read, and its earlier name.
func addFilesFlag(flags *pflag.FlagSet, files *[]string, usage string) {
	flags.StringArrayVarP(files, "filename", "f", nil, usage+"; - for standard input; may be repeated")
	earlier := *flags.Lookup("filename")
	earlier.Name, earlier.Shorthand, earlier.Hidden = "from", "", true
	flags.AddFlag(&earlier)
}

// addClusterFlags adds the flags that select the cluster and the source of its prices.
func addClusterFlags(flags *pflag.FlagSet, c *offline.Cluster) {
	addConnectionFlags(flags, &c.Connection)
	flags.StringVar(&c.CloudProvider, "cloud-provider", "",
		"aws: ask AWS for types and prices of its pools; kwok: exclude pools of other providers (default: each pool by its own node class, with the types and prices of AWS that are built in)")
	flags.Float64Var(&c.MemoryOverhead, "vm-memory-overhead-percent", 0.075,
		"aws: part of an instance's memory that its node does not see, as the controller has it")
	flags.Int64Var(&c.ReservedENIs, "reserved-enis", 0, "aws: network interfaces of each node that pods cannot use, as the controller has it")
	cli.Hide(flags, "vm-memory-overhead-percent", "reserved-enis")
}

// addPolicyFlags adds the options of a decision.
func addPolicyFlags(flags *pflag.FlagSet, p *offline.Policy) {
	*p = offline.DefaultPolicy()
	flags.StringVar(&p.Preferences, "preference-policy", p.Preferences, "Respect or Ignore preferences of pods")
	flags.StringVar(&p.MinValues, "min-values-policy", p.MinValues, "Strict or BestEffort minValues")
	flags.Float64Var(&p.NodePrice, "node-overhead-price", p.NodePrice, "cost of a node in addition to its price, in USD per hour")
	flags.IntVar(&p.PackingEffort, "packing-effort", p.PackingEffort, "how many times the usual work may be spent on a cheaper plan")
	flags.IntVar(&p.WorkBudget, "work-budget", p.WorkBudget,
		"maximum number of checks whether pods fit a node or pool; the plan made by then is the answer (0: no limit)")
	flags.StringVar(&p.SchedulerConfig, "scheduler-config", p.SchedulerConfig, "default topology spread, as text of YAML or JSON")
	addPriceFlag(flags, p)
	cli.PriorityCutoffFlag(flags, &p.PodRules.PriorityCutoff)
	flags.StringVar(&p.UnreadyBrake, "unready-brake", "off", "that of the controller: a share and a number of nodes that are not ready, such as 45%,3; or off")
	flags.DurationVar(&p.PodRules.Delay, "new-pod-delay", 0, "least age of a pod for which a node is launched, as for the controller")
	cli.Hide(flags, "packing-effort", "work-budget")
}

// addPriceFlag adds the file of the user's own prices.
func addPriceFlag(flags *pflag.FlagSet, p *offline.Policy) {
	flags.StringVar(&p.PriceFile, "price-file", "", "file with rules for prices and commitments, as the controller has it")
}

// addDisruptFlags adds the options that matter only for disruption.
func addDisruptFlags(flags *pflag.FlagSet, p *offline.Policy) {
	e := &p.Economics
	flags.DurationVar(&e.Payback, "payback", e.Payback,
		"time over which a saving must exceed the price of the disruption, for pools that do not set it")
	flags.DurationVar(&e.MinStay, "min-stay", e.MinStay,
		"time after a consolidation within which moving the same pods again costs twenty times as much, for pools that do not set it")
	flags.Float64Var(&e.MovePrice, "move-price", e.MovePrice, "price of moving a pod of eviction cost 1, in USD, for pools that do not set it")
	flags.Float64Var(&e.MinSaving, "min-saving", e.MinSaving, "least saving in USD per hour, for pools that do not set it")
	flags.StringVar(&p.FeatureGates, "feature-gates", "",
		"those of the controller, Name=true|false, separated by commas; ReservedCapacity, SpotToSpotConsolidation and StaticCapacity matter")
}
