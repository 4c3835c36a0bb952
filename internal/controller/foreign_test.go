package controller_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller/nodepool"
)

// otherCloud is a provider with another kind of node class.
type otherCloud struct{ *memoryCloud }

func (otherCloud) Name() string { return "other" }

func (otherCloud) NodeClasses() []client.Object { return []client.Object{&awsv1.EC2NodeClass{}} }

func newForeignPool(name string) *karpv1.NodePool {
	pool := newPool(name)
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: className}
	return pool
}

// beside runs a controller of the other provider.
func (w *world) beside() {
	w.t.Helper()
	w.run(func(mgr ctrl.Manager) error {
		r := &nodepool.Reconciler{Client: mgr.GetClient(), Provider: otherCloud{newMemoryCloud()}, Timers: w.timers, Clock: clock.RealClock{}, Health: nodepool.NewHealth(), Metrics: w.metrics}
		return r.SetupWithManager(mgr)
	})
}

func (w *world) createOtherClass() {
	w.t.Helper()
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: className}}
	class.Spec.Role = "nodes"
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: "subnet-0123456789abcdef0"}}
	class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: "sg-0123456789abcdef0"}}
	w.create(class)
	w.t.Cleanup(func() {
		if err := w.wipe(context.WithoutCancel(w.t.Context()), class); err != nil {
			w.t.Error(err)
		}
	})
}

// testPoolWithoutController covers a pool that a controller of another provider once marked ready, and that has no controller
// now. The pool is reported as not managed, and becomes ready again when such a controller starts.
func testPoolWithoutController(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.ClassRecheck = 100 * time.Millisecond
	w.createOtherClass()
	pool := newForeignPool("left")
	w.create(pool)
	pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
	pool.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
	w.must(w.client.Status().Update(t.Context(), pool))
	w.start()
	w.untilPool(pool, karpv1.ConditionNodeClassReady, "False", karpv1.ReasonOtherProvider)
	w.untilPool(pool, "Ready", "False", "")
	w.timers.ClassRecheck = time.Hour
	w.beside()
	w.untilPool(pool, "Ready", "True", "")
}

// testPoolsSideBySide verifies that controllers of two providers respond to each other, and never report a pool of
// the other as not managed.
func testPoolsSideBySide(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.ClassRecheck = time.Hour // running controllers respond earlier, even on a busy machine
	w.createOtherClass()
	w.start()
	w.beside()
	watching, err := client.NewWithWatch(w.config, client.Options{Scheme: w.scheme})
	w.must(err)
	changes, err := watching.Watch(t.Context(), &karpv1.NodePoolList{})
	w.must(err)
	defer changes.Stop()
	w.create(newPool("mine"))
	w.create(newForeignPool("theirs"))
	asked, settled := map[string]bool{}, map[string]bool{}
	for len(settled) < 2 {
		change, open := <-changes.ResultChan()
		if !open {
			t.Fatalf("no further events; asked %v, then ready and answered %v; want both", asked, settled)
		}
		pool, ok := change.Object.(*karpv1.NodePool)
		if !ok || change.Type == watch.Deleted {
			continue
		}
		conditions := pool.StatusConditions()
		question, ready := conditions.Get(karpv1.ConditionServed) != nil, conditions.Get(karpv1.ConditionNodeClassReady)
		if ready.Reason == karpv1.ReasonOtherProvider {
			t.Errorf("pool %s was reported as not managed: %s", pool.Name, ready.Message)
		}
		asked[pool.Name] = asked[pool.Name] || question
		if asked[pool.Name] && !question && conditions.Root().IsTrue() {
			settled[pool.Name] = true
		}
	}
}
