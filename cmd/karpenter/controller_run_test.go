package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/api/crds"
	"github.com/karpenter-go/karpenter/internal/sandbox"
	"github.com/karpenter-go/karpenter/internal/sandbox/sandboxtest"
)

// The verb on a real API server: without CRDs a clear line; with them it becomes ready, serves metrics and no
// profiles, and ends with 0 when it is told to.
func TestControllerRuns(t *testing.T) {
	s := sandboxtest.StartSandbox(t, sandboxtest.Options{})
	metrics, health := freePort(t), freePort(t)
	arguments := []string{"controller", "--cloud-provider=kwok", "--kubeconfig=" + s.Kubeconfig(), "--log-level=error",
		"--metrics-port=" + strconv.Itoa(metrics), "--health-probe-port=" + strconv.Itoa(health)}

	code, stderr := runVerb(t.Context(), arguments)
	if code != 1 || !strings.Contains(stderr, "does not serve karpenter.sh/v1; install the CRDs first") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("without CRDs: code %d, message %q", code, stderr)
	}

	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Install(t.Context(), config, definitions); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan string, 1)
	go func() {
		code, stderr := runVerb(ctx, arguments)
		ended <- strconv.Itoa(code) + " " + stderr
	}()
	eventually(t, "the controller is ready", func() bool { return fetch("http://127.0.0.1:"+strconv.Itoa(health)+"/readyz") == "ok" })
	if got := fetch("http://127.0.0.1:" + strconv.Itoa(health) + "/healthz"); got != "ok" {
		t.Errorf("/healthz: %q", got)
	}
	at := "http://127.0.0.1:" + strconv.Itoa(metrics)
	eventually(t, "the leader has taken up its work", func() bool { return strings.Contains(fetch(at+"/metrics"), "\nkarpenter_cluster_state_synced 1\n") })
	got := fetch(at + "/metrics")
	for _, series := range []string{"karpenter_build_info{", "karpenter_cluster_state_unsynced_time_seconds 0", "client_go_request_total{",
		`client_go_request_duration_seconds_count{group="coordination.k8s.io",kind="leases"`, "rest_client_requests_total{"} {
		if !strings.Contains(got, series) {
			t.Errorf("/metrics has no %s", series)
		}
	}
	if got := fetch(at + "/debug/pprof/"); !strings.Contains(got, "404") {
		t.Errorf("/debug/pprof/ is served without being asked for: %.100q", got)
	}
	stop()
	if got := <-ended; got != "0 " {
		t.Errorf("it ended with %q", got)
	}
}

func runVerb(ctx context.Context, arguments []string) (code int, stderr string) {
	root := newRootCommand()
	var buffer bytes.Buffer
	root.SetErr(&buffer)
	root.SetArgs(arguments)
	code = run(ctx, root)
	return code, buffer.String()
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// fetch is the body at the address, the error if there is none.
func fetch(address string) string {
	response, err := http.Get(address)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// eventually polls a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
