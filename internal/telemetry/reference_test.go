package telemetry_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller/census"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

var update = flag.Bool("update", false, "write docs/reference again")

// compare compares a page of the reference with the code, or writes it.
func compare(t *testing.T, page, want string) {
	t.Helper()
	path := filepath.Join("../../docs/reference", page)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s does not match the code (make reference), -code +page:\n%s", path, diff)
	}
}

const metricsHead = `# Metrics

Generated from ` + "`internal/telemetry`" + ` (` + "`make reference`" + `; a test compares): what is here is registered, and nothing else of
ours. controller-runtime's and Go's own metrics are there too. Durations are in seconds, money in USD per hour, resources
in cores, bytes or units. What is ours and not Karpenter's is in [compatibility.md](../compatibility.md).

`

const metricsDetail = `
## With more detail

Only with ` + "`--metrics-detail`" + ` (` + "`METRICS_DETAIL=true`" + `): their number grows with pods, nodes and resources, claims and conditions,
or offerings. The series of an object end with it. Then ` + "`pods_state`" + ` has a series for each pod too; without it, pods
with the same labels are counted, so that a sum over any of them is the same, except by ` + "`name`, `owner` and `node`" + `.
` + "`nodes_*`" + ` above and here have a label more for each well-known label that the provider declares: what follows the slash,
with ` + "`_`" + ` for ` + "`-`" + `. Metrics of claims and nodes (` + "`operator_nodeclaim_*`, `operator_node_*`" + `) carry the labels of
their class and pool too; the label of the class is that of the provider's kind: ` + "`karpenter_k8s_aws_ec2nodeclass`" + ` here,
` + "`karpenter_kwok_sh_kwoknodeclass`" + ` with kwok.

`

// kinds returns the kinds of an installation on AWS, and the node class of kwok.
func kinds() []telemetry.Kind {
	known := census.Kinds(map[string]string{"ec2nodeclass": karpv1.NodeClassLabel("karpenter.k8s.aws", "EC2NodeClass")},
		"capacitybuffer", "nodeoverlay")
	return append(known, telemetry.Kind{Name: "kwoknodeclass", Bounded: true})
}

// TestReferenceOfKinds verifies that the reference lists the labels of a scrape, and marks the kinds that have series
// without detail.
func TestReferenceOfKinds(t *testing.T) {
	extra := []string{"karpenter_k8s_aws_ec2nodeclass", "karpenter_sh_nodepool"}
	want := map[string]telemetry.Metric{
		"operator_nodeclaim_termination_current_time_seconds": {Labels: slices.Concat([]string{"namespace", "name"}, extra), Detail: true},
		"operator_node_termination_current_time_seconds": {Labels: slices.Concat([]string{"namespace", "name"},
			extra, []string{"karpenter_sh_initialized"}), Detail: true},
		"operator_nodepool_termination_current_time_seconds":     {Labels: []string{"namespace", "name"}},
		"operator_ec2nodeclass_termination_current_time_seconds": {Labels: []string{"namespace", "name"}},
	}
	got := map[string]telemetry.Metric{}
	for _, m := range telemetry.Reference(kinds()) {
		if _, asked := want[m.Name]; asked {
			got[m.Name] = telemetry.Metric{Labels: m.Labels, Detail: m.Detail}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReferenceOfMetrics(t *testing.T) {
	var b strings.Builder
	b.WriteString(metricsHead)
	table := func(detail bool) {
		b.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
		for _, m := range telemetry.Reference(kinds()) {
			if m.Detail == detail {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, typeOf(m), strings.Join(m.Labels, ", "), m.Help)
			}
		}
	}
	table(false)
	b.WriteString(metricsDetail)
	table(true)
	compare(t, "metrics.md", b.String())
}

// typeOf returns the type of a metric, with the bounds of its buckets.
func typeOf(m telemetry.Metric) string {
	if len(m.Buckets) == 0 {
		return m.Type
	}
	return fmt.Sprintf("%s, %d buckets from %.4g to %.4g", m.Type, len(m.Buckets), m.Buckets[0], m.Buckets[len(m.Buckets)-1])
}

// descriptions records the descriptions in a registry.
type descriptions struct {
	prometheus.Registerer
	names []string
}

func (d *descriptions) MustRegister(list ...prometheus.Collector) {
	for _, c := range list {
		to := make(chan *prometheus.Desc, 100)
		c.Describe(to)
		close(to)
		for desc := range to {
			_, name, _ := strings.Cut(desc.String(), `fqName: "`)
			name, _, _ = strings.Cut(name, `"`)
			d.names = append(d.names, name)
		}
	}
}

// described is a collector that only describes.
type described struct{ *telemetry.Objects }

func (described) Collect(chan<- prometheus.Metric) {}

// TestReferenceIsComplete verifies that the reference lists exactly the registered metrics.
func TestReferenceIsComplete(t *testing.T) {
	var d descriptions
	telemetry.New(&d)
	telemetry.NewAWS(&d)
	d.MustRegister(described{telemetry.NewObjects(&d, telemetry.ObjectOptions{})})
	var listed []string
	for _, m := range telemetry.Reference(kinds()) {
		if !strings.HasPrefix(m.Name, "operator_") { // of each kind, and there are no kinds here
			listed = append(listed, m.Name)
		}
	}
	slices.Sort(d.names)
	if diff := gocmp.Diff(d.names, listed); diff != "" || len(listed) < 50 {
		t.Errorf("-registered +reference:\n%s", diff)
	}
}

const eventsHead = `# Events

Generated from ` + "`internal/telemetry`" + ` (` + "`make reference`" + `; a test compares). The reporting component is ` + "`karpenter`" + `. Which of them
are worth an alarm, and what is limited to how many, is in [operations.md](../operations.md#events).

| reason | type | on | |
|---|---|---|---|
`

// constructor is a function that creates an event.
type constructor struct{ reason, kind, on, says string }

func TestReferenceOfEvents(t *testing.T) {
	var b strings.Builder
	b.WriteString(eventsHead)
	list := constructors(t)
	if len(list) < 25 {
		t.Fatalf("%d constructors of events", len(list))
	}
	for _, c := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.reason, c.kind, c.on, c.says)
	}
	compare(t, "events.md", b.String())
}

