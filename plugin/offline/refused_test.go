package offline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRefusedWorkloads checks that what the API server refuses is set aside and named by object and field, in its words,
// that it warns of what it accepts, and that stored pods are not checked again.
func TestRefusedWorkloads(t *testing.T) {
	deployment := func(name, spec, template, container string) string {
		return fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: app}\nspec: {%stemplate: {metadata: "+
			"{labels: {app: web}}, spec: {%scontainers: [{name: c, image: i%s}]}}}\n",
			name, spec, template, container)
	}
	const selector = "selector: {matchLabels: {app: web}}, "
	const excess = ", resources: {requests: {cpu: 2}, limits: {cpu: 1}}"
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	o.readPath("-", strings.NewReader(deployment("excess", selector, "", excess)+
		deployment("unlike", "selector: {matchLabels: {app: website}}, ", "", "")+
		deployment("skew", selector, "topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule, "+
			"labelSelector: {}}], ", "")+
		deployment("half", selector, "", ", resources: {requests: {memory: 512m}}")+
		"---\napiVersion: v1\nkind: Pod\nmetadata: {name: stored, namespace: app, resourceVersion: \"7\"}\nspec: {containers: [{name: c, "+
		"image: i"+excess+"}]}\n"))
	(&completion{o}).finish()
	var problems []string
	for _, p := range o.Problems {
		problems = append(problems, p.Error())
	}
	want := []string{
		`standard input: document 1: Deployment app/excess: spec.template.spec.containers[0].resources.requests: Invalid value: "2": must ` +
			`be less than or equal to cpu limit of 1`,
		"standard input: document 2: Deployment app/unlike: spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` " +
			"does not match template `labels`",
		"standard input: document 3: Deployment app/skew: spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must " +
			"be greater than zero",
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	var pods []string
	for _, p := range o.pods {
		pods = append(pods, key(p.object))
	}
	slices.Sort(pods)
	if diff := cmp.Diff([]string{"app/half-0", "app/stored"}, pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	const warning = `Deployment app/half: spec.template.spec.containers[0].resources.requests[memory]: fractional byte value "512m" is ` +
		`invalid, must be an integer`
	if notes := o.Notes(); !slices.Contains(notes, warning) {
		t.Errorf("notes %q, want %q", notes, warning)
	}
}
