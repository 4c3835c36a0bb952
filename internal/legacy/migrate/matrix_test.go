package migrate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write testdata again")

// matrix is the folder of manifests that end-to-end tests apply unchanged.
const matrix = "../../../test/e2e/testdata/manifests"

// fewest is the minimum number of manifests in the matrix.
const fewest = 40

// manifests returns the files of the matrix by name, without the suffix.
func manifests(t *testing.T) map[string]File {
	t.Helper()
	files := map[string]File{}
	for _, pattern := range []string{"*.yaml", "*.json"} {
		paths, err := filepath.Glob(filepath.Join(matrix, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			base := filepath.Base(path)
			files[strings.TrimSuffix(base, filepath.Ext(base))] = File{Name: base, Text: text}
		}
	}
	if len(files) < fewest {
		t.Fatalf("%d manifests, want at least %d", len(files), fewest)
	}
	return files
}

// TestMatrix migrates every manifest. It compares the output with testdata/NAME.yaml and the report with NAME.txt,
// and verifies that a second migration changes nothing.
func TestMatrix(t *testing.T) {
	for name, file := range manifests(t) {
		t.Run(name, func(t *testing.T) {
			result := Run([]File{file}, Options{})
			golden(t, name+".yaml", string(result.Manifests))
			golden(t, name+".txt", result.Report.Text())
			again := Run([]File{{Name: "again", Text: result.Manifests}}, Options{})
			if diff := cmp.Diff(string(result.Manifests), string(again.Manifests)); diff != "" || again.Changed {
				t.Errorf("migrated again it changes (changed %t, -once +twice):\n%s", again.Changed, diff)
			}
			if lost := lostComments(string(file.Text), string(result.Manifests)); len(lost) > 0 {
				t.Errorf("comments are lost: %q", lost)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -update writes it):\n%s", path, diff)
	}
}

// lostComments returns the comments of one text that another does not have, except lines of scripts.
func lostComments(before, after string) []string {
	var lost []string
	for line := range strings.Lines(before) {
		_, comment, found := strings.Cut(strings.TrimSpace(line), "# ")
		if found && !strings.Contains(after, comment) {
			lost = append(lost, comment)
		}
	}
	return lost
}

// TestMeaning compares the output with the documented semantics of the manifest's version, in expect.yml.
func TestMeaning(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(matrix, "expect.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]map[string]map[string]any
	if err := yaml.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	files := manifests(t)
	for name := range expected {
		if _, there := files[name]; !there {
			t.Errorf("expect.yml names %s, which does not exist", name)
		}
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			found := meanings(t, Run([]File{file}, Options{}).Manifests)
			if len(found) != len(expected[name]) {
				t.Errorf("%d pools, expect.yml has %d", len(found), len(expected[name]))
			}
			for pool, want := range expected[name] {
				got := map[string]any{}
				for field := range want {
					got[field] = found[pool][field]
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("pool %s (-want +got):\n%s", pool, diff)
				}
			}
		})
	}
}

// meanings returns the semantics of the pools in a stream, by name, in the notation of expect.yml.
func meanings(t *testing.T, stream []byte) map[string]map[string]any {
	t.Helper()
	pools, classes := map[string]*yaml.Node{}, map[string]*yaml.Node{}
	for _, d := range split(File{Name: "result", Text: stream}) {
		if err := d.parse(); err != nil {
			t.Fatal(err)
		}
		switch text(at(d.root, "apiVersion")) + " " + text(at(d.root, "kind")) {
		case "karpenter.sh/v1 NodePool":
			pools[text(at(d.root, "metadata", "name"))] = d.root
		case "karpenter.k8s.aws/v1 EC2NodeClass":
			classes[text(at(d.root, "metadata", "name"))] = d.root
		}
	}
	all := map[string]map[string]any{}
	for name, pool := range pools {
		all[name] = meaning(pool, classes[text(at(pool, "spec", "template", "spec", "nodeClassRef", "name"))])
	}
	return all
}

func meaning(pool, class *yaml.Node) map[string]any {
	m := map[string]any{}
	template := at(pool, "spec", "template", "spec")
	for _, r := range members(at(template, "requirements")) {
		word := map[string]string{
			"karpenter.sh/capacity-type In": "capacity", "node.kubernetes.io/instance-type In": "types", "kubernetes.io/arch In": "arch",
			"karpenter.k8s.aws/instance-family In": "families", "karpenter.k8s.aws/instance-category In": "categories",
			"topology.kubernetes.io/zone In": "zones", "karpenter.k8s.aws/instance-cpu Gt": "cpuOver",
			"karpenter.k8s.aws/instance-cpu Lt":        "cpuUnder",
			"karpenter.k8s.aws/instance-generation Gt": "generationOver",
		}[text(at(r, "key"))+" "+text(at(r, "operator"))]
		values, _ := plain(at(r, "values")).([]any)
		if operator := text(at(r, "operator")); operator == "Gt" || operator == "Lt" {
			m[word] = values[0]
		} else {
			m[word] = values
		}
	}
	for field, word := range map[string]string{"taints": "taints", "startupTaints": "startup"} {
		var taints []any
		for _, taint := range members(at(template, field)) {
			value := text(at(taint, "value"))
			if value != "" {
				value = "=" + value
			}
			taints = append(taints, text(at(taint, "key"))+value+":"+text(at(taint, "effect")))
		}
		m[word] = taints
	}
	m["labels"] = plain(at(pool, "spec", "template", "metadata", "labels"))
	limits := map[string]any{}
	for _, name := range fields(at(pool, "spec", "limits")) {
		limits[name] = text(at(pool, "spec", "limits", name))
		if limits[name] == "1k" {
			limits[name] = "1000"
		}
	}
	m["limits"], m["weight"] = limits, text(at(pool, "spec", "weight"))
	m["expire"], m["empty"] = "720h", "at once"
	if age := text(at(template, "expireAfter")); age != "" {
		m["expire"] = age
	}
	if after := text(at(pool, "spec", "disruption", "consolidateAfter")); after == "Never" {
		m["empty"] = "never"
	} else if after != "" && after != "0s" {
		m["empty"] = after
	}
	m["moves"] = text(at(pool, "spec", "disruption", "consolidationPolicy")) != "WhenEmpty"
	m["alias"] = text(at(firstOf(at(class, "spec", "amiSelectorTerms")), "alias"))
	m["profile"], m["role"] = text(at(class, "spec", "instanceProfile")), text(at(class, "spec", "role"))
	m["maxPods"] = text(at(class, "spec", "kubelet", "maxPods"))
	var hops int
	fmt.Sscan(text(at(class, "spec", "metadataOptions", "httpPutResponseHopLimit")), &hops)
	m["hops"] = hops
	return m
}

// TestTwice migrates everything together, twice: the results are equal.
func TestTwice(t *testing.T) {
	var files []File
	for _, file := range manifests(t) {
		files = append(files, file)
	}
	options := Options{Check: judge(t)}
	first, second := Run(files, options), Run(files, options)
	if diff := cmp.Diff(string(first.Manifests), string(second.Manifests)); diff != "" {
		t.Errorf("the same input gives other manifests (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(first.Report.Text(), second.Report.Text()); diff != "" {
		t.Errorf("the same input gives another report (-first +second):\n%s", diff)
	}
}
