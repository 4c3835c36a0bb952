package doctor

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKubernetesVersion verifies that versions outside of the tested range are a finding. A text that is not a
// version is not.
func TestKubernetesVersion(t *testing.T) {
	older, oldest := fmt.Sprintf("v1.%d.14", OldestKubernetes-1), fmt.Sprintf("v1.%d.1-eks-1234", OldestKubernetes)
	newest, newer := fmt.Sprintf("v1.%d.0+k3s1", NewestKubernetes), fmt.Sprintf("v1.%d.0", NewestKubernetes+1)
	for version, want := range map[string]string{
		older: "upgrade the cluster", oldest: "", newest: "", newer: "upgrade the controller", "v2.0.0": "upgrade the controller",
		"": "", "unknown": "", "v1": "", "v1.x": "",
	} {
		t.Run(version, func(t *testing.T) {
			findings := kubernetes(&Facts{Kubernetes: version}, Options{})
			if want == "" {
				if len(findings) > 0 {
					t.Errorf("found %+v", findings)
				}
				return
			}
			switch {
			case len(findings) != 1:
				t.Errorf("len(findings) is %v, want 1, found %+v", len(findings), findings)
			case findings[0].Code != KubernetesUntried:
				t.Errorf("findings[0].Code is %v, want %v", findings[0].Code, KubernetesUntried)
			case !strings.HasPrefix(findings[0].Fix, want):
				t.Errorf("findings[0].Fix is %q, want the prefix %q", findings[0].Fix, want)
			}
		})
	}
}

// TestVersionIn verifies that the API server's response to /version is parsed. Anything else is not a version,
// however long.
func TestVersionIn(t *testing.T) {
	for answer, want := range map[string]string{
		`{"major":"1","minor":"36","gitVersion":"v1.36.3"}`: "v1.36.3",
		`<html>`: "",
		`{"gitVersion":"` + strings.Repeat("9", longestVersion) + `"}`:           "",
		`{"gitVersion":"v1.33.1"}` + strings.Repeat(" ", 2*longestVersion) + `x`: "v1.33.1",
	} {
		if got := versionIn(strings.NewReader(answer)); got != want {
			t.Errorf("%.40s: %q, want %q", answer, got, want)
		}
	}
}

// TestClaimedVersions verifies that the README, the charts, the documentation of the doctor and the Makefile name exactly
// the versions for which the sandbox can be built, and that the README names the default as the tested one.
func TestClaimedVersions(t *testing.T) {
	read := func(path string) string {
		content, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	oldest, newest := fmt.Sprintf("1.%d", OldestKubernetes), fmt.Sprintf("1.%d", NewestKubernetes)
	for path, want := range map[string]string{
		"README.md":                       "Kubernetes " + oldest + " to " + newest,
		"docs/doctor.md":                  "outside of " + oldest + " to " + newest,
		"docs/sandbox.md":                 oldest + " to " + newest,
		"charts/karpenter/Chart.yaml":     `kubeVersion: ">=` + oldest + `.0-0"`,
		"charts/karpenter-crd/Chart.yaml": `kubeVersion: ">=` + oldest + `.0-0"`,
		"Makefile":                        "VERSIONS ?= " + oldest + " " + newest + "\n",
	} {
		if !strings.Contains(read(path), want) {
			t.Errorf("%s does not contain %q", path, want)
		}
	}
	usual := regexp.MustCompile(`k8s\.io/kubernetes v(1\.\d+)\.`).FindStringSubmatch(read("sandbox/kubernetes/go.mod"))[1]
	if want := "Tested on " + usual; !strings.Contains(read("README.md"), want) {
		t.Errorf("README.md does not contain %q", want)
	}
	var others []string
	entries, err := os.ReadDir("../../sandbox/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if minor, found := strings.CutSuffix(entry.Name(), ".mod"); found && minor != "go" {
			others = append(others, minor)
		}
	}
	var want []string
	for minor := OldestKubernetes; minor <= NewestKubernetes; minor++ {
		if version := fmt.Sprintf("1.%d", minor); version != usual {
			want = append(want, version)
		}
	}
	if diff := cmp.Diff(want, others); diff != "" {
		t.Errorf("sandbox/kubernetes: -want +got:\n%s", diff)
	}
	if line := "ALL_VERSIONS ?= " + strings.Join(want, " ") + "\n"; !strings.Contains(read("Makefile"), line) {
		t.Errorf("Makefile does not contain %q", line)
	}
}
