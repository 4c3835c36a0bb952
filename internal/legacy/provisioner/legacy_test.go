package provisioner_test

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// TestController runs all scenarios on one server, because its start takes longer than all of them.
func TestController(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, karpv1.AddToScheme, kwokv1alpha1.AddToScheme, awsv1.AddToScheme, karpv1alpha5.AddToScheme,
		awsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ctrl.SetLogger(logr.Discard())
	cfg := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		run  func(*world)
	}{
		{"EveryVersionBecomesAPool", everyVersion},
		{"ATemplateBecomesAClass", templateBecomesClass},
		{"EditsByHandAreUndone", editsByHand},
		{"AChangeIsFollowed", change},
		{"ATakenNameIsLeftAlone", takenName},
		{"AHandmadeClassOfSimulatedNodesIsUsed", handmadeClass},
		{"OneBadObjectStopsNoOther", badObject},
		{"WhatIsNotWantedGoes", notWanted},
		{"WhatPoolsNameStays", needed},
		{"AClassThatWasLeftIsTakenOver", takenOver},
		{"DeletedSourceDoesNotChangeOthers", others},
		{"ObjectsWithoutOwnerAreOwnedAgain", ownedAgain},
		{"PlainDeletionIsTheCollectors", plainDeletion},
		{"OrphansAreReleasedWhateverTheCollectorSees", leftBehind},
		{"OrphansDeletedWithoutControllerAreReleased", leftBehindUnseen},
		{"OrphansUnseenByTheCollectorAreItsOwn", leftBehindUntold},
		{"ProvisionersOfAnotherProviderAreUnchanged", otherProvider},
		{"OneProviderManagesAProvisioner", oneKeeper},
		{"DeletedSourcesAreReleasedWhileOneKindIsServed", oneKindServed},
		{"OrphansAreNotOwnedAgainByAConcurrentPass", leftBehindMeanwhile},
		{"OrphansStayReleasedUntilAnOperatorDecides", leftBehindForGood},
		{"SharedClassesStayWithTheOthers", leftBehindShared},
		{"StatusesOfOldControllersAreReplaced", oldStatus},
		{"NothingIsWrittenTwice", quiet},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{Client: c, t: t, config: cfg, scheme: scheme, sink: events.NewFakeRecorder(10_000)}
			t.Cleanup(w.clear)
			test.run(w)
		})
	}
}

func everyVersion(w *world) {
	w.start()
	w.apply(`
apiVersion: karpenter.sh/v1alpha3
kind: Provisioner
metadata: {name: three}
spec:
  cluster: {name: test, endpoint: "https://0123", caBundle: LS0t}
  instanceTypes: [t3.medium]
  ttlSecondsAfterEmpty: 30
---
apiVersion: karpenter.sh/v1alpha4
kind: Provisioner
metadata: {name: four}
spec:
  zones: [eu-west-1a]
  provider: {instanceProfile: nodes, cluster: {name: test, endpoint: "https://0123"}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: five}
spec:
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
  limits: {resources: {cpu: 1000}}
  provider: {subnetSelector: {karpenter.sh/discovery: test}, securityGroupSelector: {karpenter.sh/discovery: test}}
  ttlSecondsAfterEmpty: 30`)
	for name, version := range map[string]string{"three": "v1alpha3", "four": "v1alpha4", "five": "v1alpha5"} {
		pool := w.pool(name, "is there", there)
		class := w.class(name, "is there", there)
		if got := pool.Spec.Template.Spec.NodeClassRef.Name; got != name {
			w.t.Errorf("%s: the pool names class %q", name, got)
		}
		p := w.provisioner(name, karpv1alpha5.ConditionApplied, "True", "")
		for _, made := range []client.Object{pool, class} {
			if !metav1.IsControlledBy(made, p) || made.GetAnnotations()[karpv1.AnnotationMadeFrom] != "Provisioner/"+name {
				w.t.Errorf("%s: %T is not owned by it: %v %v", name, made, made.GetOwnerReferences(), made.GetAnnotations())
			}
		}
		switch {
		case p.Status.Version != version:
			w.t.Errorf("p.Status.Version is %v, want %v", p.Status.Version, version)
		case p.Status.NodePool != name:
			w.t.Errorf("p.Status.NodePool is %v, want %v", p.Status.NodePool, name)
		case p.Status.NodeClass != "EC2NodeClass/"+name:
			w.t.Errorf("p.Status.NodeClass is %v, want %v, %s", p.Status.NodeClass, "EC2NodeClass/"+name, name)
		case len(p.Status.Notes) == 0:
			w.t.Errorf("len(p.Status.Notes) is 0, status %+v", p.Status)
		}
	}
	five := w.pool("five", "is there", there)
	if got := five.Spec.Disruption.ConsolidateAfter.String(); got != "30s" {
		w.t.Errorf("consolidateAfter is %s", got)
	}
	if got := five.Spec.Template.Spec.ExpireAfter; !got.IsNever() {
		w.t.Errorf("expireAfter is %s", got)
	}
	// The pool becomes ready, and so does its source, with the condition name of its version.
	five.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
	five.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
	five.Status.Resources = corev1.ResourceList{"cpu": resource.MustParse("8")}
	w.must(w.Status().Update(w.t.Context(), five))
	ready := w.provisioner("five", "Ready", "True", "")
	if cpu := ready.Status.Resources["cpu"]; cpu.String() != "8" {
		w.t.Errorf("resources are %v", ready.Status.Resources)
	}
	w.provisioner("five", karpv1alpha5.ConditionActive, "True", "")
}

