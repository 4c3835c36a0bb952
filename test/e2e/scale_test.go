package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestScale measures the controller's resource usage with the numbers of nodes in KARPENTER_SCALE ("20,100"), ten
// pods on each. The whole control plane creates them (two cores suffice for some hundreds; TestLoaded measures more).
// It prints a Markdown table. It asserts that all pods run and that no surplus node was launched, and nothing about
// time.
//
//	up        from the change of the replicas to the last pod that runs; most of it is the control plane's
//	CPU       of the controller's process: while the nodes are launched, in a minute in which nothing happens, and of
//	          a restarted one until it is ready and for a minute after
//	memory    resident: the peak while the nodes are launched, at rest, and the peak of a restarted one
func TestScale(t *testing.T) {
	sizes := os.Getenv("KARPENTER_SCALE")
	if sizes == "" {
		t.Skip("takes minutes; KARPENTER_SCALE=100 runs it (make scale)")
	}
	c, log := ownCluster(t), kept(t, "whole.log")
	c.environment = append(c.environment, mutationDetector+"false")
	s := newStage(t, c, "scale")
	c.runController(t, log)
	table := []string{"| nodes | pods | up | CPU up | CPU a minute at rest | CPU of a start | memory up | at rest | of a start |", "|---|---|---|---|---|---|---|---|---|"}
	for size := range strings.SplitSeq(sizes, ",") {
		nodes, err := strconv.Atoi(size)
		if err != nil {
			t.Fatalf("KARPENTER_SCALE: %v", err)
		}
		table = append(table, s.measure(nodes, log))
		t.Logf("so far:\n%s", strings.Join(table, "\n"))
	}
}

// measure returns the table row of a size.
func (s *stage) measure(nodes int, log string) string {
	s.t.Helper()
	const hour, podsPerNode = time.Hour, 10
	pods, begun, before := nodes*podsPerNode, time.Now(), s.controller.takes(s.t)
	s.scale("app", pods)
	await(s.t, hour, fmt.Sprintf("%d pods to run", pods), s.running("app", pods))
	up, elapsed := time.Since(begun), s.controller.takes(s.t)
	now := s.ledger.count(s.name)
	if most := nodes + nodes/100 + 1; now.nodes < nodes || now.nodes > most {
		s.t.Errorf("%d nodes for %d pods, want %d to %d", now.nodes, pods, nodes, most)
	}
	if now.claims != now.nodes {
		s.t.Errorf("%d claims, want one for each of %d nodes", now.claims, now.nodes)
	}
	idle(time.Minute) // until the last decisions are carried out
	quiet := s.controller.takes(s.t)
	idle(time.Minute)
	still := s.controller.takes(s.t)
	if err := s.controller.stop(); err != nil {
		s.t.Error(err)
	}
	s.runController(s.t, log)
	idle(time.Minute)
	anew := s.controller.takes(s.t)
	const row = "| %d | %d | %.0f s | %.1f s | %.1f s | %.1f s | %d MiB | %d MiB | %d MiB |"
	return fmt.Sprintf(row, s.ledger.count(s.name).nodes, pods, up.Seconds(), elapsed.cpu-before.cpu, still.cpu-quiet.cpu, anew.cpu, elapsed.peak>>20, still.resident>>20, anew.peak>>20)
}

// idle waits without creating work: the usage of an idle controller is measured.
func idle(duration time.Duration) {
	timer := time.NewTimer(duration)
	<-timer.C
}

// consumption is the usage of a process: CPU seconds and bytes.
type consumption struct {
	cpu            float64
	resident, peak int64
}

// measuring reports whether this run measures the controller: nothing else may run beside it then.
func measuring() bool {
	for _, variable := range []string{"KARPENTER_SCALE", "KARPENTER_LOADED", "KARPENTER_FAKE", "KARPENTER_BURST"} {
		if os.Getenv(variable) != "" {
			return true
		}
	}
	return false
}

// kept returns the path of a file that is kept after a measurement. An earlier file is removed.
func kept(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", "scale", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return path
}

// takes returns the controller's usage according to the operating system.
func (p *controller) takes(t *testing.T) consumption {
	t.Helper()
	folder := filepath.Join("/proc", strconv.Itoa(p.process.Pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	// After the name in brackets, which may contain spaces: state is field 3, utime 14 and stime 15, in ticks of 10
	// ms (proc(5)).
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var taken consumption
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatalf("reading the CPU time of the controller: %v", err)
		}
		taken.cpu += float64(ticks) / 100
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kilobytes); err == nil {
			taken.resident = kilobytes << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); err == nil {
			taken.peak = kilobytes << 10
		}
	}
	return taken
}
