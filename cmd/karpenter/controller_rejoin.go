package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// A leader that cannot renew its Lease because the API server is unreachable must stop at once: another process may
// lead by then. The usual way is to exit and be restarted, which looks like a crash and has a growing back-off.
// Instead, the program replaces itself by exec: all state is discarded and the container continues. The new program
// waits for the API server and takes part in the election under the identity of the old one. It does not wait for its
// own Lease to expire: the old program was the same process, so it cannot be leading.

// identityVariable passes the identity of the election to the program that replaces this one.
const identityVariable = "KARPENTER_GO_ELECTION_IDENTITY"

// rejoinPause is the time between two attempts to reach the API server.
const rejoinPause = 500 * time.Millisecond

// process is what the program has besides its options: it exists before there is a manager, and when one has ended.
type process struct {
	o *controllerOptions
	// identity is that in the leader election; rejoins means that an earlier program in the same container had it.
	identity string
	rejoins  bool
	// probes are served from the start.
	probes *probes
	// captures receives when a capture is asked for (SIGUSR1).
	captures chan os.Signal
	// unreadable reports objects that cannot be read.
	unreadable *unreadables
	// stopLeading ends the running manager, if there is one.
	stopLeading context.CancelCauseFunc
}

// newProcess returns the process, which serves probes from now on.
func newProcess(o *controllerOptions) (*process, error) {
	p := &process{o: o, captures: make(chan os.Signal, 1), unreadable: newUnreadables()}
	signal.Notify(p.captures, syscall.SIGUSR1)
	p.identity, p.rejoins = electionIdentity()
	var err error
	p.probes, err = serveProbes(o.healthPort)
	return p, err
}

// close ends what newProcess began.
func (p *process) close() {
	signal.Stop(p.captures)
	p.probes.close()
}

// electionIdentity returns the identity of this process in the leader election, and whether an earlier program of the
// process already used it.
func electionIdentity() (identity string, rejoined bool) {
	if identity = os.Getenv(identityVariable); identity != "" {
		return identity, true
	}
	host, err := os.Hostname()
	if err != nil {
		host = "karpenter"
	}
	return host + "_" + string(uuid.NewUUID()), false
}

// electionLock returns the Lease of the election. Events report which process leads.
func (p *process) electionLock(config *rest.Config, scheme *runtime.Scheme) (resourcelock.Interface, error) {
	o := p.o
	if o.noElection {
		return nil, nil
	}
	// The configuration is copied, because the timeout below would end watches.
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = max(o.electionRenewal()/2, time.Second) // a request that hangs must not lose the Lease
	// A separate dialer gives a separate connection: renewals do not queue behind writes of claims and events, nor
	// behind watches, on the connection that clients of one configuration share.
	config.Dial = (&net.Dialer{Timeout: config.Timeout, KeepAlive: 30 * time.Second}).DialContext
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("setting up the leader election: %w", err)
	}
	namespace := ownNamespace(o.electionNamespace)
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(namespace)})
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, o.electionName, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: p.identity, EventRecorder: broadcaster.NewRecorder(scheme,
			corev1.EventSource{Component: p.identity})})
	if err != nil {
		return nil, fmt.Errorf("setting up the leader election: %w", err)
	}
	return lock, nil
}

// electionRenewal is how long a leader tries to renew its Lease before it gives up.
func (o *controllerOptions) electionRenewal() time.Duration { return o.electionLease * 2 / 3 }

// lead runs the manager until the context ends or this process stops leading, which is an error. It does not wait for
// work in progress when another process leads, because this process may not write anymore.
func (p *process) lead(ctx context.Context, mgr manager.Manager) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.stopLeading = stop
	err := mgr.Start(running)
	if cause := context.Cause(running); errors.Is(cause, errAnotherLeads) && ctx.Err() == nil {
		return cause
	}
	return err
}

// errAnotherLeads ends a manager whose Lease another process holds. Its text begins like the error of
// controller-runtime.
var errAnotherLeads = errors.New(leaseGivenBack + ": another process holds the Lease")

// endLead makes the manager stop leading.
func (p *process) endLead() {
	if p.stopLeading != nil {
		p.stopLeading(errAnotherLeads)
	}
}

// lostElection reports whether the manager ended because it no longer leads. controller-runtime has no exported error
// for that.
func lostElection(ctx context.Context, err error) bool {
	return ctx.Err() == nil && err != nil && strings.Contains(err.Error(), "leader election lost")
}

// startAgain replaces the program by itself (exec). It returns only if that fails.
func startAgain(identity string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("starting again: %w", err)
	}
	if err := os.Setenv(identityVariable, identity); err != nil {
		return fmt.Errorf("starting again: %w", err)
	}
	return fmt.Errorf("starting again: %w", syscall.Exec(program, os.Args, os.Environ()))
}

// reconnect connects to the cluster after its API server was unreachable, however long that takes. Meanwhile the
// process is alive and not ready (probes).
func (p *process) reconnect(ctx context.Context, log logr.Logger) (*rest.Config, *version.Info, error) {
	p.probes.waits("the API server is away")
	var config *rest.Config
	var server *version.Info
	err := untilAnswered(ctx, log.WithValues("for", "the API server"), func() (err error) {
		config, server, err = connect(p.o)
		return err
	})
	return config, server, err
}

// untilAnswered retries until try succeeds, the context ends, or the error needs a change by the user.
func untilAnswered(ctx context.Context, log logr.Logger, try func() error) error {
	tries := 0
	return wait.PollUntilContextCancel(ctx, rejoinPause, true, func(context.Context) (bool, error) {
		err := try()
		if err == nil {
			return true, nil
		}
		var usage *cli.UsageError
		if errors.As(err, &usage) {
			return false, err
		}
		if tries++; tries%60 == 1 {
			log.Info("waiting", "reason", err.Error())
		}
		return false, nil
	})
}

// insist calls try, which needs a response from outside. A program that has only just started ends with the error, so
// that its user sees it. A program that replaces an earlier one had the response before, and waits for it.
func (p *process) insist(ctx context.Context, who string, try func() error) error {
	if !p.rejoins {
		return try()
	}
	p.probes.waits(who + " does not answer")
	defer p.probes.waits("starting")
	return untilAnswered(ctx, ctrl.LoggerFrom(ctx).WithValues("for", who), try)
}
