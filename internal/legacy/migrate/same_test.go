package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
)

// fleet holds pools and classes of v1, as an API returns them.
type fleet struct {
	pools   map[string]*karpv1.NodePool
	classes map[string]*awsv1.EC2NodeClass
}

func (f fleet) add(t *testing.T, object map[string]any) {
	t.Helper()
	into := runtime.DefaultUnstructuredConverter
	var err error
	switch u := (&unstructured.Unstructured{Object: object}); u.GetKind() {
	case "NodePool":
		pool := &karpv1.NodePool{}
		err = into.FromUnstructured(object, pool)
		f.pools[pool.Name] = pool
	case awsv1.Kind:
		class := &awsv1.EC2NodeClass{}
		err = into.FromUnstructured(object, class)
		f.classes[class.Name] = class
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stamps returns the values with which running nodes are compared: per pool, its hash, and that of its class with the
// pool's kubelet settings.
func (f fleet) stamps(t *testing.T) map[string]string {
	t.Helper()
	stamps := map[string]string{}
	for name, pool := range f.pools {
		stamps[name] = pool.Hash() + " of class"
		class := f.classes[pool.Spec.Template.Spec.NodeClassRef.Name]
		if class == nil {
			stamps[name] += " " + pool.Spec.Template.Spec.NodeClassRef.Name + ", which is not there"
			continue
		}
		made, err := userdata.WithKubelet(class, pool.Annotations)
		if err != nil {
			t.Fatal(err)
		}
		stamps[name] += " " + made.Hash()
	}
	return stamps
}

// served returns the state of a cluster whose controller received the objects as they are written: those of v1beta1
// as the webhook converts them, and Provisioners and AWSNodeTemplates as they are translated.
func served(t *testing.T, stream string) fleet {
	t.Helper()
	f := fleet{map[string]*karpv1.NodePool{}, map[string]*awsv1.EC2NodeClass{}}
	var old []*unstructured.Unstructured
	for _, d := range split(File{Name: "written", Text: []byte(stream)}) {
		if err := d.parse(); err != nil {
			t.Fatal(err)
		}
		object, isMap := wire(d.root).(map[string]any)
		if !isMap {
			continue
		}
		u := &unstructured.Unstructured{Object: object}
		switch {
		case v1alpha5.Translates(u):
			old = append(old, u)
		case strings.HasSuffix(u.GetAPIVersion(), "/v1beta1"):
			converted, err := v1beta1.Converter{}.ToV1(object)
			if err != nil {
				t.Fatal(err)
			}
			f.add(t, converted)
		default:
			f.add(t, object)
		}
	}
	for _, result := range v1alpha5.Translate(old, v1alpha5.Settings{}) {
		if result.Pool != nil {
			f.pools[result.Pool.Name] = result.Pool
		}
		for _, class := range result.Classes {
			f.classes[class.Name] = class
		}
	}
	return f
}

// betaPools returns pools that use one class, with their kubelet settings. The class sets every field with a default,
// because the API server would set those.
func betaPools(kubelets map[string]string) string {
	text := "apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  amiFamily: AL2\n  role: a\n" +
		"  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}\n" +
		"  amiSelectorTerms: [{id: ami-1}]\n  subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: [{id: sg-1}]\n"
	for name, kubelet := range kubelets {
		text += "---\napiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: " + name + "}\nspec:\n  template:\n    spec:\n" +
			"      requirements: []\n      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}\n"
		if kubelet != "" {
			text += "      kubelet: " + kubelet + "\n"
		}
	}
	return text
}

// poolFirst moves the class, which is the first document, to the end.
func poolFirst(stream string) string {
	class, pools, _ := strings.Cut(stream, "---\n")
	return pools + "---\n" + class
}

// TestAppliedOverRunningNodes verifies that nodes of the input match the output: neither the pool's hash nor the
// machine that its class describes differs, whichever class has the kubelet settings.
func TestAppliedOverRunningNodes(t *testing.T) {
	const seven, eight = `{maxPods: 7, kubeReserved: {cpu: 100m, memory: 1Gi}}`,
		`{maxPods: 8, systemReserved: {cpu: "1"}, clusterDNS: [10.0.0.10]}`
	for name, text := range map[string]string{
		"one pool":          betaPools(map[string]string{"a": seven}),
		"pool first":        poolFirst(betaPools(map[string]string{"a": seven})),
		"alike":             betaPools(map[string]string{"a": seven, "b": seven}),
		"different":         betaPools(map[string]string{"a": seven, "b": eight}),
		"one has none":      betaPools(map[string]string{"a": "", "b": eight, "c": seven, "d": eight}),
		"none":              betaPools(map[string]string{"a": ""}),
		"empty":             betaPools(map[string]string{"a": "{}"}),
		"after conversion":  converted(t, betaPools(map[string]string{"a": seven, "b": eight})),
		"two provisioners":  provisioners,
		"class not printed": strings.SplitAfterN(betaPools(map[string]string{"a": seven}), "---\n", 2)[1],
	} {
		t.Run(name, func(t *testing.T) {
			printed := string(Run([]File{{Name: "in", Text: []byte(text)}}, Options{}).Manifests)
			before, after := served(t, text), served(t, printed)
			if diff := cmp.Diff(before.stamps(t), after.stamps(t)); diff != "" {
				t.Errorf("nodes would be replaced (-written +printed):\n%s\nprinted:\n%s", diff, printed)
			}
			if class := strings.Index(printed, "\nkind: EC2NodeClass"); class > strings.Index(printed,
				"\nkind: NodePool") && name != "two provisioners" {
				t.Errorf("a pool is printed before the class that has its settings now:\n%s", printed)
			}
			if strings.Contains(printed, v1beta1.AnnotationKubelet) != (name == "class not printed") {
				t.Errorf("the settings belong to the classes:\n%s", printed)
			}
		})
	}
}

const provisioners = `apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: shared}
spec: {instanceProfile: nodes, subnetSelector: {a: b}, securityGroupSelector: {a: b}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: a}
spec: {providerRef: {name: shared}, kubeletConfiguration: {maxPods: 7}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: b}
spec: {providerRef: {name: shared}, kubeletConfiguration: {maxPods: 8}}
`

// converted returns manifests of v1beta1 as kubectl prints them in v1.
func converted(t *testing.T, stream string) string {
	t.Helper()
	f, text := served(t, stream), ""
	for _, pool := range f.pools {
		text += "---\n" + manifest(t, pool)
	}
	for _, class := range f.classes {
		text += "---\n" + manifest(t, class)
	}
	return text
}

func manifest(t *testing.T, object any) string {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&unstructured.Unstructured{Object: content}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}
