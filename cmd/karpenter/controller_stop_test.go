package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// TestCalmStop checks that effects of stopping are not logged as errors, and that everything else is, before and
// after the stop.
func TestCalmStop(t *testing.T) {
	var lines []string
	ctx, stop := context.WithCancel(t.Context())
	log := calmStop(ctx, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})).WithName("a").WithValues("k", "v")
	canceled := fmt.Errorf("get lease: %w", context.Canceled)
	log.Error(canceled, "retrieving the lease")
	stop()
	log.Error(canceled, "retrieving the lease")
	log.Error(errors.New(leaseGivenBack), "error received after stop sequence was engaged")
	log.Error(errors.New("disk full"), "writing")
	log.Error(nil, "no cause")
	// funcr writes the level of lines that are no errors.
	if diff := cmp.Diff([]string{
		`"msg"="retrieving the lease" "error"="get lease: context canceled" "k"="v"`,
		`"level"=0 "msg"="interrupted, because the controller stops" "k"="v" "during"="retrieving the lease" ` +
			`"cause"="get lease: context canceled"`,
		`"level"=0 "msg"="the Lease is released, because the controller stops" "k"="v"`,
		`"msg"="writing" "error"="disk full" "k"="v"`,
		`"msg"="no cause" "error"=null "k"="v"`,
	}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
