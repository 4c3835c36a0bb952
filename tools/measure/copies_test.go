package main

import (
	"fmt"
	"strings"
	"testing"
)

// copied has, for each subject, a copy by another name than those of today, in a package of its own, and a package that
// only uses what exists.
var copied = map[string]string{
	"internal/reader/a.go": `package reader

import (
	corev1 "k8s.io/api/core/v1"
	"` + module + `/internal/engine/model"
)

func read(p *corev1.Pod) model.PodSpec { return model.PodSpec{UID: string(p.UID), Name: p.Name, Node: p.Spec.NodeName} }
`,
	"internal/planner/a.go": "package planner\n\nimport \"placement\"\n\nfunc plan() { placement.ScheduleVirtual() }\n",
	"internal/ledger/a.go": "package ledger\n\ntype p struct{ NodeLimit, Nodes int }\n\n" +
		"func full(x p) bool { return x.Nodes >= x.NodeLimit }\n\nfunc show(x p) int { return x.NodeLimit }\n",
	"internal/controller/doubling/a.go": "package doubling\n\nfunc next(wait int) int { wait *= 2; return wait }\n",
	"internal/controller/counting/a.go": `package counting

import "time"

type memory struct {
	failures int
	at       time.Time
}

type timer struct{ at time.Time }
`,
	"internal/controller/listing/a.go": "package listing\n\ntype ring struct{ outcomes []bool }\n",
	"internal/controller/pausing/a.go": `package pausing

import "time"

// reported has what is disputed, which is not counted, and which pauses are known.
type reported struct {
	disputed []string
	paused   map[string]time.Time
}
`,
	"test/world/a.go": "package world\n\nimport \"model\"\n\ntype w struct{ now int }\n\n" +
		"func (x *w) run() { model.NewBuilder(); x.now = 3 }\n",
	"test/still/a.go": "package still\n\nimport \"model\"\n\nfunc run() { model.NewBuilder() }\n",
	"internal/testing/binds/a.go": "package binds\n\ntype t struct{ Node, Name string }\n\n" +
		"func bind(pod, node *t) { pod.Node = node.Name }\n",
	"internal/testing/tolerates/a.go": "package tolerates\n\ntype t struct{ Taints, Tolerations []int }\n\n" +
		"func tolerates(pod, node t) bool { return len(node.Taints) <= len(pod.Tolerations) }\n",
	"internal/web/assets/other.js": "function paint(g) { outline(g); g.fillRect(1); }",
	"internal/headroom/a.go":       "package headroom\n\nfunc headRoom() {}\n\nfunc bedroom() {}\n",
	"internal/stop/a.go":           "package stop\n\ntype Brakes struct{}\n",
}

func TestCopies(t *testing.T) {
	repo, err := read(written(t, copied))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	repo.addCopies(func(name string, value any, detail string) { got[name] = fmt.Sprint(value, " ", detail) })
	for name, want := range map[string]string{
		"copies: converters of API objects to the model": "1 internal/reader/a.go:8",
		"copies: planners of virtual pods":               "1 internal/planner/a.go:5",
		"copies: ledgers of limits and quotas":           "1 internal/ledger/a.go:5",
		"copies: ways to wait longer": "3 internal/controller/counting/a.go:5, internal/controller/doubling/a.go:3, " +
			"internal/controller/listing/a.go:3",
		"copies: virtual clusters":                        "1 test/world/a.go:7",
		"copies: rules of kube-scheduler":                 "2 internal/testing/binds/a.go:5, internal/testing/tolerates/a.go:5",
		"copies: painters of the fleet":                   "1 internal/web/assets/other.js",
		`copies: packages that mean something by "room"`:  "1 internal/headroom/a.go:3",
		`copies: packages that mean something by "brake"`: "1 internal/stop/a.go:3",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}

func TestConcepts(t *testing.T) {
	table := "| word | meaning |\n|---|---|\n"
	repo, err := read(written(t, map[string]string{
		"internal/engine/plan/verdict.go": "package plan\n\ntype Code int\n\nconst (\n\tOK Code = iota\n\tFull\n)\n\nconst limit = 3\n",
		"docs/architecture.md":            "| law |\n|---|\n| One |\n\n" + table + "| Pool, Claim | a |\n| Node | b |\n",
		"docs/reference/flags.md":         "| flag |\n|---|\n| `--a` | 1 |\n| `--b-c` | 2 |\n\n| `--a` | again |\n",
		"docs/reference/annotations.md":   "| `karpenter-go.github.io/a` | |\n| `karpenter.sh/b` | |\n",
		"docs/reference/metrics.md":       strings.Repeat("| `karpenter_a` | gauge |\n", 2),
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	repo.addConcepts(func(name string, value any, _ string) { got[name] = fmt.Sprint(value) })
	for name, want := range map[string]string{
		"concepts: codes of verdicts": "2", "concepts: words of docs/architecture.md": "3", "concepts: flags of the controller": "2",
		"concepts: annotations, labels and taints of ours": "1", "concepts: metrics": "1", "concepts": "9",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
}
