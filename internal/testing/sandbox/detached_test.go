package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// supervisorVariable names the environment variable that makes this test program a supervisor of the directory.
const supervisorVariable = "SANDBOX_TEST_SUPERVISE"

// TestSupervisorProcess is not a test. The tests below run it as the detached supervisor.
func TestSupervisorProcess(t *testing.T) {
	directory := os.Getenv(supervisorVariable)
	if directory == "" {
		return
	}
	if err := Supervise(directory); err != nil {
		t.Fatal(err)
	}
}

// upTest starts a detached sandbox that ends with the test.
func upTest(t *testing.T, directory string) (Status, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(supervisorVariable, directory)
	t.Cleanup(func() {
		if _, err := Down(context.WithoutCancel(t.Context()), directory); err != nil {
			t.Errorf("ending the sandbox: %v", err)
		}
	})
	return Up(t.Context(), Options{DataDir: directory, Assets: testAssets(t), Components: APIOnly()},
		[]string{self, "-test.run=^TestSupervisorProcess$"})
}

// TestUpAndDown checks that a second Up finds the sandbox of the first, that Down ends it, and that a second Down
// succeeds.
func TestUpAndDown(t *testing.T) {
	directory := t.TempDir()
	if ran, err := Down(t.Context(), directory); ran || err != nil {
		t.Fatalf("down where nothing ever ran: %v %v, want false", ran, err)
	}
	if status, err := ReadStatus(directory); err != nil || status.Phase != Absent {
		t.Fatalf("status where nothing ever ran: %v %v, want absent", status.Phase, err)
	}
	status, err := upTest(t, directory)
	if err != nil {
		t.Fatal(err)
	}
	if status.Phase != Running || len(status.Components) != 2 {
		t.Fatalf("status after up: %+v, want running with two components", status)
	}
	var running *RunningError
	if again, err := upTest(t, directory); !errors.As(err, &running) || again.Supervisor != status.Supervisor {
		t.Errorf("up again: %+v %v, want the same supervisor and a RunningError", again, err)
	}
	for _, want := range []bool{true, false} {
		if ran, err := Down(t.Context(), directory); ran != want || err != nil {
			t.Errorf("down: %v %v, want %v", ran, err, want)
		}
	}
	for _, component := range status.Components {
		expectGone(t, component.Process)
	}
	if status, err := ReadStatus(directory); err != nil || status.Phase != Stopped {
		t.Errorf("status after down: %v %v, want stopped", status.Phase, err)
	}
}

// TestUpAfterADeath checks that Up waits for a supervisor that ends its sandbox because a component died, and starts
// the next one.
func TestUpAfterADeath(t *testing.T) {
	directory := t.TempDir()
	first, err := upTest(t, directory)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first.Components[0].Process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for status := first; status.Phase == Running; <-again.C { // until the supervisor has noticed
		if status, err = ReadStatus(directory); err != nil {
			t.Fatal(err)
		}
	}
	second, err := upTest(t, directory)
	switch {
	case err != nil:
		t.Errorf("up after a death: %v", err)
	case second.Phase != Running:
		t.Errorf("up after a death: the sandbox is %s, want %s: %+v", second.Phase, Running, second)
	case second.Supervisor == first.Supervisor:
		t.Errorf("up after a death: the supervisor is still %d, want another", second.Supervisor)
	}
}

