package chart

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const rulesFile = mainChart + "/rules/karpenter.yaml"

// rules returns the alerts of the chart, parsed as promtool check rules parses them.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatalf("%s: %v", rulesFile, errs)
	}
	all := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if _, twice := all[rule.Alert]; twice || rule.Alert == "" {
				t.Errorf("the alert %q has no name or is a duplicate", rule.Alert)
			}
			all[rule.Alert] = rule
		}
	}
	return all
}

// TestRules checks that every alert uses known metrics and has a severity, descriptions and a runbook.
func TestRules(t *testing.T) {
	known := metrics(t)
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	all := rules(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rule := all[name]
		known.check(t, name, rule.Expr)
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s has the severity %q, want critical, warning or info", name, rule.Labels["severity"])
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", name)
		}
		if !strings.Contains(string(manual), "\n### "+name+"\n") {
			t.Errorf("docs/operations.md has no section %s", name)
		}
		if _, shown := shows[name]; !shown {
			t.Errorf("no test shows when %s fires", name)
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^### (Karpenter\w+)$`).FindAllStringSubmatch(string(manual), -1) {
		if _, there := all[section[1]]; !there {
			t.Errorf("docs/operations.md has a section about the alert %s, which does not exist", section[1])
		}
	}
	shown := render(t, mainChart, values(minimal().set("prometheusRule.enabled", true))).of("PrometheusRule")
	text, err := json.Marshal(shown.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("the rendered PrometheusRule has no %s", name)
		}
	}
}

