package migrate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/karpenter-go/karpenter/internal/legacy/settings"
)

// TestValuesAgreeWithTheChart compares the tables with those of the chart, which itself reads older values.
func TestValuesAgreeWithTheChart(t *testing.T) {
	template, err := os.ReadFile("../../../charts/karpenter/templates/_read.tpl")
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(template), `{{- define "karpenter.find" -}}`)
	if !found {
		t.Fatal("the chart's template has another form")
	}
	tables := strings.Split(head, "{{- range $row := list")
	if len(tables) != 4 {
		t.Fatalf("the chart has %d tables, want 3", len(tables)-1)
	}
	row := regexp.MustCompile(`\(list "([^"]+)" (.+)\)`)
	rows := func(table string) [][]string {
		var all [][]string
		for _, found := range row.FindAllStringSubmatch(strings.SplitN(table, "}}", 2)[0], -1) {
			all = append(all, found[1:])
		}
		return all
	}
	defaults := strings.NewReplacer(`(list "stdout")`, "[stdout]", `(list "stderr")`, "[stderr]", `2.0`, "2", `"0"`,
		`"0"`, `""`, `""`, `"`, "")
	var renamed, gone, moved [][]string
	for _, r := range renamedValues {
		renamed = append(renamed, []string{r.old, r.today, r.otherwise})
	}
	for _, r := range goneValues {
		gone = append(gone, []string{r.old, r.why})
	}
	for _, r := range movedValues {
		moved = append(moved, []string{r.old, r.why})
	}
	var theirs [][]string
	for _, r := range rows(tables[1]) {
		today, otherwise, _ := strings.Cut(strings.TrimPrefix(r[1], `"`), `" `)
		theirs = append(theirs, []string{r[0], today, defaults.Replace(otherwise)})
	}
	unquote := func(text string) string {
		return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(strings.TrimSuffix(text[strings.Index(text, `"`)+1:], `"`))
	}
	var dead, elsewhere [][]string
	for _, r := range rows(tables[2]) {
		dead = append(dead, []string{r[0], unquote(r[1])})
	}
	for _, r := range rows(tables[3]) {
		_, why, _ := strings.Cut(r[1], " ")
		elsewhere = append(elsewhere, []string{r[0], unquote(why)})
	}
	for name, pair := range map[string][2][][]string{"renamed": {theirs, renamed}, "without effect": {dead, gone},
		"elsewhere": {elsewhere, moved}} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-chart +here):\n%s", name, diff)
		}
	}
}

// TestOldValues migrates values of charts of several years.
func TestOldValues(t *testing.T) {
	paths, err := filepath.Glob("../../../test/chart/testdata/old/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d files of old values: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			result := Run([]File{{Name: filepath.Base(path), Text: text}}, Options{})
			golden(t, "values-"+filepath.Base(path), string(result.Manifests))
			again := Run([]File{{Name: "again", Text: result.Manifests}}, Options{})
			if again.Changed {
				t.Errorf("migrated again they change:\n%s", again.Report.Text())
			}
		})
	}
}

func TestNewNameWins(t *testing.T) {
	for _, test := range []struct{ name, values, want string }{
		{"the old name alone", "controller: {batchMaxDuration: 20s}\n", "settings:\n  batchMaxDuration: 20s\n"},
		{"beside the new name's default", "controller: {logLevel: debug}\nlogLevel: info\nsettings:\n  clusterName: a\n",
			"logLevel: debug\nsettings:\n  clusterName: a\n"},
		{"beside another value", "clusterName: a\nsettings:\n  clusterName: b\n", "settings:\n  clusterName: b\n"},
		{"the older of two", "settings:\n  aws:\n    clusterName: a\nclusterName: b\n", "settings:\n  clusterName: a\n"},
		{"empty", "clusterName: \"\"\nclusterEndpoint: \"\"\nreplicas: 1\n", "replicas: 1\n"},
		{"false counts", "settings:\n  aws:\n    isolatedVPC: false\n", "settings:\n  isolatedVPC: false\n"},
	} {
		got := string(Run([]File{{Name: "values.yaml", Text: []byte(test.values)}}, Options{}).Manifests)
		if got != test.want {
			t.Errorf("%s: got\n%s, want\n%s", test.name, got, test.want)
		}
	}
}

