package provisioner_test

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// startSimulated runs the controller for simulated machines.
func (w *world) startSimulated() (stop func()) { return w.startWith(v1alpha5.Settings{Kwok: true}) }

// untouched fails if an object was written since it was read.
func (w *world) untouched(was client.Object) {
	w.t.Helper()
	now := was.DeepCopyObject().(client.Object)
	if !w.read(was.GetName(), now) {
		w.t.Errorf("%T %s no longer exists", was, was.GetName())
	} else if diff := cmp.Diff(was, now); diff != "" {
		w.t.Errorf("%T %s was written, -was +is:\n%s", was, was.GetName(), diff)
	}
}

// otherProvider verifies that objects that one provider's controller manages are not changed by another's, also
// during deletion.
func otherProvider(w *world) {
	stop := w.startSimulated()
	w.apply(strings.ReplaceAll(everySmall, "NAME", "another"))
	w.provisioner("another", karpv1alpha5.ConditionApplied, "True", "")
	stop()
	p, pool, class := &karpv1alpha5.Provisioner{}, &karpv1.NodePool{}, &kwokv1alpha1.KWOKNodeClass{}
	switch {
	case !w.read("another", p):
		w.t.Fatalf(`the result of the Provisioner does not exist: w.read("another", p) is false`)
	case !w.read("another", pool):
		w.t.Fatalf(`the result of the Provisioner does not exist: w.read("another", pool) is false`)
	case !w.read("another", class):
		w.t.Fatalf(`the result of the Provisioner does not exist: w.read("another", class) is false`)
	}

	stop = w.start()
	w.pass("one-of-ours")
	if w.read("another", &awsv1.EC2NodeClass{}) {
		w.t.Error("it has a class of each provider")
	}
	w.untouched(p)
	w.untouched(pool)
	w.must(w.leave(w.t.Context(), p))
	w.must(w.collect(w.t.Context(), p))
	w.pass("another-of-ours")
	if !w.read("another", p) || !slices.Contains(p.Finalizers, karpv1.FinalizerMadeFrom) {
		w.t.Error("a controller has released objects that another manages")
	}
	stop()

	// A class from the time before there was only one managing controller has no manager either.
	stray := &awsv1.EC2NodeClass{}
	if !w.read("one-of-ours", stray) {
		w.t.Fatal("there is no class to copy")
	}
	stray.ObjectMeta = metav1.ObjectMeta{Name: "another", Annotations: map[string]string{karpv1.AnnotationMadeFrom: "Provisioner/another"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, karpv1alpha5.GroupVersion.WithKind(karpv1alpha5.Kind))}}
	w.must(w.Create(w.t.Context(), stray))
	// The other controller releases what it created. The collector has released the pool by now, which shows the kind
	// of deletion.
	w.must(w.collect(w.t.Context(), p, pool))
	w.startSimulated()
	w.gone(p)
	w.free(pool)
	w.free(class)
	w.free(stray)
}

