package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// TestViewsDoNotWait: while one view is computed, all others are answered that do not need it. They are asked for at once,
// so that the race detector sees what they share.
func TestViewsDoNotWait(t *testing.T) {
	views := []string{"fleet?color=why", "fleet?node=two", "fleet", "pending", "map", "savings", "what-if?run=1&prices=2", "plan"}
	for name, tt := range map[string]struct {
		block func(*reading, func()) (start func())
		needs []string
	}{
		"savings": {func(r *reading, wait func()) func() {
			r.savings.compute = func(ctx context.Context, _ func(int, int)) ([]view.Blocker, error) {
				return r.Savings(ctx, func(int, int) { wait() })
			}
			return func() { r.savings.start() }
		}, []string{"savings"}},
		"plan": {func(r *reading, wait func()) func() {
			r.plan.compute = func(ctx context.Context, _ func(int, int)) (*view.Plan, error) {
				return r.Plan(ctx, func(int) { wait() })
			}
			return func() { r.plan.start() }
		}, []string{"savings", "plan", "what-if?run=1&prices=2"}},
		"what-if": {func(r *reading, wait func()) func() {
			r.plan.compute = func(ctx context.Context, _ func(int, int)) (*view.Plan, error) { return r.Plan(ctx, nil) }
			j := &job[*offline.WhatIf]{compute: func(ctx context.Context, _ func(int, int)) (*offline.WhatIf, error) {
				if _, err := r.Plan(ctx, nil); err != nil {
					return nil, err
				}
				return r.WhatIf(ctx, &offline.Change{Spot: 2}, func(int) { wait() })
			}}
			return func() { j.start() }
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := overview(t, cluster())
			s, c := serve(t, Options{Read: func(context.Context) (*offline.Overview, error) { return o, nil }})
			r, err := s.current(t.Context(), longPatience)
			if err != nil {
				t.Fatal(err)
			}
			computing, release := make(chan struct{}), make(chan struct{})
			begun := sync.OnceFunc(func() { close(computing) })
			tt.block(r, func() { begun(); <-release })()
			<-computing
			t.Run("meanwhile", func(t *testing.T) {
				for _, path := range views {
					if slices.Contains(tt.needs, path) {
						continue
					}
					t.Run(path, func(t *testing.T) {
						t.Parallel()
						get(t, c, path)
					})
				}
			})
			close(release)
			for _, path := range tt.needs {
				get(t, c, path)
			}
		})
	}
}

// get reads the rows of a view.
func get(t *testing.T, c *client, path string) {
	t.Helper()
	joined := "?"
	if strings.Contains(path, "?") {
		joined = "&"
	}
	text, answer := (&client{t: t, server: c.server, cookie: c.cookie}).get("/" + path + joined + "format=json")
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s is answered with %s: %s", path, answer.Status, text)
	}
}

// TestJobFails: an error that is the answer is kept, and is not computed again; that of a canceled job is.
func TestJobFails(t *testing.T) {
	computed := 0
	j := job[int]{compute: func(context.Context, func(int, int)) (int, error) {
		computed++
		return 0, http.ErrNotSupported
	}}
	for range 2 {
		if _, err, ready := j.ask(t.Context(), longPatience); !ready || !errors.Is(err, http.ErrNotSupported) {
			t.Fatalf("the job ends with %v, ready %v", err, ready)
		}
	}
	if computed != 1 {
		t.Errorf("computed %d times, want once", computed)
	}
}
