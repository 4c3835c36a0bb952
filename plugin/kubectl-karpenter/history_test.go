package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// lifeLog is the log of real controllers on a virtual clock.
const lifeLog = "../../internal/testing/world/testdata/life.log"

// narrow is a terminal of 80 columns.
type narrow struct{ bytes.Buffer }

func (*narrow) Columns() int { return 80 }

// askPast runs the plugin and returns what it prints on a terminal of 80 columns, and on standard error.
func askPast(t *testing.T, in string, arguments ...string) (out, progress string, err error) {
	t.Helper()
	root := newRootCommand()
	var screen narrow
	var errs bytes.Buffer
	root.SetIn(strings.NewReader(in))
	root.SetOut(&screen)
	root.SetErr(&errs)
	root.SetArgs(arguments)
	err = root.ExecuteContext(t.Context())
	return screen.String(), errs.String(), err
}

// TestHistoryPage checks that the answers in docs/history.md are those of the verb.
func TestHistoryPage(t *testing.T) {
	log, err := os.ReadFile(lifeLog)
	if err != nil {
		t.Fatal(err)
	}
	nodes, _, err := askPast(t, string(log), "history", "-f", "-", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	node := strings.TrimPrefix(strings.Fields(nodes)[2], "node/")
	for i, line := range []string{"history", "history node " + node, "history pod default/batch-9", "history --by hour", "history commands"} {
		out, progress, err := askPast(t, string(log), append(strings.Fields(line), "-f", "-")...)
		if err != nil || progress != "" {
			t.Fatalf("%s: %v\n%s", line, err, progress)
		}
		held(t, "../../docs/history.md", fmt.Sprintf("<!-- answer %d: TestHistoryPage -->\n```text\n", i+1), "```\n<!-- end -->",
			"$ kubectl karpenter "+line+" -f karpenter.log\n"+out)
	}
}

// TestHistoryFiles checks several files, lines that are not read, and formats.
func TestHistoryFiles(t *testing.T) {
	log, err := os.ReadFile(lifeLog)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(log), "\n")
	half := len(lines) / 2
	dir := files(t, map[string]string{"a.log": strings.Join(lines[half:], "") + "panic: no\n", "b.log": strings.Join(lines[:half], "")})
	whole, _, err := askPast(t, string(log), "history", "-f", "-", "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	parts, progress, err := askPast(t, "", "history", "-f", filepath.Join(dir, "a.log"), "-f", filepath.Join(dir, "b.log"), "-o", "yaml")
	if want := `1 of 32 lines not read, the first: "panic: no"`; err != nil || !strings.Contains(progress, want) {
		t.Errorf("%v, %q; want %q", err, progress, want)
	}
	_, whole, _ = strings.Cut(whole, "nodes:")
	if _, parts, _ = strings.Cut(parts, "nodes:"); parts != whole {
		t.Errorf("of two files\n%s\nof one\n%s", parts, whole)
	}
	var answer struct {
		Nodes []struct {
			NodeClaim    string
			PricePerHour float64
			Cost         float64
		}
	}
	out, _, err := askPast(t, string(log), "history", "-f", "-", "--filter", "steady", "-o", "json")
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if err != nil || len(answer.Nodes) != 2 || answer.Nodes[0].PricePerHour != 0.8 {
		t.Errorf("%v, %+v; want the two nodes of pool steady", err, answer)
	}
}

// TestHistoryUsage checks what is said about bad input.
func TestHistoryUsage(t *testing.T) {
	log, err := os.ReadFile(lifeLog)
	if err != nil {
		t.Fatal(err)
	}
	_, node, _ := strings.Cut(string(log), `"nodeClaim":"`)
	node, _, _ = strings.Cut(node, `"`)
	for _, c := range []struct {
		line, in, want string
		code           int
	}{
		{"history", "", "want one of -f, to read files, and --live", 2},
		{"history -f - --live", "", "want one of -f, to read files, and --live", 2},
		{"history -f /nonexistent", "", "no such file", 2},
		{"history -f -", "name: no log\n", `want JSON or console lines of the controller; the first line is "name: no log"`, 2},
		{"history -f -", "", "no line of a log", 2},
		{"history -f - --by week", string(log), `--by is "week", want hour or day`, 2},
		{"history -f - --since yesterday", string(log), `--since is "yesterday", want a duration such as 24h`, 2},
		{"history -f - --since 1h --until 2h", string(log), "--until 2h is before --since 1h", 2},
		{"history node -f -", string(log), "0 arguments, want one: NAME", 2},
		{"history node " + node + "0 -f -", string(log), "did you mean " + node + "?", 1},
		{"history pod web-1 -f -", string(log), "pod web-1: want NAMESPACE/NAME", 2},
		{"history pod default/web-11 -f -", string(log), "the log does not name a pod default/web-11; did you mean default/web-1", 1},
		{"history -f - -o html", string(log), `--output is "html"`, 2},
	} {
		_, _, err := askPast(t, c.in, strings.Fields(c.line)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || cli.ExitCode(err) != c.code {
			t.Errorf("%s: %v (exit code %d), want %q and %d", c.line, err, cli.ExitCode(err), c.want, c.code)
		}
	}
}

// TestHistoryLive reads the log of two replicas, one of which was restarted, beside one that waits to start, one on a node
// that does not answer and one that was deleted. It checks that only logs of which there are none are an error, and a user
// without the right.
func TestHistoryLive(t *testing.T) {
	log, err := os.ReadFile(lifeLog)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(log), "\n")
	parts := map[string]string{"a?container=controller&previous=true": strings.Join(lines[:10], ""),
		"a?container=controller": strings.Join(lines[10:20], ""), "b?container=controller": strings.Join(lines[20:], "")}
	// statuses are the answers of the API server for pods without a log: by the kubelet, by the connection to it, and by none.
	statuses := map[string]string{
		"starting": `"reason": "BadRequest", "message": "container \"controller\" is waiting to start: ContainerCreating", "code": 400`,
		"far":      `"reason": "InternalError", "message": "Get \"https://10.0.0.9:10250/containerLogs\": dial tcp: i/o timeout", "code": 500`,
		"gone":     `"reason": "NotFound", "message": "pods \"gone\" not found", "code": 404`,
	}
	allowed := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s, want only reads", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		name, isLog := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/karpenter/pods/")
		switch {
		case isLog && !allowed:
			failStatus(w, `"reason": "Forbidden", "message": "no", "code": 403`)
		case isLog && statuses[strings.TrimSuffix(name, "/log")] != "":
			failStatus(w, statuses[strings.TrimSuffix(name, "/log")])
		case isLog:
			text, known := parts[strings.TrimSuffix(name, "/log")+"?"+r.URL.RawQuery]
			if !known {
				t.Errorf("unexpected %s", r.URL)
			}
			fmt.Fprint(w, text)
		case r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("labelSelector") == "app.kubernetes.io/name=karpenter":
			fmt.Fprint(w, `{"kind": "PodList", "apiVersion": "v1", "items": [
{"metadata": {"name": "starting", "namespace": "karpenter"}, "spec": {"containers": [{"name": "controller"}]}},
{"metadata": {"name": "far", "namespace": "karpenter"}, "spec": {"containers": [{"name": "controller"}]}},
{"metadata": {"name": "gone", "namespace": "karpenter"}, "spec": {"containers": [{"name": "controller"}]}},
{"metadata": {"name": "a", "namespace": "karpenter"}, "spec": {"containers": [{"name": "controller"}, {"name": "proxy"}]},
 "status": {"containerStatuses": [{"name": "controller", "restartCount": 1}]}},
{"metadata": {"name": "b", "namespace": "karpenter"}, "spec": {"containers": [{"name": "controller"}]}},
{"metadata": {"name": "other", "namespace": "x"}, "spec": {"containers": [{"name": "c"}]}}]}`)
		case r.URL.Path == "/api/v1/namespaces/first/pods":
			fmt.Fprint(w, `{"kind": "PodList", "apiVersion": "v1", "items": [
{"metadata": {"name": "starting", "namespace": "karpenter"}, "spec": {"containers": [{"name": "controller"}]},
 "status": {"containerStatuses": [{"name": "controller", "restartCount": 2}]}}]}`)
		case r.URL.Path == "/api/v1/namespaces/empty/pods":
			fmt.Fprint(w, `{"kind": "PodList", "apiVersion": "v1", "items": []}`)
		default:
			t.Errorf("unexpected %s", r.URL)
		}
	}))
	t.Cleanup(server.Close)
	want, _, err := askPast(t, string(log), "history", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	got, progress, err := askPast(t, "", "history", "--live", "--server", server.URL)
	if err != nil || got != want {
		t.Errorf("live: %v\n%s\nfrom a file\n%s", err, got, want)
	}
	if want := "kubectl karpenter: reading the log of pod karpenter/far: "; !strings.HasPrefix(progress, want) ||
		!strings.Contains(progress, "dial tcp: i/o timeout") || strings.Count(progress, "\n") != 1 {
		t.Errorf("remarks: %q, want one that begins with %q and has the cause", progress, want)
	}
	_, _, err = askPast(t, "", "history", "--live", "--server", server.URL, "-n", "first")
	if want := "reading the log of pod karpenter/starting: "; err == nil || !strings.HasPrefix(err.Error(), want) ||
		!strings.Contains(err.Error(), "waiting to start: ContainerCreating") {
		t.Errorf("%v, want %q and the cause", err, want)
	}
	_, _, err = askPast(t, "", "history", "--live", "--server", server.URL, "-n", "empty")
	if want := "no pod with the label app.kubernetes.io/name=karpenter and a container controller in namespace empty"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	allowed = false
	_, _, err = askPast(t, "", "history", "--live", "--server", server.URL)
	if want := "get of pods/log in the controller's namespace"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// failStatus answers as the API server does where a request fails. The fields have a reason, a message and a code.
func failStatus(w http.ResponseWriter, fields string) {
	_, code, _ := strings.Cut(fields, `"code": `)
	number, _ := strconv.Atoi(code)
	w.WriteHeader(number)
	fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", %s}`, fields)
}