// constructors parses the functions of the package that create events.
func constructors(t *testing.T) []constructor {
	t.Helper()
	reasons, functions := map[string]string{}, []*ast.FuncDecl{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && strings.HasPrefix(v.Names[0].Name, "Reason") {
				reasons[v.Names[0].Name] = text(v.Values[0])
			}
			if f, ok := n.(*ast.FuncDecl); ok && f.Name.IsExported() && makesEvent(f) {
				functions = append(functions, f)
			}
			return true
		})
	}
	var list []constructor
	for _, f := range functions {
		c := constructor{on: objectOf(f), says: sentence(f)}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && c.reason == "" {
				switch name, _ := call.Fun.(*ast.Ident); {
				case name != nil && name.Name == "event":
					c.reason, c.kind = reasons[text(call.Args[2])], map[string]string{"warning": "Warning", "normal": "Normal"}[text(call.Args[1])]
				case name != nil && name.Name == "FailedDraining":
					c.reason, c.kind = "FailedDraining", "Warning"
				}
			}
			return true
		})
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b constructor) int {
		return cmp.Or(strings.Compare(a.reason, b.reason), strings.Compare(a.says, b.says))
	})
	return list
}

func makesEvent(f *ast.FuncDecl) bool {
	results := f.Type.Results
	return f.Recv == nil && results != nil && len(results.List) == 1 && text(results.List[0].Type) == "Event"
}

// text returns a name or the value of a string literal.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return text(e.X)
	case *ast.BasicLit:
		value, _ := strconv.Unquote(e.Value)
		return value
	}
	return ""
}

// objectOf returns the object of the event: the type of the first parameter, or a pool by its name.
func objectOf(f *ast.FuncDecl) string {
	if f.Type.Params.List[0].Names[0].Name == "pool" {
		return "NodePool"
	}
	if on := text(f.Type.Params.List[0].Type); on != "Object" {
		return on
	}
	return "Node, NodeClaim"
}

// sentence returns the comment without the function's name.
func sentence(f *ast.FuncDecl) string {
	says := strings.Join(strings.Fields(strings.TrimPrefix(f.Doc.Text(), f.Name.Name+" ")), " ")
	return strings.ToUpper(says[:1]) + says[1:]
}
