package web

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// manifests are a pool, two nodes that hold little, a PodDisruptionBudget that keeps one of them, and two pending pods.
const manifests = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "100%"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: shop}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: db}}}
`

func node(name string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %[1]s, uid: %[1]s, creationTimestamp: "2026-01-01T00:00:00Z", labels: {karpenter.sh/nodepool: general, node.kubernetes.io/instance-type: m-8x-amd64-linux, topology.kubernetes.io/zone: test-zone-a, karpenter.sh/capacity-type: on-demand, kubernetes.io/arch: amd64, kubernetes.io/os: linux, kubernetes.io/hostname: %[1]s, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}}
status: {capacity: {cpu: "8", memory: 64Gi, pods: "110"}, allocatable: {cpu: 7900m, memory: 63Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
`, name)
}

func pod(name, app, node, cpu string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %[1]q, namespace: shop, uid: %[1]q, creationTimestamp: "2026-01-02T00:00:00Z", labels: {app: %[2]s}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: %[2]s, uid: %[2]s, controller: true}]}
spec: {nodeName: %[3]q, containers: [{name: c, image: i, resources: {requests: {cpu: %[4]q}}}]}
status: {phase: %[5]s, conditions: [{type: Ready, status: "True"}]}
`, name, app, node, cpu, map[bool]string{true: "Pending", false: "Running"}[node == ""])
}

// cluster is the text of the manifests.
func cluster() string {
	return manifests + node("one") + node("two") + node("three") + pod("web-0", "web", "one", "500m") + pod("db-0", "db", "two", "500m") +
		pod("web-1", "web", "three", "6") + pod("big-0", "big", "", "500") + pod("new-0", "new", "", "1")
}

func overview(t *testing.T, text string) *offline.Overview {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := offline.DefaultPolicy()
	source := offline.Source{Paths: []string{path}, Cluster: &offline.Cluster{}}
	w, err := source.Read(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range w.Problems {
		t.Fatal(problem)
	}
	return w.Overview(&policy)
}

// client is a browser without a script.
type client struct {
	t      *testing.T
	server *httptest.Server
	cookie *http.Cookie
}

// serve starts a server for the reading, and opens a session.
func serve(t *testing.T, o Options) (*Server, *client) {
	t.Helper()
	s := New(o)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	c := &client{t: t, server: server}
	answer := c.do(http.MethodPost, "/session", url.Values{"token": {s.access.token}}, nil)
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("the token is answered with %s, %d cookies", answer.Status, len(answer.Cookies()))
	}
	c.cookie = answer.Cookies()[0]
	return s, c
}

func (c *client) do(method, path string, form url.Values, change func(*http.Request)) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if c.cookie != nil {
		r.AddCookie(c.cookie)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func (c *client) get(path string) (string, *http.Response) {
	c.t.Helper()
	answer := c.do(http.MethodGet, path, nil, nil)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text), answer
}

func ofFile(t *testing.T, text string) Options {
	o := overview(t, text)
	return Options{Source: "cluster.yaml", Command: []string{"-f", "cluster.yaml"}, Read: func(context.Context) (*offline.Overview,
		error) {
		return o, nil
	}}
}

// TestAccess checks what is needed for a page: the token once, the cookie, a local Host, and the page's own origin.
func TestAccess(t *testing.T) {
	s, c := serve(t, ofFile(t, cluster()))
	if cookie := c.cookie; !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || len(cookie.Value) != 64 {
		t.Errorf("the cookie is %v", cookie)
	}
	stranger := &client{t: t, server: c.server}
	status := func(who *client, method, path string, form url.Values, change func(*http.Request)) int {
		return who.do(method, path, form, change).StatusCode
	}
	old := c.cookie.Value
	for _, tt := range []struct {
		name string
		got  int
		want int
	}{
		{"with the cookie", status(c, "GET", "/fleet", nil, nil), 200},
		{"without", status(stranger, "GET", "/fleet", nil, nil), 401},
		{"without, data", status(stranger, "GET", "/fleet?format=json", nil, nil), 401},
		{"without, stream", status(stranger, "GET", "/events", nil, nil), 401},
		{"without, what-if", status(stranger, "POST", "/what-if", url.Values{}, nil), 401},
		{"a wrong token", status(stranger, "POST", "/session", url.Values{"token": {"0"}}, nil), 403},
		{"no token", status(stranger, "POST", "/session", url.Values{}, nil), 403},
		{"another host", status(c, "GET", "/fleet", nil, func(r *http.Request) { r.Host = "evil.example:80" }), 421},
		{"a host that begins like this one", status(c, "GET", "/", nil, func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }), 421},
		{"localhost", status(stranger, "GET", "/", nil, func(r *http.Request) { r.Host = "LOCALHOST:1" }), 200},
		{"IPv6", status(stranger, "GET", "/", nil, func(r *http.Request) { r.Host = "[::1]:1" }), 200},
		{"a form of another site", status(c, "POST", "/what-if", url.Values{},
			func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }), 403},
		{"a request across sites", status(c, "POST", "/cancel", url.Values{},
			func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }), 403},
		{"an unknown address", status(c, "GET", "/none", nil, nil), 404},
		{"a known one by POST", status(c, "POST", "/fleet", url.Values{}, nil), 405},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, tt.got, tt.want)
		}
	}
	if answer := c.do("GET", "/", nil, nil); answer.StatusCode != 303 || answer.Header.Get("Location") != "/fleet#" {
		t.Errorf("the root is answered with %s, to %q", answer.Status, answer.Header.Get("Location"))
	}
	first := s.access.token
	if again := status(stranger, "POST", "/session", url.Values{"token": {first}}, nil); again != 303 {
		t.Errorf("the second token is answered with %d", again)
	}
	if again := status(stranger, "POST", "/session", url.Values{"token": {first}}, nil); again != 403 ||
		s.access.token == first || !s.access.known(old) {
		t.Errorf("a used token is answered with %d", again)
	}
}

// TestHeaders checks the headers of every kind of answer, and that pages have nothing that the policy would refuse.
func TestHeaders(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	for _, path := range []string{"/", "/fleet", "/fleet?format=svg", "/page.css", "/page.js", "/none"} {
		text, answer := c.get(path)
		csp := answer.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy is %q", path, csp)
			}
		}
		if answer.Header.Get("X-Content-Type-Options") != "nosniff" || answer.Header.Get("Cache-Control") != "no-store" ||
			answer.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, answer.Header)
		}
		for _, bad := range []string{"unsafe", "<style", " style=", " onclick", "javascript:", "https://", "innerHTML"} {
			if strings.Contains(text, bad) || strings.Contains(csp, bad) {
				t.Errorf("%s contains %q", path, bad)
			}
		}
	}
}

// TestFormats checks each view in each format, and that they have the same rows.
func TestFormats(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	for _, path := range []string{"/fleet?color=why", "/pools", "/plan", "/pending", "/savings", "/bill", "/bill?by=workload", "/map",
		"/what-if?run=1&pods=3&cpu=1&memory=1Gi"} {
		joined := path + map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "format="
		text, _ := c.get(joined + "json")
		var document struct {
			View string
			Rows []map[string]any
			Cost map[string]any
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%s: %v in %s", path, err, text)
		}
		text, _ = c.get(joined + "csv")
		lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) != len(document.Rows)+1 || len(lines) < 2 || document.Cost["pricePerHour"] == 0.0 {
			t.Errorf("%s: %d rows of JSON, %d lines of CSV, cost %v", path, len(document.Rows), len(lines), document.Cost)
		}
		text, _ = c.get(joined + "svg")
		if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil || !strings.Contains(text, "<rect") {
			t.Errorf("%s: SVG: %v", path, err)
		}
		if _, answer := c.get(joined + "pdf"); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: an unknown format is answered with %s", path, answer.Status)
		}
		page, _ := c.get(path)
		for strings.Contains(page, `data-waiting="true"`) {
			page, _ = c.get(path)
		}
		if rows := strings.Count(page, "<tr data-row="); rows != len(document.Rows) {
			t.Errorf("%s: the page has %d rows, want %d", path, rows, len(document.Rows))
		}
	}
}

// TestHostile checks that names do not become markup in any view or format.
func TestHostile(t *testing.T) {
	const name = `<img src=x onerror=alert(1)>`
	// A capture of a cluster is not validated: its objects may have any name.
	text := `{"apiVersion":"simulate.karpenter-go.github.io/v1alpha1","kind":"Capture","input":{"objects":[],"cluster":[` +
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `","uid":"1"},"status":{"allocatable":{"cpu":"4"}}},` +
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","namespace":"` + name +
		`","uid":"2"},"spec":{"containers":[]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}` +
		`],"sale":{"declared":{}}},"options":{"now":"2026-01-01T00:00:00Z","preferencePolicy":"Respect","minValuesPolicy":"Strict","nodeOverheadPrice":0,"packingEffort":1},"answer":{}}`
	_, c := serve(t, ofFile(t, text))
	for _, path := range []string{"/fleet", "/fleet?node=" + url.QueryEscape(name), "/fleet?q=" + url.QueryEscape(name),
		"/pending", "/map", "/what-if",
		"/what-if?run=1&zone=" + url.QueryEscape(name), "/what-if?run=1&spot=" + url.QueryEscape(name),
		"/fleet?format=svg", "/pending?format=svg", "/fleet?sort=" + url.QueryEscape(name)} {
		page, answer := c.get(path)
		if strings.Contains(page, "<img src=x") {
			t.Errorf("%s has the name as markup", path)
		}
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
	page, _ := c.get("/fleet")
	if !strings.Contains(page, "&lt;img src=x onerror=alert(1)&gt;") {
		t.Errorf("the name is not on the page")
	}
}

// TestSavings checks that the PodDisruptionBudget that keeps a node is named with what lifting it saves.
func TestSavings(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	text, _ := c.get("/savings?format=json")
	var document struct {
		Rows []struct {
			Kind, Name   string
			Saving, Held any
		}
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(document.Rows, func(r struct {
		Kind, Name   string
		Saving, Held any
	}) bool {
		return r.Kind == "PodDisruptionBudget" && r.Name == "shop/db"
	})
	if at < 0 {
		t.Fatalf("no row of the PodDisruptionBudget in %s", text)
	}
	if saving, known := document.Rows[at].Saving.(float64); !known || saving <= 0 {
		t.Errorf("lifting the PodDisruptionBudget saves %v", document.Rows[at].Saving)
	}
}

// TestWhatIf checks that a changed pool, a lost zone and more pods change the answer, and that the form leads to it.
func TestWhatIf(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	price := func(query string) float64 {
		text, answer := c.get("/what-if?run=1&format=json&" + query)
		var document struct {
			After struct{ PricePerHour float64 }
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%s: %s: %v in %s", query, answer.Status, err, text)
		}
		return document.After.PricePerHour
	}
	base := price("prices=1")
	if dear := price("prices=2"); dear < 1.9*base {
		t.Errorf("at twice the prices the fleet costs %v, %v before", dear, base)
	}
	more := price("pods=20&cpu=2&memory=2Gi")
	if more <= base {
		t.Errorf("with more pods the fleet costs %v, %v before", more, base)
	}
	if like := price("pods=4&like=shop/StatefulSet/web"); like <= base {
		t.Errorf("with more pods of 6 CPU the fleet costs %v, %v before", like, base)
	}
	if page, _ := c.get("/what-if"); !strings.Contains(page, `<option value="shop/StatefulSet/web">`) {
		t.Error("the form does not offer the workload")
	}
	pool := overview(t, cluster()).Pools()["general"]
	spot := strings.Replace(pool, "- on-demand", "- spot", 1)
	if pool == spot {
		t.Fatalf("the manifest has no capacity type: %s", pool)
	}
	if cheap := price("pods=20&cpu=2&memory=2Gi&pool=general&yaml=" + url.QueryEscape(spot)); cheap >= more {
		t.Errorf("with spot the fleet costs %v, %v without", cheap, more)
	}
	if cheap := price("pods=20&cpu=2&memory=2Gi&pool=general&yaml=" + url.QueryEscape(pool+"---\n"+strings.Replace(spot, "name: general",
		"name: second", 1))); cheap >= more {
		t.Errorf("with a second pool of spot nodes the fleet costs %v, %v without", cheap, more)
	}
	answer := c.do(http.MethodPost, "/what-if", url.Values{"pool": {"general"}, "yaml": {pool}, "spot": {"1.5"}, "zone": {""}}, nil)
	if to := answer.Header.Get("Location"); to != "/what-if?pool=general&run=1&spot=1.5" {
		t.Errorf("the form leads to %s", to)
	}
	for name, edit := range map[string]struct {
		text string
		kept bool
	}{
		"line ends":       {strings.ReplaceAll(pool, "\n", " \r\n"), false},
		"a comment":       {"# mine\n" + pool, false},
		"indentation":     {strings.Replace(pool, "  disruption:", "disruption:", 1), true},
		"all is indented": {"  " + strings.ReplaceAll(pool, "\n", "\n  "), false},
		"a field twice":   {pool + "kind: NodePool\n", true},
		"not YAML":        {pool + "a: b: c", true},
		"a second pool":   {pool + "---\n" + strings.Replace(spot, "name: general", "name: second", 1), true},
		"an empty end":    {pool + "---\n", false},
	} {
		answer := c.do(http.MethodPost, "/what-if", url.Values{"pool": {"general"}, "yaml": {edit.text}}, nil)
		to, err := url.Parse(answer.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		if got := to.Query().Has("yaml"); got != edit.kept {
			t.Errorf("%s: the manifest is kept as a change: %v, want %v", name, got, edit.kept)
		}
	}
	if text, answer := c.get("/what-if?run=1&format=json&pods=-1"); answer.StatusCode != http.StatusBadRequest ||
		!strings.Contains(text, "number of pods") {
		t.Errorf("the document of a wrong change is answered with %s: %s", answer.Status, text)
	}
	if text, _ := c.get("/what-if?run=1&format=json&pods=2&cpu=10000"); !strings.Contains(text, `"unschedulable": 3`) {
		t.Errorf("the document does not count the two pods that fit no type, beside the one that fits none as it is: %s", text)
	}
	for query, want := range map[string]string{"zone=nowhere": "no zone", "spot=x": "the factor of spot", "pods=-1": "number of pods",
		"pods=5&cpu=lots": "request of cpu", "like=shop/StatefulSet/web": "the number of pods is missing",
		"pods=5": "give cpu and memory of each, or like those of", "cpu=1": "the number of pods is missing",
		"pods=5&like=web": "no pod of web", "pods=5&cpu=1&like=shop/StatefulSet/web": "give one of them",
		"yaml=kind:+Pod": "want a NodePool", "yaml=" + url.QueryEscape(strings.ReplaceAll(pool, "name: default",
			"name: other")+"---\nkind: Pod"): "want a NodePool"} {
		if page, _ := c.get("/what-if?run=1&" + query); !strings.Contains(page, want) || !strings.Contains(page, `role="alert"`) {
			t.Errorf("%s: no %q on the page", query, want)
		}
	}
}

// TestNothingWithoutPage checks that a live cluster is not read before a request, nor without a page that is open, and
// that an error is shown.
func TestNothingWithoutPage(t *testing.T) {
	read := 0
	fails := errors.New("the cluster does not answer")
	_, c := serve(t, Options{Live: true, Interval: time.Hour, Source: "test", Read: func(context.Context) (*offline.Overview, error) {
		read++
		return nil, fails
	}})
	if read != 0 {
		t.Errorf("read %d times before a page is asked for", read)
	}
	page, answer := c.get("/fleet")
	if read != 1 || answer.StatusCode != http.StatusBadGateway || !strings.Contains(page, fails.Error()) {
		t.Errorf("read %d times, %s", read, answer.Status)
	}
}

// TestJob checks that a job is computed once for all who ask, and is canceled and can be asked for again.
func TestJob(t *testing.T) {
	started, ends := make(chan context.Context), make(chan int)
	j := job[int]{compute: func(ctx context.Context, tell func(int)) (int, error) {
		tell(3)
		started <- ctx
		select {
		case v := <-ends:
			return v, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}}
	if _, _, ready := j.ask(t.Context(), 0); ready {
		t.Error("a job that has not begun is ready")
	}
	<-started
	if value, known := j.soFar(); value != 3 || !known {
		t.Errorf("the value so far is %d, known %v", value, known)
	}
	j.stop()
	for {
		if _, err, ready := j.ask(t.Context(), time.Minute); ready {
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("a stopped job has the error %v", err)
			}
			break
		}
	}
	done := make(chan int)
	for range 2 {
		go func() {
			v, _, _ := j.ask(t.Context(), time.Minute)
			done <- v
		}()
	}
	<-started
	ends <- 5
	if a, b := <-done, <-done; a != 5 || b != 5 {
		t.Errorf("the values are %d and %d, want 5", a, b)
	}
}

// TestSummary: the sentence of a report names what the steps save, without launches for pending pods, and what keeps most.
func TestSummary(t *testing.T) {
	saves := view.Plan{Before: view.Figures{Price: 10}, Steps: []view.Step{
		{Price: 12, Reason: "Provisioning", Saving: -2}, {Remove: []string{"a"}, Price: 9, Saving: 3}, {Remove: []string{"b"}, Price: 8,
			Saving: 1}}}
	keeps := []view.Blocker{{Kind: "Budget", Name: "x", Saving: 1, Known: true}, {Kind: "PodDisruptionBudget", Name: "shop/web",
		Saving: 2, Known: true},
		{Kind: "Budget", Name: "unknown", Saving: 9}}
	for want, got := range map[string]string{
		"2920 USD a month can be saved in 2 steps. PodDisruptionBudget shop/web keeps 1460 more. Nodes for pending pods cost 1460.": summary(&saves, keeps),
		"Nothing can be saved now. Without a place: 1 pod.":                                                                         summary(&view.Plan{Homeless: 1}, nil),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
