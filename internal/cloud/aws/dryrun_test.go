package aws

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// A policy of the organization that allows the launches leaves the class ready. One that denies them makes it unready.
// The policies concern the volumes, the metadata options or the types of launches.
func TestDryRunUnderPolicies(t *testing.T) {
	for _, c := range []struct {
		name, condition string
		values, pool    []string // pool: types that it allows; without any, there is no pool
		want            string   // reason of ValidationSucceeded
	}{
		{"volumes must be encrypted", awssim.ConditionEncrypted, []string{"true"}, []string{"m5.large"}, awsv1.ConditionValidationSucceeded},
		{"tokens are required", awssim.ConditionTokens, []string{"required"}, nil, awsv1.ConditionValidationSucceeded},
		{"tokens must not be", awssim.ConditionTokens, []string{"optional"}, nil, awsv1.ReasonRunInstancesAuthCheckFailed},
		{"a type of the pool", awssim.ConditionInstanceType, []string{"m6g.*"}, []string{"m6g.large"}, awsv1.ConditionValidationSucceeded},
		{"the second type of the pool", awssim.ConditionInstanceType, []string{"m5.xlarge"}, []string{"c5.large", "m5.xlarge"},
			awsv1.ConditionValidationSucceeded},
		{"no type of the pool", awssim.ConditionInstanceType, []string{"r5.*"}, []string{"c5.large", "m5.xlarge"},
			awsv1.ReasonRunInstancesAuthCheckFailed},
		{"no pool", awssim.ConditionInstanceType, []string{"c5.*"}, nil, awsv1.ReasonRunInstancesAuthCheckFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, suiteTypes...)
			p := w.provider(t)
			check(t, w.sim.DenyUnless(c.condition, c.values...))
			if c.pool != nil {
				pool := poolOf("default")
				pool.ObjectMeta = metav1.ObjectMeta{Name: "pool", UID: "uid-pool"}
				pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{
					{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: c.pool},
					{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"on-demand"}}}
				check(t, w.api.Create(t.Context(), pool))
			}
			r := &class.Reconciler{Client: w.api, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, Now: time.Now,
				DryRun: &class.DryRun{EC2: w.clients.EC2, Calls: p.sources.Calls, Cluster: testCluster, Orders: p.orders}}
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
			check(t, err)
			if got := w.class(t, "default").Condition(awsv1.ConditionValidationSucceeded); got.Reason != c.want {
				t.Errorf("ValidationSucceeded is %s %s (%s), want %s", got.Status, got.Reason, got.Message, c.want)
			}
		})
	}
}
