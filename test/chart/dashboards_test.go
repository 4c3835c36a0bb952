package chart

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// dashboard holds the fields of a Grafana dashboard that this test reads.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, RefID string }
	}
	Templating struct{ List []struct{ Query any } }
}

// variableQuery matches the query of a variable of a dashboard.
var variableQuery = regexp.MustCompile(`^label_values\((\w+)(?:\{cluster=~"\$cluster"\})?, (\w+)\)$`)

// checkVariables checks that the variables of a dashboard are labels that exist.
func (n names) checkVariables(t *testing.T, where string, d dashboard) {
	t.Helper()
	for _, variable := range d.Templating.List {
		query, ok := variable.Query.(values)
		if !ok { // the data source
			continue
		}
		match := variableQuery.FindStringSubmatch(fmt.Sprint(query["query"]))
		if match == nil || !slices.Contains(n[match[1]], match[2]) {
			t.Errorf("%s has a variable with the query %v, which is not a label of a registered metric", where, query["query"])
		}
	}
}

// TestDashboards reads the dashboards as Grafana would, and checks every query against the existing metrics.
func TestDashboards(t *testing.T) {
	known := names{}
	for name, labels := range metrics(t) {
		known[name] = append(slices.Clone(labels), "cluster") // Prometheus adds it where it collects from several clusters
	}
	paths, err := filepath.Glob(mainChart + "/dashboards/*.json")
	if err != nil || len(paths) < 5 {
		t.Fatalf("there are %d dashboards (%v), want fleet, cost, decisions, disruption and cloud calls", len(paths), err)
	}
	r := render(t, mainChart, values(minimal().set("dashboards.enabled", true)))
	uids := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := dashboard{}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if d.UID == "" || d.Title == "" {
			t.Errorf("%s: the id is %q and the title %q, want both", path, d.UID, d.Title)
		}
		if other := uids[d.UID]; other != "" {
			t.Errorf("%s: the id %q is that of %s", path, d.UID, other)
		}
		uids[d.UID] = path
		known.checkVariables(t, path, d)
		ids := map[int]bool{}
		for _, panel := range d.Panels {
			where := fmt.Sprintf("%s, %q", filepath.Base(path), panel.Title)
			if ids[panel.ID] {
				t.Errorf("%s: the id %d is a duplicate", where, panel.ID)
			}
			if len(panel.Targets) == 0 {
				t.Errorf("%s shows nothing", where)
			}
			if panel.GridPos.W < 1 || panel.GridPos.X+panel.GridPos.W > 24 {
				t.Errorf("%s is out of the grid of 24 columns: it begins at %d and has %d", where, panel.GridPos.X, panel.GridPos.W)
			}
			ids[panel.ID] = true
			for _, target := range panel.Targets {
				known.check(t, where, target.Expr)
				checkCluster(t, where, target.Expr)
			}
		}
		name := "karpenter-dashboard-" + strings.TrimSuffix(filepath.Base(path), ".json")
		shown := r.of("ConfigMap", name)
		if shown == nil {
			t.Errorf("the chart renders no ConfigMap %s", name)
			continue
		}
		data, _ := shown.Object["data"].(values)
		if cmp.Compare(fmt.Sprint(data[filepath.Base(path)]), string(text)) != 0 {
			t.Errorf("the ConfigMap %s does not contain %s unchanged", name, path)
		}
	}
}

// checkCluster checks that every selector of a query chooses the cluster of the dashboard's variable.
func checkCluster(t *testing.T, where, text string) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(text, "$__rate_interval", "5m"))
	if err != nil {
		return // names.check reports it
	}
	for _, selector := range parser.ExtractSelectors(expression) {
		if !slices.ContainsFunc(selector, func(m *labels.Matcher) bool { return m.String() == `cluster=~"$cluster"` }) {
			t.Errorf("%s does not choose the cluster: %v", where, selector)
		}
	}
}

// TestDashboardValues evaluates queries of dashboards with Prometheus's own engine, on the series of two clusters.
func TestDashboardValues(t *testing.T) {
	const series = `karpenter_nodes_allocatable{cluster="a",nodepool="x",node_name="1",resource_type="cpu",capacity_type="spot"} 6x120
karpenter_nodes_allocatable{cluster="a",nodepool="x",node_name="2",resource_type="cpu",capacity_type="on-demand"} 2x120
karpenter_nodes_allocatable{cluster="b",nodepool="y",node_name="1",resource_type="cpu",capacity_type="on-demand"} 8x120
karpenter_cluster_cost{cluster="a"} 2x120
karpenter_cluster_cost{cluster="b"} 3x120
karpenter_cost_by_namespace{cluster="a",pod="leader",kind="pods",pod_namespace="shop"} 2x120
karpenter_cost_by_namespace{cluster="a",pod="standby",kind="pods",pod_namespace="shop"} 2x120
karpenter_cost_by_namespace{cluster="a",pod="leader",kind="unused",pod_namespace=""} 9x120
karpenter_cost_by_namespace{cluster="b",pod="leader",kind="pods",pod_namespace="shop"} 3x120
karpenter_pods_oldest_unbound_seconds{cluster="a"} 30x120
karpenter_pods_oldest_unbound_seconds{cluster="b"} 0x120`
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	for _, c := range []struct {
		file, panel, cluster string
		want                 float64
	}{
		{"fleet", "Spot share of CPU", "a", 0.75},
		{"fleet", "Spot share of CPU", "b", 0},
		{"fleet", "Spot share of CPU", ".*", 0.375},
		{"fleet", "Oldest pending pod", ".*", 30},
		{"fleet", "Oldest pending pod", "b", 0},
		{"cost", "Cost per hour", ".*", 5},
		{"cost", "Cost per hour", "b", 3},
		{"cost", "Cost per month", "a", 1460},
		{"cost", "Cost by namespace", "a", 2},
		{"cost", "Cost by namespace", ".*", 5},
	} {
		text, err := os.ReadFile(mainChart + "/dashboards/" + c.file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		d := dashboard{}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, panel := range d.Panels {
			if panel.Title != c.panel {
				continue
			}
			found++
			expression := strings.NewReplacer("$cluster", c.cluster, "$nodepool", ".*").Replace(panel.Targets[0].Expr)
			query, err := engine.NewInstantQuery(t.Context(), load1m(t, series), nil, expression, time.UnixMilli(0).Add(2*time.Hour))
			if err != nil {
				t.Fatalf("%s: %v", c.panel, err)
			}
			result, err := query.Exec(t.Context()).Vector()
			if err != nil || len(result) != 1 || result[0].F != c.want {
				t.Errorf("%s of cluster %q is %v (%v), want %v", c.panel, c.cluster, result, err, c.want)
			}
			query.Close()
		}
		if found != 1 {
			t.Errorf("%s has %d panels %q, want 1", c.file, found, c.panel)
		}
	}
}
