package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/golden/update"
)

// costPage is the page with the worked example.
const costPage = "../../docs/cost.md"

// exampleRun is a command of the page with what it prints.
var exampleRun = regexp.MustCompile("(?s)```sh\nkubectl karpenter (top [^\n]+)\n```\n\n```text\n(.*?)```\n")

// runRoot returns what a command of the root prints.
func runRoot(t *testing.T, words ...string) (string, error) {
	t.Helper()
	command := newRootCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	for i, word := range words {
		if strings.HasPrefix(word, "docs/") {
			words[i] = "../../" + word
		}
	}
	command.SetArgs(words)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// TestCostPage checks that the commands of docs/cost.md print what the page shows (-update writes it), in 80 columns but for the
// sentence about requests, which a terminal breaks.
func TestCostPage(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	text, err := os.ReadFile(costPage)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	shown := exampleRun.ReplaceAllStringFunc(string(text), func(block string) string {
		runs++
		found := exampleRun.FindStringSubmatch(block)
		out, err := runRoot(t, strings.Fields(found[1])...)
		if err != nil {
			t.Fatalf("%s: %v", found[1], err)
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 && !strings.HasPrefix(line, "with requests of") {
				t.Errorf("%s: a line has %d columns: %s", found[1], n, line)
			}
		}
		return "```sh\nkubectl karpenter " + found[1] + "\n```\n\n```text\n" + out + "```\n"
	})
	if runs < 4 {
		t.Fatalf("the page has %d commands with their output, want 4 or more", runs)
	}
	if *update.Files {
		if err := os.WriteFile(costPage, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), shown); diff != "" {
		t.Errorf("docs/cost.md (-page +program; -update writes it):\n%s", diff)
	}
}

// TestCostByHand checks the numbers of the example that were computed by hand: the last column of the page's table, by
// workload, is what the program says.
func TestCostByHand(t *testing.T) {
	text, err := os.ReadFile(costPage)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 10 || !slices.Contains([]string{"a", "b", "c"}, strings.TrimSpace(cells[1])) {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSpace(cells[2]), ",")
		usd, err := strconv.ParseFloat(strings.TrimSpace(cells[8]), 64)
		if err != nil {
			t.Fatal(err)
		}
		want[name] += int64(usd*1e9 + 0.5)
	}
	out, err := runRoot(t, "top", "--once", "-f", "docs/cost/fleet.yaml", "--instance-types", "docs/cost/types.json", "--by",
		"workload", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Bill struct {
			Rows []struct {
				Namespace, Name string
				PricePerHour    float64
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, r := range answer.Bill.Rows {
		name := r.Namespace + "/" + r.Name
		if name == "/" {
			name = "nothing"
		}
		got[name] += int64(r.PricePerHour*1e9 + 0.5)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 6 {
		t.Errorf("-page +program:\n%s", diff)
	}
}

// TestBillFlags checks that each wrong use of the flags is refused with a line that says what is right.
func TestBillFlags(t *testing.T) {
	files := []string{"top", "--once", "-f", "docs/cost/fleet.yaml", "--instance-types", "docs/cost/types.json"}
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--by", "team"}, `--by is "team", want namespace, workload or label`},
		{[]string{"--by", "label"}, "--by label: want the key of the label, such as --cost-label team"},
		{[]string{"--by", "workload", "--cost-label", "team"}, "--by workload and --cost-label team: give one of them"},
		{[]string{"--cost-label", "a b"}, `--cost-label is "a b", want the key of a label: `},
		{[]string{"--by", "namespace", "--sort", "zone"}, `--sort is "zone", want price, name, pods, cpu, memory`},
	} {
		_, err := runRoot(t, slices.Concat(files, tt.flags)...)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %s", tt.flags, err, tt.want)
		}
	}
}

// TestBillRows checks the filter and the order of rows, and that the price of the whole fleet stays beside a filter.
func TestBillRows(t *testing.T) {
	files := []string{"top", "--once", "-f", "docs/cost/fleet.yaml", "--instance-types", "docs/cost/types.json", "--by", "workload"}
	for _, tt := range []struct {
		flags []string
		want  []string // the first words of the rows
		line  string
	}{
		{[]string{"--filter", "shop"}, []string{"shop/Deployment/web", "shop/Deployment/search"}, "3 nodes, 3 of 8 pods"},
		{[]string{"--filter", "Shop"}, []string{"shop/Deployment/web", "shop/Deployment/search"},
			"0.1769 of 4.4000 USD per hour, 129.15 per month\n\n"},
		{nil, []string{"ml/Job/train", "data/StatefulSet/db", "shop/Deployment/web", "shop/Deployment/search", "kube-system/DaemonSet/agent",
			"unused,"}, "together 4.4000 USD per hour, 3212.00 per month, for 3 nodes"},
		{[]string{"--sort", "name", "--reverse"}, []string{"shop/Deployment/web", "shop/Deployment/search", "ml/Job/train",
			"data/StatefulSet/db", "kube-system/DaemonSet/agent", "unused,"}, "together 4.4000"},
		{[]string{"--sort", "memory", "--filter", "Shop/"}, []string{"shop/Deployment/web", "shop/Deployment/search"},
			`the rows with "Shop/" cost 0.1769 of 4.4000 USD per hour, 129.15 per month`},
		{[]string{"--filter", "nothing"}, nil, `no row contains "nothing"`},
	} {
		out, err := runRoot(t, slices.Concat(files, tt.flags)...)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		_, list, _ := strings.Cut(out, "WORKLOAD")
		for line := range strings.Lines(list) {
			if words := strings.Fields(line); len(words) > 4 && strings.Contains(line, "%") {
				rows = append(rows, words[0])
			}
		}
		if diff := cmp.Diff(tt.want, rows); diff != "" || !strings.Contains(out, tt.line) {
			t.Errorf("%v (-want +got):\n%s\n%s\nwant the line %s", tt.flags, diff, out, tt.line)
		}
	}
}

// TestUnknownPrice checks that a row whose pods are all on nodes of unknown price does not look free, in the table of
// top, the views of the page and the report, and neither do the nodes in what keeps from saving.
func TestUnknownPrice(t *testing.T) {
	fleet, err := os.ReadFile("../../docs/cost/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object := func(kind, name, labels, spec, status string) string {
		return "---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", creationTimestamp: \"2026-01-01T00:00:00Z\", " +
			"labels: {" + labels +
			"}}\nspec: {" + spec + "}\nstatus: {" + status + "}\n"
	}
	const resources = `cpu: "16", memory: 64Gi, pods: "110"`
	fleet = append(fleet, object("Node", "strange", "karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: none, "+
		"karpenter.sh/capacity-type: on-demand, topology.kubernetes.io/zone: a", "", "capacity: {"+resources+"}, allocatable: {"+resources+
		"}, conditions: [{type: Ready, status: \"True\"}]")...)
	for _, name := range []string{"lonely", "other"} {
		fleet = append(fleet, object("Pod", name, "app: "+name, "nodeName: strange, containers: [{name: c, image: i}]", "phase: Running")...)
	}
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, fleet, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"top", "--once", "--by", "workload"}, `(?m)^default/Pod/lonely +unknown +unknown +unknown +1 \(1 unknown\) +0\.00 +0$`},
		{[]string{"top", "--once", "--by", "namespace"}, `(?m)^default +unknown +unknown +unknown +2 \(2 unknown\)`},
		{[]string{"top", "--once", "--by", "workload", "--filter", "lonely"}, `(?m)^unknown of 4\.4000 USD per hour|^price unknown`},
		{[]string{"report", "-o", "markdown"}, `\| default/Pod/lonely \| unknown \| unknown \| unknown \| 1 \(1 unknown\) \|`},
		{[]string{"report", "-o", "markdown"}, `\| Unknown price \| default \| – \| unknown \| 1 \|`},
		{[]string{"report", "-o", "html"}, `what default/Pod/lonely costs is unknown`},
		{[]string{"report", "-o", "json"}, `"price": "unknown",\s+"month": "unknown",\s+"share": "unknown",\s+"pods": 1`},
	} {
		out, err := runRoot(t, append(tt.words, "-f", file, "--instance-types", "docs/cost/types.json")...)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(tt.want).MatchString(out) {
			t.Errorf("%v: want %s in\n%s", tt.words, tt.want, out[:min(len(out), 6000)])
		}
	}
}
