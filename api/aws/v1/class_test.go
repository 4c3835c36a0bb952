package v1

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{Kind, Kind + "List"} {
		if !scheme.Recognizes(GroupVersion.WithKind(kind)) {
			t.Errorf("the scheme does not contain %s", kind)
		}
	}
}

func TestFamily(t *testing.T) {
	for _, test := range []struct {
		name   string
		family *Family
		alias  string
		want   Family
	}{
		{"an alias", nil, "al2@latest", FamilyAL2},
		{"an alias of one release", nil, "al2023@v20260101", FamilyAL2023},
		{"Bottlerocket", nil, "bottlerocket@v1.20.4", FamilyBottlerocket},
		{"Windows", nil, "windows2019@latest", FamilyWindows2019},
		{"a family beside an alias", new(FamilyCustom), "al2@latest", FamilyCustom},
		{"a family", new(FamilyWindows2025), "", FamilyWindows2025},
		{"no family", nil, "", ""},
		{"an unknown family", nil, "ubuntu@latest", ""},
		{"an alias in capitals", nil, "AL2@latest", ""},
		{"custom is no alias", nil, "custom@latest", ""},
		{"no version", nil, "al2@", ""},
	} {
		class := &EC2NodeClass{Spec: EC2NodeClassSpec{AMIFamily: test.family, AMISelectorTerms: []AMISelectorTerm{{Alias: test.alias}}}}
		if got := class.Family(); got != test.want {
			t.Errorf("%s: family is %q, want %q", test.name, got, test.want)
		}
	}
	if _, version, ok := (AMISelectorTerm{Alias: "al2023@v2026@1"}).AliasParts(); !ok || version != "v2026@1" {
		t.Errorf("version of an alias is %q, %t", version, ok)
	}
	for _, family := range Families() {
		if got, want := family.Windows(), strings.Contains(string(family), "dows"); got != want {
			t.Errorf("%s runs Windows: %t", family, got)
		}
	}
}

func TestExpressions(t *testing.T) {
	class := &EC2NodeClass{Spec: EC2NodeClassSpec{Kubelet: &KubeletConfiguration{
		MaxPods:        new(intstr.FromString("max_pods / 2")),
		KubeReserved:   map[string]string{"memory": "11 * max_pods", "cpu": "100m"},
		SystemReserved: map[string]string{"cpu": "vcpus * 10"},
	}}}
	wantExpressions := []Expression{{FieldKubeReserved, "memory", "11 * max_pods"}, {FieldMaxPods, "", "max_pods / 2"},
		{FieldSystemReserved, "cpu", "vcpus * 10"}}
	if diff := cmp.Diff(wantExpressions, class.Spec.Kubelet.Expressions()); diff != "" {
		t.Errorf("expressions (-want +got):\n%s", diff)
	}
	if got := wantExpressions[0].Path() + " " + wantExpressions[1].Path(); got != "spec.kubelet.kubeReserved.memory spec.kubelet.maxPods" {
		t.Errorf("paths %q", got)
	}
	if _, ok := Reserved(class.Spec.Kubelet.KubeReserved)["memory"]; ok {
		t.Error("an expression is returned as an amount")
	}
	if got := Reserved(class.Spec.Kubelet.KubeReserved)["cpu"]; got.Cmp(resource.MustParse("100m")) != 0 {
		t.Errorf("kubeReserved cpu is %s, want 100m", got.String())
	}
}

func TestMaxPodsNumber(t *testing.T) {
	for _, test := range []struct {
		name    string
		kubelet *KubeletConfiguration
		want    int32
		ok      bool
	}{
		{"no kubelet", nil, 0, false},
		{"unset", &KubeletConfiguration{}, 0, false},
		{"a number", &KubeletConfiguration{MaxPods: new(intstr.FromInt32(0))}, 0, true},
		{"a number in a text", &KubeletConfiguration{MaxPods: new(intstr.FromString("110"))}, 110, true},
		{"an expression", &KubeletConfiguration{MaxPods: new(intstr.FromString("vcpus * 4"))}, 0, false},
		{"too great", &KubeletConfiguration{MaxPods: new(intstr.FromString("99999999999"))}, 0, false},
		{"negative", &KubeletConfiguration{MaxPods: new(intstr.FromString("-1"))}, 0, false},
	} {
		switch got, ok := test.kubelet.MaxPodsNumber(); {
		case ok != test.ok:
			t.Errorf("%s: ok is %v, want %v", test.name, ok, test.ok)
		case ok && got != test.want:
			t.Errorf("%s: ok && got != test.want, maxPods is %d, %t, want %d", test.name, got, ok, test.want)
		}
	}
}

