package nodeclaim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/event"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// TestShape verifies that a node must have 90 % of the amount in its claim's status of each requested resource.
func TestShape(t *testing.T) {
	for _, test := range []struct {
		name                      string
		requested, promised, have corev1.ResourceList
		want                      []string
	}{
		{"all there", amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "4", "memory", "16Gi"), amounts("cpu", "4", "memory", "16Gi"), nil},
		{"more", amounts("cpu", "1"), amounts("cpu", "4"), amounts("cpu", "8"), nil},
		{"exactly 90 %", amounts("cpu", "1"), amounts("cpu", "10"), amounts("cpu", "9"), nil},
		{"a little less", amounts("cpu", "1"), amounts("cpu", "10"), amounts("cpu", "8900m"),
			[]string{"expected 10 of resource cpu, but found 8900m (89.0% of expected)"}},
		{"nothing", amounts("nvidia.com/gpu", "1"), amounts("nvidia.com/gpu", "2"), amounts("cpu", "4"),
			[]string{"expected 2 of resource nvidia.com/gpu, but found 0 (0.0% of expected)"}},
		{"by name", amounts("memory", "1Gi", "cpu", "1"), amounts("cpu", "4", "memory", "16Gi"), amounts("cpu", "2", "memory", "4Gi"), []string{
			"expected 4 of resource cpu, but found 2 (50.0% of expected)", "expected 16Gi of resource memory, but found 4Gi (25.0% of expected)"}},
		{"not requested", amounts("cpu", "1"), amounts("cpu", "4", "memory", "16Gi"), amounts("cpu", "4"), nil},
		{"requested as none", amounts("memory", "0"), amounts("memory", "16Gi"), nil, nil},
		{"not promised", amounts("memory", "1Gi"), nil, nil, nil},
	} {
		claim := &karpv1.NodeClaim{}
		claim.Spec.Resources.Requests, claim.Status.Capacity = test.requested, test.promised
		node := &corev1.Node{Status: corev1.NodeStatus{Capacity: test.have}}
		if diff := cmp.Diff(test.want, shape(claim, node)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// TestInitializing verifies that a claim is compared when it is first seen and when it becomes initialized. Other
// changes do not trigger a comparison.
func TestInitializing(t *testing.T) {
	p, before, after := initializing(), claimWith("c"), claimWith("c", karpv1.ConditionInitialized)
	if p.Create(event.CreateEvent{Object: before}) || !p.Create(event.CreateEvent{Object: after}) {
		t.Error("first seen: want only the initialized claim to pass")
	}
	if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("becoming initialized does not pass")
	}
	switch {
	case p.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}):
		t.Errorf("an update without a change, or a deletion, passes: p.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}) is true")
	case p.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: before}):
		t.Errorf("an update without a change, or a deletion, passes: p.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: before}) is true")
	case p.Delete(event.DeleteEvent{Object: after}):
		t.Errorf("an update without a change, or a deletion, passes: p.Delete(event.DeleteEvent{Object: after}) is true")
	}
}
