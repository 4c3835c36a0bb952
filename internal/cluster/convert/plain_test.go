package convert

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// FuzzPlain checks that the API's validation accepts everything that is plain.
func FuzzPlain(f *testing.F) {
	long := strings.Repeat("a", 64)
	for _, key := range []string{"", "team", "example.com/team", "a/b/c", "A.b_c-d", "-a", "a-", "Example.com/a",
		"a..b/c", "a_b/c", "/a", "a/", long, long + "/a",
		strings.Repeat(long[:60]+".", 5) + "com/a", "karpenter.sh/capacity-type", "kubernetes.io/hostname",
		"karpenter.sh/x", "beta.kubernetes.io/arch", "\xff"} {
		for _, value := range []string{"", "a", "a.b", "-", long, "on-demand", "A_1"} {
			for _, operator := range []string{"In", "NotIn", "Exists", "Gt"} {
				f.Add(key, operator, value)
			}
		}
	}
	v := words()
	f.Fuzz(func(t *testing.T, key, operator, value string) {
		if !v.plain(key, corev1.NodeSelectorOperator(operator), value) {
			return
		}
		one := []karpv1.Requirement{karpv1.RequirementOf(corev1.NodeSelectorRequirement{Key: key,
			Operator: corev1.NodeSelectorOperator(operator), Values: []string{value}})}
		if errs := karpv1.ValidateRequirements(field.NewPath("x"), one, v.Rules); len(errs) > 0 {
			t.Errorf("%q %s %q is plain, but validation fails: %v", key, operator, value, errs)
		}
	})
}

func TestPlain(t *testing.T) {
	v := words()
	for _, key := range []string{"team", "example.org/team", "node.kubernetes.io/instance-type", "A.b_c-d"} {
		if !v.plain(key, corev1.NodeSelectorOpIn, "a", "B-1_2.c", "") {
			t.Errorf("%q is not plain, and uses the slower validation", key)
		}
	}
	switch {
	case v.plain("team", corev1.NodeSelectorOpIn):
		t.Errorf(`a plain requirement is invalid by the API's validation: v.plain("team", corev1.NodeSelectorOpIn) is true`)
	case v.plain(karpv1.LabelCapacityType, corev1.NodeSelectorOpIn, "free"):
		t.Errorf(`a plain requirement is invalid by the API's validation: v.plain(karpv1.LabelCapacityType, corev1.NodeSelectorOpIn, "free") is true`)
	case v.plain(corev1.LabelHostname, corev1.NodeSelectorOpExists):
		t.Errorf("a plain requirement is invalid by the API's validation: v.plain(corev1.LabelHostname, corev1.NodeSelectorOpExists) is true")
	}
}