// TestValuesOfOthers verifies that values of other charts are passed through unchanged and unused.
func TestValuesOfOthers(t *testing.T) {
	for name, values := range map[string]string{
		"cert-manager":             "replicaCount: 2\nwebhook:\n  replicaCount: 3\n  timeoutSeconds: 30\n",
		"ingress-nginx":            "controller:\n  replicas: 3\n  image:\n    repository: registry.example.com/nginx\n",
		"a load balancer's":        "clusterName: other\nserviceAccount:\n  create: false\nreplicas: 2\n",
		"a chart with settings":    "settings:\n  tags: {a: b}\n  aws:\n    region: eu-west-1\n",
		"a chart with aws":         "aws:\n  region: eu-west-1\nlogEncoding: json\n",
		"a chart with a log level": "controller:\n  logLevel: debug\nserviceMonitor:\n  enabled: true\n",
	} {
		t.Run(name, func(t *testing.T) {
			node := "---\napiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: {provider: {instanceProfile: p}}\n"
			result := Run([]File{{Name: "in", Text: []byte(values + node)}}, Options{})
			if !strings.HasPrefix(string(result.Manifests), values+"---\n") {
				t.Errorf("printed\n%s, want\n%s first", result.Manifests, values)
			}
			if strings.Contains(string(result.Manifests), "kubernetes.io/cluster/other") {
				t.Errorf("the cluster's name is taken from other values:\n%s", result.Manifests)
			}
		})
	}
}

// TestValuesAgreeWithTheController verifies that the controller's interpretation of the ConfigMap, and the result of
// its migration, are the same settings.
func TestValuesAgreeWithTheController(t *testing.T) {
	data := map[string]string{"batchMaxDuration": "20s", "batchIdleDuration": "2s", "aws.clusterName": "prod",
		"aws.clusterEndpoint": "https://a.example.com",
		"aws.clusterCABundle": "YQ==", "aws.isolatedVPC": "true", "aws.vmMemoryOverheadPercent": "0.1",
		"aws.interruptionQueueName": "q", "aws.reservedENIs": "2",
		"featureGates.driftEnabled": "true", "aws.tags": `{"a":"b"}`, "aws.tags.c": "d", "aws.enableENILimitedPodDensity": "false",
		"aws.defaultInstanceProfile": "p"}
	old := settings.FromConfigMap(data)
	if len(old.Mistakes) > 0 {
		t.Fatal(old.Mistakes)
	}
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings}\ndata:\n")
	for key, value := range data {
		text.WriteString("  " + key + ": '" + value + "'\n")
	}
	d := document{text: text.String()}
	if err := d.parse(); err != nil {
		t.Fatal(err)
	}
	values := &document{root: valuesOf(at(d.root, "data"))}
	found := (&repair{document: values, Entry: &Entry{}}).values()
	got := map[string]string{}
	for _, name := range fields(at(values.root, "settings")) {
		got[strings.ToLower(name)] = value(at(values.root, "settings", name))
	}
	want := map[string]string{}
	for _, setting := range old.Settings {
		want[strings.ReplaceAll(setting.Flag, "-", "")] = setting.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-controller +here):\n%s", diff)
	}
	wanted := known{clusterName: want["clustername"], clusterEndpoint: "https://a.example.com",
		defaultInstanceProfile: want["defaultinstanceprofile"], tags: old.Cluster.Tags, allPods: old.Cluster.ManyPods, drift: old.Cluster.Drift}
	if diff := cmp.Diff(wanted, found, cmp.AllowUnexported(known{})); diff != "" {
		t.Errorf("what older objects depend on (-controller +here):\n%s", diff)
	}
}

func value(node *yaml.Node) string { return node.Value }

// TestSettingsWithMistakes verifies that every value of the ConfigMap that cannot be parsed, and every unknown name,
// is reported, and that none of them is among the values.
func TestSettingsWithMistakes(t *testing.T) {
	in := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings, namespace: karpenter}\ndata:\n  aws.clusterName: prod\n  aws.reservedENIs: \"-1\"\n" +
		"  batchMaxDuration: tenseconds\n  batchIdleDuration: 2s\n  featureGates.driftEnabled: maybe\n  aws.tags: \"{not json\"\n  nonsense: \"5\"\n  aws.enablePodENI: \"1\"\n"
	result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{})
	if want := "settings:\n  batchIdleDuration: 2s\n  clusterName: prod\n"; string(result.Values) != want {
		t.Errorf("the values are\n%s, want\n%s", result.Values, want)
	}
	var got []string
	for _, note := range result.Report[0].Notes {
		if note.Outcome == Impossible {
			got = append(got, note.Field)
		}
	}
	want := []string{"data[aws.enablePodENI]", "data[aws.reservedENIs]", "data[aws.tags]", "data[batchMaxDuration]",
		"data[featureGates.driftEnabled]", "data[nonsense]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("impossible (-want +got):\n%s\n%s", diff, result.Report.Text())
	}
}
