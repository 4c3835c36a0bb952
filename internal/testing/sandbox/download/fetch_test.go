package download

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// release returns an archive as Kubernetes publishes it, with more in it than is wanted, and its description. 400 kB of
// it cannot be compressed, so that it does not fit into the buffers of a connection that breaks.
func release(t *testing.T) ([]byte, Archive) {
	t.Helper()
	noise := make([]byte, 400_000)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(noise)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	for _, file := range []struct{ name, content string }{
		{"kubernetes/LICENSES", "text"}, {"kubernetes/server/bin/kubelet", "not wanted"},
		{"kubernetes/server/bin/kube-apiserver", string(noise)},
		{"./kubernetes/server/bin/kubectl", "kubectl"}, {"kubernetes/last", string(noise)},
	} {
		header := &tar.Header{Name: file.name, Mode: 0o755, Size: int64(len(file.content)), Typeflag: tar.TypeReg}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		_, _ = files.Write([]byte(file.content))
	}
	if err := errors.Join(files.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(packed.Bytes())
	return packed.Bytes(), Archive{
		Name: "Kubernetes v1.2.3", Path: "v1.2.3/kubernetes-server-linux-amd64.tar.gz", Sum: hex.EncodeToString(sum[:]),
		Members: map[string]string{"kubernetes/server/bin/kube-apiserver": "kube-apiserver", "kubernetes/server/bin/kubectl": "kubectl"},
	}
}

func quick(mirror string) *Client {
	c := NewClient(mirror, nil)
	c.answer, c.stall, c.pause = 300*time.Millisecond, 300*time.Millisecond, time.Millisecond
	return c
}

// requests are what a server was asked, as "PATH RANGE".
type requests struct {
	lock sync.Mutex
	all  []string
}

// add returns how many there were before.
func (r *requests) add(request string) int {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.all = append(r.all, strings.TrimSpace(request))
	return len(r.all) - 1
}

func (r *requests) asked() []string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.all)
}

// serve answers the n-th request, from 0 on, with handle(n).
func serve(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request)) (*httptest.Server, *requests) {
	t.Helper()
	asked := &requests{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(asked.add(r.URL.Path+" "+r.Header.Get("Range")), w, r)
	}))
	t.Cleanup(server.Close)
	return server, asked
}

