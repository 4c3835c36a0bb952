package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// await waits until done returns true, at most for patience. It ends early when a process that it depends on has
// died. done also describes the progress.
func (d *demo) await(ctx context.Context, patience time.Duration, what string, done func() (bool, string)) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var changed <-chan struct{}
	if d.history != nil {
		changed = d.history.changed
	}
	for {
		ok, state := done()
		if ok {
			d.progress.clear()
			return nil
		}
		if err := d.died(); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-deadline.C:
			return fmt.Errorf("waited %s for %s: %s", patience, what, state)
		case <-changed:
		case <-ticker.C:
			d.progress.show("waiting for " + what + ": " + state)
		}
	}
}

func (d *demo) died() error {
	if err := d.cluster.died(); err != nil {
		return err
	}
	if d.controller != nil {
		return d.controller.died()
	}
	return nil
}

// progress prints the progress of what takes over a second: on a terminal one line that is overwritten, else a line
// every ten seconds if it has changed.
type progress struct {
	out      io.Writer
	terminal bool
	since    time.Time // start of the current activity, or time of the last plain line
	patience time.Duration
	shown    bool
	last     string // plain line
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, since: time.Now(), patience: time.Second}
	if file, ok := out.(*os.File); ok {
		if is, err := file.Stat(); err == nil {
			p.terminal = is.Mode()&os.ModeCharDevice != 0
		}
	}
	return p
}

// show prints the current activity.
func (p *progress) show(text string) {
	if time.Since(p.since) < p.patience {
		return
	}
	if p.terminal {
		const widest = 110
		if len(text) > widest {
			text = text[:widest] + "..."
		}
		fmt.Fprintf(p.out, "\r\x1b[K  %s", text)
		p.shown = true
		return
	}
	if text == p.last {
		return
	}
	fmt.Fprintln(p.out, text)
	p.last = text
	p.since, p.patience = time.Now(), 10*time.Second
}

// clear ends the current activity.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.since, p.patience, p.shown, p.last = time.Now(), time.Second, false, ""
}
