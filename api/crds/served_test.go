package crds_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

const goodClass = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: good}
`

func testKWOKNodeClassSchema(t *testing.T, s *server) {
	for _, r := range []schemaRule{
		{"nodeRegistrationDelay is a duration", `spec: {nodeRegistrationDelay: 1m30s}`, `spec: {nodeRegistrationDelay: Never}`, "nodeRegistrationDelay"},
		{"nodeRegistrationDelay is below 292 years", `spec: {nodeRegistrationDelay: 0s}`, `spec: {nodeRegistrationDelay: 2563000h}`, "nodeRegistrationDelay"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, s, goodClass) })
	}
}

func testKWOKNodeClassIsReadyFromTheStart(t *testing.T, s *server) {
	stored := s.create(t, goodClass, `metadata: {name: ready}`)
	class := &kwokv1alpha1.KWOKNodeClass{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), class); err != nil {
		t.Fatal(err)
	}
	if !class.StatusConditions().Root().IsTrue() {
		t.Errorf("conditions are %+v, want Ready to be True", class.Status.Conditions)
	}
}

// Discovery provides kubectl's short names and "kubectl get karpenter".
func testDiscovery(t *testing.T, s *server) {
	type resource struct {
		Kind       string
		ShortNames []string
		Categories []string
		Namespaced bool
	}
	got := map[string]resource{}
	served := discovery.NewDiscoveryClientForConfigOrDie(s.config)
	for _, version := range []string{"karpenter.sh/v1", "karpenter.sh/v1alpha1", "autoscaling.x-k8s.io/v1beta1", "karpenter.kwok.sh/v1alpha1", "karpenter.k8s.aws/v1"} {
		list, err := served.ServerResourcesForGroupVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			got[r.Name] = resource{r.Kind, r.ShortNames, r.Categories, r.Namespaced}
		}
	}
	want := map[string]resource{
		"nodepools":              {Kind: "NodePool", Categories: []string{"karpenter"}},
		"nodepools/status":       {Kind: "NodePool"},
		"nodepools/scale":        {Kind: "Scale"},
		"nodeclaims":             {Kind: "NodeClaim", Categories: []string{"karpenter"}},
		"nodeclaims/status":      {Kind: "NodeClaim"},
		"kwoknodeclasses":        {Kind: "KWOKNodeClass", Categories: []string{"karpenter"}, ShortNames: []string{"kwoknc", "kwokncs"}},
		"kwoknodeclasses/status": {Kind: "KWOKNodeClass"},
		"nodeoverlays":           {Kind: "NodeOverlay", Categories: []string{"karpenter"}, ShortNames: []string{"overlays"}},
		"nodeoverlays/status":    {Kind: "NodeOverlay"},
		"capacitybuffers":        {Kind: "CapacityBuffer", Categories: []string{"autoscaling"}, ShortNames: []string{"cb"}, Namespaced: true},
		"capacitybuffers/status": {Kind: "CapacityBuffer", Namespaced: true},
		"capacitybuffers/scale":  {Kind: "Scale", Namespaced: true},
		"capacityquotas":         {Kind: "CapacityQuota", Categories: []string{"autoscaling"}, ShortNames: []string{"cq"}},
		"capacityquotas/status":  {Kind: "CapacityQuota"},
		"ec2nodeclasses":         {Kind: "EC2NodeClass", Categories: []string{"karpenter"}, ShortNames: []string{"ec2nc", "ec2ncs"}},
		"ec2nodeclasses/status":  {Kind: "EC2NodeClass"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// The table that the server returns for kubectl get. With -o wide, it also has the columns of priority 1.
func testPrinterColumns(t *testing.T, s *server) {
	type column struct {
		Name     string
		Priority int32
		Cell     any
	}
	pool := s.create(t, goodPool, `{metadata: {name: printed}, spec: {weight: 3}}`)
	status := `{type: Ready, status: "True", reason: A, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}`
	if err := s.Status().Update(t.Context(), overlaid(t, pool, `status: {nodes: 2, resources: {cpu: "8", memory: 16Gi}, conditions: [`+status+`]}`)); err != nil {
		t.Fatal(err)
	}
	claim := s.create(t, goodClaim, `metadata: {name: printed, labels: {node.kubernetes.io/instance-type: c-4x, karpenter.sh/capacity-type: spot, topology.kubernetes.io/zone: zone-a, karpenter.sh/nodepool: printed}}`)
	class := s.create(t, goodEC2Class, `metadata: {name: printed}`)
	if err := s.Status().Update(t.Context(), overlaid(t, class, `status: {conditions: [`+status+`]}`)); err != nil {
		t.Fatal(err)
	}
	drifted := `{type: Drifted, status: "False", lastTransitionTime: "2026-01-02T03:04:05Z"}`
	if err := s.Status().Update(t.Context(), overlaid(t, claim, `status: {nodeName: node-1, imageID: image-1, providerID: "kwok://node-1", conditions: [`+status+`,`+drifted+`]}`)); err != nil {
		t.Fatal(err)
	}
	overlay := s.create(t, goodOverlay, `{metadata: {name: printed}, spec: {weight: 3}}`)
	if err := s.Status().Update(t.Context(), overlaid(t, overlay, `status: {conditions: [`+status+`]}`)); err != nil {
		t.Fatal(err)
	}
	buffer := s.create(t, goodBuffer, `metadata: {name: printed}`)
	resolved := `{type: ReadyForProvisioning, status: "True", reason: Resolved, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}`
	if err := s.Status().Update(t.Context(), overlaid(t, buffer, `status: {replicas: 2, podTemplateRef: {name: web}, conditions: [`+resolved+`]}`)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path string
		want []column
	}{
		{"/apis/karpenter.sh/v1alpha1/nodeoverlays/printed", []column{
			{"Name", 0, "printed"}, {"Ready", 0, "True"}, {"Age", 0, "age"}, {"Weight", 1, 3.0},
		}},
		{"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers/printed", []column{
			{"Name", 0, "printed"}, {"Strategy", 0, "buffer.x-k8s.io/active-capacity"}, {"PodTemplate", 0, "web"}, {"Replicas", 0, 2.0},
			{"ConditionsType", 0, "ReadyForProvisioning"}, {"ConditionsStatus", 0, "True"}, {"ConditionsReason", 0, "Resolved"}, {"Age", 0, "age"},
		}},
		{"/apis/karpenter.sh/v1/nodepools/printed", []column{
			{"Name", 0, "printed"}, {"NodeClass", 0, "default"}, {"Nodes", 0, 2.0}, {"Ready", 0, "True"}, {"Age", 0, "age"},
			{"Weight", 1, 3.0}, {"CPU", 1, "8"}, {"Memory", 1, "16Gi"},
		}},
		{"/apis/karpenter.sh/v1/nodeclaims/printed", []column{
			{"Name", 0, "printed"}, {"Type", 0, "c-4x"}, {"Capacity", 0, "spot"}, {"Zone", 0, "zone-a"}, {"Node", 0, "node-1"}, {"Ready", 0, "True"}, {"Age", 0, "age"},
			{"ImageID", 1, "image-1"}, {"ID", 1, "kwok://node-1"}, {"NodePool", 1, "printed"}, {"NodeClass", 1, "default"}, {"Drifted", 1, "False"},
		}},
		{"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/printed", []column{
			{"Name", 0, "printed"}, {"Ready", 0, "True"}, {"Age", 0, "age"}, {"Role", 1, "nodes"},
		}},
	} {
		t.Run(test.path, func(t *testing.T) {
			data, err := kubernetes.NewForConfigOrDie(s.config).RESTClient().Get().AbsPath(test.path).
				SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			table := metav1.Table{}
			if err := json.Unmarshal(data, &table); err != nil {
				t.Fatal(err)
			}
			var got []column
			for i, definition := range table.ColumnDefinitions {
				cell := table.Rows[0].Cells[i]
				if definition.Name == "Age" {
					cell = "age"
				}
				got = append(got, column{definition.Name, definition.Priority, cell})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}
