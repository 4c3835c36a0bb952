package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
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
)

// A leader that cannot renew its Lease, because the API server is away, must stop at once: another may lead by then. The
// usual way is to end the process and have it started again, which looks like a crash, and takes the longer the more often
// it happened. Here the program replaces itself: everything that ran is gone, the container stays. The new one waits for
// the API server, takes part in the election under the identity of the old one, and so need not wait for its own Lease to
// run out: the old one is the same process, and cannot be leading.

// identityVariable hands the identity of the election to the program that replaces this one.
const identityVariable = "KARPENTER_GO_ELECTION_IDENTITY"

// rejoinPause is the time between two attempts to reach the API server.
const rejoinPause = 500 * time.Millisecond

// electionIdentity is who takes part in the election, and whether he did before.
func electionIdentity() (identity string, again bool) {
	if identity = os.Getenv(identityVariable); identity != "" {
		return identity, true
	}
	host, err := os.Hostname()
	if err != nil {
		host = "karpenter"
	}
	return host + "_" + string(uuid.NewUUID()), false
}

// electionLock is the Lease of the election. Who leads is told by events.
func (o *controllerOptions) electionLock(config *rest.Config, scheme *runtime.Scheme) (resourcelock.Interface, error) {
	if o.noElection {
		return nil, nil
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election") // it changes what it is given: watches would end with the timeout below
	config.Timeout = max(o.electionRenewal()/2, time.Second)               // one request that hangs must not lose the Lease
	// A dialer of its own is a connection of its own: renewals do not queue behind the claims and events that are written, nor
	// behind what watches read, on the connection that clients of one configuration share.
	config.Dial = (&net.Dialer{Timeout: config.Timeout, KeepAlive: 30 * time.Second}).DialContext
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("setting up the leader election: %w", err)
	}
	namespace := ownNamespace(o.electionNamespace)
	told := record.NewBroadcaster()
	told.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(namespace)})
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, o.electionName, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: o.identity, EventRecorder: told.NewRecorder(scheme, corev1.EventSource{Component: o.identity})})
	if err != nil {
		return nil, fmt.Errorf("setting up the leader election: %w", err)
	}
	return lock, nil
}

// electionRenewal is for how long a leader tries to renew its Lease before it gives up.
func (o *controllerOptions) electionRenewal() time.Duration { return o.electionLease * 2 / 3 }

// lead runs the manager until the context ends or this process stops leading, which is an error. What was under way is not
// waited for when another process leads: it may not write any more.
func (o *controllerOptions) lead(ctx context.Context, mgr manager.Manager) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	o.stopLeading = stop
	err := mgr.Start(running)
	if cause := context.Cause(running); errors.Is(cause, errAnotherLeads) && ctx.Err() == nil {
		return cause
	}
	return err
}

// errAnotherLeads ends a manager whose Lease another process holds. Its words are those of controller-runtime.
var errAnotherLeads = errors.New(leaseGivenBack + ": another process holds the Lease")

// lost stops leading.
func (o *controllerOptions) lost() {
	if o.stopLeading != nil {
		o.stopLeading(errAnotherLeads)
	}
}

// lostElection reports whether the manager ended because it leads no more; controller-runtime has no name for that.
func lostElection(ctx context.Context, err error) bool {
	return ctx.Err() == nil && err != nil && strings.Contains(err.Error(), "leader election lost")
}

// startAgain replaces the program by itself. It returns only when that cannot be done.
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

// reconnect finds the cluster again after its API server was away, however long that takes. Meanwhile the process is alive
// and not ready (probes).
func reconnect(ctx context.Context, o *controllerOptions, log logr.Logger) (*rest.Config, *version.Info, error) {
	o.probes.waits("the API server is away")
	var config *rest.Config
	var server *version.Info
	err := untilAnswered(ctx, log.WithValues("for", "the API server"), func() (err error) {
		config, server, err = connect(o)
		return err
	})
	return config, server, err
}

// untilAnswered tries again and again, until it succeeds, the context ends, or somebody would have to change something.
func untilAnswered(ctx context.Context, log logr.Logger, try func() error) error {
	tries := 0
	return wait.PollUntilContextCancel(ctx, rejoinPause, true, func(context.Context) (bool, error) {
		err := try()
		if err == nil {
			return true, nil
		}
		var usage *usageError
		if errors.As(err, &usage) {
			return false, err
		}
		if tries++; tries%60 == 1 {
			log.Info("waiting", "reason", err.Error())
		}
		return false, nil
	})
}

// insist does what needs an answer from outside. A program that has only just started ends with an error: whoever set it
// up is to see it. One that takes the place of a program that ran had its answer before, and waits for it.
func (o *controllerOptions) insist(ctx context.Context, who string, try func() error) error {
	if !o.rejoins {
		return try()
	}
	o.probes.waits(who + " does not answer")
	defer o.probes.waits("starting")
	return untilAnswered(ctx, ctrl.LoggerFrom(ctx).WithValues("for", who), try)
}
