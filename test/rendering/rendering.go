// Package rendering renders Helm charts like `helm template`, with Helm itself as a library. Tests check the result
// (package chart), or apply a part of it to a cluster (package e2e, whose controllers use the chart's service
// account).
//
//	folder of a chart + values ── Render ──> objects, notes
//
// It depends on no particular chart, and on no cluster: it renders for a cluster that has the Prometheus operator and
// the newest Kubernetes version under test.
package rendering

import (
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Order is the input of a rendering. Chart is a folder.
type Order struct {
	Release, Namespace, Chart string
	Values                    map[string]any
}

// Render returns the chart's objects and notes. Errors are Helm's, or about a document that is not an object.
func (o Order) Render() (objects []*unstructured.Unstructured, notes string, err error) {
	loaded, err := loader.Load(o.Chart)
	if err != nil {
		return nil, "", fmt.Errorf("reading the chart %s: %w", o.Chart, err)
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = o.Release, o.Namespace
	install.KubeVersion = &common.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	result, err := install.Run(loaded, o.Values)
	if err != nil {
		return nil, "", err
	}
	made, err := release.NewAccessor(result)
	if err != nil {
		return nil, "", fmt.Errorf("reading the release of %s: %w", o.Chart, err)
	}
	objects, err = Parse(made.Manifest())
	return objects, made.Notes(), err
}

// Parse returns the objects of a manifest of several documents. It ignores empty documents.
func Parse(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+manifest, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("reading a rendered document: %w\n%s", err, document)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}
