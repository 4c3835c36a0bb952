package migrate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scaler returns a Deployment of the Cluster Autoscaler with a command and arguments, in flow YAML.
func scaler(command, args string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: scaler, namespace: kube-system}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n      containers:\n" +
		"        - {name: c, image: \"registry.example.com/tools/scaler:1\", command: " + command + ", args: " + args + "}\n"
}

// TestScalerFlags verifies that the flags are read in all notations, and that what cannot be parsed is reported.
func TestScalerFlags(t *testing.T) {
	type flags map[string][]string
	for _, test := range []struct {
		name, command, args string
		want                flags
		says                string // in the report
	}{
		{"with a sign between", `[./cluster-autoscaler]`, `["--scale-down-unneeded-time=5m", "--v=4"]`,
			flags{"scale-down-unneeded-time": {"5m"}, "v": {"4"}}, ""},
		{"as two words", `[/cluster-autoscaler, --scale-down-unneeded-time, 5m]`,
			`["--nodes", "1:5:web", "--nodes", "0:3:db", "--expander", "priority"]`,
			flags{"scale-down-unneeded-time": {"5m"}, "nodes": {"1:5:web", "0:3:db"}, "expander": {"priority"}}, ""},
		{"switches", `[cluster-autoscaler, --scale-down-enabled, --v, "4"]`, `["--balance_similar_node_groups"]`,
			flags{"scale-down-enabled": {"true"}, "v": {"4"}, "balance-similar-node-groups": {"true"}}, ""},
		{"a word behind a switch", `[cluster-autoscaler, --scale-down-enabled, "false"]`, `[]`, flags{"scale-down-enabled": {"true"}},
			`contains "false"`},
		{"by a shell", `[sh, -c]`, `["exec ./cluster-autoscaler --expander priority \\\n  --nodes='1:5:web' 2>&1"]`,
			flags{"expander": {"priority"}, "nodes": {"1:5:web"}}, `continues with "> & 1"`},
		{"by a shell with a block of lines", `[/bin/bash, -ec, "set -e\n./cluster-autoscaler --expander=random\n"]`,
			`[]`, flags{"expander": {"random"}}, ""},
		{"a variable", `[cluster-autoscaler, "--nodes=1:5:$(GROUP)"]`, `[]`, flags{}, "variable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := migration{}
			for _, d := range split(File{Name: "in", Text: []byte(scaler(test.command, test.args))}) {
				m.read(d)
			}
			m.sources()
			if m.scaler == nil {
				t.Fatal("it is not found")
			}
			if diff := cmp.Diff(test.want, flags(m.scaler.flags)); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			report := Report{m.scaler.Entry}.Text()
			switch {
			case !strings.Contains(report, test.says):
				t.Errorf("report lacks %q, the report is\n%s", test.says, report)
			case test.says == "" && len(m.scaler.Notes) > 0:
				t.Errorf(`test.says == "" && len(m.scaler.Notes) > 0, want %q`, test.says)
			}
		})
	}
}

// TestEveryFlag verifies that the report has one line for each flag of the Cluster Autoscaler, which says what becomes of
// it, in the form that the program accepts: with underscores too.
func TestEveryFlag(t *testing.T) {
	text, err := os.ReadFile("testdata/scaler-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	for name := range scalerFlagTable {
		if !slices.Contains(names, name) && name != "azure-container-registry-config" {
			t.Errorf("--%s is not in the list", name)
		}
	}
	for _, name := range names {
		in := scaler("[cluster-autoscaler]", `["--`+strings.ReplaceAll(name, "-", "_")+`=7"]`)
		result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{})
		var lines []string
		for _, note := range result.Report[0].Notes {
			if note.Field == "--"+name && strings.HasPrefix(note.Text, "is 7; ") && !strings.Contains(note.Text, "unknown") {
				lines = append(lines, note.Text)
			}
		}
		if len(lines) != 1 {
			t.Errorf("--%s has the lines %q, want one; the report is\n%s", name, lines, result.Report.Text())
		}
	}
}

