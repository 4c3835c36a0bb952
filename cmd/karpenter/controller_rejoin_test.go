package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/testr"
)

// The identity of the election is that of the program before, if there was one.
func TestElectionIdentity(t *testing.T) {
	t.Setenv(identityVariable, "")
	first, again := electionIdentity()
	second, _ := electionIdentity()
	if again || first == second || !strings.Contains(first, "_") {
		t.Errorf("two new programs are %q and %q, again %t", first, second, again)
	}
	t.Setenv(identityVariable, first)
	if identity, again := electionIdentity(); identity != first || !again {
		t.Errorf("the program that replaces %q is %q, again %t", first, identity, again)
	}
}

func TestLostElection(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	lost := errors.New("leader election lost")
	if !lostElection(t.Context(), lost) || lostElection(ended, lost) || lostElection(t.Context(), nil) || lostElection(t.Context(), errors.New("other")) {
		t.Error("the election is lost when the manager says so and nobody told it to end")
	}
}

// While the API server is away the process is alive and not ready; when it is back it is found, and the port is free again.
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
	o := &controllerOptions{kubeconfig: filepath.Join(files(t, map[string]string{"kubeconfig": config}), "kubeconfig"), healthPort: freePort(t), qps: 10, burst: 10}
	found := make(chan error, 1)
	go func() {
		_, version, err := reconnect(t.Context(), o, testr.New(t))
		if err == nil && version.GitVersion != "v1.36.0" {
			err = fmt.Errorf("found %+v", version)
		}
		found <- err
	}()
	at := "http://127.0.0.1:" + strconv.Itoa(o.healthPort)
	eventually(t, "it is alive and not ready", func() bool {
		return fetch(at+"/healthz") == "" && strings.Contains(fetch(at+"/readyz"), "the API server is away")
	})
	back.Store(true)
	if err := <-found; err != nil {
		t.Error(err)
	}
	if got := fetch(at + "/readyz"); strings.Contains(got, "away") {
		t.Errorf("the port is still taken: %s", got)
	}
	// What no waiting helps against ends it at once.
	o.kubeconfig = filepath.Join(t.TempDir(), "none")
	if _, _, err := reconnect(t.Context(), o, testr.New(t)); err == nil {
		t.Error("a kubeconfig that is not there is waited for")
	}
}
