package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awssim/kubelet"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// awsSim holds the flags of "aws-sim".
type awsSim struct {
	listen     string
	noLimits   bool
	kubeconfig string
	options    awssim.Options
}

// newAWSSim returns the verb that runs the simulated AWS.
func newAWSSim() *cobra.Command {
	var sim awsSim
	command := &cobra.Command{
		Use:   "aws-sim",
		Short: "Run a simulated AWS that the SDK's endpoint can be set to",
		Long: `Answer EC2, SSM, EKS, SQS, Pricing, IAM and STS as AWS does, until SIGINT, for the
calls that the AWS provider makes. Set AWS_ENDPOINT_URL to the address that it
prints; any credentials will do. The types, their zones and on-demand prices are
AWS's; capacity and spot prices are invented. Nothing is kept when it ends.

With --kubeconfig of a sandbox ("karpenter-sandbox kubeconfig") an instance that has
booted becomes a node of it, as its user data says, and one whose user data is wrong
never joins; standard error says why.

POST /_admin/VERB with JSON breaks things, GET /_admin/instances tells what runs;
an unknown VERB lists all of them.`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return sim.run(ctx, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&sim.listen, "listen", "127.0.0.1:4566", "address to answer on; port 0 takes a free one")
	flags.StringVar(&sim.kubeconfig, "kubeconfig", "", "kubeconfig of a sandbox whose nodes the instances become; without one they only run")
	flags.StringVar(&sim.options.Region, "region", "us-east-1", "us-east-1, us-west-2 or eu-west-1")
	flags.StringVar(&sim.options.Cluster.Name, "cluster-name", "sandbox", "EKS cluster that exists")
	flags.StringVar(&sim.options.Cluster.Endpoint, "cluster-endpoint", "", "URL of the cluster's API server")
	flags.StringVar(&sim.options.Queue, "interruption-queue", "sandbox", "SQS queue that events are sent to")
	flags.Uint64Var(&sim.options.Seed, "seed", 0, "of everything that is invented")
	flags.Float64Var(&sim.options.Scarcity, "scarcity", 0, "share of spot pools, 0 to 1, that are dry at any time")
	flags.DurationVar(&sim.options.Lag, "lag", 2*time.Second, "how stale reads may be")
	flags.BoolVar(&sim.noLimits, "no-limits", false, "do not throttle at AWS's published limits")
	return command
}

// run serves requests until ctx ends.
func (s awsSim) run(ctx context.Context, out io.Writer) error {
	if s.options.Scarcity < 0 || s.options.Scarcity > 1 {
		return cli.UsageErrorf("--scarcity is %g, want 0 to 1", s.options.Scarcity)
	}
	if s.options.Lag < 0 {
		return cli.UsageErrorf("--lag is %s, want a time such as 2s", s.options.Lag)
	}
	if s.noLimits {
		s.options.Limits = map[string]awssim.Limit{}
	}
	if s.kubeconfig != "" {
		if err := s.join(); err != nil {
			return err
		}
	}
	cloud, err := awssim.New(s.options)
	if err != nil {
		return cli.UsageErrorf("%w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("opening the address of the simulated AWS: %w", err)
	}
	fmt.Fprintf(out, "AWS_ENDPOINT_URL=http://%s\n", listener.Addr())
	return cloud.Serve(ctx, listener)
}

// join makes instances nodes of the kubeconfig's cluster. The simulated EKS then knows this cluster.
func (s *awsSim) join() error {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return cli.UsageErrorf("--kubeconfig: %w", err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return cli.UsageErrorf("--kubeconfig: %w", err)
	}
	joined, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting the simulated instances to the cluster: %w", err)
	}
	if s.options.Cluster.Endpoint == "" {
		s.options.Cluster.Endpoint = config.Host
	}
	s.options.Cluster.CA = string(config.CAData)
	s.options.Hook = &kubelet.Kubelets{
		Client: joined,
		Cluster: kubelet.Cluster{Name: s.options.Cluster.Name, Endpoint: s.options.Cluster.Endpoint,
			Authority: base64.StdEncoding.EncodeToString(config.CAData)},
		Log: func(text string) { fmt.Fprintln(os.Stderr, text) },
	}
	return nil
}
