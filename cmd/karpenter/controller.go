package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// newControllerCommand returns the verb that runs in the cluster. It provisions nodes for pending pods and removes
// nodes that are no longer needed.
func newControllerCommand() *cobra.Command {
	o := newControllerOptions()
	command := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller: launch nodes for unschedulable pods and remove nodes that are no longer needed",
		Long: `Run the controller against a cluster that has the CRDs installed.

Every flag can be given by an environment variable too, named like the flag in
capitals with underscores: --metrics-port is METRICS_PORT. A flag wins over its
variable; a variable that is empty counts as not set. The cluster is the one that
--kubeconfig or KUBECONFIG names, or the one that the program runs in.`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.read(command.Flags()); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runController(ctx, o)
		},
	}
	o.addFlags(command.Flags())
	return command
}

// read reads the flags and the environment. Settings that only the cluster holds are added by readOlder.
func (o *controllerOptions) read(flags *pflag.FlagSet) error {
	o.older = legacy.NewSettings(flags)
	if err := cli.FromEnvironment(flags); err != nil {
		return err
	}
	if err := o.older.ReadEnvironment(os.Getenv); err != nil {
		return err
	}
	if o.incomplete = o.complete(); errors.Is(o.incomplete, errNoClusterName) {
		return nil
	}
	return o.incomplete
}

// readOlder adds settings of versions before v1 that are stored in the cluster.
func (o *controllerOptions) readOlder(ctx context.Context, config *rest.Config) error {
	if err := o.older.ReadConfigMap(ctx, config, ownNamespace(o.electionNamespace)); err != nil {
		o.incomplete = nil // errors in the ConfigMap are reported first
		return err
	}
	o.incomplete = o.complete()
	return o.incomplete
}

// garbage is how large the garbage may become before it is collected, in percent of the live memory. With Go's default of
// 100, the greatest memory of a start with 5,000 nodes is 46% larger, and its CPU 24% less (docs/performance.md). GOGC takes
// precedence.
const garbage = 50

// runController runs until the context ends. It returns nil in that case.
func runController(ctx context.Context, o *controllerOptions) error {
	log, flush, err := newControllerLog(o)
	if err != nil {
		return err
	}
	defer flush()
	log = calmStop(ctx, log)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	ctx = ctrllog.IntoContext(ctx, log)
	for _, line := range slices.Concat(o.notes, o.older.Notes()) {
		log.Info(line)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if o.memoryLimit > 0 {
		debug.SetMemoryLimit(o.memoryLimit / 10 * 9)
	}
	p, err := newProcess(o)
	if err != nil {
		return err
	}
	defer p.close()
	find := func() (*rest.Config, *version.Info, error) { return connect(o) }
	if p.rejoins {
		find = func() (*rest.Config, *version.Info, error) { return p.reconnect(ctx, log) }
	}
	config, server, err := find()
	if err == nil {
		err = o.readOlder(ctx, config)
	}
	if err != nil {
		return cmp.Or(o.incomplete, err)
	}
	for _, line := range o.older.Notes() {
		log.Info(line)
	}
	p.probes.waits("starting")
	mgr, err := newController(ctx, p, config, server)
	if err != nil {
		return err
	}
	log.Info("starting", "version", programVersion(), "cloudProvider", o.cloudProvider, "serverVersion", server.GitVersion)
	err = p.lead(ctx, mgr)
	if lostElection(ctx, err) {
		log.Info("the Lease is lost; starting again as a standby", "identity", p.identity)
		flush()
		err = startAgain(p.identity)
	}
	if err != nil {
		return fmt.Errorf("running the controller: %w", err)
	}
	return nil
}

// connectTimeout bounds each request that tests the connection.
const connectTimeout = 5 * time.Second

// connect connects to the cluster and checks that the API server responds and serves the required kinds. A clear
// error now is better than informers that never sync.
func connect(o *controllerOptions) (*rest.Config, *version.Info, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil, cli.UsageErrorf("no cluster: give --kubeconfig FILE or set KUBECONFIG, or run inside a cluster")
	}
	if err != nil {
		return nil, nil, cli.UsageErrorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	config.UserAgent = "karpenter/" + programVersion()
	brief := rest.CopyConfig(config)
	brief.Timeout = connectTimeout
	client, err := discovery.NewDiscoveryClientForConfig(brief)
	if err != nil {
		return nil, nil, cli.UsageErrorf("reading the kubeconfig: %w", err)
	}
	server, err := client.ServerVersion()
	if err != nil {
		return nil, nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	if _, err := client.ServerResourcesForGroupVersion(karpv1.GroupVersion.String()); err != nil {
		return nil, nil, fmt.Errorf("looking for NodePool and NodeClaim: the API server at %s does not serve %s; install the CRDs first: %w",
			config.Host, karpv1.GroupVersion, err)
	}
	return config, server, nil
}

// programVersion returns the version that the program was built from.
func programVersion() string { return cli.Version(release) }
