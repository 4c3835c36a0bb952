package sandbox

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox/download"
)

// smallRelease returns an archive with the executables of a release of Kubernetes, and its description.
func smallRelease(t *testing.T) ([]byte, download.Archive) {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	members := map[string]string{}
	for _, name := range []string{apiserver, controllerManager, scheduler, kubectl} {
		content := "#!/bin/sh\necho Kubernetes v1.36.0\n"
		if err := files.WriteHeader(&tar.Header{Name: "bin/" + name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		_, _ = files.Write([]byte(content))
		members["bin/"+name] = name
	}
	if err := errors.Join(files.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(packed.Bytes())
	return packed.Bytes(), download.Archive{
		Name: "Kubernetes v1.36.0", Path: "v1.36.0/server.tar.gz", Sum: hex.EncodeToString(sum[:]), Members: members,
	}
}

// lines collects what is reported.
type lines struct {
	lock sync.Mutex
	text []string
}

func (l *lines) add(text string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.text = append(l.text, text)
}

func (l *lines) String() string { return strings.Join(l.text, "\n") }

// TestDownloaded checks that the executables of a release and those that are built are in one folder, whatever the number of
// callers, that the second time neither a server nor a compiler is asked, and that a failure leaves nothing behind.
func TestDownloaded(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(cacheVariable, cache)
	module := smallModule(t)
	from := source{module, filepath.Join(module, "go.mod")}
	content, archive := smallRelease(t)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/x-tar")
		_, _ = w.Write(content)
	}))
	defer server.Close()

	broken := archive
	broken.Sum = strings.Repeat("0", 128)
	_, err := downloaded(t.Context(), from, "key", []download.Archive{broken}, AssetsOptions{Mirror: server.URL, Progress: func(string) {}})
	var wrong *download.SumError
	if !errors.As(err, &wrong) {
		t.Errorf("another archive than the published one: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	asked.Store(0)
	var told lines
	folders := make([]string, 3)
	var all sync.WaitGroup
	for i := range folders {
		all.Go(func() {
			folder, err := downloaded(t.Context(), from, "key", []download.Archive{archive}, AssetsOptions{Mirror: server.URL, Progress: told.add})
			if err != nil {
				t.Error(err)
			}
			folders[i] = folder
		})
	}
	all.Wait()
	if folders[0] != folders[1] || folders[0] != folders[2] || asked.Load() != 1 {
		t.Errorf("folders %v, asked %d times", folders, asked.Load())
	}
	for _, want := range []string{"downloading Kubernetes v1.36.0 from " + server.URL + "/v1.36.0/server.tar.gz",
		"downloaded Kubernetes v1.36.0", "building etcd and kwok from source"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("nothing says %q: %s", want, told.String())
		}
	}
	got := map[string]bool{} // true for what is downloaded
	entries, err := os.ReadDir(folders[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folders[0], entry.Name()))
		if err != nil || !isExecutable(filepath.Join(folders[0], entry.Name())) {
			t.Errorf("%s: not executable, or %v", entry.Name(), err)
		}
		got[entry.Name()] = bytes.HasPrefix(content, []byte("#!"))
	}
	want := map[string]bool{apiserver: true, controllerManager: true, scheduler: true, kubectl: true,
		etcd: false, kwok: false, remainder.file: false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("executables (-want +got):\n%s", diff)
	}
}

// TestReleased checks that what cannot be downloaded is built, that a line says so and why, and that what was built is used
// from then on without asking a server.
func TestReleased(t *testing.T) {
	_, archive := smallRelease(t)
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>")
	}
	for name, test := range map[string]struct {
		kubernetes string
		handle     http.HandlerFunc
		want       string
	}{
		"without checksums":   {"v1.2.3", page, "the checksums of Kubernetes v1.2.3 for " + download.Platform + " are not in the source tree"},
		"the page of a proxy": {"v1.36.3", page, "answers with a page (text/html)"},
		"not there":           {"v1.36.3", http.NotFound, "404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(download.Platform, "linux-") {
				t.Skipf("there are no executables for %s", download.Platform)
			}
			cache := t.TempDir()
			t.Setenv(cacheVariable, cache)
			module := smallModule(t)
			from := source{module, filepath.Join(module, "go.mod")}
			gomod, err := os.ReadFile(from.modfile)
			if err != nil {
				t.Fatal(err)
			}
			writeFiles(t, module, map[string]string{"go.mod": strings.ReplaceAll(string(gomod), "v1.2.3", test.kubernetes)})
			server := httptest.NewServer(test.handle)
			var told lines
			folder, err := released(t.Context(), from, AssetsOptions{Mirror: server.URL, Progress: told.add})
			server.Close()
			if err != nil || !isExecutable(filepath.Join(folder, multicall)) {
				t.Fatalf("%q %v", folder, err)
			}
			want := "the control plane is built from source, which takes 4 to 10 minutes on 2 cores the first time, " +
				"because it cannot be downloaded: "
			if !strings.Contains(told.String(), want) || !strings.Contains(told.String(), test.want) {
				t.Errorf("want %q and %q: %s", want, test.want, told.String())
			}
			told.text = nil
			again, err := released(t.Context(), from, AssetsOptions{Mirror: server.URL, Progress: told.add})
			if again != folder || err != nil || len(told.text) > 0 {
				t.Errorf("once more: %q %v, want %q and no word: %v", again, err, folder, told.text)
			}
		})
	}
	if !hasMember([]download.Archive{archive}, kubectl) || hasMember([]download.Archive{archive}, kwok) {
		t.Error("the members of an archive are not those that it has")
	}
}

