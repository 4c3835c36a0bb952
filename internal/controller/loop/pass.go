package loop

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// planID is what the log calls a pass of a loop; exemplars of the histograms of their durations have it too.
const planID = "planID"

// slow is how long a pass may take before the log tells, whatever came of it: that is what somebody looks for who finds
// the pass in a histogram.
const slow = time.Second

// passID names a pass: the loop, when it began, and the version of its snapshot.
func passID(loop string, began time.Time, version uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", loop, began.UnixNano(), version))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:12]
}

func logSlow(log logr.Logger, took time.Duration) {
	if took >= slow {
		log.Info("deciding took long", "seconds", took.Seconds())
	}
}
