package class

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

func TestPodsHint(t *testing.T) {
	prefixes, custom := discovery.CNI{PrefixDelegation: true}, discovery.CNI{CustomNetworking: true}
	annotated := func(value string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) {
			c.Annotations = map[string]string{awsv1.AnnotationPrefixDelegation: value}
		}
	}
	for _, test := range []struct {
		name     string
		cluster  discovery.Facts
		change   func(*awsv1.EC2NodeClass)
		reserved int64
		want     string
	}{
		{name: "another CNI"},
		{name: "prefixes", cluster: discovery.Facts{CNI: prefixes}, want: "ENABLE_PREFIX_DELEGATION"},
		{name: "prefixes, as the class says", cluster: discovery.Facts{CNI: prefixes}, change: annotated("true")},
		{name: "prefixes, which the class does not want", cluster: discovery.Facts{CNI: prefixes}, change: annotated("false")},
		{name: "prefixes of IPv6", cluster: discovery.Facts{CNI: prefixes, IPv6: true}},
		{name: "prefixes, with a number of pods", cluster: discovery.Facts{CNI: prefixes}, change: func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromInt32(110))}
		}},
		{name: "custom networking", cluster: discovery.Facts{CNI: custom}, want: "--reserved-enis"},
		{name: "custom networking, as the controller knows", cluster: discovery.Facts{CNI: custom}, reserved: 1},
	} {
		got := PodsHint(awstest.Class(test.change), test.cluster, test.reserved)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: hint %q, want one with %q", test.name, got, test.want)
		}
	}
}

// The hint is in the message of the condition, and the class is ready.
func TestPodsHintIsShown(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		plain := w.reconciled(ctx).Condition(awsv1.ConditionValidationSucceeded)
		w.cni.PrefixDelegation = true
		w.Pass(discovery.StandardLifetimes().Cluster)
		class := w.reconciled(ctx)
		expect(t, "with prefixes", class, awsv1.ConditionValidationSucceeded, "True "+plain.Reason)
		expect(t, "with prefixes", class, "Ready", "True Ready")
		got := class.Condition(awsv1.ConditionValidationSucceeded).Message
		if !strings.Contains(got, awsv1.AnnotationPrefixDelegation) || plain.Message != "" {
			t.Errorf("message %q, and %q without prefixes; want a hint with prefixes alone", got, plain.Message)
		}
	}, awstest.Class(nil))
}
