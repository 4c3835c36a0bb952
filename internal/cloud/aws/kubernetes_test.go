package aws

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// Only the container aws-node of the DaemonSet kube-system/aws-node has the settings of the VPC CNI.
func TestCNI(t *testing.T) {
	daemon := func(namespace, name, container string, env ...corev1.EnvVar) client.Object {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: container, Env: env}}
		return d
	}
	prefixes := corev1.EnvVar{Name: "ENABLE_PREFIX_DELEGATION", Value: "true"}
	custom := corev1.EnvVar{Name: "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", Value: "True"}
	for _, test := range []struct {
		name    string
		objects []client.Object
		want    discovery.CNI
	}{
		{"no DaemonSet", nil, discovery.CNI{Absent: true}},
		{"no settings", []client.Object{daemon("kube-system", "aws-node", "aws-node")}, discovery.CNI{}},
		{"both", []client.Object{daemon("kube-system", "aws-node", "aws-node", prefixes, custom)},
			discovery.CNI{PrefixDelegation: true, CustomNetworking: true}},
		{"off", []client.Object{daemon("kube-system", "aws-node", "aws-node", corev1.EnvVar{Name: prefixes.Name, Value: "false"})},
			discovery.CNI{}},
		{"another container", []client.Object{daemon("kube-system", "aws-node", "other", prefixes)}, discovery.CNI{}},
		{"other DaemonSets", []client.Object{daemon("kube-system", "other", "aws-node", prefixes),
			daemon("default", "aws-node", "aws-node", custom)},
			discovery.CNI{Absent: true}},
	} {
		reader := fake.NewClientBuilder().WithObjects(test.objects...).
			WithIndex(&appsv1.DaemonSet{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
		if got, err := cniOf(t.Context(), reader); got != test.want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
}
