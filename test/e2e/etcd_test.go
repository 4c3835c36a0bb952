package e2e

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
)

// TestSlowEtcd stops etcd for 3 s, continues it for half a second, and so on for a minute, as with a disk that takes
// seconds to sync. The controller does not end and decides nothing wrong meanwhile. 10 s after the last stop it has
// decided about the pods that were created in that minute.
func TestSlowEtcd(t *testing.T) {
	only(t)
	c := ownCluster(t)
	s := newStage(t, c, "crash")
	c.runController(t, filepath.Join(artifacts, "slow-etcd.log"))
	before := s.ledger.count(s.name)
	s.scale("app", 12)
	await(t, patience, "the pods to run", s.running("app", 12))

	disk := newSlowDisk(t, c)
	disk.slow(20 * time.Second)
	s.scale("app", 24)
	disk.slow(30 * time.Second)
	s.scale("app", 36)
	disk.slow(10 * time.Second)
	back := time.Now()
	await(t, patience, "the controller to decide", s.decided(before, 12))
	elapsed := time.Since(back)
	promised(t, "from etcd's recovery to the controller's decision", elapsed, 10*time.Second)
	await(t, patience, "all pods to run", s.running("app", 36))
	s.checkBought("etcd was slow", before, 12)
	if now := s.ledger.count(s.name); now.claims != 12 || now.nodes != 12 {
		t.Errorf("%d claims and %d nodes exist, want 12: needed ones were removed", now.claims, now.nodes)
	}
	if !c.controller.running() {
		t.Errorf("the controller ended; its log is %s", c.controller.log)
	}
}

// slowDisk simulates a slow disk of etcd: the process is stopped for the duration of a write.
type slowDisk struct {
	t       *testing.T
	process int
}

func newSlowDisk(t *testing.T, c *cluster) slowDisk {
	t.Helper()
	components := c.sandbox.Status().Components
	i := slices.IndexFunc(components, func(s sandbox.ComponentStatus) bool { return s.Name == "etcd" })
	if i < 0 {
		t.Fatal("no etcd runs")
	}
	return slowDisk{t, components[i].Process}
}

// slow keeps etcd stopped most of the time.
func (d slowDisk) slow(during time.Duration) {
	d.t.Helper()
	end := time.NewTimer(during)
	defer end.Stop()
	const still, going = 3 * time.Second, 500 * time.Millisecond
	for {
		for _, step := range []struct {
			signal syscall.Signal
			lasts  time.Duration
		}{{syscall.SIGSTOP, still}, {syscall.SIGCONT, going}} {
			if err := syscall.Kill(d.process, step.signal); err != nil {
				d.t.Fatalf("stopping etcd: %v", err)
			}
			over := time.NewTimer(step.lasts) // the duration itself is tested
			select {
			case <-over.C:
			case <-end.C:
				over.Stop()
				if err := syscall.Kill(d.process, syscall.SIGCONT); err != nil {
					d.t.Fatalf("continuing etcd: %v", err)
				}
				return
			}
		}
	}
}
