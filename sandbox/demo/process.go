package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// childController is the controller of the demo: the real program, in a process of its own.
type childController struct {
	process *os.Process
	log     string        // path
	health  int           // port on the loopback address
	ended   chan struct{} // closed when the process has ended
	err     error         // how it ended; read after ended is closed
}

// startController starts the controller with its output in the log. If detached is set, it outlives this process.
// environment is added to the environment of this process, as NAME=value.
func startController(kubeconfig, log string, detached bool, environment []string, flags ...string) (*childController, error) {
	karpenter, err := program("karpenter")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the controller's log: %w", err)
	}
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("creating the controller's log: %w", err)
	}
	defer output.Close()
	c := &childController{log: log, health: ports[1], ended: make(chan struct{})}
	command := exec.Command(karpenter, append([]string{"controller", "--kubeconfig=" + kubeconfig,
		"--metrics-port=" + strconv.Itoa(ports[0]), "--health-probe-port=" + strconv.Itoa(c.health),
		"--webhook-port=" + strconv.Itoa(ports[2])}, flags...)...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = childAttributes()
	if detached {
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := c.run(command); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	return c, nil
}

// program returns the path of a program of this repository: beside this one, or else on the PATH.
func program(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", cli.UsageErrorf("no program %s in the directory of this program or on the PATH (make build builds all programs)", name)
	}
	return path, nil
}

// run starts the command from a thread that lives until the command ends. Linux sends the parent-death signal when
// the thread that forked ends.
func (c *childController) run(command *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			c.err = command.Wait()
			close(c.ended)
		}
	}()
	err := <-started
	c.process = command.Process
	return err
}

// stop ends the controller by a signal, and kills it if it has not ended within 10 s.
func (c *childController) stop() {
	_ = c.process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
		_ = c.process.Kill()
		<-c.ended
	}
}

// died returns how the controller ended; nil while it runs.
func (c *childController) died() error {
	select {
	case <-c.ended:
	default:
		return nil
	}
	how := "exit status 0"
	if c.err != nil {
		how = c.err.Error()
	}
	// A controller that was killed logs no reason.
	if line := lastLogLine(c.log); line != "" && !strings.Contains(line, `"level":"INFO"`) {
		return fmt.Errorf("the controller ended (%s): %s", how, line)
	}
	return fmt.Errorf("the controller ended (%s)", how)
}

// ready checks the controller's readiness endpoint.
func (c *childController) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(c.health)+"/readyz", nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz returns %s", response.Status)
	}
	return nil
}

// freePorts returns ports on the loopback address that no process listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// lastLogLine returns the last line of a log, shortened; empty if there is none.
func lastLogLine(path string) string {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	last := lines[len(lines)-1]
	const longest = 300
	if len(last) > longest {
		last = strings.ToValidUTF8(last[:longest], "") + "..."
	}
	return last
}
