package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// processors returns the architecture of this machine. KARPENTER_IMAGE=all adds the other one, which must be compiled
// first.
func processors() []string {
	if os.Getenv("KARPENTER_IMAGE") == "all" {
		return []string{"amd64", "arm64"}
	}
	return []string{runtime.GOARCH}
}

// TestImage builds the image, unpacks it, and runs its program.
func TestImage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	hub := httptest.NewServer(registry.New())
	defer hub.Close()
	reference := strings.TrimPrefix(hub.URL, "http://") + "/karpenter:v1.2.3"
	o := options{source: "../..", out: filepath.Join(t.TempDir(), "out"), reference: reference, release: "v1.2.3", processors: processors(), push: true}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(o.out, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the layout is broken: %v", err)
	}
	sent(t, reference, index)
	for _, processor := range o.processors {
		image := imageFor(t, index, processor)
		described(t, image, processor)
		folder := unpack(t, image)
		standsAlone(t, filepath.Join(folder, "karpenter"))
		trusted(t, filepath.Join(folder, certificates))
		if processor == runtime.GOARCH {
			runs(t, folder)
		}
		listed(t, filepath.Join(o.out, "karpenter-linux-"+processor+".spdx.json"))
		again(t, o, processor, image)
	}
}

// sent checks that the registry has the layout's images and their SBOMs.
func sent(t *testing.T, reference string, index v1.ImageIndex) {
	t.Helper()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	there, err := remote.Index(tag)
	if err != nil {
		t.Fatalf("querying the registry: %v", err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if have, err := there.Digest(); err != nil || have != want {
		t.Errorf("the registry has %v (%v), the layout %v", have, err, want)
	}
}

func imageFor(t *testing.T, index v1.ImageIndex, processor string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.Architecture == processor && d.Platform.OS == "linux" {
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("no image for %s among %v", processor, manifest.Manifests)
	return nil
}

func described(t *testing.T, image v1.Image, processor string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{processor, "65532:65532", "/karpenter controller"}
	got := []string{config.Architecture, config.Config.User, strings.Join(append(config.Config.Entrypoint, config.Config.Cmd...), " ")}
	if !slices.Equal(got, want) {
		t.Errorf("processor, user and command of the image for %s are %q, want %q", processor, got, want)
	}
}

// unpack writes the image's files to a folder.
func unpack(t *testing.T, image v1.Image) string {
	t.Helper()
	folder := t.TempDir()
	content := mutate.Extract(image)
	defer content.Close()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return folder
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.Clean("/"+header.Name))
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// standsAlone checks that the program needs no other files in the image.
func standsAlone(t *testing.T, path string) {
	t.Helper()
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if libraries, err := program.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("%s needs the libraries %v", path, libraries)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic linker", path)
		}
	}
}

func trusted(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s holds no certificate", path)
	}
	if n := bytes.Count(text, []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("%s holds %d certificates, want those of the public authorities", path, n)
	}
	if !bytes.Equal(text, authorities()) {
		t.Errorf("%s is not what the module has", path)
	}
}

// runs executes the program with only its image around it, as far as this user's permissions allow.
func runs(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	program := filepath.Join(folder, "karpenter")
	command := exec.CommandContext(ctx, program, "--version")
	if os.Getuid() == 0 {
		command = exec.CommandContext(ctx, "/karpenter", "--version")
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		command.Dir = "/"
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command.Env = []string{}
	output, err := command.CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "karpenter version v1.2.3" {
		t.Errorf("the program in the image prints %q (%v)", output, err)
	}
}

// listed checks that the SBOM names well-known modules of the program.
func listed(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := document{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	versions, ids := map[string]string{}, map[string]bool{}
	for _, p := range d.Packages {
		versions[p.Name] = p.Version
		if ids[p.ID] || p.Version == "" {
			t.Errorf("%s has no version, or its id %s is a duplicate", p.Name, p.ID)
		}
		ids[p.ID] = true
	}
	for _, name := range []string{"github.com/karpenter-go/karpenter", "stdlib", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"} {
		if versions[name] == "" {
			t.Errorf("the SBOM does not name %s", name)
		}
	}
	for _, r := range d.Relationships {
		if !ids[r.To] {
			t.Errorf("%s %s %s, which is not in the SBOM", r.From, r.Kind, r.To)
		}
	}
}

// again checks that the same program gives the same image.
func again(t *testing.T, o options, processor string, first v1.Image) {
	t.Helper()
	o.epoch, _ = commitTime(t.Context(), o.source)
	second, err := assemble(filepath.Join(o.out, "karpenter-linux-"+processor), processor, o)
	if err != nil {
		t.Fatal(err)
	}
	have, err := second.image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := first.Digest(); err != nil || have != want {
		t.Errorf("a second assembly gives %v, the first gave %v (%v)", have, want, err)
	}
}

// TestTime checks that an invalid time is rejected.
func TestTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := commitTime(t.Context(), "."); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("the error is %v", err)
	}
}

// TestAssemble builds an image around an existing program, this test's own binary. It checks that the SBOM describes
// it, and that a second image is identical.
func TestAssemble(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := options{release: "v1.2.3", epoch: time.Unix(1700000000, 0).UTC()}
	var digests []string
	for range 2 {
		m, err := assemble(program, "arm64", o)
		if err != nil {
			t.Fatal(err)
		}
		described(t, m.image, "arm64")
		trusted(t, filepath.Join(unpack(t, m.image), certificates))
		digest, err := m.image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("the same program makes %s and %s", digests[0], digests[1])
	}
}