const template = `
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: shared}
spec: {subnetSelector: {a: "b,c"}, securityGroupSelector: {a: b}, amiFamily: Bottlerocket}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: plain}
spec: {providerRef: {name: shared}}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: dense}
spec: {providerRef: {name: shared}, kubeletConfiguration: {maxPods: 200}}`

func templateBecomesClass(w *world) {
	w.start()
	w.apply(template)
	shared := w.class("shared", "is there", there)
	if len(shared.Spec.SubnetSelectorTerms) != 2 {
		w.t.Errorf("subnets: %+v", shared.Spec.SubnetSelectorTerms)
	}
	// The older source has the template's own class. Both may have been created within one second; then the first one
	// seen has it.
	var names []string
	w.until("the two have classes of their own", func() bool {
		plain, dense := w.pool("plain", "is there", there), w.pool("dense", "is there", there)
		names = []string{plain.Spec.Template.Spec.NodeClassRef.Name, dense.Spec.Template.Spec.NodeClassRef.Name}
		return names[0] != names[1]
	})
	if diff := cmp.Diff([]string{"shared", "shared-dense"}, names); diff != "" && cmp.Diff([]string{"shared-plain", "shared"}, names) != "" {
		w.t.Errorf("classes: %s", diff)
	}
	t := &awsv1alpha1.AWSNodeTemplate{}
	w.until("the template knows its class", func() bool { return w.read("shared", t) && t.Status.NodeClass == "shared" })
	shared = w.class("shared", "is there", func(c *awsv1.EC2NodeClass) bool { return metav1.IsControlledBy(c, t) })
	shared.Status.Subnets = []awsv1.Subnet{{ID: "subnet-1", Zone: "z"}}
	w.must(w.Status().Update(w.t.Context(), shared))
	w.until("the template shows what was found", func() bool {
		w.read("shared", t)
		return len(t.Status.Subnets) == 1 && t.Status.Subnets[0].ID == "subnet-1"
	})
}

func editsByHand(w *world) {
	w.start()
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: edited}
spec: {limits: {resources: {cpu: 10}}, weight: 5, provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	want := w.pool("edited", "is there", there)
	before := want.Spec.DeepCopy()
	for _, edit := range []string{
		`{"spec":{"weight":50}}`, `{"spec":{"limits":{"memory":"1Gi"}}}`, `{"spec":{"template":{"metadata":{"labels":{"mine":"1"}}}}}`,
		`{"metadata":{"ownerReferences":null}}`, `{"metadata":{"annotations":{"karpenter-go.github.io/made-from":null}}}`,
	} {
		object := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "edited"}}
		w.must(w.Patch(w.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(edit))))
		w.pool("edited", "is as it was after "+edit, func(pool *karpv1.NodePool) bool {
			return cmp.Equal(*before, pool.Spec) && len(pool.OwnerReferences) == 1 && pool.Annotations[karpv1.AnnotationMadeFrom] != ""
		})
	}
	// Metadata of other writers is kept.
	object := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "edited"}}
	w.must(w.Patch(w.t.Context(), object, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"example.com/note":"a"}},"spec":{"weight":7}}`))))
	w.pool("edited", "is as it was, with its note", func(pool *karpv1.NodePool) bool {
		return cmp.Equal(*before, pool.Spec) && pool.Annotations["example.com/note"] == "a"
	})
	// A deleted object is created again.
	w.must(w.Delete(w.t.Context(), &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "edited"}}))
	w.must(w.Delete(w.t.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "edited"}}))
	w.pool("edited", "is made again", func(pool *karpv1.NodePool) bool { return pool.UID != want.UID })
	w.class("edited", "is made again", there)
}

func change(w *world) {
	w.start()
	const text = `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: changing}
spec: {TTL, labels: {team: a}, provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`
	w.apply(strings.Replace(text, "TTL", "ttlSecondsAfterEmpty: 30", 1))
	uid := w.pool("changing", "is there", there).UID
	w.apply(strings.Replace(strings.Replace(text, "TTL", "consolidation: {enabled: true}", 1), "team: a", "team: b", 1))
	pool := w.pool("changing", "follows", func(pool *karpv1.NodePool) bool {
		return pool.Spec.Disruption.ConsolidationPolicy == karpv1.ConsolidateWhenEmptyOrUnderutilized && pool.Spec.Template.ObjectMeta.Labels["team"] == "b"
	})
	if pool.UID != uid {
		w.t.Error("the pool was created again, which removes its nodes")
	}
}
