package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// TestCalmStop checks that effects of stopping are not logged as errors, and that everything else is, before and
// after the stop.
func TestCalmStop(t *testing.T) {
	var lines []string
	ctx, stop := context.WithCancel(t.Context())
	log := calmStop(ctx, funcr.New(func(_, args string) {
		kind, _, _ := strings.Cut(args, "=")
		lines = append(lines, kind)
	}, funcr.Options{})).WithName("a").WithValues("k", "v")
	canceled := fmt.Errorf("get lease: %w", context.Canceled)
	log.Error(canceled, "retrieving the lease")
	stop()
	log.Error(canceled, "retrieving the lease")
	log.Error(errors.New(leaseGivenBack), "error received after stop sequence was engaged")
	log.Error(errors.New("disk full"), "writing")
	log.Error(nil, "no cause")
	// funcr begins lines of errors with the logger's message, and others with their level.
	if diff := cmp.Diff([]string{`"msg"`, `"level"`, `"level"`, `"msg"`, `"msg"`}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
