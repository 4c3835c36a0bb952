package chart

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/test/rendering"
)

// update rewrites files that are derived from other files of the repository.
var update = flag.Bool("update", false, "rewrite the copies of the resource definitions")

const (
	mainChart       = "../../charts/karpenter"
	definitionChart = "../../charts/karpenter-crd"
	releaseName     = "karpenter"
	namespace       = "karpenter"
)

// values are Helm values.
type values = map[string]any

func load(t testing.TB, path string) helmchart.Charter {
	t.Helper()
	loaded, err := loader.Load(path)
	if err != nil {
		t.Fatalf("reading the chart %s: %v", path, err)
	}
	return loaded
}

// rendered is the output of `helm template` for a chart.
type rendered struct {
	objects []*unstructured.Unstructured
	notes   string
}

// template renders a chart with the names releaseName and namespace.
func template(t testing.TB, path string, with values) (rendered, error) {
	t.Helper()
	return order{releaseName, namespace, path, with}.template(t)
}

// order is the input of a Helm installation.
type order struct {
	release, namespace, path string
	with                     values
}

// template renders a chart as `helm template` does, for a cluster that has the Prometheus operator.
func (o order) template(t testing.TB) (rendered, error) {
	t.Helper()
	objects, notes, err := rendering.Order{Release: o.release, Namespace: o.namespace, Chart: o.path, Values: o.with}.Render()
	return rendered{objects: objects, notes: notes}, err
}

// render is template that fails the test on an error.
func render(t testing.TB, path string, with values) rendered {
	t.Helper()
	return order{releaseName, namespace, path, with}.render(t)
}

// render is template that fails the test on an error.
func (o order) render(t testing.TB) rendered {
	t.Helper()
	r, err := o.template(t)
	if err != nil {
		t.Fatalf("rendering %s with %v: %v", o.path, o.with, err)
	}
	return r
}

// of returns the object of a kind, and of a name if one is given; nil if there is none.
func (r rendered) of(kind string, name ...string) *unstructured.Unstructured {
	for _, object := range r.objects {
		if object.GetKind() == kind && (len(name) == 0 || object.GetName() == name[0]) {
			return object
		}
	}
	return nil
}

// decode returns a rendered object as its type.
func decode[T any](t testing.TB, r rendered, kind string, name ...string) *T {
	t.Helper()
	object := r.of(kind, name...)
	if object == nil {
		t.Fatalf("the chart renders no %s %v", kind, name)
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Fatalf("reading the %s %s: %v", kind, object.GetName(), err)
	}
	return typed
}

// read returns a YAML file of testdata as values.
func read(t testing.TB, name string) values {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	v := values{}
	if err := yaml.UnmarshalStrict(text, &v); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return v
}

// file returns the text of a file.
func file(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// set sets a value at a dotted path.
func (s setter) set(path string, value any) setter {
	at := values(s)
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		below, ok := at[key].(values)
		if !ok {
			below = values{}
			at[key] = below
		}
		at = below
	}
	at[keys[len(keys)-1]] = value
	return s
}

// setter builds values path by path.
type setter values

// minimal returns the minimal values with which the chart installs.
func minimal() setter { return setter{}.set("settings.clusterName", "test") }