// TestTotals verifies which limits the total limits become.
func TestTotals(t *testing.T) {
	for _, test := range []struct {
		args string
		want map[string]int
		says []string // the outcomes and flags of its notes
	}{
		{`["--max-nodes-total=0"]`, map[string]int{}, nil},
		{`["--max-nodes-total=3", "--max-nodes-total=5"]`, map[string]int{"nodes": 5}, nil},
		{`["--max-nodes-total=-1"]`, map[string]int{}, []string{"impossible --max-nodes-total"}},
		{`["--cores-total=0:320000"]`, map[string]int{"cpu": 320000}, nil},
		{`["--cores-total=320000"]`, map[string]int{}, []string{"impossible --cores-total"}},
		{`["--cores-total=10:5"]`, map[string]int{}, []string{"impossible --cores-total"}},
		{`["--memory-total=4:64"]`, map[string]int{"memory": 64}, []string{"advice --memory-total"}},
		{`["--gpu-total=nvidia-tesla-t4:0:8", "--gpu-total=nvidia-l4:0:0", "--gpu-total=amd-v710:0:2"]`,
			map[string]int{"nvidia.com/gpu": 8, "amd.com/gpu": 2}, nil},
		{`["--gpu-total=0:8"]`, map[string]int{}, []string{"impossible --gpu-total"}},
	} {
		m := migration{}
		for _, d := range split(File{Name: "in", Text: []byte(scaler("[cluster-autoscaler]", test.args))}) {
			m.read(d)
		}
		m.sources()
		if diff := cmp.Diff(test.want, m.scaler.quota()); diff != "" {
			t.Errorf("%s: limits (-want +got):\n%s", test.args, diff)
		}
		var says []string
		for _, note := range m.scaler.Notes {
			says = append(says, string(note.Outcome)+" "+note.Field)
		}
		if diff := cmp.Diff(test.says, says); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", test.args, diff)
		}
	}
}

// TestAnUnknownScript verifies that nothing is guessed from a script that does not contain the command line.
func TestAnUnknownScript(t *testing.T) {
	in := strings.Replace(scaler(`[sh, -c]`, `["/start.sh"]`), "tools/scaler:1", "cluster-autoscaler:v1", 1)
	if report := Run([]File{{Name: "in", Text: []byte(in)}}, Options{}).Report.Text(); !strings.Contains(report,
		"cannot be parsed") {
		t.Errorf("the report is\n%s", report)
	}
}

// TestBounds verifies that a size is assigned to the group from which the name is derived, and to no other.
func TestBounds(t *testing.T) {
	for _, test := range []struct {
		asg  string
		want map[string]int // by group; -1: none
	}{
		{"web", map[string]int{"web": 7, "web-large": -1}},
		{"eksctl-prod-nodegroup-web-NodeGroup-1ABC", map[string]int{"web": 7, "web-large": -1}},
		{"eksctl-prod-nodegroup-web-large-NodeGroup-1ABC", map[string]int{"web": -1, "web-large": 7}},
		{"eksctl-web-nodegroup-web-large", map[string]int{"web": -1, "web-large": 7}},
		{"eks-web-f2c1a3b4-1111-2222-3333-0123456789ab", map[string]int{"web": 7, "web-large": -1}},
		{"eks-web-large-f2c1a3b4-1111-2222-3333-0123456789ab", map[string]int{"web": -1, "web-large": 7}},
		{"web.prod.example.com", map[string]int{"web": 7, "web-large": -1}},
		{"https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/web-large", map[string]int{"web": -1, "web-large": 7}},
		{"prod-web-large", map[string]int{"web": -1, "web-large": -1}},
	} {
		t.Run(test.asg, func(t *testing.T) {
			groups := []*nodeGroup{{name: "web", most: -1}, {name: "web-large", most: -1}}
			m := migration{scaler: &autoscaler{flags: map[string][]string{"nodes": {"1:7:" + test.asg}}, item: &item{Entry: &Entry{}}}}
			m.bounds(groups)
			got := map[string]int{}
			for _, g := range groups {
				got[g.name] = g.most
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if known := test.want["web"] >= 0 || test.want["web-large"] >= 0; known == (len(m.scaler.Notes) > 0) {
				t.Errorf("notes are %v", m.scaler.Notes)
			}
		})
	}
	both := []*nodeGroup{{name: "web", most: 2}}
	m := migration{scaler: &autoscaler{flags: map[string][]string{"nodes": {"1:7:eksctl-p-nodegroup-web-a", "1:3:eksctl-p-nodegroup-web-b"}}}}
	if m.bounds(both); both[0].most != 10 {
		t.Errorf("two for one group are %d nodes, want 10", both[0].most)
	}
}

// TestWindowsDisk verifies that the root disk of Windows has another device name.
func TestWindowsDisk(t *testing.T) {
	for family, want := range map[string]string{"WindowsServer2022CoreContainer": "/dev/sda1",
		"WindowsServer2019FullContainer": "/dev/sda1", "Bottlerocket": "/dev/xvdb", "AmazonLinux2023": "/dev/xvda"} {
		in := "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: a}\nmanagedNodeGroups: [{name: g, amiFamily: " + family + ", volumeSize: 100}]\n"
		if got := string(Run([]File{{Name: "in", Text: []byte(in)}}, Options{}).Manifests); !strings.Contains(got, "deviceName: "+want+"\n") {
			t.Errorf("%s: got\n%s, want the disk %s", family, got, want)
		}
	}
}
