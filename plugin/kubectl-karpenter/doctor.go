package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/doctor"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// mostSkew is the maximum difference of clocks. It is less than the shortest time that any object of the API uses.
const mostSkew = 10 * time.Second

// consultation holds the flags of the verb.
type consultation struct {
	live          offline.Connection
	provider      string
	aws           awsSettings
	output        string
	account       string
	noElection    bool
	leaseName     string
	leaseSpace    string
	patience      time.Duration
	fromVariables *pflag.FlagSet
	now           func() time.Time
}

// awsSettings are the settings of the controller that determine which resources must exist in AWS.
type awsSettings struct {
	discovery.Kubernetes
	cluster, queue        string
	isolatedVPC, noDryRun bool
	zonalShift            bool
	commitments           bool
}

func (a *awsSettings) addFlags(f *pflag.FlagSet) {
	const same = "; the same as for the controller"
	f.StringVar(&a.cluster, "cluster-name", "", "aws: name of the EKS cluster"+same+"; without it, AWS is not examined")
	f.StringVar(&a.Endpoint, "cluster-endpoint", "", "aws: URL of the API server, as given to nodes"+same)
	f.StringVar(&a.CABundle, "cluster-ca-bundle", "", "aws: certificates of the API server, as given to nodes"+same)
	f.StringVar(&a.queue, "interruption-queue", "", "aws: name of the SQS queue of interruption notices"+same)
	f.BoolVar(&a.zonalShift, "enable-zonal-shift", false, "aws: avoid zones that traffic is shifted away from"+same)
	f.BoolVar(&a.commitments, "commitments-from-aws", false, "aws: read the account's reserved instances and Savings Plans"+same)
	f.BoolVar(&a.isolatedVPC, "isolated-vpc", false, "aws: IAM and the price list cannot be reached"+same)
	f.BoolVar(&a.FromEKS, "eks-control-plane", false, "aws: ask EKS for the version of Kubernetes"+same)
	f.BoolVar(&a.noDryRun, "disable-dry-run", false, "aws: skip dry runs of launches with the node classes"+same)
}

// newDoctorCommand returns the verb that diagnoses an installation.
func newDoctorCommand() *cobra.Command { return doctorCommandAt(time.Now) }

// doctorCommandAt returns the verb with a clock.
func doctorCommandAt(now func() time.Time) *cobra.Command {
	c := consultation{now: now}
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems of an installation, and how to fix them",
		Long: `Examines a live installation, and changes nothing: permissions, CRDs, NodePools and node classes, the leader, the
clocks, stuck NodeClaims, finalizers that are not removed, PodDisruptionBudgets that block drains, and webhooks that
would reject writes of the controller. With --cluster-name, it also examines AWS: permissions, queue, subnets, security
groups, images, roles, tags. Prints each problem and its fix.

By default, the permissions of the current user are examined; --service-account examines those of the controller. Flags
that repeat a setting of the controller can also be set by its environment variables, such as CLUSTER_NAME.

The exit code is 1 if a problem is found.`,
		Example: "  kubectl karpenter doctor --cloud-provider=kwok\n  kubectl karpenter doctor --service-account karpenter/karpenter\n  kubectl karpenter doctor --service-account karpenter/karpenter -o json",
		Args:    cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.run(command.Context(), command.OutOrStdout())
		},
	}
	c.addFlags(command.Flags())
	return command
}

func (c *consultation) addFlags(flags *pflag.FlagSet) {
	addConnectionFlags(flags, &c.live)
	addNamespaceFlag(flags, &c.live, "namespace of the controller (default: any)")
	flags.StringVarP(&c.output, "output", "o", formatText, orList(documents))
	flags.StringVar(&c.account, "service-account", "",
		"the service account of the controller, as NAMESPACE/NAME, whose permissions are examined (default: the current user)")
	flags.DurationVar(&c.patience, "patience", 15*time.Minute, "how long a NodeClaim may take to become a node, and to be deleted")
	c.fromVariables = pflag.NewFlagSet("", pflag.ContinueOnError)
	c.fromVariables.StringVar(&c.provider, "cloud-provider", "",
		"the provider of the controller: aws or kwok (default: from the Deployment of the controller, or from the node classes of NodePools)")
	c.fromVariables.BoolVar(&c.noElection, "disable-leader-election", false, "the same as for the controller")
	c.fromVariables.StringVar(&c.leaseName, "leader-election-name", "karpenter-leader-election", "the same as for the controller")
	c.fromVariables.StringVar(&c.leaseSpace, "leader-election-namespace", "", "the same as for the controller (default: the namespace of the Lease)")
	c.aws.addFlags(c.fromVariables)
	flags.AddFlagSet(c.fromVariables)
}

func (c *consultation) check() error {
	if err := cli.FromEnvironment(c.fromVariables); err != nil {
		return err
	}
	if err := checkOutput(c.output, documents); err != nil {
		return err
	}
	namespace, name, both := strings.Cut(c.account, "/")
	switch {
	case !slices.Contains([]string{"", "aws", "kwok"}, c.provider):
		return cli.UsageErrorf("--cloud-provider is %q, want aws or kwok", c.provider)
	case c.account != "" && (!both || namespace == "" || name == ""):
		return cli.UsageErrorf("--service-account is %q, want NAMESPACE/NAME", c.account)
	case c.patience < 0:
		return cli.UsageErrorf("--patience is %s, want zero or more", c.patience)
	}
	return nil
}

