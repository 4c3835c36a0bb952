package loop

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// planID is the log key of the ID of a pass. The exemplars of the histograms of pass durations use the same key.
const planID = "planID"

// slow is the duration from which on a pass is logged even without a result, so that a pass that is seen in a
// histogram can be found in the log.
const slow = time.Second

// passID derives an ID of a pass from the loop, its start time and the version of its snapshot.
func passID(loop string, began time.Time, version uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", loop, began.UnixNano(), version))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:12]
}

func logSlow(log logr.Logger, took time.Duration) {
	if took >= slow {
		log.Info("deciding took long", "seconds", took.Seconds())
	}
}
