package v1beta1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestManagedInV1(t *testing.T) {
	for _, test := range []struct {
		name, group, kind string
		family            bool
		owned, want       string
	}{
		{"expiry of a pool", core, "NodePool", false,
			`{"f:spec":{"f:disruption":{"f:expireAfter":{}},"f:weight":{}}}`,
			`{"f:spec":{"f:template":{"f:spec":{"f:expireAfter":{}}},"f:weight":{}}}`},
		{"expiry beside others", core, "NodePool", false,
			`{"f:spec":{"f:disruption":{"f:budgets":{},"f:expireAfter":{}},"f:template":{"f:spec":{"f:taints":{}}}}}`,
			`{"f:spec":{"f:disruption":{"f:budgets":{}},"f:template":{"f:spec":{"f:expireAfter":{},"f:taints":{}}}}}`},
		{"reference and kubelet of a pool", core, "NodePool", false,
			`{"f:spec":{"f:template":{"f:spec":{"f:kubelet":{".":{},"f:maxPods":{}},"f:nodeClassRef":{".":{},"f:apiVersion":{},"f:name":{}},"f:resources":{}}}}}`,
			`{"f:metadata":{"f:annotations":{"f:compatibility.karpenter.sh/v1beta1-kubelet-conversion":{}}},"f:spec":{"f:template":{"f:spec":{"f:nodeClassRef":{".":{},"f:group":{},"f:name":{}}}}}}`},
		{"reference and kubelet of a claim", core, "NodeClaim", false,
			`{"f:spec":{"f:kubelet":{"f:maxPods":{}},"f:nodeClassRef":{"f:apiVersion":{}}}}`,
			`{"f:metadata":{"f:annotations":{"f:compatibility.karpenter.sh/v1beta1-kubelet-conversion":{}}},"f:spec":{"f:nodeClassRef":{"f:group":{}}}}`},
		{"family that became an alias", aws, awsClass, false, `{"f:spec":{"f:amiFamily":{},"f:role":{}}}`,
			`{"f:spec":{"f:amiSelectorTerms":{},"f:role":{}}}`},
		{"family that stayed", aws, awsClass, true, `{"f:spec":{"f:amiFamily":{}}}`, `{"f:spec":{"f:amiFamily":{}}}`},
		{"status", core, "NodePool", false, `{"f:status":{"f:conditions":{}}}`, `{"f:status":{"f:conditions":{}}}`},
		{"garbage", core, "NodePool", false, `[1]`, `[1]`},
		{"nothing", core, "NodePool", false, `{}`, `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(schema.GroupVersionKind{Group: test.group, Version: v1, Kind: test.kind})
			object.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "other", APIVersion: test.group + "/v1", FieldsV1: metav1.NewFieldsV1(test.owned)},
				{Manager: "gitops", APIVersion: test.group + "/v1beta1", Operation: metav1.ManagedFieldsOperationApply,
					FieldsV1: metav1.NewFieldsV1(test.owned)},
			}
			entries, found := ManagedInV1(object, test.family)
			if !found || len(entries) != 2 {
				t.Fatalf("found %t, %d entries", found, len(entries))
			}
			if got := entries[0].FieldsV1.GetRawString(); got != test.owned {
				t.Errorf("the entry of v1 was changed to %s", got)
			}
			last := entries[1]
			switch {
			case last.APIVersion != test.group+"/v1":
				t.Errorf("last.APIVersion is %v, want %v", last.APIVersion, test.group+"/v1")
			case last.Manager != "gitops":
				t.Errorf(`last.Manager is %v, want "gitops"`, last.Manager)
			case last.Operation != metav1.ManagedFieldsOperationApply:
				t.Errorf("last.Operation is %v, want %v", last.Operation, metav1.ManagedFieldsOperationApply)
			}
			if diff := cmp.Diff(test.want, last.FieldsV1.GetRawString()); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			object.ManagedFields = entries
			if _, again := ManagedInV1(object, test.family); again {
				t.Error("there is still an entry of v1beta1")
			}
		})
	}
}
