package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPackageManifests: the krew manifest and the Homebrew formula of a release name each archive with its checksum.
func TestPackageManifests(t *testing.T) {
	folder := t.TempDir()
	archives := map[string]string{}
	var sums strings.Builder
	for i, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		name := "kubectl-karpenter_v1.2.3_" + platform + ".tar.gz"
		archives["https://github.com/karpenter-go/karpenter/releases/download/v1.2.3/"+name] = strings.Repeat(fmt.Sprint(i), 64)
		fmt.Fprintf(&sums, "%s  %s\n", strings.Repeat(fmt.Sprint(i), 64), name)
	}
	if err := os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("../../.ci/manifests", "v1.2.3", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "karpenter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil && !strings.Contains(err.Error(), "unknown field") {
		t.Fatalf("%v in\n%s", err, text)
	}
	formula, err := os.ReadFile(filepath.Join(folder, "kubectl-karpenter.rb"))
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Spec.Version != "v1.2.3" || len(manifest.Spec.Platforms) != len(archives) || strings.Contains(string(text), "{{") {
		t.Errorf("the krew manifest is\n%s", text)
	}
	for _, p := range manifest.Spec.Platforms {
		if archives[p.URI] == "" || archives[p.URI] != p.SHA256 || p.Bin != "kubectl-karpenter" {
			t.Errorf("krew: %+v", p)
		}
		if want := fmt.Sprintf("url %q\n      sha256 %q", p.URI, p.SHA256); !strings.Contains(string(formula), want) {
			t.Errorf("the formula lacks\n%s\nin\n%s", want, formula)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "SHA256SUMS"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("../../.ci/manifests", "v1.2.3", folder).CombinedOutput(); err == nil {
		t.Errorf("a release without an archive has manifests: %s", out)
	}
}
