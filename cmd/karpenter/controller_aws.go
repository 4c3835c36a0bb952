package main

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/gates"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// awsOptions holds the flags of the AWS provider. Names, environment variables and defaults are those of
// https://karpenter.sh/docs/reference/settings/.
type awsOptions struct {
	clusterName, clusterEndpoint, caBundle string
	isolatedVPC, eksControlPlane           bool
	memoryOverhead                         float64
	queue                                  string
	reservedENIs                           int64
	noDryRun                               bool
	zonalShift                             bool
	interruptionBackoff                    time.Duration
	commitments                            bool
	amiRefresh, subnetRefresh              time.Duration
	gates                                  string
	kubeletExpressions                     bool // the gate NodeClassCEL
	instanceProfile                        string
}

// leastRefresh is the minimum refresh interval. It keeps the number of AWS requests within AWS's limits.
const leastRefresh = time.Minute

func (a *awsOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&a.clusterName, "cluster-name", "", "aws: name of the EKS cluster (required)")
	f.StringVar(&a.clusterEndpoint, "cluster-endpoint", "", "aws: URL of the API server, as given to nodes (default: what EKS says)")
	f.StringVar(&a.caBundle, "cluster-ca-bundle", "", "aws: certificates of the API server, as given to nodes, PEM in base64 (default: those that the controller itself trusts)")
	f.BoolVar(&a.isolatedVPC, "isolated-vpc", false, "aws: IAM and the price list cannot be reached: embedded prices are used, and instance profiles are not removed")
	f.BoolVar(&a.eksControlPlane, "eks-control-plane", false, "aws: ask EKS for the version of Kubernetes, not the API server")
	f.Float64Var(&a.memoryOverhead, "vm-memory-overhead-percent", 0.075, "aws: part of an instance's memory that its node does not see, until one has been seen")
	f.StringVar(&a.queue, "interruption-queue", "", "aws: name of the SQS queue of interruption notices; none is listened to without")
	f.DurationVar(&a.interruptionBackoff, "interruption-backoff", instance.UnavailableFor,
		"aws: how long at most a spot offering is avoided that is interrupted again and again, 3m to 1h; with 3m, for 3 minutes "+
			"after each interruption")
	f.Int64Var(&a.reservedENIs, "reserved-enis", 0, "aws: network interfaces of each node that pods cannot use")
	f.BoolVar(&a.noDryRun, "disable-dry-run", false, "aws: do not try, without launching, whether a node class could be launched")
	f.BoolVar(&a.zonalShift, "enable-zonal-shift", false,
		"aws: avoid zones that traffic is shifted away from (Amazon Application Recovery Controller)")
	f.BoolVar(&a.commitments, "commitments-from-aws", false,
		"aws: read the account's reserved instances and Savings Plans every hour, and plan with what others leave of them")
	f.DurationVar(&a.amiRefresh, "ami-refresh-interval", time.Minute, "aws: how long images that were found are not looked for again, 1m or more")
	f.DurationVar(&a.subnetRefresh, "subnet-refresh-interval", time.Minute, "aws: how long subnets that were found are not looked for again, 1m or more")
	f.StringVar(&a.instanceProfile, "default-instance-profile", "", "aws: instance profile of Provisioners and AWSNodeTemplates that name none")
	f.StringVar(&a.gates, "aws-feature-gates", "",
		"aws: Name=true|false, separated by commas (NodeClassCEL: expressions in spec.kubelet of EC2NodeClasses)")
}

// errNoClusterName may be resolved by settings of versions before v1, which are stored in the cluster.
var errNoClusterName = errors.New("--cluster-name is missing")

// check rejects options with which the provider cannot run.
func (a *awsOptions) check() (notes []string, err error) {
	switch {
	case a.clusterName == "":
		return nil, cli.UsageErrorf("%w: want the name of the EKS cluster (or the variable CLUSTER_NAME)", errNoClusterName)
	case !(a.memoryOverhead >= 0 && a.memoryOverhead < 1):
		return nil, cli.UsageErrorf("--vm-memory-overhead-percent is %v, want 0 or more and less than 1 (0.075 is 7.5 per cent)", a.memoryOverhead)
	case a.reservedENIs < 0:
		return nil, cli.UsageErrorf("--reserved-enis is %d, want 0 or more", a.reservedENIs)
	case a.interruptionBackoff < instance.UnavailableFor || a.interruptionBackoff > instance.MaxInterruptionBackoff:
		return nil, cli.UsageErrorf("--interruption-backoff is %s, want 3m to 1h", a.interruptionBackoff)
	case a.amiRefresh < leastRefresh || a.subnetRefresh < leastRefresh:
		return nil, cli.UsageErrorf("--ami-refresh-interval and --subnet-refresh-interval are %s and %s, want %s or more", a.amiRefresh, a.subnetRefresh, leastRefresh)
	case a.clusterEndpoint != "" && !strings.HasPrefix(a.clusterEndpoint, "https://"):
		return nil, cli.UsageErrorf("--cluster-endpoint is %q, want a URL that begins with https://", a.clusterEndpoint)
	}
	if _, err := base64.StdEncoding.DecodeString(a.caBundle); err != nil {
		return nil, cli.UsageErrorf("--cluster-ca-bundle is not base64: want PEM in base64: %w", err)
	}
	return a.readGates()
}

