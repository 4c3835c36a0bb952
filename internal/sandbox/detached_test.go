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

// supervisorVariable makes this test program a supervisor of the directory.
const supervisorVariable = "SANDBOX_TEST_SUPERVISE"

// TestSupervisorProcess is no test: it is what the tests below run as the
// detached supervisor.
func TestSupervisorProcess(t *testing.T) {
	directory := os.Getenv(supervisorVariable)
	if directory == "" {
		return
	}
	if err := Supervise(directory); err != nil {
		t.Fatal(err)
	}
}

// upTest brings a detached sandbox up that is taken down with the test.
func upTest(t *testing.T, directory string) (Status, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(supervisorVariable, directory)
	t.Cleanup(func() {
		if _, err := Down(context.WithoutCancel(t.Context()), directory); err != nil {
			t.Errorf("taking the sandbox down: %v", err)
		}
	})
	return Up(t.Context(), Options{DataDir: directory, Assets: testAssets(t), Components: APIOnly()},
		[]string{self, "-test.run=^TestSupervisorProcess$"})
}

// Up leaves a sandbox behind that Up again finds and Down ends; Down twice is
// fine.
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

// Up beside a supervisor that ends its sandbox because a component died waits for it, and starts the next.
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
	if err != nil || second.Phase != Running || second.Supervisor == first.Supervisor {
		t.Errorf("up after a death: %+v, %v; want a sandbox of another supervisor than %d", second, err, first.Supervisor)
	}
}

// A supervisor that is killed takes its components with it; the status says so,
// and the directory can be used again.
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
	// The components go when the supervisor's thread does; its lock goes with its last file, a moment later.
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

// A supervisor that cannot even start is reported with what it said.
func TestSupervisorThatFails(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Up(t.Context(), Options{DataDir: t.TempDir()}, []string{shell, "-c", "echo karpenter: no such verb >&2; exit 2"})
	if err == nil || !strings.Contains(err.Error(), "did not start: no such verb") || !strings.Contains(err.Error(), "supervisor.log") {
		t.Errorf("got %v, want the supervisor's words and its log", err)
	}
}

// A supervisor that finds the directory taken by one that was faster is no
// failure: the sandbox that runs is the one that was wanted.
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

// Whatever became of its status file, a sandbox with a supervisor is not absent.
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
			if err != nil || status.Phase != test.held || status.Supervisor != os.Getpid() {
				t.Errorf("with a supervisor: %+v %v, want %s", status, err, test.held)
			}
			if test.kubeconfig && (status.Server != "https://127.0.0.1:6443" || !strings.Contains(status.Message, "holds the lock")) {
				t.Errorf("status %+v, want the server of the kubeconfig and a word on the lock", status)
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
