package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// krewPlugin has the fields of a krew manifest: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type krewPlugin struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Metadata   struct{ Name string } `json:"metadata"`
	Spec       struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// releasePlatforms are those that .ci/release builds the plugin for, with the name of the program in the archive.
var releasePlatforms = map[string]string{
	"linux_amd64": "kubectl-karpenter", "linux_arm64": "kubectl-karpenter",
	"darwin_amd64": "kubectl-karpenter", "darwin_arm64": "kubectl-karpenter",
	"windows_amd64": "kubectl-karpenter.exe",
}

// writeArchives writes an archive per platform, as .ci/release packs them, and their checksums. It returns these by address.
func writeArchives(t *testing.T, folder string) map[string]string {
	t.Helper()
	archives := map[string]string{}
	var sums strings.Builder
	for platform, program := range releasePlatforms {
		inside := t.TempDir()
		if err := os.WriteFile(filepath.Join(inside, program), []byte("program for "+platform), 0o755); err != nil {
			t.Fatal(err)
		}
		name := "kubectl-karpenter_v1.2.3_" + platform + ".tar.gz"
		if out, err := exec.Command("tar", "-czf", filepath.Join(folder, name), "-C", inside, program).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		archives["https://github.com/karpenter-go/karpenter/releases/download/v1.2.3/"+name] = hex.EncodeToString(sum[:])
		fmt.Fprintf(&sums, "%x  %s\n", sum, name)
	}
	if err := os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return archives
}

// TestPackageManifests checks that the krew manifest and the Homebrew formula of a release name each archive with its checksum,
// that the manifest has the fields that krew knows and wants, and that the program is in the archive.
func TestPackageManifests(t *testing.T) {
	folder := t.TempDir()
	archives := writeArchives(t, folder)
	if out, err := exec.Command("../../.ci/manifests", "v1.2.3", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(folder, "karpenter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	formula, err := os.ReadFile(filepath.Join(folder, "kubectl-karpenter.rb"))
	if err != nil {
		t.Fatal(err)
	}
	spec := manifest.Spec
	if manifest.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || manifest.Kind != "Plugin" ||
		manifest.Metadata.Name != "karpenter" || spec.Version != "v1.2.3" || spec.Homepage == "" || spec.Description == "" ||
		strings.Contains(string(text), "{{") {
		t.Errorf("the krew manifest is\n%s", text)
	}
	if n := len(spec.ShortDescription); n == 0 || n > 50 || strings.HasSuffix(spec.ShortDescription, ".") {
		t.Errorf("the short description %q: krew wants at most 50 characters without a full stop", spec.ShortDescription)
	}
	seen := map[string]bool{}
	for _, p := range spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "_" + p.Selector.MatchLabels["arch"]
		seen[platform] = true
		if archives[p.URI] == "" || archives[p.URI] != p.SHA256 || p.Bin != releasePlatforms[platform] || !strings.Contains(p.URI, platform) {
			t.Errorf("krew: %+v", p)
		}
		listed, err := exec.Command("tar", "-tzf", filepath.Join(folder, path.Base(p.URI))).CombinedOutput()
		if err != nil || !slices.Contains(strings.Fields(string(listed)), p.Bin) {
			t.Errorf("%s has no %s: %v %s", p.URI, p.Bin, err, listed)
		}
		want := fmt.Sprintf("url %q\n      sha256 %q", p.URI, p.SHA256)
		if !strings.HasPrefix(platform, "windows") && !strings.Contains(string(formula), want) {
			t.Errorf("the formula lacks\n%s\nin\n%s", want, formula)
		}
	}
	if len(seen) != len(releasePlatforms) {
		t.Errorf("platforms %v, want %v", seen, releasePlatforms)
	}
	if err := os.WriteFile(filepath.Join(folder, "SHA256SUMS"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("../../.ci/manifests", "v1.2.3", folder).CombinedOutput(); err == nil {
		t.Errorf("a release without an archive has manifests: %s", out)
	}
}

// TestGoInstall checks that the module can be installed by its path: the go command refuses a module with replace or exclude
// directives.
func TestGoInstall(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "replace" || word == "exclude" {
			t.Errorf("go.mod has %q: go install PATH@latest would refuse it", strings.TrimSpace(line))
		}
	}
}
