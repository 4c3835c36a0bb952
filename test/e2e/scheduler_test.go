package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// lateScheduler is an additional kube-scheduler on a cluster, for pods with its name as schedulerName. The test
// controls when it binds: it can be stopped while nodes are launched, and then sees them all at once.
type lateScheduler struct {
	t       *testing.T
	cluster *cluster
	name    string
	process *os.Process
	ended   chan struct{}
}

// newLateScheduler returns a scheduler that does not run yet.
func newLateScheduler(t *testing.T, c *cluster, name string) *lateScheduler {
	s := &lateScheduler{t: t, cluster: c, name: name}
	t.Cleanup(s.stop)
	return s
}

// start starts the scheduler and waits until it is ready.
func (s *lateScheduler) start() {
	s.t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		s.t.Fatal(err)
	}
	config := filepath.Join(s.t.TempDir(), "scheduler.yaml")
	write(s.t, config, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "`+s.cluster.sandbox.Kubeconfig()+`", qps: 500, burst: 1000}
profiles: [{schedulerName: `+s.name+`}]
`)
	log, err := os.OpenFile(filepath.Join(artifacts, s.name+"-scheduler.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	command := exec.Command(filepath.Join(s.cluster.sandbox.Status().Assets, "kube-scheduler"), "--config="+config,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(ports[0]), "--cert-dir="+s.t.TempDir(),
		"--authentication-kubeconfig="+s.cluster.sandbox.Kubeconfig(), "--authorization-kubeconfig="+s.cluster.sandbox.Kubeconfig())
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the parent-death signal is sent when the thread that forked ends
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	s.process, s.ended = command.Process, ended
	client := insecureClient()
	await(s.t, patience, "the late kube-scheduler to be ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+strconv.Itoa(ports[0])+"/healthz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/healthz says %s; its log is %s", response.Status, log.Name())
		}
		return nil
	})
}

// stop ends the scheduler; it can be started again.
func (s *lateScheduler) stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Kill()
	<-s.ended
	s.process = nil
}
