package migrate

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestKnownValues verifies that the names here are those of the chart's template, apart from older names, which are
// renamed before the check.
func TestKnownValues(t *testing.T) {
	template, err := os.ReadFile("../../../charts/karpenter/templates/_unknown.tpl")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(template), `{{- define "karpenter.known" -}}`)
	text, _, ends := strings.Cut(text, "{{- end }}")
	want := map[string][]string{}
	if err := yaml.Unmarshal([]byte(text), &want); err != nil || !found || !ends {
		t.Fatal("the chart's template has another form", err)
	}
	want[""] = want["values"]
	delete(want, "values")
	delete(want, "settings.aws")
	older := map[string]bool{"settings.aws": true, "aws": true, "logConfig": true}
	for _, row := range renamedValues {
		older[row.old] = true
	}
	for _, row := range slices.Concat(goneValues, movedValues) {
		older[row.old] = true
	}
	for path, names := range want {
		want[path] = slices.DeleteFunc(names, func(name string) bool { return older[strings.TrimPrefix(path+"."+name, ".")] })
		slices.Sort(want[path])
	}
	schema, err := readValueSchema()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, valueNames(schema, "")); diff != "" {
		t.Errorf("known names (-chart +here):\n%s", diff)
	}
}

// TestForeignImages verifies that images of other programs are recognized as the chart does.
func TestForeignImages(t *testing.T) {
	template, err := os.ReadFile("../../../charts/karpenter/templates/_read.tpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []*regexp.Regexp{foreignImage, copiedImage} {
		if quoted := strconv.Quote(image.String()); !strings.Contains(string(template), "regexMatch "+quoted) {
			t.Errorf("the chart does not compare images with %s", quoted)
		}
	}
}

// noted returns the notes of a report, each as outcome, field and text.
func noted(r Report) []string {
	var all []string
	for _, e := range r {
		for _, n := range e.Notes {
			all = append(all, string(n.Outcome)+" "+n.Field+": "+n.Text)
		}
	}
	return all
}

// checkNotes migrates a text, and compares the beginnings of its notes.
func checkNotes(t *testing.T, files []File, want []string) Result {
	t.Helper()
	result := Run(files, Options{Check: judge(t)})
	got := noted(result.Report)
	if len(got) != len(want) {
		t.Errorf("notes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		return result
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("note %q, want %q", got[i], want[i])
		}
	}
	return result
}

// TestWrongValues verifies that names that the chart does not know and values that it refuses are reported.
func TestWrongValues(t *testing.T) {
	const named = "settings:\n  clusterName: a\n"
	for name, c := range map[string]struct {
		values string
		want   []string
	}{
		"right": {named + "  featureGates: {staticCapacity: true}\nreplicas: 1\naffinity: {podAffinity: {}, other: 1}\ninitContainers: {}\n" +
			"global: {a: b}\n", nil},
		"the queue": {"settings: {interruptionQueueName: q}\n",
			[]string{"changed settings.interruptionQueueName: is renamed to settings.interruptionQueue"}},
		"a misspelled setting alone": {"settings: {clustername: a}\n",
			[]string{"impossible settings.clustername: is not a value of the chart; did you mean settings.clusterName?"}},
		"a misspelled gate": {named + "  featureGates: {spotToSpotConsolidaton: true}\n",
			[]string{"impossible settings.featureGates.spotToSpotConsolidaton: is not a value of the chart; did you mean " +
				"settings.featureGates.spotToSpotConsolidation?"}},
		"below another value": {named + "serviceMonitor: {enable: true}\n",
			[]string{"impossible serviceMonitor.enable: is not a value of the chart; did you mean serviceMonitor.enabled?"}},
		"in another place": {named + "interruptionQueue: q\n", []string{"impossible interruptionQueue: is not a value of the chart; did " +
			"you mean settings.interruptionQueue?"}},
		"not recognized": {"serviceMonitor: {enable: true}\n", []string{"advice : is no Kubernetes object, and has no value that only " +
			"charts of Karpenter have"}},
		"unknown": {named + "extra: {a: 1}\n", []string{"advice extra: is not a value of the chart, and has no effect"}},
		"a placeholder": {"settings:\n  clusterName: ${NAME}\n  batchMaxDuration: ${TIME}\n", []string{
			`advice settings.clusterName: is "${NAME}", and ${NAME} looks like a placeholder`, "advice settings.batchMaxDuration: is "}},
		"a type": {named + "  batchMaxDuration: 10\n",
			[]string{"impossible settings.batchMaxDuration: got number, want null or string; the chart refuses it"}},
		"a pattern": {named + "  batchMaxDuration: soon\n",
			[]string{`impossible settings.batchMaxDuration: 'soon' does not match pattern `}},
		"a choice": {named + "logLevel: loud\n", []string{`impossible logLevel: value must be one of `}},
		"a range":  {named + "conversion: {port: 70000}\n", []string{"impossible conversion.port: maximum: got 70,000, want 65,535"}},
		"a member": {named + "controller: {env: [{value: a}]}\n", []string{"impossible controller.env[0]: missing property 'name'"}},
		"a label":  {named + "podLabels: {a: 1}\n", []string{"impossible podLabels.a: got number, want null or string"}},
		"containers as object": {named + "initContainers: {a: b}\n",
			[]string{"impossible initContainers: maxProperties: got 1, want 0"}},
		"not supported yet": {named + "  featureGates: {capacityBuffer: true}\n  ignoreDRARequests: false\n  enableZonalShift: true\n", []string{
			"impossible settings.ignoreDRARequests: is false"}},
		"an image without a repository": {named + "controller: {image: {tag: 1.8.1, digest: 'sha256:8ef2'}}\n",
			[]string{"changed controller.image: is the image of another program; omitted"}},
		"a tag of this chart": {named + "controller: {image: {tag: dev}}\n", nil},
		"a digest alone": {named + "controller: {image: {digest: 'sha256:8ef2'}}\n",
			[]string{"advice controller.image.digest: is that of an image of this chart's default repository"}},
		"of a chart that depends on the chart": {"karpenter:\n  settings:\n    aws: {clusterName: a}\n    clustrEndpoint: b\ningress: {replica: 1}\n",
			[]string{"changed karpenter.settings.aws.clusterName: is renamed to settings.clusterName",
				"impossible karpenter.settings.clustrEndpoint: is not a value of the chart"}},
		"below the name, of another chart": {"karpenter: {enabled: true}\n", []string{"advice : is no Kubernetes object"}},
		"an image of a mirror": {"controller: {image: {repository: r.example.com/karpenter/controller}}\n",
			[]string{`impossible controller.image.repository: is "r.example.com/karpenter/controller", a copy of another program's image`}},
	} {
		t.Run(name, func(t *testing.T) { checkNotes(t, []File{{Name: "values.yaml", Text: []byte(c.values)}}, c.want) })
	}
}