func TestKubeletKeepsUnknownFields(t *testing.T) {
	text := `{"clusterDNS":["10.0.0.10"],"cpuCFSQuota":false,"evictionSoftGracePeriod":{"memory.available":"1m30s"},"maxPods":29,` +
		`"memorySwap":{"swapBehavior":"LimitedSwap"},"podPidsLimit":9007199254740993,"seccompDefault":null}`
	var kubelet KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &kubelet); err != nil {
		t.Fatal(err)
	}
	want := KubeletConfiguration{
		ClusterDNS:              []string{"10.0.0.10"},
		CPUCFSQuota:             new(false),
		EvictionSoftGracePeriod: map[string]string{"memory.available": "1m30s"},
		MaxPods:                 new(intstr.FromInt32(29)),
		Other: map[string]apiextensionsv1.JSON{
			"memorySwap":     {Raw: []byte(`{"swapBehavior":"LimitedSwap"}`)},
			"podPidsLimit":   {Raw: []byte(`9007199254740993`)},
			"seccompDefault": {}, // null
		},
	}
	if diff := cmp.Diff(want.Other, kubelet.Other); diff != "" {
		t.Errorf("other fields (-want +got):\n%s", diff)
	}
	written, err := json.Marshal(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != text {
		t.Errorf("kubelet is encoded as\n%s, want\n%s", written, text)
	}
	again, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != text {
		t.Errorf("kubelet built in Go is encoded as\n%s, want\n%s", again, text)
	}
}

// CRDs of other implementations accept any value. Such a value must not make the list of classes unreadable,
// and must not be lost.
func TestKubeletKeepsValuesOfOtherTypes(t *testing.T) {
	for _, text := range []string{`{"maxPods":{}}`, `{"maxPods":1.5}`, `{"podsPerCore":"many"}`, `{"podsPerCore":99999999999}`,
		`{"clusterDNS":"10.0.0.10"}`,
		`{"evictionHard":{"memory.available":5}}`, `{"evictionSoftGracePeriod":"1m"}`, `{"cpuCFSQuota":"yes","podsPerCore":4}`} {
		var kubelet KubeletConfiguration
		if err := json.Unmarshal([]byte(text), &kubelet); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if len(kubelet.Other) != 1 || len(kubelet.Mistyped()) != 1 {
			t.Errorf("%s: other fields are %v, want the field with the wrong type", text, kubelet.Other)
		}
		if written, err := json.Marshal(kubelet); err != nil || string(written) != text {
			t.Errorf("%s: encoded as %s (%v)", text, written, err)
		}
	}
	if err := json.Unmarshal([]byte(`[]`), &KubeletConfiguration{}); err == nil {
		t.Error("a list is accepted as a configuration")
	}
}

func TestNamedFieldsAreThoseOfTheType(t *testing.T) {
	var tags []string
	for field := range reflect.TypeFor[KubeletConfiguration]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			tags = append(tags, name)
		}
	}
	slices.Sort(tags)
	if diff := cmp.Diff(tags, slices.Sorted(slices.Values(namedFields[:]))); diff != "" {
		t.Errorf("named fields (-type +list):\n%s", diff)
	}
}

func TestDeepCopySharesNothing(t *testing.T) {
	class := hashedClass()
	before := class.Hash()
	copied := class.DeepCopy()
	copied.Spec.Kubelet.Other["memorySwap"].Raw[2] = 'z'
	copied.Spec.Kubelet.KubeReserved["cpu"] = "2"
	*copied.Spec.BlockDeviceMappings[0].EBS.IOPS = 1
	copied.Spec.Tags["team"] = "z"
	if class.Hash() != before {
		t.Error("a change of the copy changed the original")
	}
}
