package transport_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/transport"
)

// machine is a computer with clocks that the test controls, and an election with its record in memory.
type machine struct {
	now    transport.Reading
	record resourcelock.LeaderElectionRecord
	fails  error
	slow   time.Duration // duration of a renewal
	lost   []string
	guard  *transport.Guard
	lock   resourcelock.Interface
}

func newMachine() *machine {
	m := &machine{now: transport.Reading{Wall: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}}
	m.guard = &transport.Guard{Duration: 15 * time.Second, Clocks: func() transport.Reading { return m.now },
		Lost: func(holder string) { m.lost = append(m.lost, holder) }}
	m.lock = m.guard.Lock(election{m})
	return m
}

// run advances both clocks. suspend advances the wall clock only, as during a suspension. set changes the wall clock
// only.
func (m *machine) run(d time.Duration) {
	m.now.Wall, m.now.Monotonic = m.now.Wall.Add(d), m.now.Monotonic+d
}
func (m *machine) suspend(d time.Duration) { m.now.Wall = m.now.Wall.Add(d) }

type election struct{ m *machine }

func (e election) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := e.m.record
	return &record, nil, e.m.fails
}
func (e election) Create(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	e.m.run(e.m.slow)
	if e.m.fails == nil {
		e.m.record = r
	}
	return e.m.fails
}
func (e election) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return e.Create(ctx, r)
}
func (e election) RecordEvent(string) {}
func (e election) Identity() string   { return "us" }
func (e election) Describe() string   { return "an election in memory" }

func (m *machine) renew(t *testing.T) {
	t.Helper()
	if err := m.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*testing.T, *machine)
		may  bool
	}{
		{"a standby", func(_ *testing.T, m *machine) { m.run(time.Hour) }, true},
		{"a leader within its lease", func(t *testing.T, m *machine) { m.renew(t); m.run(14 * time.Second) }, true},
		{"a leader that was stopped", func(t *testing.T, m *machine) { m.renew(t); m.run(15 * time.Second) }, false},
		{"a system that was suspended", func(t *testing.T, m *machine) { m.renew(t); m.suspend(time.Minute) }, false},
		{"a wall clock that is put back while the process is stopped",
			func(t *testing.T, m *machine) { m.renew(t); m.run(time.Minute); m.suspend(-time.Hour) }, false},
		{"a wall clock that is put back", func(t *testing.T, m *machine) { m.renew(t); m.run(time.Second); m.suspend(-time.Hour) }, true},
		{"a wall clock that is put forward, and a renewal", func(t *testing.T, m *machine) { m.renew(t); m.suspend(time.Hour); m.renew(t) },
			true},
		{"stopped, and renewed because no other took the lease",
			func(t *testing.T, m *machine) { m.renew(t); m.run(time.Minute); m.renew(t) }, true},
		{"a renewal counts from when it was asked for",
			func(t *testing.T, m *machine) { m.slow = 10 * time.Second; m.renew(t); m.run(5 * time.Second) }, false},
		{"a renewal that failed is none", func(t *testing.T, m *machine) {
			m.renew(t)
			m.run(14 * time.Second)
			m.fails = errors.New("no answer")
			if err := m.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err == nil {
				t.Error("the failure was lost")
			}
			m.run(time.Second)
		}, false},
		{"another holds the lease", func(t *testing.T, m *machine) {
			m.renew(t)
			m.record.HolderIdentity = "them"
			if _, _, err := m.lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"another holds the lease, and this process never did", func(t *testing.T, m *machine) {
			m.record.HolderIdentity = "them"
			if _, _, err := m.lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a lease that was given back", func(t *testing.T, m *machine) {
			m.renew(t)
			if err := m.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine()
			test.do(t, m)
			err := m.guard.Check()
			var expired *transport.ExpiredError
			switch {
			case (err == nil) != test.may:
				t.Errorf("(err == nil) is %v, want %v, Check returned %v", (err == nil), test.may, err)
			case err != nil && !errors.As(err, &expired):
				t.Errorf("err != nil && !errors.As(err, &expired), Check returned %v", err)
			}
			if other := m.record.HolderIdentity == "them" && !test.may; other != (len(m.lost) == 1) {
				t.Errorf("Lost was called with %v", m.lost)
			}
		})
	}
}

// TestTransport verifies that in a process that may not write, reads pass, and writes do not reach the server,
// whatever the verb.
func TestTransport(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer server.Close()
	m := newMachine()
	client := &http.Client{Transport: m.guard.Transport(http.DefaultTransport)}
	send := func(method string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	writes := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	m.renew(t)
	for _, method := range writes {
		if err := send(method); err != nil {
			t.Errorf("%s within the lease: %v", method, err)
		}
	}
	m.run(time.Minute)
	for _, method := range writes {
		var expired *transport.ExpiredError
		if err := send(method); !errors.As(err, &expired) {
			t.Errorf("%s after the lease: %v", method, err)
		}
	}
	if err := send(http.MethodGet); err != nil {
		t.Errorf("GET after the lease: %v", err)
	}
	if len(got) != len(writes)+1 {
		t.Errorf("the server received %v", got)
	}
}

// buys counts the launches and terminations that reach a cloud.
type buys struct {
	cloud.Provider
	launched, ended int
}

func (b *buys) Launch(context.Context, *karpv1.NodeClaim) (*cloud.Machine, error) {
	b.launched++
	return &cloud.Machine{}, nil
}

func (b *buys) Terminate(context.Context, string) error { b.ended++; return nil }

func TestProvider(t *testing.T) {
	m, inner := newMachine(), &buys{}
	p := m.guard.Provider(inner)
	for range 2 { // within the lease, and after it
		m.renew(t)
		_, launch := p.Launch(t.Context(), nil)
		end := p.Terminate(t.Context(), "")
		if launch != nil || end != nil {
			t.Errorf("within the lease: %v, %v", launch, end)
		}
		m.run(time.Minute)
		_, launch = p.Launch(t.Context(), nil)
		end = p.Terminate(t.Context(), "")
		if launch == nil || end == nil {
			t.Errorf("after the lease: %v, %v", launch, end)
		}
	}
	if inner.launched != 2 || inner.ended != 2 {
		t.Errorf("%d launches and %d terminations reached the cloud, want 2 of each", inner.launched, inner.ended)
	}
}

func TestNoElection(t *testing.T) {
	var g *transport.Guard
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	if l := (&transport.Guard{}).Lock(nil); l != nil {
		t.Errorf("the lock without an election is %v", l)
	}
}
