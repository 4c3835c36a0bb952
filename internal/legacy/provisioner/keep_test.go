package provisioner_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

func notWanted(w *world) {
	w.start()
	w.apply(strings.Replace(template, "maxPods: 200", "maxPods: 201", 1))
	w.pool("dense", "is there", there)
	w.pool("plain", "is there", there)
	var own string
	w.until("one of them has a class of its own", func() bool {
		for _, name := range []string{"shared-dense", "shared-plain"} {
			if w.read(name, &awsv1.EC2NodeClass{}) {
				own = name
				return true
			}
		}
		return false
	})
	// Without kubelet settings both use the template's class.
	dense := &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "dense"}}
	w.must(w.Patch(w.t.Context(), dense, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"kubeletConfiguration":null}}`))))
	for _, name := range []string{"dense", "plain"} {
		w.pool(name, "uses the template's class", func(pool *karpv1.NodePool) bool { return pool.Spec.Template.Spec.NodeClassRef.Name == "shared" })
	}
	w.until(own+" is gone", func() bool { return !w.read(own, &awsv1.EC2NodeClass{}) })
	// A class that can no longer be created is kept, because its pool references it.
	w.apply(`
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: shared}
spec: {launchTemplate: mine, subnetSelector: {a: b}}`)
	w.until("the template tells", func() bool {
		t := &awsv1alpha1.AWSNodeTemplate{}
		w.read("shared", t)
		return t.StatusConditions().Get(karpv1alpha5.ConditionNodeClassReady).Reason == karpv1alpha5.ReasonNotMade
	})
	w.pass("after-the-template")
	w.stays("shared")
}

// pass waits until a pass that began after the call is over.
func (w *world) pass(name string) {
	w.t.Helper()
	w.apply(strings.ReplaceAll(everySmall, "NAME", name))
	w.provisioner(name, karpv1alpha5.ConditionApplied, "True", "")
}

// stays fails unless the class exists and is not being deleted.
func (w *world) stays(name string) {
	w.t.Helper()
	class := &awsv1.EC2NodeClass{}
	if !w.read(name, class) || !class.DeletionTimestamp.IsZero() {
		w.t.Errorf("class %s, with which machines are launched, is gone", name)
	}
}

// needed verifies that a pool that cannot be changed, and one that a user wrote, keep the classes that they
// reference.
func needed(w *world) {
	w.start()
	w.apply(strings.ReplaceAll(everySmall, "NAME", "moving"))
	w.pool("moving", "is there", there)
	const edit = `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: moving}
spec: {providerRef: {name: other}, taints: [{key: "KEY", effect: NoSchedule}]}`
	w.apply(strings.Replace(edit, "KEY", "no such key!", 1))
	w.provisioner("moving", karpv1alpha5.ConditionApplied, "False", karpv1alpha5.ReasonRefused)
	w.pass("after-the-edit")
	w.stays("moving")

	w.apply(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: by-hand}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: moving}}}}`)
	w.apply(strings.Replace(edit, "KEY", "key", 1))
	w.pool("moving", "names the other class", func(pool *karpv1.NodePool) bool { return pool.Spec.Template.Spec.NodeClassRef.Name == "other" })
	w.pass("after-the-mending")
	w.stays("moving")

	w.must(w.Delete(w.t.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}))
	w.until("the class is unused, and it is gone", func() bool { return !w.read("moving", &awsv1.EC2NodeClass{}) })
}

// takenOver verifies that a template whose name a Provisioner's class has gets the class when the Provisioner has
// moved to another.
func takenOver(w *world) {
	w.start()
	w.apply(strings.ReplaceAll(everySmall, "NAME", "both"))
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: referring}
spec: {providerRef: {name: both}}`)
	before := w.class("both", "is there", there)
	w.pool("referring", "is there", there)
	w.apply(`
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: both}
spec: {subnetSelector: {of: template}, securityGroupSelector: {a: b}}`)
	t := &awsv1alpha1.AWSNodeTemplate{}
	w.until("the template is there", func() bool { return w.read("both", t) })
	after := w.class("both", "is the template's", func(c *awsv1.EC2NodeClass) bool {
		return metav1.IsControlledBy(c, t) && len(c.OwnerReferences) == 1 && c.Spec.SubnetSelectorTerms[0].Tags["of"] == "template"
	})
	if after.UID != before.UID {
		w.t.Error("it was created again, which required its deletion")
	}
	p := w.provisioner("both", karpv1alpha5.ConditionApplied, "True", "")
	w.class("both-provider", "is the Provisioner's", func(c *awsv1.EC2NodeClass) bool { return metav1.IsControlledBy(c, p) })
	w.pool("both", "names it", func(pool *karpv1.NodePool) bool { return pool.Spec.Template.Spec.NodeClassRef.Name == "both-provider" })
	w.until("the template tells that all is well", func() bool {
		return w.read("both", t) && t.StatusConditions().Get(karpv1alpha5.ConditionApplied).IsTrue()
	})
}

// others verifies that the class of a deleted source keeps its kubelet settings while its nodes may exist, and that
// the other source keeps its own class.
func others(w *world) {
	w.start()
	w.apply(strings.Replace(template, "spec: {providerRef: {name: shared}}", "spec: {providerRef: {name: shared}, kubeletConfiguration: {maxPods: 7}}", 1))
	w.pool("dense", "is there", there)
	w.pool("plain", "is there", there)
	var first, second string
	w.until("one of them has a class of its own", func() bool {
		for _, pair := range [][2]string{{"dense", "plain"}, {"plain", "dense"}} {
			if w.read("shared-"+pair[1], &awsv1.EC2NodeClass{}) {
				first, second = pair[0], pair[1]
				return true
			}
		}
		return false
	})
	pool := w.pool(second, "names its class", func(pool *karpv1.NodePool) bool { return pool.Spec.Template.Spec.NodeClassRef.Name == "shared-"+second })
	own := w.class("shared-"+second, "is there", there)
	shared := w.class("shared", "has kubelet settings", func(c *awsv1.EC2NodeClass) bool { return c.Spec.Kubelet != nil })
	w.must(w.Delete(w.t.Context(), &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: first}}))
	w.until("the first is gone", func() bool { return !w.read(first, &karpv1alpha5.Provisioner{}) })
	// Later objects are processed after the deletion.
	w.apply(strings.ReplaceAll(everySmall, "NAME", "later"))
	w.provisioner("later", karpv1alpha5.ConditionApplied, "True", "")
	if diff := cmp.Diff(pool.Spec, w.pool(second, "is there", there).Spec); diff != "" {
		w.t.Errorf("the other's pool: %s", diff)
	}
	if diff := cmp.Diff(own.Spec, w.class("shared-"+second, "is there", there).Spec); diff != "" {
		w.t.Errorf("the other's class: %s", diff)
	}
	if diff := cmp.Diff(shared.Spec, w.class("shared", "is there", there).Spec); diff != "" {
		w.t.Errorf("the template's class: %s", diff)
	}
}

// everySmall is the smallest Provisioner with a provider section.
const everySmall = `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: NAME}
spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`