// whole answers with the content, or the part of it that a request wants.
func whole(w http.ResponseWriter, r *http.Request, content []byte) {
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("ETag", `"one"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// breaking answers with the first bytes of what whole answers with, and then breaks the connection.
func breaking(w http.ResponseWriter, r *http.Request, content []byte, n int) {
	w.Header().Set("ETag", `"one"`)
	w.Header().Set("Content-Type", "application/x-tar")
	start := 0
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start); err == nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(content)-1, len(content)))
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(content)-start))
	if start > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write(content[start : start+n])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// files returns the contents of a folder, by name.
func contents(t *testing.T, folder string) map[string]int {
	t.Helper()
	found := map[string]int{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = int(info.Size())
		if info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%s is not executable", entry.Name())
		}
	}
	return found
}

// TestFetch checks against servers that answer in one way or another what is downloaded, what is asked for, and that a
// failure leaves nothing behind.
func TestFetch(t *testing.T) {
	content, archive := release(t)
	other := bytes.Clone(content)
	other[len(other)/2] ^= 1
	const broken = 100_000
	tests := map[string]struct {
		handle func(n int, w http.ResponseWriter, r *http.Request)
		want   string // of the error; empty for success
		asked  int    // requests
	}{
		"right": {func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, content) }, "", 1},
		"a redirect": {func(_ int, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/elsewhere" {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
				return
			}
			whole(w, r, content)
		}, "", 2},
		"redirects without end": {func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusFound)
		}, "stopped after 10 redirects", 10},
		"another archive": {func(_ int, w http.ResponseWriter, r *http.Request) {
			whole(w, r, other)
		}, "the source tree says " + archive.Sum[:16], 1},
		"half of it, as if it were whole": {func(_ int, w http.ResponseWriter, r *http.Request) {
			whole(w, r, content[:len(content)/2])
		}, "the source tree says " + archive.Sum[:16], 1},
		"broken twice, then resumed": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n < 2 {
				breaking(w, r, content, broken)
			}
			whole(w, r, content)
		}, "", 3},
		"broken, and the rest is refused once": {func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 0:
				breaking(w, r, content, broken)
			case 1:
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			default:
				whole(w, r, content)
			}
		}, "", 3},
		"broken, and ranges are ignored": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				breaking(w, r, content, broken)
			}
			w.Header().Set("Content-Type", "application/gzip")
			_, _ = w.Write(content)
		}, "", 2},
		"broken again and again": {func(n int, w http.ResponseWriter, r *http.Request) {
			breaking(w, r, content, min(broken, broken*(3-min(n, 3))))
		}, "after 300000 bytes", 7},
		"stalled, then resumed": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n > 0 {
				whole(w, r, content)
				return
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			w.Header().Set("Content-Type", "application/x-tar")
			_, _ = w.Write(content[:broken])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "", 2},
		"not there": {func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404 Not Found", 1},
		"unavailable once": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				http.Error(w, "try later", http.StatusServiceUnavailable)
				return
			}
			whole(w, r, content)
		}, "", 2},
		"unavailable": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "try later", http.StatusServiceUnavailable)
		}, "503 Service Unavailable", 4},
		"the page of a proxy": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>Please accept the terms")
		}, "answers with a page (text/html; charset=utf-8), which may be that of a proxy", 1},
		"a page that does not say so": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			fmt.Fprint(w, "<html>Please accept the terms")
		}, "no gzip archive", 1},
		"no answer": {func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 300ms", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server, asked := serve(t, test.handle)
			folder := t.TempDir()
			err := quick(server.URL).Fetch(t.Context(), archive, folder)
			want := map[string]int{"kube-apiserver": 400_000, "kubectl": 7}
			if test.want != "" {
				want = map[string]int{}
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, contents(t, folder)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if asked := asked.asked(); len(asked) != test.asked {
				t.Errorf("asked %d times, want %d: %v", len(asked), test.asked, asked)
			}
		})
	}
}

// TestFetchResumes checks that a resumed download asks for the rest only.
func TestFetchResumes(t *testing.T) {
	content, archive := release(t)
	server, asked := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 0 {
			breaking(w, r, content, 300_000)
		}
		whole(w, r, content)
	})
	if err := quick(server.URL+"/").Fetch(t.Context(), archive, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	want := []string{"/" + archive.Path, "/" + archive.Path + " bytes=300000-"}
	if diff := cmp.Diff(want, asked.asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestFetchWithoutNetwork checks that what can never be reached is tried once, and that the error says what was tried.
func TestFetchWithoutNetwork(t *testing.T) {
	_, archive := release(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for mirror, want := range map[string]string{
		refused:                       "connection refused",
		"http://no-such-host.invalid": "no-such-host.invalid",
		"no scheme":                   "unsupported protocol scheme",
	} {
		folder := t.TempDir()
		c := quick(mirror)
		c.pause = time.Hour // a second try would never end
		err := c.Fetch(t.Context(), archive, folder)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", mirror, err, want)
		}
		if found := contents(t, folder); len(found) > 0 {
			t.Errorf("%s: left %v", mirror, found)
		}
	}
}

// TestFetchUnanswered checks that a connection without an answer to its handshake is given up too.
func TestFetchUnanswered(t *testing.T) {
	_, archive := release(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // the kernel accepts, and TLS never begins
	err = quick("https://"+listener.Addr().String()).Fetch(t.Context(), archive, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no answer within 300ms") {
		t.Errorf("error %v", err)
	}
	if c := NewClient("", nil); c.answer > 5*time.Second {
		t.Errorf("the documentation says five seconds, not %s", c.answer)
	}
}

// TestFetchCanceled checks that a canceled download leaves nothing and returns why.
func TestFetchCanceled(t *testing.T) {
	content, archive := release(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	server, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		cancel(why)
		breaking(w, r, content, 1000)
	})
	folder := t.TempDir()
	if err := quick(server.URL).Fetch(ctx, archive, folder); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
	if found := contents(t, folder); len(found) > 0 {
		t.Errorf("left %v", found)
	}
}

// TestUnpackLacks checks that of an archive without a wanted executable nothing stays.
func TestUnpackLacks(t *testing.T) {
	content, archive := release(t)
	wanted := maps.Clone(archive.Members)
	wanted["kubernetes/server/bin/kube-scheduler"] = "kube-scheduler"
	folder := t.TempDir()
	err := unpack(bytes.NewReader(content), wanted, folder)
	if err == nil || err.Error() != "it has 2 of 3 executables" {
		t.Errorf("error %v", err)
	}
	if found := contents(t, folder); len(found) > 0 {
		t.Errorf("left %v", found)
	}
	if err := unpack(strings.NewReader("no archive"), wanted, folder); err == nil {
		t.Error("what is no archive was unpacked")
	}
}

// TestFind checks which release is chosen.
func TestFind(t *testing.T) {
	text := ""
	for _, path := range []string{"v1.36.9/kubernetes-server-linux-amd64", "v1.36.10/kubernetes-server-linux-amd64",
		"v1.36.11/kubernetes-server-linux-arm64", "v1.3.1/kubernetes-server-linux-amd64"} {
		text += strings.Repeat("a", 128) + "  " + path + ".tar.gz\n"
	}
	text += strings.Repeat("b", 64) + "  v3.6.8/etcd-v3.6.8-linux-amd64.tar.gz\n"
	for name, test := range map[string]struct {
		kubernetes, etcd, platform string
		want                       []string
		wantErr                    string
	}{
		"the newest of the minor version": {"v1.36.3", "v3.6.8", "linux-amd64", []string{"Kubernetes v1.36.10", "etcd v3.6.8"}, ""},
		"etcd of another version":         {"v1.36.3", "v3.6.9", "linux-amd64", []string{"Kubernetes v1.36.10"}, ""},
		"another processor":               {"v1.36.3", "v3.6.8", "linux-arm64", []string{"Kubernetes v1.36.11"}, ""},
		"a version that begins likewise":  {"v1.3.0", "", "linux-amd64", []string{"Kubernetes v1.3.1"}, ""},
		"an unknown version": {"v1.37.1", "v3.6.8", "linux-amd64", nil,
			"the checksums of Kubernetes v1.37.1 for linux-amd64 are not in the source tree"},
		"another system": {"v1.36.3", "v3.6.8", "darwin-arm64", nil,
			"Kubernetes v1.36.3 has no executables of the control plane for darwin-arm64"},
	} {
		found, err := find(text, test.kubernetes, test.etcd, test.platform)
		var unknown *NoSumError
		if test.wantErr != "" && (!errors.As(err, &unknown) || err.Error() != test.wantErr) {
			t.Errorf("%s: error %v, want %q", name, err, test.wantErr)
		}
		var got []string
		for _, archive := range found {
			got = append(got, archive.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	for _, bad := range []string{"", "x  v1.2.3/kubernetes-server-linux-amd64.tar.gz",
		strings.Repeat("a", 128) + " v1.2.3/kubernetes-server-linux-amd64.tar.gz",
		strings.Repeat("a", 64) + "  v3.6.8/etcd-v3.6.9-linux-amd64.tar.gz"} {
		if lines, err := parse(bad + "\n"); err == nil {
			t.Errorf("%q was read as %v", bad, lines)
		}
	}
}

// TestSums checks the file of the source tree: each line is of the format, and each release has all platforms.
func TestSums(t *testing.T) {
	lines, err := parse(sums)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, l := range lines {
		found[l.product+" "+l.version] = append(found[l.product+" "+l.version], l.platform)
	}
	if len(found) == 0 {
		t.Error("no releases")
	}
	for release, got := range found {
		slices.Sort(got)
		if !slices.Equal(got, platforms) {
			t.Errorf("%s: %v, want %v", release, got, platforms)
		}
	}
	archives, err := Find("v1.36.3", "v3.6.8", "linux-amd64")
	if err != nil || NewClient("", nil).Location(archives[0]) != "https://dl.k8s.io/"+archives[0].Path {
		t.Errorf("the release of the default version: %+v %v", archives, err)
	}
}

// TestPin checks that the published checksums take the place of those of the same minor version, and that a release whose
// checksums cannot be read changes nothing.
func TestPin(t *testing.T) {
	sum := func(text string) string { s := sha512.Sum512([]byte(text)); return hex.EncodeToString(s[:]) }
	short := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	server, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1.36.3/kubernetes-server-linux-amd64.tar.gz.sha512":
			fmt.Fprintln(w, sum("amd64"))
		case "/v1.36.3/kubernetes-server-linux-arm64.tar.gz.sha512":
			fmt.Fprint(w, sum("arm64"))
		case "/v3.6.8/SHA256SUMS":
			for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-arm64"} {
				fmt.Fprintf(w, "%s  etcd-v3.6.8-%s.tar.gz\n", short(platform), platform)
			}
		default:
			http.NotFound(w, r)
		}
	})
	before := sum("old") + "  v1.36.0/kubernetes-server-linux-amd64.tar.gz\n" +
		sum("other") + "  v1.35.4/kubernetes-server-linux-amd64.tar.gz\n"
	got, err := quick(server.URL).pin(t.Context(), before, "v1.36.3", "v3.6.8")
	if err != nil {
		t.Fatal(err)
	}
	want := sum("amd64") + "  v1.36.3/kubernetes-server-linux-amd64.tar.gz\n" +
		sum("arm64") + "  v1.36.3/kubernetes-server-linux-arm64.tar.gz\n" +
		short("linux-amd64") + "  v3.6.8/etcd-v3.6.8-linux-amd64.tar.gz\n" + short("linux-arm64") + "  v3.6.8/etcd-v3.6.8-linux-arm64.tar.gz\n" +
		sum("other") + "  v1.35.4/kubernetes-server-linux-amd64.tar.gz\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sums (-want +got):\n%s", diff)
	}
	if again, err := quick(server.URL).pin(t.Context(), got, "v1.36.3", "v3.6.8"); err != nil || again != got {
		t.Errorf("once more: %v\n%s", err, again)
	}
	for _, versions := range [][2]string{{"v1.36.4", "v3.6.8"}, {"v1.36.3", "v3.6.9"}} {
		if _, err := quick(server.URL).pin(t.Context(), before, versions[0], versions[1]); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%v: error %v", versions, err)
		}
	}
}

// TestFetchSHA256 checks an archive with the other kind of checksum.
func TestFetchSHA256(t *testing.T) {
	content, archive := release(t)
	s := sha256.Sum256(content)
	archive.Sum = hex.EncodeToString(s[:])
	server, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, content) })
	folder := t.TempDir()
	if err := quick(server.URL).Fetch(t.Context(), archive, folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "kube-apiserver")); err != nil {
		t.Error(err)
	}
}