// oneKeeper verifies that a Provisioner whose pool is gone keeps its manager, by its status, and that a new one gets
// one result only while both controllers run.
func oneKeeper(w *world) {
	stop := w.startSimulated()
	w.apply(strings.ReplaceAll(everySmall, "NAME", "poolless"))
	w.provisioner("poolless", karpv1alpha5.ConditionApplied, "True", "")
	stop()
	w.must(w.Delete(w.t.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "poolless"}}))
	w.start()
	w.pass("of-ours")
	if w.read("poolless", &karpv1.NodePool{}) || w.read("poolless", &awsv1.EC2NodeClass{}) {
		w.t.Error("a controller has created objects from a Provisioner that another manages")
	}
	w.startSimulated()
	w.pool("poolless", "is as it was", func(pool *karpv1.NodePool) bool {
		return pool.Spec.Template.Spec.NodeClassRef.Kind == kwokv1alpha1.Kind
	})

	names := []string{"both-a", "both-b", "both-c", "both-d"}
	for _, name := range names {
		w.apply(strings.ReplaceAll(everySmall, "NAME", name))
	}
	for _, name := range names {
		p := w.provisioner(name, karpv1alpha5.ConditionApplied, "True", "")
		pool := w.pool(name, "is owned", func(pool *karpv1.NodePool) bool { return metav1.IsControlledBy(pool, p) })
		ours, simulated := w.read(name, &awsv1.EC2NodeClass{}), w.read(name, &kwokv1alpha1.KWOKNodeClass{})
		kind := pool.Spec.Template.Spec.NodeClassRef.Kind
		switch {
		case ours == simulated:
			w.t.Errorf("ours is %v, want another value than %v", ours, simulated)
		case ours != (kind == awsv1.Kind):
			w.t.Errorf("ours is %v, want %v, a pool of %s", ours, (kind == awsv1.Kind), kind)
		case p.Status.NodeClass != kind+"/"+name:
			w.t.Errorf("p.Status.NodeClass is %v, want %v, %s, a pool of %s", p.Status.NodeClass, kind+"/"+name, name, kind)
		}
	}
}

// oneKindServed verifies that without the definition of one older kind nothing is created, but deletions are
// completed, and that processing continues when the definition is served.
func oneKindServed(w *world) {
	for _, missing := range []string{awsv1alpha1.Kind, karpv1alpha5.Kind} {
		name := strings.ToLower("without-" + missing)
		stop := w.start()
		w.apply(strings.ReplaceAll(templateOf, "NAME", name))
		w.apply(strings.ReplaceAll(everySmall, "NAME", name))
		p := w.provisioner(name, karpv1alpha5.ConditionApplied, "True", "")
		t := &awsv1alpha1.AWSNodeTemplate{}
		w.until("the template is held", func() bool { return w.read(name, t) && slices.Contains(t.Finalizers, karpv1.FinalizerMadeFrom) })
		stop()

		stop, r := w.startUnserved(v1alpha5.Settings{ClusterName: "test", DefaultInstanceProfile: "nodes"})
		kinds := r.Kinds()
		late := slices.IndexFunc(kinds, func(kind schema.GroupVersionKind) bool { return kind.Kind == missing })
		w.must(r.Serve(kinds[1-late]))
		var going client.Object = p
		if missing == karpv1alpha5.Kind {
			going = t
		}
		w.must(w.Delete(w.t.Context(), going))
		w.gone(going)
		w.apply(strings.ReplaceAll(everySmall, "NAME", name+"-new"))
		w.must(r.Serve(kinds[late]))
		w.provisioner(name+"-new", karpv1alpha5.ConditionApplied, "True", "")
		stop()
	}
}

const templateOf = `
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: NAME}
spec: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}`

// handmadeClass verifies that a manually created class of simulated nodes is used as it is, and the Provisioner is
// ready: it does not describe such a class.
func handmadeClass(w *world) {
	w.startSimulated()
	w.apply(`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: handmade}`)
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: handmade}
spec: {}`)
	w.provisioner("handmade", karpv1alpha5.ConditionApplied, "True", "")
	class := &kwokv1alpha1.KWOKNodeClass{}
	switch {
	case !w.read("handmade", class):
		w.t.Errorf(`the class is taken over: w.read("handmade", class) is false, %+v`, class.ObjectMeta)
	case len(class.OwnerReferences) > 0:
		w.t.Errorf("the class is taken over: len(class.OwnerReferences) is %v, want 0, %+v", len(class.OwnerReferences), class.ObjectMeta)
	case class.Annotations[karpv1.AnnotationMadeFrom] != "":
		w.t.Errorf(`the class is taken over: class.Annotations[karpv1.AnnotationMadeFrom] is %v, want "", %+v`,
			class.Annotations[karpv1.AnnotationMadeFrom], class.ObjectMeta)
	}
}
