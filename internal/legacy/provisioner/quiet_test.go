package provisioner_test

import (
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// quiet verifies that repeated passes, and a restarted controller, write nothing if nothing has to change.
func quiet(w *world) {
	w.start()
	w.apply(template)
	w.apply(`
apiVersion: karpenter.sh/v1alpha3
kind: Provisioner
metadata: {name: three}
spec: {cluster: {name: test, endpoint: "https://0123"}, ttlSecondsUntilExpired: 60, taints: [{key: a, effect: NoSchedule}]}`)
	objects := func() map[string]any {
		all := map[string]any{}
		for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &awsv1.EC2NodeClassList{}, &karpv1alpha5.ProvisionerList{}, &awsv1alpha1.AWSNodeTemplateList{}} {
			w.must(w.List(w.t.Context(), list))
			items, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
			w.must(err)
			for _, item := range items["items"].([]any) {
				object := unstructured.Unstructured{Object: item.(map[string]any)}
				all[string(object.GetUID())] = object.Object
			}
		}
		return all
	}
	settled := func() map[string]any {
		var last map[string]any
		same := 0
		w.until("nothing changes any more", func() bool {
			now := objects()
			if same++; !cmp.Equal(last, now) {
				last, same = now, 0
			}
			return same >= 25
		})
		return last
	}
	for _, name := range []string{"plain", "dense", "three"} {
		w.provisioner(name, karpv1alpha5.ConditionApplied, "True", "")
	}
	before := settled()
	if len(before) != 3+3+3+1 {
		w.t.Fatalf("%d objects", len(before))
	}
	w.start() // a second controller, which sees everything for the first time
	// The end of a pass is detected by its effect, so it gets something to do.
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: zz-last}
spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	w.provisioner("zz-last", karpv1alpha5.ConditionApplied, "True", "")
	after := settled()
	for uid, object := range before {
		if diff := cmp.Diff(object, after[uid]); diff != "" {
			w.t.Errorf("an object has been written:\n%s", diff)
		}
	}
	if apierrors.IsNotFound(w.Get(w.t.Context(), client.ObjectKey{Name: "zz-last"}, &karpv1.NodePool{})) {
		w.t.Error("the last one has no pool")
	}
}
