package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWatch checks that an answer is printed when it changes, that a later error is reported once and does not end the
// watch, and that the end of the context is no error.
func TestWatch(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	answers := []string{"launching\n", "launching\n", "", "", "ready\n", "ready\n"}
	w := watch{on: true, pause: func(context.Context) {
		if answers = answers[1:]; len(answers) == 0 {
			stop()
		}
	}}
	var out, progress bytes.Buffer
	err := w.run(ctx, &out, &progress, func(_ context.Context, out io.Writer) error {
		if answers[0] == "" {
			return errors.New("the API server is away")
		}
		_, err := io.WriteString(out, answers[0])
		return err
	})
	if err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	if diff := cmp.Diff("launching\n---\nready\n", out.String()); diff != "" {
		t.Errorf("output, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff("kubectl karpenter: the API server is away\n", progress.String()); diff != "" {
		t.Errorf("progress, -want +got:\n%s", diff)
	}
}

// TestWatchFailsAtOnce checks that an error of the first answer ends the command, as without --watch.
func TestWatchFailsAtOnce(t *testing.T) {
	w := watch{on: true}
	want := errors.New("there is no node x")
	got := w.run(t.Context(), io.Discard, io.Discard, func(context.Context, io.Writer) error { return want })
	if !errors.Is(got, want) {
		t.Errorf("error is %v, want %v", got, want)
	}
}
