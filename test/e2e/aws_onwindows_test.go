package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// testAWSWindows checks that pods for Windows run on nodes with Windows, whose user data the image understands, and that
// these have as many pods as was planned.
func testAWSWindows(t *testing.T, w *awsWorld) {
	s := w.stageOf(t, "aws-windows", func(spec *awsv1.EC2NodeClassSpec) {
		spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "windows2022@latest"}}
	})
	s.patch(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
		`{"spec":{"template":{"spec":{"taints":[{"key":"os","value":"windows","effect":"NoSchedule"}]}}}}`)
	s.template(`{"spec":{"os":{"name":"windows"},"nodeSelector":{"kubernetes.io/os":"windows"},
		"tolerations":[{"key":"os","value":"windows","effect":"NoSchedule"}]}}`)
	s.scale("app", 4)
	await(t, patience, "all pods to run", s.running("app", 4))
	s.boughtOnce()
	planned := map[string]int64{}
	for _, c := range s.ledger.claimsOf(s.name) {
		planned[c.object.Status.ProviderID] = c.object.Status.Allocatable.Pods().Value()
	}
	for _, node := range s.ledger.nodesOf(s.name) {
		if i := s.instanceOf(node); i.ImageFamily != "windows2022" {
			t.Errorf("instance %s has an image of %s", i.ID, i.ImageFamily)
		}
		for label, want := range map[string]string{corev1.LabelOSStable: "windows", corev1.LabelArchStable: "amd64",
			corev1.LabelWindowsBuild: "10.0.20348"} {
			if got := node.Labels[label]; got != want {
				t.Errorf("node %s has the label %s=%q, want %q", node.Name, label, got, want)
			}
		}
		if got, want := node.Status.Allocatable.Pods().Value(), planned[node.Spec.ProviderID]; got != want || got == 0 {
			t.Errorf("node %s takes %d pods, and %d were planned", node.Name, got, want)
		}
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}
