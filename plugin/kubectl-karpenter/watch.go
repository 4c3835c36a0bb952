package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
)

// watchInterval is the pause between two readings of the cluster, as in top.
const watchInterval = 5 * time.Second

// watch repeats an answer whenever it changes.
type watch struct {
	on bool
	// pause ends after watchInterval or with the context; nil for that.
	pause func(context.Context)
}

func (w *watch) addFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&w.on, "watch", "w", false, "read the cluster every 5s, and print the answer again when it has changed")
}

// run prints the answer. With --watch it goes on until the context ends: an answer that differs from the last one is
// printed, and an error after the first answer is reported to progress.
func (w *watch) run(ctx context.Context, out, progress io.Writer, answer func(context.Context, io.Writer) error) error {
	if !w.on {
		return answer(ctx, out)
	}
	pause := w.pause
	if pause == nil {
		pause = pauseBetween
	}
	last, failed := "", ""
	for first := true; ctx.Err() == nil; first = false {
		page := printed{columns: columnsOf(out)}
		switch err := answer(ctx, &page); {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			if failed != err.Error() {
				failed = err.Error()
				fmt.Fprintf(progress, "%s: %s\n", plugin, failed)
			}
		case page.String() == last:
			failed = ""
		default:
			if last != "" {
				fmt.Fprintln(out, "---")
			}
			last, failed = page.String(), ""
			if _, err := io.WriteString(out, last); err != nil {
				return err
			}
		}
		pause(ctx)
	}
	return nil
}

func pauseBetween(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(watchInterval):
	}
}

// printed is an answer before it is written to an output of this width.
type printed struct {
	bytes.Buffer
	columns int
}

// Columns is the width of the terminal, 0 for none.
func (p *printed) Columns() int { return p.columns }
