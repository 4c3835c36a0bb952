package aws

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/testing/awssim/kubelet"
)

// The gate NodeClassCEL decides whether a class with expressions is ready. With it, the machine is configured with the
// results, and has the capacity of the plan.
func TestKubeletExpressions(t *testing.T) {
	for _, test := range []struct {
		name   string
		gate   bool
		pods   string
		kube   string
		reason string // of ValidationSucceeded
	}{
		{"off", false, "vcpus * 10", "vcpus * 50", awsv1.ReasonKubeletExpressionsDisabled},
		{"on", true, "vcpus * 10", "vcpus * 50 + 1", awsv1.ConditionValidationSucceeded},
		{"invalid", true, "vcpu * 10", "vcpus * 50", awsv1.ReasonKubeletExpressionInvalid},
		{"fails", true, "vcpus * 10", "10 / (vcpus - 2)", awsv1.ReasonKubeletExpressionEvaluationFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "m5.large")
			w.changed(t, func(c *awsv1.EC2NodeClass) {
				c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: new(intstr.FromString(test.pods)),
					KubeReserved: map[string]string{"cpu": test.kube}}
			})
			p := w.provider(t, func(o *Options) { o.KubeletExpressions = test.gate })
			r := &class.Reconciler{Client: w.api, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, Now: time.Now,
				KubeletExpressions: test.gate, Evaluate: p.evaluate}
			for range 2 {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
				check(t, err)
			}
			condition := w.class(t, "default").Condition(awsv1.ConditionValidationSucceeded)
			if condition.Reason != test.reason {
				t.Fatalf("reason %s, want %s: %s", condition.Reason, test.reason, condition.Message)
			}
			claim := w.claim(t, "a")
			machine, err := p.Launch(t.Context(), claim)
			if test.reason != awsv1.ConditionValidationSucceeded {
				if err == nil || !strings.Contains(err.Error(), condition.Message) {
					t.Errorf("the launch fails with %v, want %q", err, condition.Message)
				}
				return
			}
			check(t, err)
			if machine.Capacity["pods"] != 20 || machine.Allocatable["cpu"] != 2000-110 {
				t.Errorf("capacity %v, allocatable %v; want 20 pods and 1890 millicores", machine.Capacity, machine.Allocatable)
			}
			for _, i := range w.sim.Instances() {
				config, err := kubelet.Read(i.ImageFamily, i.UserData)
				check(t, err)
				if config.MaxPods != 20 || config.KubeReserved["cpu"] != "110m" {
					t.Errorf("the kubelet has %d pods and reserves %v, want 20 and 110m", config.MaxPods, config.KubeReserved)
				}
			}
		})
	}
}

// Settings of a pool are those of v1beta1, which has no expressions.
func TestExpressionOfAPool(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t, func(o *Options) { o.KubeletExpressions = true })
	pool := poolOf("default")
	pool.Annotations = map[string]string{karpv1.AnnotationKubelet: `{"maxPods":"vcpus * 10"}`}
	if _, err := p.Catalog(t.Context(), pool); err == nil || !strings.Contains(err.Error(), `maxPods is "vcpus * 10", want a number`) {
		t.Errorf("%v, want an error about the expression", err)
	}
}
