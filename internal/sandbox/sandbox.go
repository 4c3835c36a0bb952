package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options is what a sandbox is made of.
type Options struct {
	// DataDir identifies the sandbox; it is made if it does not exist. Only one
	// sandbox at a time runs in a directory.
	DataDir string `json:"dataDir"`
	// Assets is a folder with one executable per component, or with
	// karpenter-sandbox; see Assets.
	Assets string `json:"assets"`
	// Components to run; none means all. The API server needs etcd.
	Components []string `json:"components,omitempty"`
	// ExtraArgs are flags by component, put after ours, so that they win.
	ExtraArgs map[string][]string `json:"extraArgs,omitempty"`
	// ReadyTimeout is how long each component may take to become ready; 0 means
	// two minutes, which is plenty on a loaded machine (2 to 5 s is usual).
	ReadyTimeout time.Duration `json:"readyTimeout,omitempty"`
	// Progress is told in a few words what is awaited; nil means nobody.
	Progress func(string) `json:"-"`
}

// APIOnly are the components that tests of API objects need.
func APIOnly() []string { return []string{etcd, apiserver} }

// Sandbox is a control plane that this process supervises.
type Sandbox struct {
	options   Options
	plan      plan
	lock      *os.File
	spawner   spawner
	processes []*process // in the order of their start

	statusLock sync.Mutex
	status     Status

	corpse    *process      // the first component that ended; read after dead is closed
	dead      chan struct{} // closed when a component has ended
	deadOnce  sync.Once
	stopping  chan struct{} // closed when somebody asks for the end
	hurry     chan struct{} // closed when the end must come at once
	stopOnce  sync.Once
	hurryOnce sync.Once
	done      chan struct{} // closed when nothing runs any more
	err       error         // why it ended, nil when asked to; read after done is closed
}

// Start runs a control plane in the background of this process and returns when
// it is ready: every component healthy, the default namespace and service
// account there. The context bounds the start only; Stop ends the sandbox. An
// error leaves nothing running.
//
// Errors to tell apart: *DirectoryError, *RunningError, *PortTakenError,
// *DeadError.
func Start(ctx context.Context, options Options) (*Sandbox, error) {
	s, err := prepare(options)
	if err != nil {
		return nil, err
	}
	if err := s.bringUp(ctx); err != nil {
		if ctx.Err() != nil {
			s.end(nil) // somebody's wish is no failure
		} else {
			s.end(err)
		}
		return nil, err
	}
	s.report(Running, "")
	go s.watch()
	return s, nil
}

// prepare claims the data directory and writes what the components read.
func prepare(options Options) (*Sandbox, error) {
	chosen, err := choose(options.Components)
	if err != nil {
		return nil, err
	}
	l, err := absolute(options.DataDir)
	if err != nil {
		return nil, err
	}
	if err := l.ensure(); err != nil {
		return nil, err
	}
	s := &Sandbox{
		options: options, plan: plan{layout: l, chosen: chosen},
		dead: make(chan struct{}), stopping: make(chan struct{}), hurry: make(chan struct{}), done: make(chan struct{}),
	}
	if s.lock, err = lockSupervisor(l); err != nil {
		return nil, err
	}
	s.status = Status{Supervisor: os.Getpid()}
	s.report(Starting, "preparing")
	if err := s.furnish(); err != nil {
		s.report(Failed, err.Error())
		_ = s.lock.Close()
		return nil, err
	}
	s.spawner = newSpawner()
	return s, nil
}

func (s *Sandbox) furnish() error {
	if missing := missingComponents(s.options.Assets, s.plan.chosen); len(missing) > 0 {
		return fmt.Errorf("no %s in the sandbox assets %s: want one executable for each of %v, or karpenter-sandbox",
			missing[0], s.options.Assets, componentNames(s.plan.chosen))
	}
	if err := ensureCertificates(s.plan.layout); err != nil {
		return fmt.Errorf("making the sandbox's certificates: %w", err)
	}
	var err error
	if s.plan.ports, err = ensurePorts(s.plan.layout, portNames(s.plan.chosen)); err != nil {
		return err
	}
	if err := writeKubeconfigs(s.plan); err != nil {
		return err
	}
	s.status.Server, s.status.Kubeconfig, s.status.Assets = s.plan.server(), s.plan.kubeconfig(), s.options.Assets
	return nil
}

