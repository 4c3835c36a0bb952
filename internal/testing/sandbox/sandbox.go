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

// Options configures a sandbox.
type Options struct {
	// DataDir identifies the sandbox. It is created if it does not exist. Only one sandbox at a time runs in a
	// directory.
	DataDir string `json:"dataDir"`
	// Assets is a folder with one executable per component, or with kubernetes-components; see the function Assets.
	Assets string `json:"assets"`
	// Components lists the components to run; none means all. The API server needs etcd.
	Components []string `json:"components,omitempty"`
	// ExtraArgs are flags by component. They are appended to the default flags, so they take precedence.
	ExtraArgs map[string][]string `json:"extraArgs,omitempty"`
	// ReadyTimeout is the maximum time for each component to become ready. 0 means two minutes, which suffices on a
	// loaded machine (2 to 5 s is usual).
	ReadyTimeout time.Duration `json:"readyTimeout,omitempty"`
	// Progress is called with a short description of what is awaited. It may be nil.
	Progress func(string) `json:"-"`
}

// APIOnly returns the components that tests of API objects need.
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
	stopping  chan struct{} // closed to end the sandbox
	hurry     chan struct{} // closed to kill the components at once
	stopOnce  sync.Once
	hurryOnce sync.Once
	done      chan struct{} // closed when no component runs anymore
	err       error         // why it ended, nil if it was stopped; read after done is closed
}

// Start runs a control plane in the background of this process. It returns when the control plane is ready: every
// component is healthy, and the default namespace and service account exist. The context bounds the start only; Stop
// ends the sandbox. After an error no process is left running.
//
// Errors to distinguish: *DirectoryError, *RunningError, *PortTakenError, *DeadError.
func Start(ctx context.Context, options Options) (*Sandbox, error) {
	s, err := prepare(options)
	if err != nil {
		return nil, err
	}
	if err := s.bringUp(ctx); err != nil {
		if ctx.Err() != nil {
			s.end(nil) // a requested end is not a failure
		} else {
			s.end(err)
		}
		return nil, err
	}
	s.report(Running, "")
	go s.watch()
	return s, nil
}

// prepare locks the data directory and writes the files that the components read.
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
	if err := s.prepare(); err != nil {
		s.report(Failed, err.Error())
		_ = s.lock.Close()
		return nil, err
	}
	s.spawner = newSpawner()
	return s, nil
}

func (s *Sandbox) prepare() error {
	if missing := missingComponents(s.options.Assets, s.plan.chosen); len(missing) > 0 {
		return fmt.Errorf("no %s in the sandbox assets %s: want one executable for each of %v, or %s",
			missing[0], s.options.Assets, componentNames(s.plan.chosen), multicall)
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

// bringUp starts the components wave by wave, until the context ends or a component dies.
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

// awaiting reports what is awaited and waits until check succeeds, the context ends or the timeout passes.
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

// watch waits for a requested end or the death of a component.
func (s *Sandbox) watch() {
	select {
	case <-s.dead:
		s.end(s.corpse.deadError())
	case <-s.stopping:
		s.end(nil)
	}
}

// end stops the components in reverse order of their start, records the reason, and releases the data directory.
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

// report writes the status for other processes. A failure to write is ignored, because a full disk must not end a
// working sandbox.
func (s *Sandbox) report(phase Phase, message string) {
	s.statusLock.Lock()
	defer s.statusLock.Unlock()
	s.status.Phase, s.status.Message, s.status.Changed = phase, message, time.Now().UTC()
	_ = writeJSON(s.plan.layout.status(), s.status)
}

// Stop ends the sandbox in order and waits for it. The data is kept. It returns the reason if the sandbox had already
// ended.
func (s *Sandbox) Stop() error {
	s.stopOnce.Do(func() { close(s.stopping) })
	<-s.done
	return s.err
}

// Kill ends the sandbox at once, without grace periods. Use it for data that is not read again.
func (s *Sandbox) Kill() {
	s.hurryOnce.Do(func() { close(s.hurry) })
	_ = s.Stop()
}

// Done returns a channel that is closed when the sandbox has ended; Err returns the reason.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Err returns why the sandbox ended by itself (*DeadError). It is nil while the sandbox runs and after Stop.
func (s *Sandbox) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Status returns the status of the sandbox.
func (s *Sandbox) Status() Status {
	s.statusLock.Lock()
	defer s.statusLock.Unlock()
	status := s.status
	status.Components = slices.Clone(status.Components)
	return status
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (s *Sandbox) Kubeconfig() string { return s.plan.kubeconfig() }

// Config returns the administrator's connection, without client-side rate limits.
func (s *Sandbox) Config() (*rest.Config, error) { return clientConfig(s.plan.layout) }
