package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quickTimers shorten the timers of the real binary.
var quickTimers = []string{"--timers=disruption-poll=1s,drain-min=1s,drain-quiet=1s,collection=5s,leak=20s,class-recheck=5s,repair-retry=1s,validation=2s"}

// mutationDetector makes client-go compare the objects of its caches with copies, and panic if one was written to. It
// costs CPU time and memory, so measurements run without it.
const mutationDetector = "KUBE_CACHE_MUTATION_DETECTOR="

// controller is `karpenter controller` in a process of its own.
type controller struct {
	process *os.Process
	log     string
	health  int
	metrics int
	ended   chan struct{}
	err     error // read after ended is closed
}

// startController starts the controller and returns without waiting for readiness.
func startController(c *cluster, log string, flags ...string) (*controller, error) {
	return startProgram(c, log, append([]string{binary, "controller", "--cloud-provider=kwok"}, flags...))
}

// startProgram starts a controller by its command. Ports and the kubeconfig are in the environment variables that this
// controller and Karpenter's read.
func startProgram(c *cluster, log string, program []string) (*controller, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	p := &controller{log: log, metrics: ports[0], health: ports[1], ended: make(chan struct{})}
	command := exec.Command(program[0], program[1:]...)
	command.Env = slices.Concat(os.Environ(), []string{mutationDetector + "true", "KUBECONFIG=" + c.kubeconfig(),
		"METRICS_PORT=" + strconv.Itoa(p.metrics), "HEALTH_PROBE_PORT=" + strconv.Itoa(p.health)}, c.environment)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the parent-death signal is sent when the thread that forked ends
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	p.process = command.Process
	return p, nil
}

// runController starts the controller and waits until it is ready. It ends with the test's own cluster.
func (c *cluster) runController(t *testing.T, log string, flags ...string) {
	t.Helper()
	p, err := startController(c, log, flags...)
	if err != nil {
		t.Fatal(err)
	}
	c.controller = p
	await(t, patience, "the controller to be ready", p.ready)
}

func (p *controller) ready(ctx context.Context) error {
	select {
	case <-p.ended:
		return fmt.Errorf("it ended: %w; its log is %s", p.err, p.log)
	default:
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(p.health)+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", response.Status)
	}
	return nil
}

// kill ends the controller at once, like a crash.
func (p *controller) kill() {
	_ = p.process.Kill()
	<-p.ended
}

// running reports whether the process exists.
func (p *controller) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop ends the controller as the kubelet does. It returns an error if the controller does not end, or has ended by
// itself.
func (p *controller) stop() error {
	if !p.running() {
		return fmt.Errorf("the controller had ended by itself (%v); its log is %s", p.err, p.log)
	}
	_ = p.process.Signal(syscall.SIGTERM)
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case <-p.ended:
	case <-deadline.C:
		p.kill()
		return fmt.Errorf("the controller did not end within 30 s of SIGTERM; its log is %s", p.log)
	}
	if p.err != nil {
		return fmt.Errorf("the controller ended on SIGTERM with %w; its log is %s", p.err, p.log)
	}
	return nil
}

// lastErrors returns the last lines of the log that are errors and name the case.
func (p *controller) lastErrors(name string) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 8
	var lines []string
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, `"ERROR"`) && strings.Contains(line, name) || strings.Contains(line, "panic") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return strings.Join(lines, "\n")
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// insecureClient returns a client for health checks on the loopback address, whose certificate is not signed by a
// known CA.
func insecureClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}