// TestKilledSupervisorLeavesNothing checks that the components of a killed supervisor end too, that the status
// reports it, and that the directory can be used again.
func TestKilledSupervisorLeavesNothing(t *testing.T) {
	directory := t.TempDir()
	status, err := upTest(t, directory)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(status.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, component := range status.Components {
		expectGone(t, component.Process)
	}
	// The components end with the supervisor's thread. The lock is released with the supervisor's last file, a moment
	// later.
	var after Status
	eventually(t, "the supervisor's lock to go", func(context.Context) error {
		if after, err = ReadStatus(directory); err == nil && after.Phase != Failed {
			err = fmt.Errorf("the phase is %s", after.Phase)
		}
		return err
	})
	if !strings.Contains(after.Message, "was killed") {
		t.Errorf("status %+v, want failed: killed", after)
	}
	again, err := upTest(t, directory)
	if err != nil {
		t.Fatalf("up after the supervisor was killed: %v", err)
	}
	if again.Server != status.Server {
		t.Errorf("address %s, want %s as before", again.Server, status.Server)
	}
}

// TestSupervisorThatFails checks that the error of a supervisor that cannot start contains its output.
func TestSupervisorThatFails(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Up(t.Context(), Options{DataDir: t.TempDir()}, []string{shell, "-c", "echo karpenter-sandbox: no such verb >&2; exit 2"})
	wantError(t, err, "did not start: no such verb", "supervisor.log")
}

// TestUpThatLosesTheRace checks that Up succeeds if another supervisor locked the directory first: the running
// sandbox is the requested one.
func TestUpThatLosesTheRace(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	l := layout(t.TempDir())
	if err := l.ensure(); err != nil {
		t.Fatal(err)
	}
	winner, err := lockSupervisor(l)
	if err != nil {
		t.Fatal(err)
	}
	defer winner.Close()
	if err := writeJSON(l.status(), Status{Phase: Running, Supervisor: os.Getpid(), Server: "https://winner"}); err != nil {
		t.Fatal(err)
	}
	loser, err := detach(l, []string{shell, "-c", "echo karpenter: a sandbox is running already >&2; exit 1"})
	if err != nil {
		t.Fatal(err)
	}
	status, err := awaitRunning(t.Context(), l, loser, nil)
	var running *RunningError
	if !errors.As(err, &running) || status.Server != "https://winner" {
		t.Errorf("got %+v, %v, want the winner's status and a RunningError", status, err)
	}
}

// TestStatusWithoutItsFile checks that a sandbox with a supervisor is never reported as absent, whatever its status
// file holds.
func TestStatusWithoutItsFile(t *testing.T) {
	for _, test := range []struct {
		name, content string
		kubeconfig    bool
		held, free    Phase
	}{
		{"removed", "", true, Running, Absent},
		{"removed, at the very start", "", false, Starting, Absent},
		{"broken", `{"phase": "runn`, true, Running, Failed},
		{"of something else", `{}`, true, Running, Failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := layout(t.TempDir())
			if err := l.ensure(); err != nil {
				t.Fatal(err)
			}
			if test.content != "" {
				if err := os.WriteFile(l.status(), []byte(test.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if test.kubeconfig {
				text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],
					"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:6443"}}]}`
				if err := os.WriteFile(l.kubeconfig(), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			lock, err := lockSupervisor(l)
			if err != nil {
				t.Fatal(err)
			}
			status, err := ReadStatus(string(l))
			switch {
			case err != nil:
				t.Errorf("with a supervisor: %v", err)
			case status.Phase != test.held:
				t.Errorf("with a supervisor: the sandbox is %s, want %s", status.Phase, test.held)
			case status.Supervisor != os.Getpid():
				t.Errorf("with a supervisor: the supervisor is %d, want %d", status.Supervisor, os.Getpid())
			}
			if test.kubeconfig {
				if want := "https://127.0.0.1:6443"; status.Server != want {
					t.Errorf("the server is %q, want %q of the kubeconfig", status.Server, want)
				}
				if !strings.Contains(status.Message, "holds the lock") {
					t.Errorf("the message is %q, want a mention of the lock", status.Message)
				}
			}
			if err := lock.Close(); err != nil {
				t.Fatal(err)
			}
			if status, err := ReadStatus(string(l)); err != nil || status.Phase != test.free {
				t.Errorf("without a supervisor: %+v %v, want %s", status, err, test.free)
			}
		})
	}
}
