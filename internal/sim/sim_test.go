package sim

import (
	"os"
	"strings"
	"testing"
)

// TestHistories lets many histories happen. A failing one is printed as short as it could be made, to be put into
// testdata.
func TestHistories(t *testing.T) {
	seeds := uint64(200)
	if os.Getenv("KARPENTER_NIGHTLY") != "" {
		seeds = 20_000
	}
	for seed := range seeds {
		h := NewHistory(seed)
		if f := Run(h, Production()).Failure; f != nil {
			report(t, h, Production())
			return
		}
	}
}

func report(t *testing.T, h History, opts Options) {
	t.Helper()
	short := Shrink(h, opts, 150)
	r := Run(short, opts)
	t.Errorf("%v\n\nThe history:\n\n%s\nWhat happened:\n\n%s", r.Failure, short, strings.Join(r.Trace, "\n"))
}
