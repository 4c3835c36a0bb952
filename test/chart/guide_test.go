package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/test/rendering"
)

// block is a code block of a page, and the mark above it that names the test that runs it.
type block struct{ page, who, language, text string }

var fenced = regexp.MustCompile("(?m)(?:^<!-- (.*?) -->\n)?^```(\\w+)\n((?s:.*?))^```$")

// guide returns the code blocks of README.md and docs/. test/docs checks that each has a mark.
func guide(t *testing.T) []block {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range fenced.FindAllStringSubmatch(string(text), -1) {
			blocks = append(blocks, block{page, match[1], match[2], match[3]})
		}
	}
	if len(blocks) < 40 {
		t.Fatalf("the pages have %d blocks; this test fails to read them", len(blocks))
	}
	return blocks
}

var helmCommand = regexp.MustCompile(`(?m)^helm (install|upgrade) `)

// TestInstallGuide runs the Helm commands of the pages like `helm template`. None may be skipped.
func TestInstallGuide(t *testing.T) {
	helm := 0
	for _, b := range guide(t) {
		if b.who != "run by: TestInstallGuide" {
			if b.language == "sh" && helmCommand.MatchString(b.text) {
				t.Errorf("%s: which test runs it? the mark is %q before\n%s", b.page, b.who, b.text)
			}
			continue
		}
		made := owners{}
		for command := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			command, _, _ := strings.Cut(command, " #")
			words := strings.Fields(command)
			made.add(t, strings.Join(words[:min(len(words), 3)], " "), runHelm(t, words))
			helm++
		}
	}
	if helm < 7 {
		t.Errorf("%d commands of Helm were run, want all of the guide's", helm)
	}
}

// runHelm renders the result of a `helm install` or `helm upgrade` of the guide. It fails on an unknown option.
func runHelm(t *testing.T, words []string) []*unstructured.Unstructured {
	t.Helper()
	command := strings.Join(words, " ")
	if len(words) < 4 || words[0] != "helm" || words[1] != "install" && words[1] != "upgrade" {
		t.Errorf("want helm install or upgrade: %s", command)
		return nil
	}
	o := order{release: words[2], namespace: "default", path: "../../" + words[3], with: values{}}
	if o.path == mainChart && words[1] == "upgrade" {
		o.with = values(minimal()) // the previous values are kept
	}
	for i := 4; i < len(words); i++ {
		switch words[i] {
		case "--namespace":
			i++
			o.namespace = words[i]
		case "--create-namespace", "--reset-then-reuse-values":
		case "--set":
			i++
			// A shell would remove the quotation marks.
			if err := strvals.ParseInto(strings.ReplaceAll(words[i], `"`, ""), o.with); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		default:
			t.Errorf("%s: this test does not know %s", command, words[i])
		}
	}
	r, err := o.template(t)
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	if strings.Contains(r.notes, "About the values") {
		t.Errorf("%s: %s", command, r.notes)
	}
	return r.objects
}

// owners maps objects, by kind, namespace and name, to their release. Helm does not install an object that another
// release owns.
type owners map[string]string

// add assigns objects to a release, and reports those that another release owns.
func (o owners) add(t *testing.T, release string, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		id := object.GroupVersionKind().GroupKind().String() + " " + client.ObjectKeyFromObject(object).String()
		if other, taken := o[id]; taken {
			t.Errorf("%s belongs to %s and to %s", id, other, release)
		}
		o[id] = release
	}
}

// TestChartsShareNothing checks that the two charts have no common objects, under the names of the guide and with
// equal release names, with all optional features, and beside a previously released chart, since the definitions are
// upgraded first.
func TestChartsShareNothing(t *testing.T) {
	for _, release := range []string{"karpenter-crd", releaseName, "a"} {
		for _, path := range append(released(t), mainChart) {
			for _, with := range []values{onAWS(), installed()} {
				for _, main := range []string{releaseName, release} {
					made := owners{}
					made.add(t, definitionChart, order{release, namespace, definitionChart, values{}}.render(t).objects)
					made.add(t, path+" as "+main, order{main, namespace, path, with}.render(t).objects)
				}
			}
		}
	}
}

