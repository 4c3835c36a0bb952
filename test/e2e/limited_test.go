package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/legacy/webhook"
)

// limitedMemory is the controller's memory limit in TestLimited.
const limitedMemory = 512 << 20

// TestLimited runs the controller in a control group of 512 MiB, in a cluster with as many nodes as KARPENTER_LOADED
// specifies (make scale). The kernel kills it if it uses more. It starts, survives a flood of conversions, and plans
// 500 pods beside it.
func TestLimited(t *testing.T) {
	nodes, err := strconv.Atoi(os.Getenv("KARPENTER_LOADED"))
	if err != nil {
		t.Skip("takes a quarter of an hour; KARPENTER_LOADED=1000 runs it (make scale)")
	}
	group := newMemoryGroup(t, limitedMemory)
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	l := load(t, takeSample(t), nodes)
	begun := time.Now()
	p, err := startController(l.cluster, kept(t, "limited.log"), fmt.Sprintf("--memory-limit=%d", limitedMemory),
		"--karpenter-service=karpenter", "--webhook-port="+strconv.Itoa(ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	l.controller = p
	group.add(t, p.process.Pid)
	await(t, 20*time.Minute, "the controller to be ready", p.ready)
	start := p.takes(t)
	t.Logf("ready after %.1f s and %.1f s of CPU, %d MiB at most, %s", time.Since(begun).Seconds(), start.cpu, start.peak>>20, group)
	l.settle()
	l.stay(nodes, nodes)
	f := newFlood(fmt.Sprintf("https://127.0.0.1:%d%s", ports[0], webhook.Path))
	await(t, patience, "the webhook to answer", f.answers)
	stop := f.start(t.Context())
	idle(20 * time.Second)
	flooded := p.takes(t)
	t.Logf("flooded: %d MiB at most, %s", flooded.peak>>20, group)
	claims := l.grow(500)
	said := stop()
	after := p.takes(t)
	t.Logf("500 pods have their claims after %.1f s and %.1f s of CPU, beside a flood of %s; %d MiB at most, %s",
		claims.Seconds(), after.cpu-flooded.cpu, said, after.peak>>20, group)
	if !p.running() {
		t.Errorf("the controller has ended: %v", p.err)
	}
	if remark := l.remark(); remark != "" {
		t.Errorf("the controller did not keep its Lease%s", remark)
	}
}

// memoryGroup is a control group with a limit of memory.
type memoryGroup struct{ folder, peak string }

// newMemoryGroup creates a control group (https://docs.kernel.org/admin-guide/cgroup-v2.html, or version 1). It skips
// the test if this process has no permission.
func newMemoryGroup(t *testing.T, bytes int) *memoryGroup {
	t.Helper()
	g := &memoryGroup{filepath.Join("/sys/fs/cgroup", "karpenter-e2e"), "memory.peak"}
	limit := "memory.max"
	if controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err != nil || !strings.Contains(string(controllers), "memory") {
		g.folder, g.peak, limit = "/sys/fs/cgroup/memory/karpenter-e2e", "memory.max_usage_in_bytes", "memory.limit_in_bytes"
	}
	if err := os.Mkdir(g.folder, 0o755); err != nil && !os.IsExist(err) {
		t.Skipf("no control group can be created here: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(g.folder) })
	if err := os.WriteFile(filepath.Join(g.folder, limit), []byte(strconv.Itoa(bytes)), 0o600); err != nil {
		t.Skipf("memory cannot be limited here: %v", err)
	}
	return g
}

// add moves a process into the group.
func (g *memoryGroup) add(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// String returns the peak memory of the group; the kernel includes cached files.
func (g *memoryGroup) String() string {
	text, err := os.ReadFile(filepath.Join(g.folder, g.peak))
	if err != nil {
		return err.Error()
	}
	peak, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d MiB in its control group at most", peak>>20)
}
