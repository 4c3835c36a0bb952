package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// captured runs simulate with --capture and returns the file.
func captured(t *testing.T, arguments ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "capture.json")
	if _, err := simulate(t, "", append(arguments, "--capture", file)...); err != nil {
		t.Fatal(err)
	}
	return file
}

// edit replaces texts of a capture. The texts are pairs of old and new.
func edit(t *testing.T, file string, texts ...string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.NewReplacer(texts...).Replace(string(data))
	if edited == string(data) {
		t.Fatalf("nothing of %q in\n%s", texts, data)
	}
	other := filepath.Join(t.TempDir(), "edited.json")
	if err := os.WriteFile(other, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	return other
}

func TestReplay(t *testing.T) {
	huge := strings.NewReplacer("cpu: 500m", "cpu: 50", "name: web", "name: huge").Replace(webYAML)
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML, "huge.yaml": huge,
		"meta.json": `{"providerLabels": ["example.com/nvme"]}`})
	file := captured(t, "-f", folder, "--node-overhead-price", "0.01", "--preference-policy", "Ignore", "--now", "2026-01-02T03:04:05Z")
	out, err := runProgram(t, "", "replay", file)
	if err != nil || out != "the same answer: 1 new node for 0.1000 USD per hour, 3 pods unschedulable\n" {
		t.Errorf("%v\n%s", err, out)
	}
	a, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, answer, _ := strings.Cut(string(a), `,
 "answer": `)
	out, err = runProgram(t, "", "replay", edit(t, file, `,
 "answer": `+answer, "\n}\n"))
	if err != nil || out != "no answer is recorded: 1 new node for 0.1000 USD per hour, 3 pods unschedulable\n" {
		t.Errorf("without an answer: %v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		file  string
		usage bool
		want  string
	}{
		"another price of the offering": {edit(t, file, `"Price": 0.1,`, `"Price": 0.09,`), false, "the answer has changed: now 1 new node for 0.0900"},
		"another answer": {edit(t, file, `"costPerHour": 0.11,`, `"costPerHour": 0.12,`), false,
			"differences: costPerHour; kubectl karpenter"},
		"other statistics": {edit(t, file, `"wallSeconds": `, `"wallSeconds": 9`), false, ""},
		"other options":    {edit(t, file, `"nodeOverheadPrice": 0.01`, `"nodeOverheadPrice": 0.5`), false, "the answer has changed"},
		"wrong options":    {edit(t, file, `"Ignore"`, `"Forget"`), true, `--preference-policy is "Forget"`},
		"no sale":          {edit(t, file, `"sale"`, `"sail"`), true, `unknown field "sail"`},
		"another kind": {edit(t, file, `"kind": "Capture"`, `"kind": "Picture"`), true,
			"want Capture of simulate.karpenter-go.github.io/v1alpha1"},
		"missing": {filepath.Join(folder, "none.json"), true, "none.json: no such file"},
	} {
		_, err := runProgram(t, "", "replay", c.file)
		switch {
		case c.want == "" && err != nil, c.want != "" && err == nil:
			t.Errorf("%s: got error %v", name, err)
		case err != nil && ((cli.ExitCode(err) == 2) != c.usage || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
	missing := captured(t, "-f", filepath.Join("testdata", "prices", "app.yaml")) // its class is in no file
	if out, err := runProgram(t, "", "replay", missing); err != nil || !strings.Contains(out, "the same answer") {
		t.Errorf("without the class: %v\n%s", err, out)
	}
	if _, err := runProgram(t, "", "replay"); err == nil {
		t.Error("replay without a file succeeds")
	}
}

// TestCaptureIsInput checks that a capture may be given by -f, alone or with more files, and that its time is used.
func TestCaptureIsInput(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML,
		"more.yml.txt": strings.ReplaceAll(webYAML, "web", "more")})
	file := captured(t, "-f", folder, "--now", "2026-01-02T03:04:05Z")
	alone, both := simulateJSON(t, "-f", file), simulateJSON(t, "-f", file, "-f", filepath.Join(folder, "more.yml.txt"))
	switch {
	case alone.Pods.New != 3:
		t.Errorf("%d new pods alone, want 3", alone.Pods.New)
	case both.Pods.New != 6:
		t.Errorf("%d new pods together, want 6", both.Pods.New)
	case alone.Nodes[0].InstanceType != "small":
		t.Errorf("the first node alone is %s, want small", alone.Nodes[0].InstanceType)
	}
	again := captured(t, "-f", file)
	var document struct {
		Options struct{ Now time.Time }
		Input   struct{ Objects []json.RawMessage }
	}
	data, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !document.Options.Now.Equal(want) || len(document.Input.Objects) != 2 {
		t.Errorf("the capture of a capture is of %s and has %d objects", document.Options.Now, len(document.Input.Objects))
	}
	if out, err := runProgram(t, "", "replay", again); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWorkBudget checks that pods beyond the work budget are reported, and that a replay of the capture stops at the
// same point.
// TestOddCaptures: a capture of a version that is not read is bad input, and so is a second one in the same file.
func TestOddCaptures(t *testing.T) {
	file := captured(t, "-f", files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML}))
	later := edit(t, file, "simulate.karpenter-go.github.io/v1alpha1", "simulate.karpenter-go.github.io/v1")
	_, err := simulate(t, "", "-f", later)
	want := "apiVersion: is simulate.karpenter-go.github.io/v1, which is not read, want simulate.karpenter-go.github.io/v1alpha1"
	if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	twice := filepath.Join(t.TempDir(), "twice.json")
	if err := os.WriteFile(twice, append(data, data...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = runProgram(t, "", "replay", twice)
	if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "twice.json: has more than one document, want one capture") {
		t.Errorf("of two captures: %v", err)
	}
}

func TestWorkBudget(t *testing.T) {
	texts := map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON}
	for i := range 40 {
		name := fmt.Sprintf("web-%d", i)
		texts[name+".yaml"] = strings.NewReplacer("web", name, "cpu: 500m", fmt.Sprintf("cpu: %dm", 500+i)).Replace(webYAML)
	}
	folder := files(t, texts)
	a := simulateJSON(t, "-f", folder, "--work-budget", "1")
	switch {
	case a.Pods.New != 3*32:
		t.Errorf("%d pods on new nodes, want %d", a.Pods.New, 3*32)
	case a.Pods.Unschedulable != 3*8:
		t.Errorf("%d unschedulable pods, want %d", a.Pods.Unschedulable, 3*8)
	case a.Unschedulable[0].Reasons[0].Code != "NotReached":
		t.Errorf("the first pod is unschedulable because of %+v, want NotReached", a.Unschedulable[0].Reasons[0])
	}
	if out, err := runProgram(t, "", "replay", captured(t, "-f", folder, "--work-budget", "1")); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNow checks that the time of the decision is the newest timestamp of the input.
func TestNow(t *testing.T) {
	old := strings.Replace(webYAML, "metadata: {name: web}", `metadata: {name: web, creationTimestamp: "2025-05-05T05:05:05Z"}`, 1)
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: node, creationTimestamp: \"2025-06-06T06:06:06Z\"}\n"
	for name, c := range map[string]struct {
		texts     map[string]string
		arguments []string
		want      string
	}{
		"newest": {map[string]string{"a.yaml": old, "b.yaml": node}, nil, "2025-06-06T06:06:06Z"},
		"given": {map[string]string{"a.yaml": old, "b.yaml": node}, []string{"--now", "2024-01-01T00:00:00+01:00"},
			"2023-12-31T23:00:00Z"},
		"no timestamp": {map[string]string{"a.yaml": webYAML}, nil, "1970-01-01T00:00:00Z"},
	} {
		file := captured(t, append(c.arguments, "-f", files(t, c.texts))...)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := `"now": "` + c.want + `"`; !strings.Contains(string(data), want) {
			t.Errorf("%s: no %s in\n%s", name, want, data)
		}
	}
}

// TestAssumedTimeAndGates checks that an answer which depends on the time of day says that it has none, and that an unknown
// feature gate is named.
func TestAssumedTimeAndGates(t *testing.T) {
	hours := poolYAML + "  disruption: {budgets: [{nodes: \"0\", schedule: \"0 9 * * 1-5\", duration: 8h}]}\n"
	note, gate := "evaluated at 1970-01-01T00:00:00Z; --now sets another time", "feature gate Ways is not known"
	for name, c := range map[string]struct {
		pool      string
		arguments []string
		want, not string
	}{
		"schedule, no time": {hours, nil, note, gate},
		"no schedule":       {poolYAML, nil, "", note},
		"schedule and time": {hours, []string{"--now", "2024-01-01T00:00:00Z"}, "", note},
		"unknown gate":      {poolYAML, []string{"--disrupt", "--feature-gates", "Ways=true"}, gate, note},
	} {
		folder := files(t, map[string]string{"pool.yaml": c.pool, "instance-types.json": typesJSON, "web.yaml": webYAML})
		_, said, err := runBoth(t, "", append([]string{"simulate", "-f", folder}, c.arguments...)...)
		if err != nil || !strings.Contains(said, c.want) || strings.Contains(said, c.not) {
			t.Errorf("%s: %v, it said %q, want %q, not %q", name, err, said, c.want, c.not)
		}
	}
}

// TestRepeatKeepsNothing checks that the answer does not depend on the number of rounds.
func TestRepeatKeepsNothing(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML})
	one, five := simulateJSON(t, "-f", folder), simulateJSON(t, "-f", folder, "--repeat", "5")
	one.Stats, five.Stats = nil, nil
	if diff := cmp.Diff(one, five, cmpopts.IgnoreUnexported(offline.NewNode{})); diff != "" {
		t.Errorf("-one +five:\n%s", diff)
	}
}
