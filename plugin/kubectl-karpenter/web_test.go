package main

import (
	"bytes"
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// said collects what a command prints, and tells of the first line.
type said struct {
	mu    sync.Mutex
	text  bytes.Buffer
	line  chan struct{}
	first sync.Once
}

func (s *said) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first.Do(func() { close(s.line) })
	return s.text.Write(text)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// webOf runs the verb, and returns its address and a function that ends it.
func webOf(t *testing.T, arguments ...string) (address string, end func() error) {
	t.Helper()
	out := &said{line: make(chan struct{})}
	command := newWebCommand()
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetOut(out)
	command.SetErr(&bytes.Buffer{})
	command.SetArgs(append(arguments, "--no-browser"))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	select {
	case <-out.line:
	case err := <-ended:
		t.Fatalf("the page is not served: %v", err)
	}
	return strings.TrimSpace(out.String()), func() error {
		stop()
		return <-ended
	}
}

// webPage opens a session, and returns a page and its status.
func webPage(t *testing.T, address, path string) (string, int) {
	t.Helper()
	return webSession(t, address)(path)
}

// webSession opens a session, and returns a function that returns a page and its status.
func webSession(t *testing.T, address string) func(path string) (string, int) {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil || at.Hostname() != "127.0.0.1" || len(at.Fragment) != 64 {
		t.Fatalf("the address is %q: %v", address, err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at.Scheme+"://"+at.Host+"/session",
		strings.NewReader("token="+at.Fragment))
	request.RequestURI = ""
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	cookies := answer.Cookies()
	return func(path string) (string, int) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at.Scheme+"://"+at.Host+path, nil)
		request.RequestURI = ""
		for _, cookie := range cookies {
			request.AddCookie(cookie)
		}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(answer.Body); err != nil {
			t.Fatal(err)
		}
		return text.String(), answer.StatusCode
	}
}

// TestWebLive serves the page of a live cluster until the context ends.
func TestWebLive(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": shopJSON}), "types.json")
	address, end := webOf(t, "--kubeconfig", shop(t), "--instance-types", types)
	text, status := webPage(t, address, "/pending?format=csv")
	if status != http.StatusOK || !strings.Contains(text, "shop/train-0,1,NoPlace,default") {
		t.Errorf("status %d, page\n%s", status, text)
	}
	if err := end(); err != nil {
		t.Errorf("ending: %v", err)
	}
}

// sameCommand is the command that a view of the page prints.
var sameCommand = regexp.MustCompile(`The same in a terminal: <code>kubectl karpenter ([^<]*)</code>`)

// TestWebCommands runs the commands that the views print, for files and for a cluster.
func TestWebCommands(t *testing.T) {
	pool := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  template:\n    spec:\n" +
		"      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n      requirements: []\n"
	folder := files(t, map[string]string{"a fleet.yaml": pool + "---\n" + webYAML, "types.json": shopJSON, "pool.yaml": pool,
		"changed-pool.yaml": strings.Replace(pool, "spec:\n", "spec:\n  limits: {cpu: 100}\n", 1)})
	t.Chdir(folder)
	for name, from := range map[string][]string{
		"files":   {"-f", "a fleet.yaml", "--instance-types", "types.json"},
		"cluster": {"--kubeconfig", shop(t), "--instance-types", "types.json"},
	} {
		t.Run(name, func(t *testing.T) {
			address, end := webOf(t, from...)
			get := webSession(t, address)
			for _, path := range []string{"/fleet", "/plan", "/pending", "/savings", "/map", "/what-if"} {
				text, status := get(path)
				found := sameCommand.FindStringSubmatch(text)
				if status != http.StatusOK || found == nil {
					t.Errorf("%s: status %d, no command", path, status)
					continue
				}
				split := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+html.UnescapeString(found[1]))
				words, err := split.Output()
				if err != nil {
					t.Fatalf("%s prints %s: %v", path, found[1], err)
				}
				root := newRootCommand()
				root.SetArgs(strings.Split(strings.TrimSpace(string(words)), "\n"))
				var said bytes.Buffer
				root.SetOut(&said)
				root.SetErr(&said)
				if err := root.ExecuteContext(t.Context()); err != nil {
					t.Errorf("%s prints %s: %v\n%s", path, found[1], err, said.String())
				}
			}
			if err := end(); err != nil {
				t.Errorf("ending: %v", err)
			}
		})
	}
}

// TestWebFrom serves the page of manifests, without a cluster.
func TestWebFrom(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "pods.yaml")
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: alone}\nspec: {containers: [{name: c, image: i}]}\n"
	if err := os.WriteFile(file, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	address, end := webOf(t, "--from", file)
	if text, status := webPage(t, address, "/pending"); status != http.StatusOK || !strings.Contains(text, "default/alone") {
		t.Errorf("status %d, page\n%s", status, text)
	}
	if err := end(); err != nil {
		t.Errorf("ending: %v", err)
	}
}

// TestWebUsage checks what is wrong with a command line before anything is served.
func TestWebUsage(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for arguments, want := range map[string]string{
		"--port 70000": "--port is 70000", "--interval 5ms": "--interval is 5ms", "--payback -1h": "--payback", "": "no cluster",
		"--from missing.json": "missing.json",
	} {
		if _, err := runProgram(t, "", append([]string{"web"}, strings.Fields(arguments)...)...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", arguments, err, want)
		}
	}
}
