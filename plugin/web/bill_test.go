package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// metered are options of the cluster with the usage of one of its pods.
func metered(t *testing.T, more string) Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(cluster()+more), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := offline.DefaultPolicy()
	source := offline.Source{Paths: []string{path}, Cluster: &offline.Cluster{Usage: true}}
	w, err := source.Read(t.Context(), policy)
	if err != nil || len(w.Problems) > 0 {
		t.Fatal(err, w.Problems)
	}
	o := w.Overview(&policy)
	o.CostBy = bill.Grouping{By: bill.ByLabel, Label: "app"}
	return Options{Source: "cluster.yaml", Read: func(context.Context) (*offline.Overview, error) { return o, nil }}
}

const podMetrics = `---
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {namespace: shop, name: web-1}
timestamp: "2026-01-02T00:00:00Z"
window: 15s
containers: [{name: c, usage: {cpu: 1500m, memory: 1Gi}}]
`

// billDocument is the part of the document of the view that tests read.
type billDocument struct {
	Rows []map[string]any
	Bill struct {
		By, Label    string
		PricePerHour json.Number
		Rows         []struct{ PricePerHour json.Number }
		Usage        *struct {
			Unknown    string
			Pods, Of   int
			RightSized *struct {
				Pods                                                            int
				AtRestPerHour, RightSizedPerHour, SavingPerHour, SavingPerMonth json.Number
			}
		}
	}
}

func billOf(t *testing.T, c *client, query string) billDocument {
	t.Helper()
	text, answer := c.get("/bill?format=json" + query)
	var d billDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v in %s", query, answer.Status, err, text)
	}
	return d
}

func names(d billDocument) []string {
	var list []string
	for _, r := range d.Rows {
		list = append(list, r["for"].(string))
	}
	return list
}

// TestBill checks the groupings of the view, its filter, and that the choices are the labels that pods have.
func TestBill(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	for query, want := range map[string][]string{
		"":                              {"shop", "unused, of 3 nodes"},
		"&by=workload":                  {"shop/StatefulSet/web", "shop/StatefulSet/db", "unused, of 3 nodes"},
		"&by=label:app":                 {"web", "db", "unused, of 3 nodes"},
		"&by=label:team":                {"no label team", "unused, of 3 nodes"},
		"&by=nonsense":                  {"shop", "unused, of 3 nodes"},
		"&by=workload&q=DB":             {"shop/StatefulSet/db"},
		"&by=workload&sort=pods":        {"shop/StatefulSet/web", "shop/StatefulSet/db", "unused, of 3 nodes"},
		"&by=label:%3Cscript%3E&q=none": nil,
	} {
		if diff := cmp.Diff(want, names(billOf(t, c, query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	page, _ := c.get("/bill?by=label:%3Cscript%3E")
	for _, want := range []string{`<option value="label:app">label app</option>`,
		"kubectl karpenter top --once --cost-label &#39;&lt;script&gt;&#39; -f cluster.yaml"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	if !strings.Contains(page, `class="inline narrow"`) {
		t.Error("the page has no picture for narrow screens")
	}
	if strings.Contains(page, "<script>") || strings.Contains(page, "used, of requests") {
		t.Error("the page has the label as markup, or usage that was not asked for")
	}
}

// TestBillUsage checks usage beside requests in the view and the report, and the line where it is not known.
func TestBillUsage(t *testing.T) {
	o := metered(t, podMetrics)
	_, c := serve(t, o)
	d := billOf(t, c, "")
	if d.Bill.By != "label" || d.Bill.Label != "app" || d.Rows[0]["cpuUsed"] != 1.5 || d.Rows[1]["cpuUsed"] != "–" {
		t.Errorf("the view begins with %+v", d)
	}
	u := d.Bill.Usage
	if u == nil || u.Pods != 1 || u.Of != 3 || u.RightSized == nil || u.RightSized.Pods != 2 || u.RightSized.AtRestPerHour == "0" {
		t.Errorf("the usage is %+v", u)
	}
	overview, err := o.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report, err := NewReport(t.Context(), overview, "here", nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| Label app |", "## Cost by workload", "| CPU used |", "with requests of 120% of this usage (2 pods)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	_, c = serve(t, metered(t, ""))
	page, _ := c.get("/bill")
	if want := "no metrics.k8s.io: no PodMetrics are among the files"; !strings.Contains(page, want) || strings.Contains(page, "CPU used") {
		t.Errorf("the page lacks %q:\n%s", want, page)
	}
}