// TestRunbooks checks that each alert links to its section of the manual, on a page that the installation may set.
func TestRunbooks(t *testing.T) {
	const own = "https://wiki.example.org/karpenter"
	for _, c := range []struct{ set, want string }{
		{"https://github.com/karpenter-go/karpenter/blob/main/docs/operations.md", "https://github.com/karpenter-go/karpenter/blob/main/docs/operations.md#"}, {own, own + "#"}, {"", ""},
	} {
		shown := render(t, mainChart, values(minimal().set("prometheusRule.enabled", true).set("prometheusRule.runbookBaseURL", c.set))).of("PrometheusRule")
		text, err := json.Marshal(shown.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		var spec rulefmt.RuleGroups
		if err := json.Unmarshal(text, &spec); err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, group := range spec.Groups {
			for _, rule := range group.Rules {
				count++
				want := c.want
				if want != "" {
					want += strings.ToLower(rule.Alert)
				}
				if got := rule.Annotations["runbook_url"]; got != want {
					t.Errorf("%s has the runbook %q, want %q", rule.Alert, got, want)
				}
			}
		}
		if count != len(rules(t)) {
			t.Errorf("%d alerts are rendered, want %d", count, len(rules(t)))
		}
	}
	if set := render(t, mainChart, values(minimal().set("prometheusRule.enabled", true))).of("PrometheusRule"); !strings.Contains(fmt.Sprint(set.Object), "operations.md#karpenterdown") {
		t.Error("by default alerts link to no section of docs/operations.md")
	}
}

// shows are, for each alert, two hours of series with which it fires, and with which it does not.
var shows = map[string]struct{ bad, good string }{
	"KarpenterDown":            {`up 1x120`, `karpenter_build_info 1x120`},
	"KarpenterNoLeader":        {`leader_election_master_status{name="karpenter-leader-election",pod="a"} 0x120`, `leader_election_master_status{name="karpenter-leader-election",pod="a"} 1x120`},
	"KarpenterStateIncomplete": {`karpenter_cluster_state_synced{pod="a"} 0x120`, "karpenter_cluster_state_synced{pod=\"a\"} 0x120\n  karpenter_cluster_state_synced{pod=\"b\"} 1x120"},
	"KarpenterObjectsSetAside": {`karpenter_cluster_state_rejected_objects{kind="Node"} 2x120`, `karpenter_cluster_state_rejected_objects{kind="Node"} 0x120`},
	"KarpenterPodsUnschedulable": {`karpenter_scheduler_unschedulable_pods_count{controller="provisioner"} 3x120`,
		`karpenter_scheduler_unschedulable_pods_count{controller="provisioner"} 0x120`},
	"KarpenterSchedulingSlow": {"karpenter_scheduler_scheduling_duration_seconds_bucket{le=\"30\"} 0x120\n  karpenter_scheduler_scheduling_duration_seconds_bucket{le=\"60\"} 0+1x120\n  karpenter_scheduler_scheduling_duration_seconds_bucket{le=\"+Inf\"} 0+1x120",
		"karpenter_scheduler_scheduling_duration_seconds_bucket{le=\"1\"} 0+1x120\n  karpenter_scheduler_scheduling_duration_seconds_bucket{le=\"+Inf\"} 0+1x120"},
	"KarpenterNodesDoNotRegister": {`karpenter_nodeclaims_disrupted_total{reason="registration_timeout",nodepool="a"} 0+1x120`,
		`karpenter_nodeclaims_disrupted_total{reason="empty",nodepool="a"} 0+1x120`},
	"KarpenterCapacityShort": {`karpenter_nodeclaims_disrupted_total{reason="insufficient_capacity",nodepool="a"} 0+1x120`,
		`karpenter_nodeclaims_disrupted_total{reason="insufficient_capacity",nodepool="a"} 5x120`},
	"KarpenterNodePoolNearLimit": {"karpenter_nodepools_usage{nodepool=\"a\",resource_type=\"cpu\"} 95x120\n  karpenter_nodepools_limit{nodepool=\"a\",resource_type=\"cpu\"} 100x120",
		"karpenter_nodepools_usage{nodepool=\"a\",resource_type=\"cpu\"} 0x120\n  karpenter_nodepools_limit{nodepool=\"a\",resource_type=\"cpu\"} 0x120"},
	"KarpenterNodePoolNotReady": {`operator_nodepool_status_condition_count{name="a",type="Ready",status="False"} 1x120`,
		`operator_nodepool_status_condition_count{name="a",type="Ready",status="True"} 1x120`},
	"KarpenterCommandsFail": {`karpenter_voluntary_disruption_queue_failures_total{reason="drifted"} 0+1x120`, `karpenter_voluntary_disruption_queue_failures_total{reason="drifted"} 9x120`},
	"KarpenterPaused":       {`karpenter_nodepools_paused{nodepool="a",reason="Launch"} 1x120`, `karpenter_nodepools_paused{nodepool="a",reason="Launch"} 0x120`},
	// A node of the pool a is stuck while a node of the pool b evicts one pod an hour; then drains of ten minutes each.
	"KarpenterEvictionsBlocked": {"karpenter_nodepools_oldest_drain_seconds{nodepool=\"a\"} 0+60x120\n" +
		"  karpenter_nodepools_oldest_drain_seconds{nodepool=\"b\"} 300x120\n" +
		"  karpenter_pods_eviction_requests_total{code=\"429\"} 0+5x120\n  karpenter_pods_eviction_requests_total{code=\"200\"} 0x60 1x60",
		"karpenter_nodepools_oldest_drain_seconds{nodepool=\"a\"}" + strings.Repeat(" 0+60x10", 11)},
	"KarpenterDriftUnknown": {`karpenter_nodeclaims_unjudged{nodepool="a",cause="catalogue"} 1x120`, `karpenter_nodeclaims_unjudged{nodepool="a",cause="catalogue"} 0x120`},
	"KarpenterCloudErrors": {"karpenter_cloudprovider_errors_total{method=\"Create\",provider=\"aws\",error=\"\"} 0+1x120\n  karpenter_cloudprovider_duration_seconds_count{method=\"Create\",provider=\"aws\"} 0+2x120",
		"karpenter_cloudprovider_errors_total{method=\"Create\",provider=\"aws\",error=\"InsufficientCapacityError\"} 0+1x120\n  karpenter_cloudprovider_duration_seconds_count{method=\"Create\",provider=\"aws\"} 0+2x120"},
	"KarpenterInterruptionsLate": {"karpenter_interruption_message_queue_duration_seconds_bucket{le=\"60\"} 0x120\n  karpenter_interruption_message_queue_duration_seconds_bucket{le=\"300\"} 0+1x120\n  karpenter_interruption_message_queue_duration_seconds_bucket{le=\"+Inf\"} 0+1x120",
		"karpenter_interruption_message_queue_duration_seconds_bucket{le=\"1\"} 0+1x120\n  karpenter_interruption_message_queue_duration_seconds_bucket{le=\"+Inf\"} 0+1x120"},
	"KarpenterRemovalsPaused":   {`karpenter_nodeclaims_removals_paused{nodepool="a"} 7x120`, `karpenter_nodeclaims_removals_paused{nodepool="a"} 0x120`},
	"KarpenterMachinesDisputed": {`karpenter_nodeclaims_disputed{nodepool="a"} 2x120`, `karpenter_nodeclaims_disputed{nodepool="a"} 0x120`},
	"KarpenterMachinesLeaked":   {`karpenter_cloudprovider_leaked_machines_terminated_total{provider="aws"} 0+1x120`, `karpenter_cloudprovider_leaked_machines_terminated_total{provider="aws"} 3x120`},
}

// TestAlertsFire evaluates every alert with Prometheus's own engine, on bad and on good series.
func TestAlertsFire(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	for name, rule := range rules(t) {
		for is, text := range map[string]string{"bad": shows[name].bad, "good": shows[name].good} {
			for line := range strings.Lines(text) {
				series, _, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(strings.TrimSpace(line))
				if err != nil {
					t.Fatalf("reading the series %q: %v", line, err)
				}
				series.Range(func(l labels.Label) {
					if l.Name != model.MetricNameLabel {
						checkValues(t, name+", "+is+" series", series.Get(model.MetricNameLabel), labels.MustNewMatcher(labels.MatchEqual, l.Name, l.Value))
					}
				})
			}
			query, err := engine.NewInstantQuery(t.Context(), load1m(t, text), nil, rule.Expr, time.UnixMilli(0).Add(2*time.Hour))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			result, err := query.Exec(t.Context()).Vector()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if fires := len(result) > 0; fires != (is == "bad") {
				t.Errorf("%s on %s series: fires %t (%v)", name, is, fires, result)
			}
			query.Close()
		}
	}
}

// load1m parses series in the notation of promtool's tests, a sample a minute.
func load1m(t *testing.T, text string) storage.Queryable {
	t.Helper()
	all := map[string]storage.Series{}
	for line := range strings.Lines(text) {
		name, samples, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("reading the series %q: %v", line, err)
		}
		var each []chunks.Sample
		for i, s := range samples {
			each = append(each, sample{at: int64(i) * time.Minute.Milliseconds(), value: s.Value})
		}
		all[name.String()] = storage.NewListSeries(name, each)
	}
	choose := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &found{}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(all[key].Labels().Get(m.Name)) }) {
				found.series = append(found.series, all[key])
			}
		}
		return found
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: choose}}
}