// bringUp starts the components wave by wave, until the context ends or a
// component does.
func (s *Sandbox) bringUp(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.dead:
			cancel(s.corpse.deadError())
		case <-ctx.Done():
		}
	}()
	waves := map[int][]component{}
	for _, c := range s.plan.chosen {
		waves[c.wave] = append(waves[c.wave], c)
	}
	for _, wave := range slices.Sorted(maps.Keys(waves)) {
		for _, c := range waves[wave] {
			if err := s.launch(c); err != nil {
				return err
			}
		}
		for _, c := range waves[wave] {
			if err := s.await(ctx, c); err != nil {
				return err
			}
		}
	}
	if !s.plan.has(apiserver) {
		return nil
	}
	config, err := clientConfig(s.plan.layout)
	if err != nil {
		return err
	}
	return s.awaiting(ctx, "the default namespace and service account", func(ctx context.Context) error {
		return defaultsExist(ctx, config, s.plan.has(controllerManager))
	})
}

func (s *Sandbox) launch(c component) error {
	argv := executable(s.options.Assets, c.name)
	argv = append(argv, c.args(s.plan)...)
	argv = append(argv, s.options.ExtraArgs[c.name]...)
	log := s.plan.log(c.name)
	p, err := s.spawner.start(c, argv, log, func(p *process) {
		s.deadOnce.Do(func() { s.corpse = p; close(s.dead) })
	})
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	s.statusLock.Lock()
	defer s.statusLock.Unlock()
	s.status.Components = append(s.status.Components, ComponentStatus{
		Name: c.name, Process: p.cmd.Process.Pid, Port: s.plan.ports[c.name], Log: log,
	})
	return nil
}

func (s *Sandbox) await(ctx context.Context, c component) error {
	health := c.ready(s.plan)
	client, err := health.http()
	if err != nil {
		return fmt.Errorf("preparing the health check of %s: %w", c.name, err)
	}
	err = s.awaiting(ctx, c.name, func(ctx context.Context) error { return health.check(ctx, client) })
	var slow *NotReadyError
	if errors.As(err, &slow) {
		slow.Log = s.plan.log(c.name)
	}
	return err
}

// awaiting reports what is awaited and waits until check succeeds, the context
// ends or patience does.
func (s *Sandbox) awaiting(ctx context.Context, what string, check func(context.Context) error) error {
	s.report(Starting, "waiting for "+what)
	if s.options.Progress != nil {
		s.options.Progress("waiting for " + what)
	}
	patience := s.options.ReadyTimeout
	if patience == 0 {
		patience = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return until(ctx, what, check)
}

// watch waits for the end: one that is asked for, or the death of a component.
func (s *Sandbox) watch() {
	select {
	case <-s.dead:
		s.end(s.corpse.deadError())
	case <-s.stopping:
		s.end(nil)
	}
}

// end stops what runs, last started first, records why, and gives the data
// directory back.
func (s *Sandbox) end(why error) {
	s.report(Stopping, "")
	for _, p := range slices.Backward(s.processes) {
		p.stop(s.hurry)
	}
	close(s.spawner)
	s.statusLock.Lock()
	s.status.Components = nil
	s.statusLock.Unlock()
	if why == nil {
		s.report(Stopped, "")
	} else {
		s.report(Failed, why.Error())
	}
	_ = s.lock.Close()
	s.err = why
	close(s.done)
}

// report writes the status for others. A full disk must not end a sandbox that
// works otherwise, so that failing to write is not an error.
func (s *Sandbox) report(phase Phase, message string) {
	s.statusLock.Lock()
	defer s.statusLock.Unlock()
	s.status.Phase, s.status.Message, s.status.Changed = phase, message, time.Now().UTC()
	_ = writeJSON(s.plan.layout.status(), s.status)
}

// Stop ends the sandbox in order and waits for it; its data stays. It returns
// why the sandbox had ended before, if it had.
func (s *Sandbox) Stop() error {
	s.stopOnce.Do(func() { close(s.stopping) })
	<-s.done
	return s.err
}

// Kill ends the sandbox at once, without the courtesy that lets components
// finish: for data that nobody will read again.
func (s *Sandbox) Kill() {
	s.hurryOnce.Do(func() { close(s.hurry) })
	_ = s.Stop()
}

// Done is closed when the sandbox has ended; Err says why.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Err returns why the sandbox ended by itself (*DeadError), nil while it runs
// and when it was asked to end.
func (s *Sandbox) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Status describes the sandbox.
func (s *Sandbox) Status() Status {
	s.statusLock.Lock()
	defer s.statusLock.Unlock()
	status := s.status
	status.Components = slices.Clone(status.Components)
	return status
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (s *Sandbox) Kubeconfig() string { return s.plan.kubeconfig() }

// Config returns the administrator's connection, without a limit on requests.
func (s *Sandbox) Config() (*rest.Config, error) { return clientConfig(s.plan.layout) }
