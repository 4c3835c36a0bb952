package world_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/testing/golden"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

// life is the log of the world of TestLog. The test of plugin/history reads it, too.
const life = "testdata/life.log"

// line is one of a kind of lines that docs/log.md describes: which keys it must have, and which it may have.
type line struct{ must, may []string }

var (
	heading = regexp.MustCompile("^### `(.*)`$")
	row     = regexp.MustCompile("^\\| (`.*`) \\| (.*) \\|$")
	quoted  = regexp.MustCompile("`([^`]*)`")
)

// documented reads docs/log.md.
func documented(t *testing.T) map[string]*line {
	t.Helper()
	page, err := os.ReadFile("../../../docs/log.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, now := map[string]*line{}, &line{}
	for _, text := range strings.Split(string(page), "\n") {
		if m := heading.FindStringSubmatch(text); m != nil {
			now = &line{}
			lines[strings.TrimSuffix(m[1], " ...")] = now
		}
		m := row.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		keys := &now.must
		if strings.HasPrefix(m[2], "optional") {
			keys = &now.may
		}
		for _, key := range quoted.FindAllStringSubmatch(m[1], -1) {
			*keys = append(*keys, key[1])
		}
	}
	return lines
}

// anyLine are the keys that may be in all lines.
var anyLine = []string{"level", "time", "logger", "message", "planID"}

// checkLines compares the lines about nodes with the page, and returns which messages there were.
func checkLines(t *testing.T, lines []string) map[string]bool {
	t.Helper()
	page, seen := documented(t), map[string]bool{}
	for _, text := range lines {
		keys := map[string]any{}
		if err := json.Unmarshal([]byte(text), &keys); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		message, _ := keys["message"].(string)
		kind := message
		if strings.HasPrefix(message, "deleted a claim") {
			kind = "deleted a claim"
		}
		known := page[kind]
		if known == nil {
			continue
		}
		seen[message] = true
		got := slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool {
			return slices.Contains(anyLine, key) || slices.Contains(known.may, key)
		})
		if diff := cmp.Diff(slices.Sorted(slices.Values(known.must)), got); diff != "" {
			t.Errorf("%s\nkeys (-docs/log.md +log):\n%s", text, diff)
		}
	}
	return seen
}

// logOf plays a world and returns the lines of the controller's log.
func logOf(t *testing.T, config world.Config, play func(*world.World)) []string {
	t.Helper()
	var lines []string
	config.Seed, config.Now = 1, noon
	config.Lines = func(text string) { lines = append(lines, text) }
	if config.Types == nil {
		config.Types = sells()
	}
	w := start(t, config)
	play(w)
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestLog compares the log of a fleet that grows, is consolidated and ends with docs/log.md, and with testdata/life.log.
func TestLog(t *testing.T) {
	steady, types := pool(), sells()
	steady.Name = "steady"
	steady.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeOnDemand}
	for i := range types {
		o := types[i].Offerings[0]
		o.CapacityType, o.Price = karpv1.CapacityTypeOnDemand, o.Price*2
		types[i].Offerings = append(types[i].Offerings, o)
	}
	lines := logOf(t, world.Config{Types: types, Objects: []client.Object{pool(), steady}}, func(w *world.World) {
		web, batch := podOf("web", 1000), podOf("batch", 1500)
		batch.Spec.NodeSelector = map[string]string{karpv1.LabelCapacityType: karpv1.CapacityTypeOnDemand}
		w.Scale(web, 2)
		w.Advance(2 * time.Minute)
		w.Interrupt(w.Spot()[0])
		w.Advance(5 * time.Minute)
		w.Scale(batch, 5)
		w.Advance(10 * time.Minute)
		w.Scale(batch, 1)
		w.Advance(2 * time.Hour)
		w.Scale(web, 0)
		w.Advance(2 * time.Hour)
		w.Scale(batch, 0)
		w.Advance(time.Hour)
	})
	seen := checkLines(t, lines)
	for _, message := range []string{"created nodeclaim", "launched nodeclaim", "registered nodeclaim", "initialized nodeclaim",
		"disrupting nodes", "draining node", "drained node", "deleted nodeclaim"} {
		if !seen[message] {
			t.Errorf("no line %q", message)
		}
	}
	lines = slices.DeleteFunc(lines, func(text string) bool { return strings.Contains(text, `"created nodeclaims"`) }) // of a plan
	text := strings.Join(lines, "\n") + "\n"
	if each, most := len(text)/strings.Count(text, `"launched nodeclaim"`), 2500; each > most {
		t.Errorf("%d bytes of log for a node, want %d or less", each, most)
	}
	if *golden.Update {
		if err := os.WriteFile(life, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(life)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", life, diff)
	}
}

// TestLogOfDeletions compares the lines about claims that are deleted without a command with docs/log.md.
func TestLogOfDeletions(t *testing.T) {
	expiring, static := pool(), pool()
	expiring.Spec.Template.Spec.ExpireAfter = karpv1.DurationOf(time.Hour)
	static.Spec.Replicas = new(int64(2))
	timers := controller.Production()
	for _, c := range []struct {
		want   string
		config world.Config
		play   func(*world.World)
	}{
		{"deleted a claim that took too long",
			world.Config{Objects: []client.Object{pool()}, MachineTime: timers.Registration + time.Minute},
			func(w *world.World) { w.Scale(podOf("web", 1000), 1); w.Advance(timers.Registration + time.Minute) }},
		{"deleted a claim that has expired", world.Config{Objects: []client.Object{expiring}},
			func(w *world.World) { w.Scale(podOf("web", 1000), 1); w.Advance(2 * time.Hour) }},
		{"created nodeclaim", world.Config{Objects: []client.Object{static}, Disruption: disruption.Options{Static: true}},
			func(w *world.World) { w.Advance(5 * time.Minute) }},
	} {
		lines := logOf(t, c.config, c.play)
		if seen := checkLines(t, lines); !seen[c.want] {
			t.Errorf("no line %q in\n%s", c.want, strings.Join(lines, "\n"))
		}
	}
}

// TestEveryDeletionHasReason checks all code that logs that a claim is deleted, also that of clouds, which no world has.
func TestEveryDeletionHasReason(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, function := range strings.Split(string(text), "\nfunc ")[1:] {
			_, call, is := strings.Cut(function, `Info("deleted a claim`)
			if !is {
				continue
			}
			found++
			keys, _, _ := strings.Cut(call, ")\n")
			if !strings.Contains(keys, `"reason",`) || !strings.Contains(function, `"nodeClaim", `) && !strings.Contains(function, "logOf(") {
				t.Errorf("%s: the line %q has no reason or no nodeClaim", path, `deleted a claim`+keys)
			}
		}
		return nil
	})
	if err != nil || found < 7 {
		t.Errorf("%d lines, %v; want 7 or more", found, err)
	}
}
