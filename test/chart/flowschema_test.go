package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// TestFlowSchemas checks that a busy API server queues renewals of the Lease with those of its own leader elections, before all
// other requests of the controller, that the schema of the Lease matches no other request, and that a value leaves both out.
func TestFlowSchemas(t *testing.T) {
	r := render(t, mainChart, minimal().set("settings.leaderElectionNamespace", "elsewhere"))
	account := flowcontrolv1.ServiceAccountSubject{Namespace: namespace, Name: r.of("ServiceAccount").GetName()}
	precedence := map[string]int32{}
	for name, level := range map[string]string{"karpenter-leader-election": "leader-election", "karpenter": "workload-high"} {
		schema := decode[flowcontrolv1.FlowSchema](t, r, "FlowSchema", name)
		subjects := schema.Spec.Rules[0].Subjects
		if got := schema.Spec.PriorityLevelConfiguration.Name; got != level || len(subjects) != 1 || *subjects[0].ServiceAccount != account {
			t.Errorf("%s has the level %s and the subjects %v, want %s and %v", name, got, subjects, level, account)
		}
		precedence[level] = schema.Spec.MatchingPrecedence
	}
	lease := decode[flowcontrolv1.FlowSchema](t, r, "FlowSchema", "karpenter-leader-election").Spec.Rules
	rule := flowcontrolv1.ResourcePolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		Verbs: []string{"get", "create", "update"}, Namespaces: []string{"elsewhere"}}
	if diff := cmp.Diff([]flowcontrolv1.ResourcePolicyRule{rule}, lease[0].ResourceRules); diff != "" || len(lease) != 1 ||
		lease[0].NonResourceRules != nil {
		t.Errorf("the schema of the Lease has %d rules (-want +got):\n%s", len(lease), diff)
	}
	all := decode[flowcontrolv1.FlowSchema](t, r, "FlowSchema", "karpenter").Spec.Rules[0].ResourceRules[0]
	everything := []string{"*"}
	whole := flowcontrolv1.ResourcePolicyRule{APIGroups: everything, Resources: everything, Verbs: everything, Namespaces: everything, ClusterScope: true}
	if diff := cmp.Diff(whole, all); diff != "" {
		t.Errorf("the schema of all requests (-want +got):\n%s", diff)
	}
	if precedence["leader-election"] >= precedence["workload-high"] {
		t.Errorf("the precedences are %v: a Lease is an object like others", precedence)
	}
	if off := render(t, mainChart, minimal().set("flowSchemas.enabled", false)).of("FlowSchema"); off != nil {
		t.Errorf("%s is there although it is switched off", off.GetName())
	}
}