func (c *consultation) run(ctx context.Context, out io.Writer) error {
	report, err := c.examine(ctx)
	if err != nil {
		return err
	}
	switch c.output {
	case formatJSON:
		err = writeJSON(report, out)
	case formatYAML:
		err = asYAML(out, func(out io.Writer) error { return writeJSON(report, out) })
	default:
		_, err = io.WriteString(out, wrappedProse(report.Text(), widthOf(c.output, out)))
	}
	if err == nil && len(report.Findings) > 0 {
		err = fmt.Errorf("found %s", table.Plural(len(report.Findings), "problem"))
	}
	return err
}

// examine reads the cluster, and returns what was found.
func (c *consultation) examine(ctx context.Context) (*doctor.Report, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	source, err := c.source()
	if err != nil {
		return nil, err
	}
	// One clear error is better than a finding for each list.
	if _, err := source.Client.RESTMapper().RESTMapping(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind()); err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", source.Config.Host, err)
	}
	source.Provider = c.provider
	facts := source.Gather(ctx)
	findings := doctor.Examine(facts, doctor.Options{Patience: c.patience, Skew: mostSkew})
	ofProvider, note := c.ofProvider(ctx, source, facts)
	findings = append(findings, ofProvider...)
	report := doctor.NewReport(facts, findings)
	if note != "" {
		report.Notes = append(report.Notes, note)
	}
	return report, nil
}

// source returns the cluster to diagnose.
func (c *consultation) source() (*doctor.Source, error) {
	config, err := c.live.Config()
	if err != nil {
		return nil, err
	}
	scheme, err := api.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), awsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // for example about deprecated v1beta1, when its conversion is tested
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, cli.UsageErrorf("reading the kubeconfig: %w", err)
	}
	s := &doctor.Source{
		Client: reader, Config: config, Now: c.now, Account: c.account,
		Installation: doctor.Installation{LeaseName: c.leaseName, LeaseNamespace: cmp.Or(c.leaseSpace, c.live.Namespace)},
		Installed:    c.live.Namespace,
	}
	if c.noElection {
		s.LeaseName = ""
	}
	// Inside a cluster, the program examines its own cluster unless a flag selects another one.
	if text, err := os.ReadFile(cli.NamespaceFile); err == nil && c.live.Kubeconfig == "" && c.live.Context == "" {
		s.Namespace = strings.TrimSpace(string(text))
	}
	s.Expected, err = crds.Definitions()
	return s, err
}

// ofProvider returns the findings of the provider in its cloud, if it can examine it. The note describes what it
// examined, or why it did not.
func (c *consultation) ofProvider(ctx context.Context, source *doctor.Source, facts *doctor.Facts) (findings []cloud.Finding, note string) {
	if !slices.Contains(facts.Providers, "aws") {
		return nil, "" // simulated nodes have no cloud
	}
	if c.aws.cluster == "" {
		return nil, "AWS is not examined; set --cluster-name" + named(facts) + ", and provide the credentials of the controller"
	}
	cannot := func(err error) ([]cloud.Finding, string) {
		return []cloud.Finding{{Code: doctor.CannotLook, Object: "aws", Problem: "cannot be read: " + offline.OneLine(err),
			Fix: "run the doctor with the environment of the controller, such as AWS_REGION, and its credentials"}}, ""
	}
	cfg, err := aws.Config(ctx, "karpenter.sh-"+programVersion())
	if err != nil {
		return cannot(err)
	}
	kubernetes, err := aws.KubernetesOf(c.aws.Kubernetes, source.Config, source.Client)
	if err != nil {
		return cannot(err)
	}
	var committed func([]pricerule.Rule)
	if c.aws.commitments {
		committed = func([]pricerule.Rule) {} // only whether it may be read is of interest
	}
	provider, err := aws.New(aws.Options{
		Client: source.Client, Live: source.Client, Clients: aws.ClientsOf(cfg), Kubernetes: kubernetes,
		Cluster: c.aws.cluster, Region: cfg.Region, Queue: c.aws.queue,
		IsolatedVPC: c.aws.isolatedVPC, NoDryRun: c.aws.noDryRun, ZonalShift: c.aws.zonalShift, Commitments: committed,
	})
	if err != nil {
		return cannot(err)
	}
	examined := "AWS is examined, too: cluster " + c.aws.cluster + " in " + cfg.Region
	if c.aws.queue == "" {
		return provider.Examine(ctx), examined + "; no interruption queue (--interruption-queue)"
	}
	return provider.Examine(ctx), examined + ", queue " + c.aws.queue
}

// named returns the cluster's name in the settings of a Deployment of the controller, as the value of a flag.
func named(facts *doctor.Facts) string {
	for i := range facts.Controllers {
		if name := facts.Controllers[i].Settings["CLUSTER_NAME"]; name != "" {
			return "=" + name
		}
	}
	return ""
}