// TestReleasedBroken checks that what cannot be compiled is no reason to build: that would fail in the same way, later.
func TestReleasedBroken(t *testing.T) {
	if !strings.HasPrefix(download.Platform, "linux-") {
		t.Skipf("there are no executables for %s", download.Platform)
	}
	t.Setenv(cacheVariable, t.TempDir())
	module := smallModule(t)
	writeFiles(t, module, map[string]string{"go.mod": "module " + componentsPath + "\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n"})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	var told lines
	_, err := released(t.Context(), source{module, filepath.Join(module, "go.mod")}, AssetsOptions{Mirror: server.URL, Progress: told.add})
	wantError(t, err, "go.mod requires no k8s.io/kubernetes or no sigs.k8s.io/kwok", module)
	if strings.Contains(told.String(), "cannot be downloaded") || !strings.Contains(told.String(), "downloading Kubernetes v1.36.") {
		t.Errorf("of a source that cannot be built: %s", told.String())
	}
}

// TestProgressInTurn checks that downloads and the build, which run at once, report one after the other: the receiver
// of the demo has no lock.
func TestProgressInTurn(t *testing.T) {
	t.Setenv(cacheVariable, t.TempDir())
	module := smallModule(t)
	content, archive := smallRelease(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	defer server.Close()
	archives := make([]download.Archive, 8)
	for i := range archives {
		archives[i] = archive
		archives[i].Name, archives[i].Members = fmt.Sprint("archive ", i), map[string]string{}
		if i == 0 {
			archives[i].Members = archive.Members
		}
	}
	var inside, together atomic.Int64
	told := 0
	options := AssetsOptions{Mirror: server.URL, Progress: func(string) {
		if inside.Add(1) > 1 {
			together.Add(1)
		}
		for range 1000 {
			runtime.Gosched()
		}
		told++
		inside.Add(-1)
	}}.complete()
	if _, err := downloaded(t.Context(), source{module, filepath.Join(module, "go.mod")}, "key", archives, options); err != nil {
		t.Fatal(err)
	}
	if n := together.Load(); n > 0 || told != len(archives)+3 {
		t.Errorf("%d of %d calls while another one ran, want none of %d", n, told, len(archives)+3)
	}
}

// TestReleasedCanceled checks that an interrupted download is no reason to build.
func TestReleasedCanceled(t *testing.T) {
	t.Setenv(cacheVariable, t.TempDir())
	module := smallModule(t)
	from := source{module, filepath.Join(module, "go.mod")}
	ctx, cancel := context.WithCancel(t.Context())
	content, archive := smallRelease(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		_, _ = w.Write(content)
	}))
	defer server.Close()
	quiet := AssetsOptions{Mirror: server.URL, Progress: func(string) {}}
	if _, err := downloaded(ctx, from, "key", []download.Archive{archive}, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted download: %v", err)
	}
	var told lines
	_, err := released(ctx, from, AssetsOptions{Mirror: server.URL, Progress: told.add})
	if err == nil || strings.Contains(told.String(), "built from source") {
		t.Errorf("interrupted: %v %s", err, told.String())
	}
}

// TestAssetsChoice checks which of a flag, the environment and the default decides.
func TestAssetsChoice(t *testing.T) {
	program := "#!/bin/sh\necho Kubernetes v1.36.3\n"
	one := writeFiles(t, t.TempDir(), map[string]string{multicall: program})
	other := writeFiles(t, t.TempDir(), map[string]string{multicall: program})
	t.Setenv(binariesVariable, one)
	if got, err := Assets(t.Context(), AssetsOptions{}); err != nil || got != one {
		t.Errorf("the environment: %q %v, want %s", got, err, one)
	}
	if got, err := Assets(t.Context(), AssetsOptions{Binaries: other}); err != nil || got != other {
		t.Errorf("a flag and the environment: %q %v, want %s", got, err, other)
	}
	_, err := Assets(t.Context(), AssetsOptions{Binaries: "automatic"})
	wantError(t, err, "auto and build are the other values", "automatic")
}
