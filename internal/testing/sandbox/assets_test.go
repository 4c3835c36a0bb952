package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeFiles(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// smallModule writes a source tree whose sandbox builds in a second.
func smallModule(t *testing.T) string {
	t.Helper()
	tree := writeFiles(t, t.TempDir(), map[string]string{
		"go.mod": "module github.com/karpenter-go/karpenter\n",
		"sandbox/kubernetes/go.mod": "module github.com/karpenter-go/karpenter/sandbox/kubernetes\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.2.3\n\tsigs.k8s.io/kwok v0.4.0\n)\n\n" +
			"replace (\n\tk8s.io/kubernetes => ./a\n\tsigs.k8s.io/kwok => ./b\n)\n",
		"sandbox/kubernetes/go.sum":   "",
		"sandbox/kubernetes/main.go":  "package main\n\nfunc main() {}\n",
		"sandbox/kubernetes/a/go.mod": "module k8s.io/kubernetes\n",
		"sandbox/kubernetes/b/go.mod": "module sigs.k8s.io/kwok\n",
		"deep/er/file":                "",
	})
	return filepath.Join(tree, "sandbox", "kubernetes")
}

// TestBuild checks that two concurrent builds produce one build, that a finished build is reused, that remains of a
// killed build are removed, and that a changed source is built again.
func TestBuild(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(cacheVariable, cache)
	module := smallModule(t)
	from := source{module, filepath.Join(module, "go.mod")}
	key, err := buildKey(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, cache, map[string]string{key + ".unfinished/" + multicall: "#! half an executable"})

	var builds atomic.Int64
	progress := func(message string) {
		if strings.HasPrefix(message, "built ") {
			builds.Add(1)
		}
	}
	results := make([]string, 2)
	var both sync.WaitGroup
	for i := range results {
		both.Go(func() {
			folder, err := build(t.Context(), from, progress)
			if err != nil {
				t.Error(err)
			}
			results[i] = folder
		})
	}
	both.Wait()
	if want := filepath.Join(cache, key); results[0] != want || results[1] != want {
		t.Errorf("built in %v, want %s twice", results, want)
	}
	if builds.Load() != 1 {
		t.Errorf("%d builds, want 1", builds.Load())
	}
	for _, name := range append(componentNames(catalog), kubectl, multicall) {
		if !isExecutable(filepath.Join(results[0], name)) {
			t.Errorf("no executable %s", name)
		}
	}
	entries, err := filepath.Glob(filepath.Join(cache, "*.unfinished"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}

	writeFiles(t, module, map[string]string{"main.go": "package main\n\nfunc main() { undefined() }\n"})
	_, err = build(t.Context(), from, func(string) {})
	wantError(t, err, "undefined: undefined")
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("building a broken source: got %q, want one line", err)
	}
}

// TestBuildCanceled checks that a canceled build leaves nothing that looks finished.
func TestBuildCanceled(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(cacheVariable, cache)
	module := smallModule(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The first progress message is sent before the compiler starts.
	_, err := build(ctx, source{module, filepath.Join(module, "go.mod")}, func(string) { cancel() })
	if err == nil {
		t.Fatal("a canceled build succeeded")
	}
	entries, err := filepath.Glob(filepath.Join(cache, "*", "*"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TestLinkFlags checks that the versions that components report are read from the module's go.mod.
func TestLinkFlags(t *testing.T) {
	got, err := linkFlags("module m\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n\tsigs.k8s.io/kwok v0.8.0 // indirect\n)\n\nreplace k8s.io/kubernetes => ../k\n")
	if err != nil {
		t.Fatal(err)
	}
	const version = "-X k8s.io/component-base/version."
	want := []string{"-s -w", version + "gitVersion=v1.36.3", version + "gitMajor=1", version + "gitMinor=36",
		"-X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0"}
	if diff := cmp.Diff(strings.Join(want, " "), got); diff != "" {
		t.Error(diff)
	}
	if _, err := linkFlags("module m\n"); err == nil {
		t.Error("a go.mod without Kubernetes was accepted")
	}
}

// TestSourcesAbove checks that the source tree is found from any folder inside it, and from nowhere else.
func TestSourcesAbove(t *testing.T) {
	module := smallModule(t)
	for _, folder := range []string{"../..", "..", ".", "../../deep/er"} {
		if got, found := sourcesAbove(filepath.Join(module, folder)); !found || got != module {
			t.Errorf("from %s: got %q %v, want %s", folder, got, found, module)
		}
	}
	other := writeFiles(t, t.TempDir(), map[string]string{"go.mod": "module example.org/other\n",
		"sandbox/kubernetes/go.mod": "module example.org/other/sandbox/kubernetes\n"})
	if got, found := sourcesAbove(other); found {
		t.Errorf("from another module: got %q, want nothing", got)
	}
}

// TestGivenAssets checks that a folder may hold one executable per component, links or the multi-call executable, and
// that the error names anything missing.
func TestGivenAssets(t *testing.T) {
	const program = "#!/bin/sh\necho Kubernetes v1.36.3\n"
	each := map[string]string{}
	for _, name := range componentNames(catalog) {
		each[name] = program
	}
	separate := writeFiles(t, t.TempDir(), each)
	if got, err := Assets(t.Context(), AssetsOptions{Binaries: separate}); err != nil || got != separate {
		t.Errorf("separate executables: %q %v", got, err)
	}
	if got := executable(separate, kwok); !slices.Equal(got, []string{filepath.Join(separate, kwok)}) {
		t.Errorf("a component's own executable: got %v", got)
	}
	one := writeFiles(t, t.TempDir(), map[string]string{multicall: program})
	if _, err := Assets(t.Context(), AssetsOptions{Binaries: one}); err != nil {
		t.Errorf("the multi-call executable: %v", err)
	}
	if got := executable(one, kwok); !slices.Equal(got, []string{filepath.Join(one, multicall), kwok}) {
		t.Errorf("the multi-call executable as a component: got %v", got)
	}

	for name, test := range map[string]struct{ component, program, version, want string }{
		"of the wanted version":   {"", "", "1.36", ""},
		"of another version":      {"", "", "v1.35", "kube-apiserver is of Kubernetes 1.36, want 1.35"},
		"of two versions":         {scheduler, "#!/bin/sh\necho Kubernetes v1.35.9\n", "", "kube-scheduler is of Kubernetes 1.35, kube"},
		"of no version":           {apiserver, "#!/bin/sh\necho help\n", "", "kube-apiserver --version prints no version such as v1.36.3"},
		"for another processor":   {etcd, "#!/no/such/interpreter\n", "", "etcd --version: "},
		"that complains and ends": {kwok, "#!/bin/sh\necho out of luck >&2\nexit 3\n", "", "kwok --help: exit status 3: out of luck"},
	} {
		t.Run("executables "+name, func(t *testing.T) {
			folder := writeFiles(t, t.TempDir(), each)
			if test.component != "" {
				writeFiles(t, folder, map[string]string{test.component: test.program})
			}
			got, err := Assets(t.Context(), AssetsOptions{Binaries: folder, KubernetesVersion: test.version})
			if test.want == "" {
				if err != nil || got != folder {
					t.Errorf("%q %v", got, err)
				}
				return
			}
			wantError(t, err, "executables in "+folder+": "+test.want)
		})
	}

	delete(each, kwok)
	each[scheduler] = "not executable"
	for name, test := range map[string]struct{ folder, want string }{
		"incomplete": {writeFiles(t, t.TempDir(), each), "no kube-scheduler, kwok; want executables etcd, "},
		"no folder":  {filepath.Join(separate, "nowhere"), "no such file or directory"},
		"a file":     {filepath.Join(separate, etcd), "is a file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Assets(t.Context(), AssetsOptions{Binaries: test.folder}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestBuildProgress checks that downloads, compiled packages and errors are distinguished, and that the progress
// message fits each phase.
func TestBuildProgress(t *testing.T) {
	seen := buildProgress{of: 2800}
	if got := seen.text(); got != "nothing to download or compile so far" {
		t.Errorf("at first: %q", got)
	}
	complaints := seen.read(strings.NewReader("go: downloading k8s.io/api v0.36.3\nk8s.io/api/core/v1\nnet/http\n# example.org/broken\n./main.go:3:15: undefined: x\n"))
	if diff := cmp.Diff([]string{"# example.org/broken", "./main.go:3:15: undefined: x"}, complaints); diff != "" {
		t.Error(diff)
	}
	if got := seen.text(); got != "1 modules downloaded, 2 packages compiled of about 2800" {
		t.Errorf("under way: %q", got)
	}
	seen.read(strings.NewReader(componentsPath + "\n"))
	if got := seen.text(); got != "3 packages compiled, linking" {
		t.Errorf("at the end: %q", got)
	}
}

// TestAssetsWithoutGo checks that sources are not used without Go: the executable on the PATH is used instead.
// Without that, the error names what was searched for and what to do.
func TestAssetsWithoutGo(t *testing.T) {
	program := writeFiles(t, t.TempDir(), map[string]string{multicall: "#!/bin/sh\n"})
	t.Setenv("PATH", program)
	if got, err := Assets(t.Context(), AssetsOptions{}); err != nil || got != program {
		t.Errorf("on the PATH: got %q %v, want %s", got, err, program)
	}
	t.Setenv("PATH", t.TempDir())
	_, err := Assets(t.Context(), AssetsOptions{})
	wantError(t, err, "--binaries", multicall)
}

// TestExecutableIsEachComponent checks that the multi-call executable selects the component by the name it is called
// by and by its first argument.
func TestExecutableIsEachComponent(t *testing.T) {
	assets := testAssets(t)
	for _, command := range [][]string{
		{filepath.Join(assets, apiserver), "--version"},
		{filepath.Join(assets, multicall), scheduler, "--version"},
		{filepath.Join(assets, kubectl), "version", "--client"},
	} {
		output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(output), "v1.") {
			t.Errorf("%v: %v %s", command, err, output)
		}
	}
	err := exec.CommandContext(t.Context(), filepath.Join(assets, multicall), "kubelet").Run()
	if exit := (*exec.ExitError)(nil); !asExit(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("an unknown component: got %v, want exit code 2", err)
	}
}
