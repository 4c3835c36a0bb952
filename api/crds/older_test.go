package crds_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// olderManifests are realistic manifests, including invalid fields. Each is accepted with strict validation,
// which kubectl requests by default, and is stored completely.
var olderManifests = []struct{ name, text string }{
	{"v1alpha3", `
apiVersion: karpenter.sh/v1alpha3
kind: Provisioner
metadata: {name: three}
spec:
  cluster: {name: test, caBundle: LS0t, endpoint: "https://0123"}
  labels: {node.k8s.aws/capacity-type: spot}
  instanceTypes: [t3.medium]
  architecture: arm64
  ttlSecondsAfterEmpty: 30`},
	{"v1alpha4", `
apiVersion: karpenter.sh/v1alpha4
kind: Provisioner
metadata: {name: four}
spec:
  architectures: [amd64]
  provider: {instanceProfile: nodes, capacityTypes: [spot], cluster: {name: test, endpoint: "https://0123"}, subnetSelector: {kubernetes.io/cluster/test: }}`},
	{"v1alpha5", `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: five}
spec:
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
  limits: {resources: {cpu: 1000}}
  provider: {subnetSelector: {a: b}}
  consolidation: {enabled: true}
  kubeletConfiguration: {maxPods: 20, kubeReserved: {cpu: 1}}
  weight: 10
  requirments: misspelled
  ttlSecondsAfterEmpty: 1.5
status: {lastScaleTime: "2023-01-01T00:00:00Z", unknown: 1, resources: {cpu: "1"}}`},
	{"without a spec", `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: bare}`},
	{"AWSNodeTemplate", `
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: template}
spec:
  subnetSelector: {karpenter.sh/discovery: test}
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi, volumeType: gp3}}]
  metadataOptions: {httpTokens: required}
  launchTemplate: mine
  userData: "#!/bin/sh"
  anything: [else]
status: {subnets: [{id: subnet-1, zone: z}], amis: [{id: ami-1}]}`},
}

func testOlderManifestsAreKeptWhole(t *testing.T, s *server) {
	for _, m := range olderManifests {
		t.Run(m.name, func(t *testing.T) {
			written := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(m.text), &written.Object); err != nil {
				t.Fatal(err)
			}
			spec := written.Object["spec"]
			version := written.GroupVersionKind().Version
			object := written.DeepCopy()
			if err := s.Create(t.Context(), object, client.FieldValidation("Strict"), client.FieldOwner("kubectl-create")); err != nil {
				t.Fatal(err)
			}
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(written.GroupVersionKind())
			if written.GetKind() == karpv1alpha5.Kind { // as the controller decodes it
				stored.SetGroupVersionKind(karpv1alpha5.GroupVersion.WithKind(karpv1alpha5.Kind))
			}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(object), stored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plainJSON(t, spec), plainJSON(t, stored.Object["spec"])); diff != "" {
				t.Errorf("spec (-written +stored):\n%s", diff)
			}
			if got := v1alpha5.WrittenVersion(stored); got != version {
				t.Errorf("written as %s, detected as %s", version, got)
			}
			// A small edit by another field manager in the newest version does not change the result.
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"weight":3}}`))
			if err := s.Patch(t.Context(), stored, patch, client.FieldOwner("kubectl-edit")); err != nil {
				t.Fatal(err)
			}
			if got := v1alpha5.WrittenVersion(stored); got != version && spec != nil {
				t.Errorf("after an edit in %s: written as %s, detected as %s", stored.GetAPIVersion(), version, got)
			}
		})
	}
}

// plainJSON returns the value after a JSON round trip, so that all numbers have one type.
func plainJSON(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// Server-side apply in an old version keeps the record of that version.
func testOlderManifestsAreApplied(t *testing.T, s *server) {
	const text = `{"apiVersion":"karpenter.sh/v1alpha3","kind":"Provisioner","metadata":{"name":"applied"},"spec":{"cluster":{"name":"a","endpoint":"b"},"zones":["z"]}}`
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1alpha3", Kind: "Provisioner"})
	object.SetName("applied")
	for range 2 {
		if err := s.Patch(t.Context(), object, client.RawPatch(types.ApplyPatchType, []byte(text)), client.FieldOwner("kubectl")); err != nil {
			t.Fatal(err)
		}
	}
	if got := v1alpha5.WrittenVersion(object); got != "v1alpha3" {
		t.Errorf("detected as %s", got)
	}
}

// The table of kubectl get is the same in all versions, and is based on the status.
func testOlderPrinterColumns(t *testing.T, s *server) {
	p := s.create(t, olderManifests[2].text, `metadata: {name: printed}`)
	status := `{type: Ready, status: "True", reason: A, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}`
	if err := s.Status().Update(t.Context(), overlaid(t, p, `status: {nodePool: printed, nodeClass: EC2NodeClass/x, version: v1alpha5, conditions: [`+status+`]}`)); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1alpha3", "v1alpha4", "v1alpha5"} {
		got := cells(t, s.config, "/apis/karpenter.sh/"+version+"/provisioners/printed")
		got["Age"] = "age"
		want := map[string]any{"Name": "printed", "NodePool": "printed", "NodeClass": "EC2NodeClass/x", "Ready": "True", "Translated": nil, "Age": "age", "Written": "v1alpha5"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

// cells returns, by column, the cells of the single row of the object's table.
func cells(t *testing.T, config *rest.Config, path string) map[string]any {
	t.Helper()
	data, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		ColumnDefinitions []struct{ Name string }
		Rows              []struct{ Cells []any }
	}
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	row := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name] = table.Rows[0].Cells[i]
	}
	return row
}

// The API server accepts the results of translating older manifests: the golden files of package v1alpha5.
func testTranslationsAreAccepted(t *testing.T, s *server) {
	for _, file := range golden.Read(t, "../../internal/legacy/v1alpha5/testdata") {
		for document := range strings.SplitSeq(string(file.Section("want.yaml")), "---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object := &unstructured.Unstructured{Object: parse(t, document)}
			if err := s.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s%s %s: %v", file.Comment, object.GetKind(), object.GetName(), err)
			}
		}
	}
}
