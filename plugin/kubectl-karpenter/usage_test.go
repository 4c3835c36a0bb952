package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// metered returns a kubeconfig of the cluster of shop whose API server answers requests for PodMetrics with a status and a
// text.
func metered(t *testing.T, status int, text string) string {
	t.Helper()
	config, err := os.ReadFile(shop(t))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(config), `server: "`)
	address, _, _ := strings.Cut(rest, `"`)
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/pods" {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "metered")
	if err := os.WriteFile(file, bytes.ReplaceAll(config, []byte(address), []byte(server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// metrics is what a metrics-server answers about two of the pods of shop.
const metrics = `{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [
 {"metadata": {"name": "web-0", "namespace": "shop", "creationTimestamp": "2026-01-01T06:00:00Z"}, "timestamp": "2026-01-01T05:59:50Z",
	"window": "15.2s",
  "containers": [{"name": "c", "usage": {"cpu": "123456789n", "memory": "1048576Ki"}}]},
 {"metadata": {"name": "gone-0", "namespace": "shop", "creationTimestamp": "2026-01-01T06:00:00Z"},
	"timestamp": "2026-01-01T05:59:50Z", "window": "15.2s",
  "containers": [{"name": "c", "usage": {"cpu": "64", "memory": "1Ti"}}]}]}`

// usageDocument is what tests read of the usage in a document.
type usageDocument struct {
	Unknown    string
	Pods, Of   int
	RightSized *struct {
		Pods                                                            int
		AtRestPerHour, RightSizedPerHour, SavingPerHour, SavingPerMonth json.Number
	}
}

// topOf returns what top prints of a cluster once, as a document.
func topOf(t *testing.T, kubeconfig string, flags ...string) (*bill.Bill, *usageDocument, string) {
	t.Helper()
	types := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(types, []byte(shopJSON), 0o600); err != nil {
		t.Fatal(err)
	}
	command := newTopCommand()
	var out, problems bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&problems)
	command.SetArgs(append([]string{"--kubeconfig", kubeconfig, "--instance-types", types, "-o", "json"}, flags...))
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Bill *struct {
			Rows  []struct{ Use *bill.Use }
			Usage *usageDocument
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.Bill == nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	b := &bill.Bill{}
	for _, r := range answer.Bill.Rows {
		if r.Use != nil {
			b.Rows = append(b.Rows, bill.Row{Use: r.Use})
		}
	}
	return b, answer.Bill.Usage, problems.String()
}

// TestUsageLive checks usage as a cluster serves it: units of metrics-server, pods without usage, and usage of pods that are
// gone.
func TestUsageLive(t *testing.T) {
	b, u, _ := topOf(t, metered(t, http.StatusOK, metrics), "--usage")
	if len(b.Rows) != 1 || b.Rows[0].Use.Pods != 1 || b.Rows[0].Use.CPU != 124 || b.Rows[0].Use.Memory != 1<<30 ||
		b.Rows[0].Use.RequestedCPU != 1500 {
		t.Errorf("the rows with usage are %+v", b.Rows)
	}
	if u.Unknown != "" || u.Pods != 1 || u.Of != 4 || u.RightSized == nil || u.RightSized.AtRestPerHour <= "0" || u.RightSized.Pods == 0 {
		t.Errorf("the usage is %+v", u)
	}
}

// TestUsageMissing checks that a cluster without the API, one whose metrics-server does not answer, and a user without the
// right get a line that says so, and the bill.
func TestUsageMissing(t *testing.T) {
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d, "message": %q}`,
			reason, code, message)
	}
	for _, tt := range []struct {
		code        int
		text, want  string
		wantProblem string
	}{
		{http.StatusNotFound, status(404, "NotFound", "the server could not find the requested resource"),
			"no metrics.k8s.io: the API server does not serve it; metrics-server is a common source", ""},
		{http.StatusServiceUnavailable, status(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
			"no metrics.k8s.io: its server does not answer now", ""},
		{http.StatusForbidden, status(403, "Forbidden",
			`pods.metrics.k8s.io is forbidden: User "ann" cannot list resource "pods" in API group "metrics.k8s.io" at the cluster scope`),
			"no metrics.k8s.io: listing pods.metrics.k8s.io is not allowed", `user "ann" may not list pods.metrics.k8s.io`},
		{http.StatusOK, `{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": []}`,
			"no metrics.k8s.io: it has no usage of any pod yet", ""},
	} {
		b, usage, problems := topOf(t, metered(t, tt.code, tt.text), "--usage", "--by", "workload")
		want := &usageDocument{Unknown: tt.want}
		if diff := cmp.Diff(want, usage); diff != "" || len(b.Rows) > 0 || !strings.Contains(problems, tt.wantProblem) {
			t.Errorf("status %d (-want +got):\n%s\n%d rows with usage; %s", tt.code, diff, len(b.Rows), problems)
		}
	}
	if _, usage, _ := topOf(t, metered(t, http.StatusTeapot, "must not be asked"), "--by", "namespace"); usage != nil {
		t.Errorf("without --usage the bill has %+v", usage)
	}
}
