package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	"sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/client"
)

// kubelets configures the simulated kubelets. Stages are read from files or are kwok's defaults, never from the
// cluster, so no CRD is needed.
type kubelets struct {
	kubeconfig    string
	serverAddress string
	selector      string
	identity      string
	leaseSeconds  uint
	parallelism   uint
	stageFiles    []string
	logLevel      string
}

func runKwok() int {
	var k kubelets
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster whose nodes are simulated (required)")
	flags.StringVar(&k.serverAddress, "server-address", "", "host:port that serves /healthz; empty for none")
	flags.StringVar(&k.selector, "manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake", "nodes to simulate, by annotation")
	flags.StringVar(&k.identity, "identity", "kwok-sandbox",
		"holder of the node leases; keep it over restarts, or nodes wait for their leases to expire")
	flags.UintVar(&k.leaseSeconds, "node-lease-duration-seconds", 40, "length of a node lease in seconds, renewed after a quarter of it")
	flags.UintVar(&k.parallelism, "parallelism", 16, "changes to pods, and to nodes, under way at a time")
	flags.StringArrayVar(&k.stageFiles, "stages", nil, "file of kwok Stage objects that replaces the built-in fast stages; may be repeated")
	flags.StringVar(&k.logLevel, "v", "WARN", "log level: DEBUG, INFO, WARN or ERROR")
	if err := flags.Parse(os.Args[1:]); errors.Is(err, pflag.ErrHelp) {
		return 0
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := k.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 1
	}
	return 0
}

func (k *kubelets) run(ctx context.Context) error {
	level, err := log.ParseLevel(k.logLevel)
	if err != nil {
		return fmt.Errorf("reading --v: %w", err)
	}
	ctx = log.NewContext(ctx, log.NewLogger(os.Stderr, level))
	if k.kubeconfig == "" {
		return errors.New("--kubeconfig is required")
	}
	stages, err := k.stages(ctx)
	if err != nil {
		return err
	}
	conf, err := k.controllerConfig(stages)
	if err != nil {
		return fmt.Errorf("connecting with %s: %w", k.kubeconfig, err)
	}
	ready, err := k.serveHealth(ctx)
	if err != nil {
		return err
	}
	controller, err := controllers.NewController(conf)
	if err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	ready.Store(true)
	<-ctx.Done()
	return nil
}

// stages returns the stages of nodes and pods, by kind.
func (k *kubelets) stages(ctx context.Context) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	var all []*internalversion.Stage
	if len(k.stageFiles) > 0 {
		objects, err := config.Load(ctx, k.stageFiles...)
		if err != nil {
			return nil, fmt.Errorf("reading stages: %w", err)
		}
		all = config.FilterWithType[*internalversion.Stage](objects)
	} else {
		for _, text := range []string{
			fast.DefaultNodeInit, heartbeat_with_lease.DefaultNodeHeartbeatWithLease,
			podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
		} {
			stage, err := config.UnmarshalWithType[*internalversion.Stage](text)
			if err != nil {
				return nil, fmt.Errorf("reading a built-in stage: %w", err)
			}
			all = append(all, stage)
		}
	}
	byKind := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, stage := range all {
		byKind[stage.Spec.ResourceRef] = append(byKind[stage.Spec.ResourceRef], stage)
	}
	if len(byKind) == 0 {
		return nil, fmt.Errorf("no Stage objects in %v", k.stageFiles)
	}
	return byKind, nil
}

func (k *kubelets) controllerConfig(stages map[internalversion.StageResourceRef][]*internalversion.Stage) (controllers.Config, error) {
	clients, err := client.NewClientset("", k.kubeconfig)
	if err != nil {
		return controllers.Config{}, err
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return controllers.Config{}, err
	}
	dynamicClient, err := clients.ToDynamicClient()
	if err != nil {
		return controllers.Config{}, err
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
		return controllers.Config{}, err
	}
	restClient, err := rest.RESTClientFor(restConfig)
	if err != nil {
		return controllers.Config{}, err
	}
	typed, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return controllers.Config{}, err
	}
	typedKwok, err := versioned.NewForConfig(restConfig)
	if err != nil {
		return controllers.Config{}, err
	}
	return controllers.Config{
		Clock:                             clock.RealClock{},
		DynamicClient:                     dynamicClient,
		RESTClient:                        restClient,
		RESTMapper:                        mapper,
		ImpersonatingDynamicClient:        clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:          clients.ToImpersonatingTypedClient(),
		TypedClient:                       typed,
		TypedKwokClient:                   typedKwok,
		ManageNodesWithAnnotationSelector: k.selector,
		CIDR:                              "10.0.0.0/24",
		LocalStages:                       stages,
		PodPlayStageParallelism:           k.parallelism,
		NodePlayStageParallelism:          k.parallelism,
		NodeLeaseDurationSeconds:          k.leaseSeconds,
		NodeLeaseParallelism:              k.parallelism,
		PodsOnNodeSyncParallelism:         k.parallelism,
		EnablePodsOnNodeSyncListPager:     true,
		ID:                                k.identity,
	}, nil
}

// serveHealth serves /healthz, /livez and /readyz: 200 once the returned flag is set, 503 before.
func (k *kubelets) serveHealth(ctx context.Context) (*atomic.Bool, error) {
	ready := &atomic.Bool{}
	if k.serverAddress == "" {
		return ready, nil
	}
	listener, err := net.Listen("tcp", k.serverAddress)
	if err != nil {
		return nil, fmt.Errorf("listening for health checks: %w", err)
	}
	answer := func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc(path, answer)
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	go func() { <-ctx.Done(); _ = server.Close() }()
	return ready, nil
}
