package provisioner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// TestFreeze verifies that nothing is written for an object with a field that was set aside, and for those that share
// its template.
func TestFreeze(t *testing.T) {
	pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "lost", OwnerReferences: []metav1.OwnerReference{
		{Kind: karpv1alpha5.Kind, Name: "lost", UID: "lost", Controller: new(true)}}}}
	pool.Spec.Template.Spec.NodeClassRef.Name = "a"
	for _, test := range []struct {
		name, unreadable string
		want             []string
	}{
		{"nothing", "", nil},
		{"a template", "AWSNodeTemplate/a", []string{"AWSNodeTemplate/a", "Provisioner/one", "Provisioner/two"}},
		{"a Provisioner", "Provisioner/one", []string{"AWSNodeTemplate/a", "Provisioner/one", "Provisioner/two"}},
		{"a Provisioner whose template is not known any more", "Provisioner/lost",
			[]string{"AWSNodeTemplate/a", "Provisioner/lost", "Provisioner/one", "Provisioner/two"}},
		{"a Provisioner without template", "Provisioner/alone", []string{"Provisioner/alone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := &view{pools: []karpv1.NodePool{pool}}
			for _, name := range []string{"a", "b"} {
				template := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
				v.sources = append(v.sources, &source{Object: template, kind: awsv1alpha1.Kind})
			}
			for _, p := range [][2]string{{"alone", `{}`}, {"lost", `{}`}, {"one", `{"providerRef":{"name":"a"}}`},
				{"other", `{"providerRef":{"name":"b"}}`}, {"two", `{"providerRef":{"name":"a"}}`}} {
				v.sources = append(v.sources, &source{kind: karpv1alpha5.Kind, Object: &karpv1alpha5.Provisioner{
					ObjectMeta: metav1.ObjectMeta{Name: p[0]}, Spec: &apiextensionsv1.JSON{Raw: []byte(p[1])}}})
			}
			for _, s := range v.sources {
				if s.name() == test.unreadable {
					s.SetAnnotations(map[string]string{karpv1.AnnotationUnreadable: "spec.provider: nested"})
				}
			}
			v.freeze()
			var got []string
			for _, s := range v.sources {
				if s.frozen {
					got = append(got, s.name())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("frozen (-want +got):\n%s", diff)
			}
		})
	}
}
