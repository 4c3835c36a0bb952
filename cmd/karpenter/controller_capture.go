package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// captures writes a capture for each SIGUSR1, once the state is complete, until the context ends.
func (w *wiring) captures(ctx context.Context) error {
	log := w.mgr.GetLogger().WithName("capture")
	if !w.store.WaitForSync(ctx) {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.process.captures:
		}
		within, cancel := context.WithTimeout(ctx, captureTimeout)
		path, err := w.capture(within)
		cancel()
		if err != nil {
			log.Error(err, "writing a capture; TMPDIR names the folder, which must be writable", "path", path)
			continue
		}
		log.Info("wrote a capture", "path", path)
	}
}

// captureTimeout limits the reads of buffers, quotas and what buffers refer to.
const captureTimeout = 30 * time.Second

// captureFile is in the folder for temporary files. The next capture takes its place, so that the folder does not fill.
const captureFile = "karpenter-capture.json"

// capture writes what the next decision is made on to a file, and returns its path.
func (w *wiring) capture(ctx context.Context) (path string, err error) {
	path = filepath.Join(os.TempDir(), captureFile)
	from := capture.Controller{Objects: w.store.Objects(), Sale: w.store.Sale(), Scheme: w.mgr.GetScheme()}
	if w.o.on.On(gates.CapacityBuffer) {
		from.Buffers, from.Live = w.live, w.live // a cache might have no informer of them, as on a standby
	}
	input, err := from.Input(ctx)
	if err != nil {
		return path, err
	}
	document := capture.Document{Input: *input, Options: w.o.captured(w.clock.Now().UTC().Truncate(time.Second))}
	document.Options.PriceRules = w.store.PriceRules()
	return path, document.Write(path)
}

// captured returns the options of a capture.
func (o *controllerOptions) captured(now time.Time) capture.Options {
	nodePrice := math.Max(0, float64(o.placement.NodePrice)) / model.Nano // negative for none
	return capture.Options{Now: now, PreferencePolicy: o.preferencePolicy, MinValuesPolicy: o.minValuesPolicy, NodeOverheadPrice: nodePrice,
		PackingEffort: max(1, o.placement.Effort), WorkBudget: o.workBudget, SchedulerConfig: o.schedulerConfig,
		PriorityCutoff: o.pods.PriorityCutoff, NewPodDelay: metav1.Duration{Duration: o.pods.Delay}, UnreadyBrake: o.brakeText,
		Replicas: o.proactive, PoolSelector: o.selectorText}
}