func (a *awsOptions) readGates() (notes []string, err error) {
	for item := range strings.SplitSeq(a.gates, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		on, err := strconv.ParseBool(value)
		switch {
		case err != nil:
			return nil, cli.UsageErrorf("--aws-feature-gates: %q, want Name=true or Name=false", item)
		case name != "NodeClassCEL":
			notes = append(notes, "--aws-feature-gates: "+name+" is not known and ignored; the only one is NodeClassCEL")
		default:
			a.kubeletExpressions = on
		}
	}
	return notes, nil
}

// addAWS sets up the provider. It checks in this order: the configuration, the network and the credentials, the
// cluster. Nothing runs before these checks.
func (w *wiring) addAWS(ctx context.Context) error {
	a := &w.o.aws
	cfg, err := aws.Config(ctx, "karpenter.sh-"+programVersion())
	if err != nil {
		return err
	}
	if err := w.process.insist(ctx, "the source of AWS credentials", func() error { return aws.Credentials(ctx, cfg) }); err != nil {
		return err
	}
	asked := discovery.Kubernetes{FromEKS: a.eksControlPlane, Endpoint: a.clusterEndpoint, CABundle: a.caBundle}
	kubernetes, err := aws.KubernetesOf(asked, w.config, w.mgr.GetAPIReader())
	if err != nil {
		return err
	}
	metrics := telemetry.NewAWS(ctrlmetrics.Registry)
	cfg.APIOptions = append(cfg.APIOptions, watchSDK(metrics), guardSDK(w.leading))
	clients := aws.ClientsOf(cfg)
	if err := w.process.insist(ctx, "EC2", func() error { return aws.Reachable(ctx, clients) }); err != nil {
		return err
	}
	var committed func([]pricerule.Rule)
	if a.commitments {
		committed = w.prices.ofCloud
	}
	provider, err := aws.New(aws.Options{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Clients: clients, Kubernetes: kubernetes, Cluster: a.clusterName, Region: cfg.Region,
		Namespace: ownNamespace(w.o.electionNamespace), MemoryOverheadPercent: a.memoryOverhead, ReservedENIs: a.reservedENIs, Queue: a.queue,
		KubeletExpressions: a.kubeletExpressions,
		Selection:          w.o.selection, IsolatedVPC: a.isolatedVPC, NoDryRun: a.noDryRun, OpenReservations: !w.o.on.On(gates.ReservedCapacity),
		ZonalShift: a.zonalShift, InterruptionBackoff: a.interruptionBackoff, Commitments: committed,
		Lifetimes: discovery.Lifetimes{Images: a.amiRefresh, Subnets: a.subnetRefresh},
		Clock:     w.clock, Ahead: w.skew.Ahead, Changed: w.restock, Observer: w.observeAWS(metrics),
	})
	if err != nil {
		return err
	}
	err = w.process.insist(ctx, "EKS", func() error {
		_, err := provider.Sources().Cluster.Facts(ctx)
		return err
	})
	if err != nil {
		return err
	}
	log := w.mgr.GetLogger().WithName("aws")
	log.Info("instance types and prices come from EC2; until then, and where EC2 cannot be called, the built-in ones are used", "builtIn", upkeep.Embedded(catalog.Load(), cfg.Region))
	if err := provider.Prepare(ctx); err != nil {
		log.Error(err, "instance types or prices are the built-in ones, or zonal shifts or commitments are not known; the call is retried")
	}
	warn(ctx, provider)
	w.provider = provider
	return errors.Join(provider.SetupWithManager(ctx, w.mgr), w.mgr.Add(everywhere(w.followStock)))
}

// warn writes a line about each setting that has no effect.
func warn(ctx context.Context, provider *aws.Provider) {
	log := ctrllog.FromContext(ctx).WithName("aws")
	ineffective, err := provider.Ineffective(ctx)
	if err != nil {
		log.Error(err, "settings without effect are not known")
	}
	for _, found := range ineffective {
		log.Info("warning: a setting has no effect", "setting", found.Setting, "because", found.Because)
	}
}

// ownNamespace returns the namespace of the program's own objects.
func ownNamespace(given string) string {
	if given != "" {
		return given
	}
	if own, err := os.ReadFile(cli.NamespaceFile); err == nil && len(own) > 0 {
		return strings.TrimSpace(string(own))
	}
	return "kube-system"
}

// restock requests that all catalogs are read again. It does not wait.
func (w *wiring) restock() {
	select {
	case w.stock <- struct{}{}:
	default: // a request is already pending
	}
}

// followStock reads the catalogs again on each request, until ctx ends.
func (w *wiring) followStock(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.stock:
		}
		reading, cancel := context.WithTimeout(ctx, w.o.timers.CatalogRead)
		w.store.RefreshCatalogs(reading)
		cancel()
	}
}

// everywhere is a runnable that runs on all replicas, not only on the leader.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e everywhere) NeedLeaderElection() bool { return false }