// sample is a number at a time, in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// found are the series that match a query.
type found struct {
	series []storage.Series
	seen   int
}

func (f *found) Next() bool                        { f.seen++; return f.seen <= len(f.series) }
func (f *found) At() storage.Series                { return f.series[f.seen-1] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// names maps metrics to their labels.
type names map[string][]string

var reference = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (\\w+)[^|]*\\| ([a-z0-9_, ]*) ?\\|")

// metrics returns the metrics in docs/reference/metrics.md, which a test of internal/telemetry compares with the
// registered ones, and those that controller-runtime adds.
func metrics(t *testing.T) names {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := names{
		"leader_election_master_status": {"name"}, // client-go, leader election
		"up":                            {"job"},
	}
	for _, match := range reference.FindAllStringSubmatch(string(text), -1) {
		known[match[1]] = strings.FieldsFunc(match[3], func(r rune) bool { return r == ',' || r == ' ' })
	}
	if len(known) < 60 || !slices.Equal(known["karpenter_nodeclaims_terminated_total"], []string{"nodepool", "capacity_type", "zone"}) {
		t.Fatalf("%d metrics are documented; this test fails to read them", len(known))
	}
	return known
}

// check checks that an expression is valid, and that its metrics, labels and values of labels exist.
func (n names) check(t *testing.T, where, text string) {
	t.Helper()
	// Grafana replaces these variables.
	text = strings.NewReplacer("$__rate_interval", "5m", "$nodepool", ".*", "$cluster", ".*").Replace(text)
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			allowed, known := n.labels(node.Name)
			if !known {
				t.Errorf("%s queries %s, which is not registered", where, node.Name)
			}
			for _, m := range node.LabelMatchers {
				if known && m.Name != model.MetricNameLabel {
					if !slices.Contains(allowed, m.Name) {
						t.Errorf("%s uses the label %s of %s, which has %v", where, m.Name, node.Name, allowed)
					}
					checkValues(t, where, node.Name, m)
				}
			}
		case *parser.AggregateExpr:
			for _, selector := range parser.ExtractSelectors(node.Expr) {
				allowed, _ := n.labels(selectorName(selector))
				for _, label := range node.Grouping {
					if !slices.Contains(allowed, label) {
						t.Errorf("%s groups by %s, but %s has %v", where, label, selectorName(selector), allowed)
					}
				}
			}
		}
		return nil
	})
}

func selectorName(matchers []*labels.Matcher) string {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel {
			return m.Value
		}
	}
	return ""
}

// labels returns the labels of a series, also for the parts of a histogram.
func (n names) labels(series string) ([]string, bool) {
	if have, ok := n[series]; ok {
		return have, true
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if name, cut := strings.CutSuffix(series, suffix); cut {
			if have, ok := n[name]; ok {
				return append(slices.Clone(have), "le"), true
			}
		}
	}
	return nil, false
}
