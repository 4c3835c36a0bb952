package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
			r.savings.compute = func(ctx context.Context, _ func(*view.Savings)) (*view.Savings, error) {
				return r.Savings(ctx, time.Minute, func(*view.Savings) { wait() })
			}
			return func() { r.savings.start() }
		}, []string{"savings"}},
		"plan": {func(r *reading, wait func()) func() {
			r.plan.compute = func(ctx context.Context, _ func(*view.Plan)) (*view.Plan, error) {
				return r.Plan(ctx, func(*view.Plan) { wait() })
			}
			return func() { r.plan.start() }
		}, []string{"savings", "plan", "what-if?run=1&prices=2"}},
		"what-if": {func(r *reading, wait func()) func() {
			j := &job[*offline.WhatIf]{compute: func(ctx context.Context, _ func(*offline.WhatIf)) (*offline.WhatIf, error) {
				if _, err := r.Plan(ctx, nil); err != nil {
					return nil, err
				}
				return r.WhatIf(ctx, &offline.Change{Spot: 2}, func(*offline.WhatIf) { wait() })
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
	j := job[int]{compute: func(context.Context, func(int)) (int, error) {
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

// TestPartly: a page shows the plan and the savings as far as they are computed, and says so; a document waits.
func TestPartly(t *testing.T) {
	o := overview(t, cluster())
	s, c := serve(t, Options{Read: func(context.Context) (*offline.Overview, error) { return o, nil }})
	r, err := s.current(t.Context(), longPatience)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := o.Plan(t.Context(), nil)
	if err != nil || len(whole.Steps) < 2 {
		t.Fatalf("%d steps, %v", len(whole.Steps), err)
	}
	part := *whole
	part.Steps = part.Steps[:1]
	release := make(chan struct{})
	r.plan.compute = func(ctx context.Context, tell func(*view.Plan)) (*view.Plan, error) {
		tell(&part)
		<-release
		return whole, nil
	}
	page, _ := c.get("/plan")
	if rows := strings.Count(page, "<tr data-row="); rows != 1 || !strings.Contains(page, "still computing: 1 step so far") ||
		!strings.Contains(page, `data-waiting="true"`) {
		t.Errorf("the plan has %d rows while it is made:\n%s", rows, page)
	}
	page, _ = c.get("/savings")
	if !strings.Contains(page, "shop/db") || !strings.Contains(page, "compared with: 1 step so far") {
		t.Errorf("what keeps nodes is not shown while the plan is made:\n%s", page)
	}
	if _, answer := c.get("/plan?format=view"); answer.StatusCode != http.StatusOK {
		t.Errorf("the picture of the plan so far is answered with %s", answer.Status)
	}
	close(release)
	text, _ := c.get("/plan?format=csv")
	if lines := strings.Count(text, "\n"); lines != len(whole.Steps)+1 {
		t.Errorf("the document has %d lines, want %d and a head", lines, len(whole.Steps))
	}
	page, _ = c.get("/plan")
	if strings.Contains(page, "still computing") || strings.Contains(page, `data-waiting="true"`) {
		t.Error("the plan is not complete")
	}
}

// TestStopped: savings that are not computed in their time are said to be, and are computed when the reader goes on.
func TestStopped(t *testing.T) {
	o := overview(t, cluster())
	s, c := serve(t, Options{Read: func(context.Context) (*offline.Overview, error) { return o, nil }})
	r, err := s.current(t.Context(), longPatience)
	if err != nil {
		t.Fatal(err)
	}
	longest := -time.Second
	r.savings.compute = func(ctx context.Context, tell func(*view.Savings)) (*view.Savings, error) {
		return r.Savings(ctx, longest, tell)
	}
	text, _ := c.get("/savings?format=json")
	if !strings.Contains(text, `"stopped": true`) || !strings.Contains(text, `"computed": 0`) {
		t.Errorf("the document does not say that it is not complete: %s", text)
	}
	page, _ := c.get("/savings")
	if !strings.Contains(page, "Stopped after 60 s: 0 of ") || !strings.Contains(page, `action="/go-on"`) {
		t.Errorf("the page does not say that it is not complete:\n%s", page)
	}
	longest = time.Minute
	if answer := c.do(http.MethodPost, "/go-on", nil, nil); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("going on is answered with %s", answer.Status)
	}
	text, _ = c.get("/savings?format=json")
	if !strings.Contains(text, `"stopped": false`) || strings.Contains(text, "not computed") {
		t.Errorf("the savings are not complete: %s", text)
	}
}