// followGuide makes the API server validate the objects of the pages as strictly as possible, by a dry run.
func (w *world) followGuide(t *testing.T) {
	n := 0
	for _, b := range guide(t) {
		if b.language != "yaml" {
			continue
		}
		for _, object := range objectsOf(t, b) {
			n++
			if err := w.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s: the %s %s: %v", b.page, object.GetKind(), object.GetName(), err)
			}
		}
	}
	if n < 8 {
		t.Errorf("the pages have %d objects, want classes, pools, workloads and parts of them", n)
	}
}

// objectsOf returns the objects of a block, or the object that the block is a part of.
func objectsOf(t *testing.T, b block) []*unstructured.Unstructured {
	t.Helper()
	if b.who == "run by: TestOnSandbox" {
		objects, err := rendering.Parse(b.text)
		if err != nil {
			t.Fatalf("%s: %v", b.page, err)
		}
		for _, object := range objects {
			if object.GetNamespace() == "" && object.GetKind() == "Deployment" {
				object.SetNamespace("default")
			}
		}
		return objects
	}
	where, is := strings.CutPrefix(b.who, "part of: ")
	if !is {
		return nil
	}
	kind, path, _ := strings.Cut(where, " ")
	whole, is := wholes[kind]
	if !is {
		t.Fatalf("%s: this test has no minimal object for a %s", b.page, kind)
	}
	var part map[string]any
	if err := yaml.UnmarshalStrict([]byte(b.text), &part); err != nil {
		t.Fatalf("%s: %v\n%s", b.page, err, b.text)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(whole), &object.Object); err != nil {
		t.Fatal(err)
	}
	for key, value := range part {
		if err := unstructured.SetNestedField(object.Object, value, append(strings.Split(path, "."), key)...); err != nil {
			t.Fatalf("%s: %s.%s: %v", b.page, path, key, err)
		}
	}
	return []*unstructured.Unstructured{object}
}

// wholes are the smallest objects of the kinds of which pages contain parts.
var wholes = map[string]string{
	"NodePool": `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: part}, spec: {disruption: {consolidateAfter: 0s}, template: {spec: {
		nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default},
		requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]}}}}`,
	"EC2NodeClass": `{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: part}, spec: {role: node,
		amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}}`,
	"Pod": `{apiVersion: v1, kind: Pod, metadata: {name: part, namespace: default}, spec: {containers: [{name: a, image: a}]}}`,
}

// TestGitOps renders the chart with the Argo CD and Flux objects in the pages.
func TestGitOps(t *testing.T) {
	seen := map[string]int{}
	for _, b := range guide(t) {
		if b.who != "run by: TestGitOps" {
			continue
		}
		objects, err := rendering.Parse(b.text)
		if err != nil {
			t.Fatalf("%s: %v", b.page, err)
		}
		for _, object := range objects {
			var path string
			var with map[string]any
			switch seen[object.GetKind()]++; object.GetKind() {
			case "Application":
				path, _, _ = unstructured.NestedString(object.Object, "spec", "source", "path")
				with, _, _ = unstructured.NestedMap(object.Object, "spec", "source", "helm", "valuesObject")
			case "HelmRelease":
				path, _, _ = unstructured.NestedString(object.Object, "spec", "chart", "spec", "chart")
				with, _, _ = unstructured.NestedMap(object.Object, "spec", "values")
			default:
				continue
			}
			// This is a chart whose required values are not set.
			r, err := template(t, "../../"+strings.TrimPrefix(path, "./"), with)
			if err != nil || strings.Contains(r.notes, "About the values") {
				t.Errorf("%s: the %s %s: %v\n%s", b.page, object.GetKind(), object.GetName(), err, r.notes)
			}
		}
	}
	if seen["Application"] != 2 || seen["HelmRelease"] != 2 {
		t.Errorf("the pages show %v, want both charts with Argo CD and with Flux", seen)
	}
}
