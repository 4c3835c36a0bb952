package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// probes serves /healthz and /readyz for as long as the process lives. The manager could serve them too, but only
// while it runs. Before that, the program waits for the API server and AWS, which can take long, and a kubelet whose
// probes fail meanwhile restarts the container.
type probes struct {
	server *http.Server
	// checks handles /readyz once the controller is assembled; before that, why is the response.
	checks atomic.Pointer[healthz.Handler]
	why    atomic.Pointer[string]
}

// serveProbes starts serving at the port; 0 means none. It returns an error if it cannot listen at the port.
func serveProbes(port int) (*probes, error) {
	p := &probes{}
	p.waits("starting")
	if port == 0 {
		return p, nil
	}
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return nil, fmt.Errorf("serving health probes (--health-probe-port, 0 for none): %w", err)
	}
	alive := &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}
	mux := http.NewServeMux()
	for path, handler := range map[string]http.Handler{"/healthz": alive, "/readyz": http.HandlerFunc(p.ready)} {
		mux.Handle(path, http.StripPrefix(path, handler))
		mux.Handle(path+"/", http.StripPrefix(path, handler))
	}
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 90 * time.Second, MaxHeaderBytes: 1 << 20}
	go func() { _ = p.server.Serve(listener) }() // it ends with close
	return p, nil
}

// waits sets the reason why the program is not ready.
func (p *probes) waits(why string) { p.why.Store(&why) }

// answer makes the checks handle /readyz from now on.
func (p *probes) answer(checks map[string]healthz.Checker) {
	p.checks.Store(&healthz.Handler{Checks: checks})
}

func (p *probes) ready(w http.ResponseWriter, r *http.Request) {
	if checks := p.checks.Load(); checks != nil {
		checks.ServeHTTP(w, r)
		return
	}
	http.Error(w, *p.why.Load(), http.StatusServiceUnavailable)
}

func (p *probes) close() {
	if p.server != nil {
		_ = p.server.Close()
	}
}
