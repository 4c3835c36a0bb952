package provisioner_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

func takenName(w *world) {
	w.start()
	const others = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: taken}
spec: {weight: 9, template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: mine}}}}`
	w.apply(others)
	before := w.pool("taken", "is there", there)
	w.apply(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: taken, annotations: {karpenter-go.github.io/made-from: Provisioner/taken}}
spec: {role: r, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}`)
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: taken}
spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	p := w.provisioner("taken", karpv1alpha5.ConditionApplied, "False", karpv1alpha5.ReasonNameTaken)
	if c := p.StatusConditions().Get(karpv1alpha5.ConditionApplied); !strings.Contains(c.Message,
		`NodePool "taken" was not created from this object`) {
		w.t.Errorf("message: %s", c.Message)
	}
	if c := p.StatusConditions().Get(karpv1alpha5.ConditionNodePoolReady); !strings.Contains(c.Message,
		"was not created from this object") {
		w.t.Errorf("there is a pool with the name, and the message is %q", c.Message)
	}
	w.event("NotApplied")
	if class := w.class("taken", "is there", there); len(class.OwnerReferences) > 0 || class.Spec.Role != "r" {
		w.t.Errorf("the class of another owner's pool has changed: %v %+v", class.OwnerReferences, class.Spec)
	}
	if diff := cmp.Diff(before.Spec, w.pool("taken", "is there", there).Spec); diff != "" {
		w.t.Errorf("the pool of another owner has changed: %s", diff)
	}
	w.must(w.Delete(w.t.Context(), before))
	w.pool("taken", "is made when the name is free", func(pool *karpv1.NodePool) bool { return metav1.IsControlledBy(pool, p) })
	w.provisioner("taken", karpv1alpha5.ConditionApplied, "True", "")
}

func badObject(w *world) {
	w.start()
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: bad}
spec: {taints: [{key: "no such key!", effect: NoSchedule}], provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: worse}
spec: {provider: {launchTemplate: mine, subnetSelector: {a: b}}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: worst}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: fine}
spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	w.pool("fine", "is there", there)
	w.pool("worst", "is there", there)
	refused := w.provisioner("bad", karpv1alpha5.ConditionApplied, "False", karpv1alpha5.ReasonRefused)
	if c := refused.StatusConditions().Get(karpv1alpha5.ConditionApplied); !strings.Contains(c.Message, "taints[0].key") {
		w.t.Errorf("message: %s", c.Message)
	}
	lost := w.provisioner("worse", karpv1alpha5.ConditionTranslated, "False", karpv1alpha5.ReasonPartsLost)
	if c := lost.StatusConditions().Get(karpv1alpha5.ConditionTranslated); !strings.Contains(c.Message, "spec.provider.launchTemplate") {
		w.t.Errorf("message: %s", c.Message)
	}
	w.event("PartsLost")
	// Its pool waits for a class that a user writes, and uses it as it is.
	w.pool("worse", "names the class", func(pool *karpv1.NodePool) bool { return pool.Spec.Template.Spec.NodeClassRef.Name == "worse" })
	w.apply(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: worse}
spec: {role: r, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}`)
	w.provisioner("worse", karpv1alpha5.ConditionApplied, "True", "")
}

// oldStatus covers a status of an older controller, which is no longer valid today.
func oldStatus(w *world) {
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: veteran}
spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(karpv1alpha5.GroupVersion.WithKind("Provisioner"))
	old.SetName("veteran")
	w.must(w.Status().Patch(w.t.Context(), old, client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastScaleTime":"2023-01-01T00:00:00Z",
		"conditions":[{"type":"Odd","status":"True","reason":"R","message":"","lastTransitionTime":"2023-01-01T00:00:00Z"}]}}`))))
	w.start()
	p := w.provisioner("veteran", karpv1alpha5.ConditionApplied, "True", "")
	if p.StatusConditions().Get("Odd") != nil {
		w.t.Errorf("conditions: %+v", p.Status.Conditions)
	}
}
