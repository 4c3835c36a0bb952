package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Up starts a sandbox under a supervisor that outlives this process, and returns when the sandbox is ready.
// supervisor is a command that calls Supervise; its arguments must name the data directory. Canceling the context
// ends the supervisor too. If the sandbox already runs, or another process starts it meanwhile, Up returns a
// *RunningError once the sandbox is ready.
func Up(ctx context.Context, options Options, supervisor []string) (Status, error) {
	l, err := absolute(options.DataDir)
	if err != nil {
		return Status{}, err
	}
	ending, err := awaitEnd(ctx, l, options.Progress)
	if err != nil {
		return Status{}, err
	}
	if _, held := lockHolder(l); held && !ending {
		status, err := awaitRunning(ctx, l, nil, options.Progress)
		if err != nil {
			return status, err
		}
		return status, &RunningError{DataDir: string(l)}
	}
	options.DataDir = string(l)
	if err := l.ensure(); err != nil {
		return Status{}, err
	}
	if err := writeJSON(l.options(), options); err != nil {
		return Status{}, err
	}
	child, err := detach(l, supervisor)
	if err != nil {
		return Status{}, err
	}
	status, err := awaitRunning(ctx, l, child, options.Progress)
	if err != nil && ctx.Err() != nil {
		_ = child.command.Process.Signal(syscall.SIGTERM)
		<-child.ended
	}
	return status, err
}

// awaitEnd waits for a supervisor that is ending its sandbox, or that has lost a component, to release the directory.
// It reports whether there was one; the caller then starts the next sandbox.
func awaitEnd(ctx context.Context, l layout, progress func(string)) (ending bool, err error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if _, held := lockHolder(l); !held {
			return ending, nil
		}
		status, err := ReadStatus(string(l))
		if err != nil {
			return ending, err
		}
		if status.Phase != Stopping && status.Phase != Stopped && status.Phase != Failed {
			return false, nil // it runs, or another caller started it first
		}
		if !ending && progress != nil {
			progress("waiting for the last sandbox to end")
		}
		ending = true
		select {
		case <-ctx.Done():
			return ending, fmt.Errorf("waiting for the last sandbox to end: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// supervisor is the process that Up has started.
type supervisor struct {
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// detach starts the supervisor in a session of its own.
func detach(l layout, command []string) (*supervisor, error) {
	log, err := os.OpenFile(l.log("supervisor"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	defer log.Close()
	s := &supervisor{command: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	s.command.Stdout, s.command.Stderr = log, log
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	go func() {
		_ = s.command.Wait()
		close(s.ended)
	}()
	return s, nil
}

// awaitRunning follows the status until the sandbox runs or has failed. child is the supervisor that starts it, or
// nil if another process started the supervisor. If another supervisor locked the directory first, awaitRunning waits
// for that one and returns a *RunningError.
func awaitRunning(ctx context.Context, l layout, child *supervisor, progress func(string)) (Status, error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var ended <-chan struct{}
	if child != nil {
		ended = child.ended
	}
	reported := ""
	for {
		gone := false
		select {
		case <-ctx.Done():
			return Status{}, fmt.Errorf("waiting for the sandbox: %w", context.Cause(ctx))
		case <-ended:
			gone = true
		case <-ticker.C:
		}
		status, err := ReadStatus(string(l))
		if err != nil {
			return status, err
		}
		// Such a status belongs to the previous sandbox, or to another supervisor.
		if child != nil && status.Supervisor != child.command.Process.Pid {
			if !gone {
				continue
			}
			if _, held := lockHolder(l); held {
				if status, err = awaitRunning(ctx, l, nil, progress); err != nil {
					return status, err
				}
				return status, &RunningError{DataDir: string(l)}
			}
			return status, fmt.Errorf("the sandbox did not start: %s; the supervisor's log is %s",
				strings.TrimPrefix(lastLine(l.log("supervisor")), "karpenter-sandbox: "), l.log("supervisor"))
		}
		switch {
		case status.Phase == Running:
			return status, nil
		case status.Phase == Failed:
			return status, fmt.Errorf("the sandbox did not start: %s", status.Message)
		case status.Phase == Stopped || gone:
			return status, errors.New("the sandbox was stopped before it was ready")
		}
		if status.Message != reported && progress != nil {
			reported = status.Message
			progress(reported)
		}
	}
}

// Supervise runs the sandbox that Up prepared in the directory until SIGINT or SIGTERM. It returns an error if a
// component dies.
func Supervise(dataDir string) error {
	l, err := absolute(dataDir)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(l.options())
	if err != nil {
		return fmt.Errorf("reading what to run: %w", err)
	}
	var options Options
	if err := json.Unmarshal(content, &options); err != nil {
		return fmt.Errorf("reading what to run from %s: %w", l.options(), err)
	}
	options.DataDir = string(l)
	return Run(context.Background(), options, nil)
}

// Run runs a sandbox in this process until SIGINT, SIGTERM or the end of the context. It returns an error if a
// component dies. ready, which may be nil, is called when the sandbox is ready. A second signal kills the components.
func Run(ctx context.Context, options Options, ready func(*Sandbox)) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s, err := Start(ctx, options)
	if err != nil {
		if ctx.Err() != nil {
			return nil // ended before it was ready
		}
		return err
	}
	if ready != nil {
		ready(s)
	}
	select {
	case <-ctx.Done():
	case <-s.Done():
		return s.Err()
	}
	again, stopAgain := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGINT, syscall.SIGTERM)
	defer stopAgain()
	go func() {
		<-again.Done()
		s.Kill()
	}()
	return s.Stop()
}

// Down ends the sandbox in the directory, whichever process supervises it, and waits for the end. It returns false if
// no sandbox ran. The data is kept.
func Down(ctx context.Context, dataDir string) (bool, error) {
	l, err := absolute(dataDir)
	if err != nil {
		return false, err
	}
	if _, held := lockHolder(l); !held {
		return false, settle(l)
	}
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second) // more than the grace periods of all components
	defer cancel()
	reported := 0
	check := func(context.Context) error {
		id, held := lockHolder(l)
		if !held {
			return nil
		}
		if id != 0 && id != reported {
			reported = id
			if err := syscall.Kill(id, syscall.SIGTERM); err != nil {
				return fmt.Errorf("ending the supervisor (process %d): %w", id, err)
			}
		}
		return fmt.Errorf("the supervisor (process %d) is still there", id)
	}
	err = until(ctx, "the end of the sandbox", check)
	var slow *NotReadyError
	if !errors.As(err, &slow) {
		return true, err
	}
	if id, held := lockHolder(l); held && id != 0 {
		_ = syscall.Kill(id, syscall.SIGKILL) // the kernel ends its children
	}
	return true, settle(l)
}

// settle replaces the status that a killed supervisor left by Stopped.
func settle(l layout) error {
	status, err := ReadStatus(string(l))
	if err != nil || status.Phase == Absent || status.Phase == Stopped {
		return err
	}
	// This fails on a full disk; the sandbox has ended nevertheless.
	_ = writeJSON(l.status(), Status{
		Phase: Stopped, Changed: time.Now().UTC(), Kubeconfig: status.Kubeconfig, Assets: status.Assets,
	})
	return nil
}
