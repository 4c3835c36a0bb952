package nodeclaim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestQuietUntilAgreesWithTheGuard verifies that the condition Consolidatable and the guard of plans compute the same
// time from the same objects, although the two packages do not import each other.
func TestQuietUntilAgreesWithTheGuard(t *testing.T) {
	vocabulary := convert.NewVocabulary(cloud.Declared{}, schema.GroupKind{Group: "example.com", Kind: "Class"})
	initialized := claimWith("a", karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized)
	for i := range initialized.Status.Conditions {
		initialized.Status.Conditions[i].LastTransitionTime = metav1.NewTime(born.Add(time.Minute))
	}
	busy := initialized.DeepCopy()
	busy.Status.LastPodEventTime = metav1.NewTime(born.Add(time.Hour))
	for _, after := range []karpv1.NillableDuration{karpv1.DurationOf(0), karpv1.DurationOf(30 * time.Second),
		karpv1.DurationOf(1<<63 - 1), karpv1.NillableDuration{}} {
		for name, claim := range map[string]*karpv1.NodeClaim{"no pod yet": initialized, "pods came": busy} {
			object := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
			object.Spec.Disruption.ConsolidateAfter = after
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: born,
				Labels: map[string]string{karpv1.LabelInitialized: "true"}}}
			spec, refused := convert.Node(node, claim, vocabulary)
			if refused != nil {
				t.Fatal(refused)
			}
			poolSpec := convert.Pool(object, vocabulary)
			guard := guard.QuietFrom(&model.Node{NodeSpec: &spec}, &model.Pool{PoolSpec: &poolSpec})
			until, counts := consolidatableFrom(claim, object)
			if !counts {
				until = model.Forever
			}
			if !guard.Equal(until) {
				t.Errorf("consolidateAfter %s, %s: the condition changes at %s, the guard's result at %s", after, name, until, guard)
			}
		}
	}
}
