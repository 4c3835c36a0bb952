package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// TestElectionIdentity checks that the identity of the election is that of the previous program, if there was one.
func TestElectionIdentity(t *testing.T) {
	t.Setenv(identityVariable, "")
	first, again := electionIdentity()
	second, _ := electionIdentity()
	switch {
	case again:
		t.Error("the first identity is said to be that of a previous program, and there is none")
	case first == second:
		t.Errorf("two new programs are both %q, want two identities", first)
	case !strings.Contains(first, "_"):
		t.Errorf("the identity is %q, want a host name and a suffix, separated by _", first)
	}
	t.Setenv(identityVariable, first)
	if identity, again := electionIdentity(); identity != first || !again {
		t.Errorf("the program that replaces %q is %q, again %t", first, identity, again)
	}
}

// TestElectionLeavesTheConfiguration checks that the short timeout and the user agent of the election do not change
// the shared configuration. Watches with that timeout would end every few seconds, and with many pods before the
// first list is complete.
func TestElectionLeavesTheConfiguration(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1", UserAgent: "karpenter/test"}
	p := &process{identity: "a", o: &controllerOptions{
		electionName: "lease", electionNamespace: "kube-system", electionLease: 15 * time.Second,
	}}
	if _, err := p.electionLock(config, runtime.NewScheme()); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "karpenter/test" {
		t.Errorf("timeout %v, user agent %q, want none and the given one", config.Timeout, config.UserAgent)
	}
}

func TestLostElection(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	lost := errors.New("leader election lost")
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		lost bool
	}{
		{"reported by the manager", t.Context(), lost, true},
		{"after the end of the context", ended, lost, false},
		{"without an error", t.Context(), nil, false},
		{"with another error", t.Context(), errors.New("other"), false},
	} {
		if got := lostElection(c.ctx, c.err); got != c.lost {
			t.Errorf("%s: the election is lost: %t, want %t", c.name, got, c.lost)
		}
	}
}

// TestReconnect checks that the process is alive and not ready while the API server is unreachable, that it finds the
// API server again, and that it stays not ready until the manager runs.
func TestReconnect(t *testing.T) {
	var back atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !back.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}`)
		default:
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "karpenter.sh/v1", "resources": []}`)
		}
	}))
	t.Cleanup(server.Close)
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u}]\n", server.URL)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &controllerOptions{kubeconfig: kubeconfig, healthPort: freePort(t), qps: 10, burst: 10}
	p, err := newProcess(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.probes.close()
	found := make(chan error, 1)
	go func() {
		_, version, err := p.reconnect(t.Context(), testr.New(t))
		if err == nil && version.GitVersion != "v1.36.0" {
			err = fmt.Errorf("found %+v", version)
		}
		found <- err
	}()
	at := "http://127.0.0.1:" + strconv.Itoa(o.healthPort)
	eventually(t, "it is alive and not ready", func() bool {
		return fetch(at+"/healthz") == "ok" && strings.Contains(fetch(at+"/readyz"), "the API server is away")
	})
	back.Store(true)
	if err := <-found; err != nil {
		t.Error(err)
	}
	p.probes.waits("starting")
	if alive, ready := fetch(at+"/healthz"), fetch(at+"/readyz"); alive != "ok" || ready != "starting\n" {
		t.Errorf("before the manager runs it is alive %q, ready %q", alive, ready)
	}
	// An error that waiting does not resolve ends reconnect at once.
	o.kubeconfig = filepath.Join(t.TempDir(), "none")
	if _, _, err := p.reconnect(t.Context(), testr.New(t)); err == nil {
		t.Error("a missing kubeconfig is waited for")
	}
}

// TestInsist checks that a missing response from outside ends a program that has just started, and that a program
// that ran before waits for it. Meanwhile the process is alive and not ready. Once the controller is assembled, its
// checks decide whether it is ready.
func TestInsist(t *testing.T) {
	o := &controllerOptions{healthPort: freePort(t)}
	p, err := newProcess(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.probes.close()
	if _, err := serveProbes(o.healthPort); err == nil || !strings.Contains(err.Error(), "serving health probes") {
		t.Errorf("a port that is in use is served: %v", err)
	}
	away := errors.New("no answer")
	if err := p.insist(t.Context(), "EC2", func() error { return away }); !errors.Is(err, away) {
		t.Errorf("the first program gets %v", err)
	}
	p.rejoins = true
	var back atomic.Bool
	answered := make(chan error, 1)
	go func() {
		answered <- p.insist(t.Context(), "EC2", func() error {
			if back.Load() {
				return nil
			}
			return away
		})
	}()
	at := "http://127.0.0.1:" + strconv.Itoa(o.healthPort)
	eventually(t, "it is alive and not ready", func() bool {
		return fetch(at+"/healthz") == "ok" && strings.Contains(fetch(at+"/readyz"), "EC2 does not answer")
	})
	back.Store(true)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	wrong := cli.UsageErrorf("there is no such region")
	if err := p.insist(t.Context(), "EC2", func() error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("an error that waiting does not resolve gives %v", err)
	}
	var synced atomic.Bool
	p.probes.answer(map[string]healthz.Checker{"manager": func(*http.Request) error {
		if !synced.Load() {
			return away
		}
		return nil
	}})
	if got := fetch(at + "/readyz"); !strings.Contains(got, "[-]manager failed") {
		t.Errorf("before it has synced /readyz returns %q", got)
	}
	synced.Store(true)
	if got := fetch(at + "/readyz"); got != "ok" {
		t.Errorf("then /readyz returns %q", got)
	}
}
