package legacy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
	controllerlegacy "github.com/karpenter-go/karpenter/internal/controller/legacy"
	"github.com/karpenter-go/karpenter/internal/legacy"
	"github.com/karpenter-go/karpenter/internal/sandbox/sandboxtest"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// patience is for how long a test waits for what must come.
const patience = time.Minute

// world is the controller at work against a real API server, on which nothing else runs.
type world struct {
	client.Client
	t      *testing.T
	config *rest.Config
	scheme *runtime.Scheme
	sink   *events.FakeRecorder
}

// All tests share one server: starting it takes longer than all of them.
func TestController(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, karpv1.AddToScheme, kwokv1alpha1.AddToScheme, awsv1.AddToScheme, karpv1alpha5.AddToScheme, awsv1alpha1.AddToScheme,
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
		{"OneBadObjectStopsNoOther", badObject},
		{"WhatIsNotWantedGoes", notWanted},
		{"WhatPoolsNameStays", needed},
		{"AClassThatWasLeftIsTakenOver", takenOver},
		{"WhoGoesChangesNothingForOthers", others},
		{"WhatLostItsOwnerIsOwnedAgain", orphan},
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

// start runs the controller for AWS until the test ends.
func (w *world) start() {
	w.startWith(legacy.Settings{ClusterName: "test", DefaultInstanceProfile: "nodes"})
}

func (w *world) startWith(settings legacy.Settings) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme: w.scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.must(err)
	timers := controller.Production()
	timers.Retry, timers.RetryMax = 20*time.Millisecond, 200*time.Millisecond
	w.must((&controllerlegacy.Reconciler{
		Client: mgr.GetClient(), Recorder: telemetry.NewRecorder(w.sink, clock.RealClock{}), Timers: timers,
		Settings: func(context.Context) legacy.Settings { return settings }, Simulated: settings.Kwok,
	}).SetupWithManager(mgr))
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Errorf("running the manager: %v", err)
		}
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// apply writes manifests as kubectl apply --server-side does.
func (w *world) apply(text string) {
	w.t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(document), &object.Object))
		data, err := object.MarshalJSON()
		w.must(err)
		w.must(w.Patch(context.WithoutCancel(w.t.Context()), object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("kubectl"), client.ForceOwnership))
	}
}

// until waits until what is right is.
func (w *world) until(what string, right func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) { return right(), nil })
	if err != nil {
		w.t.Fatalf("never came: %s", what)
	}
}

// read reads an object by its name; false if it is not there.
func (w *world) read(name string, into client.Object) bool {
	w.t.Helper()
	err := w.Get(w.t.Context(), client.ObjectKey{Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

// pool waits for a pool that is right.
func (w *world) pool(name, what string, right func(*karpv1.NodePool) bool) *karpv1.NodePool {
	w.t.Helper()
	var pool *karpv1.NodePool
	w.until("NodePool "+name+" "+what, func() bool {
		pool = &karpv1.NodePool{}
		return w.read(name, pool) && right(pool)
	})
	return pool
}

func (w *world) class(name, what string, right func(*awsv1.EC2NodeClass) bool) *awsv1.EC2NodeClass {
	w.t.Helper()
	var class *awsv1.EC2NodeClass
	w.until("EC2NodeClass "+name+" "+what, func() bool {
		class = &awsv1.EC2NodeClass{}
		return w.read(name, class) && right(class)
	})
	return class
}

// provisioner waits for one with a condition.
func (w *world) provisioner(name, condition, status, reason string) *karpv1alpha5.Provisioner {
	w.t.Helper()
	var p *karpv1alpha5.Provisioner
	w.until("Provisioner "+name+" has "+condition+"="+status+" "+reason, func() bool {
		p = &karpv1alpha5.Provisioner{}
		if !w.read(name, p) {
			return false
		}
		for _, c := range p.Status.Conditions {
			if c.Type == condition {
				return string(c.Status) == status && (reason == "" || c.Reason == reason)
			}
		}
		return false
	})
	return p
}

func there[T any](T) bool { return true }

// clear removes everything; garbage collection does not run here.
func (w *world) clear() {
	ctx := context.WithoutCancel(w.t.Context())
	for _, kind := range []client.Object{&karpv1alpha5.Provisioner{}, &awsv1alpha1.AWSNodeTemplate{}, &karpv1.NodePool{}, &awsv1.EC2NodeClass{}, &kwokv1alpha1.KWOKNodeClass{}} {
		if err := w.DeleteAllOf(ctx, kind); err != nil {
			w.t.Error(err)
		}
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
		if p.Status.Version != version || p.Status.NodePool != name || p.Status.NodeClass != "EC2NodeClass/"+name || len(p.Status.Notes) == 0 {
			w.t.Errorf("%s: status %+v", name, p.Status)
		}
	}
	five := w.pool("five", "is there", there)
	if got := five.Spec.Disruption.ConsolidateAfter.String(); got != "30s" {
		w.t.Errorf("consolidateAfter is %s", got)
	}
	if got := five.Spec.Template.Spec.ExpireAfter; !got.IsNever() {
		w.t.Errorf("expireAfter is %s", got)
	}
	// The pool becomes ready, and so does what it was made from, under the name that its version had too.
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
	// Who is older has the template's own class; both may have been made within one second, when who is seen first has it.
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
	// What others note on it stays.
	object := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "edited"}}
	w.must(w.Patch(w.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/note":"a"}},"spec":{"weight":7}}`))))
	w.pool("edited", "is as it was, with its note", func(pool *karpv1.NodePool) bool {
		return cmp.Equal(*before, pool.Spec) && pool.Annotations["example.com/note"] == "a"
	})
	// What was deleted is made again.
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
		w.t.Error("the pool was made anew, which takes its nodes")
	}
}

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
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: taken}
spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	p := w.provisioner("taken", karpv1alpha5.ConditionApplied, "False", karpv1alpha5.ReasonNameTaken)
	if c := p.StatusConditions().Get(karpv1alpha5.ConditionApplied); !strings.Contains(c.Message, `NodePool "taken" was not made from this object`) {
		w.t.Errorf("message: %s", c.Message)
	}
	w.event("NotApplied")
	if diff := cmp.Diff(before.Spec, w.pool("taken", "is there", there).Spec); diff != "" {
		w.t.Errorf("the pool of somebody else has changed: %s", diff)
	}
	w.must(w.Delete(w.t.Context(), before))
	w.pool("taken", "is made when the name is free", func(pool *karpv1.NodePool) bool { return metav1.IsControlledBy(pool, p) })
	w.provisioner("taken", karpv1alpha5.ConditionApplied, "True", "")
}

// event waits for one of the reason.
func (w *world) event(reason string) {
	w.t.Helper()
	w.until("an event "+reason, func() bool {
		select {
		case text := <-w.sink.Events:
			return strings.Contains(text, reason)
		default:
			return false
		}
	})
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
	// Its pool waits for a class that a person writes, and takes it as it is.
	w.pool("worse", "names the class", func(pool *karpv1.NodePool) bool { return pool.Spec.Template.Spec.NodeClassRef.Name == "worse" })
	w.apply(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: worse}
spec: {role: r, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}`)
	w.provisioner("worse", karpv1alpha5.ConditionApplied, "True", "")
}

// A status as controllers of those days left it cannot be validated today.
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

// A controller that looks at everything again, and one that starts, write nothing where all is as it should be.
func quiet(w *world) {
	w.start()
	w.apply(template)
	w.apply(`
apiVersion: karpenter.sh/v1alpha3
kind: Provisioner
metadata: {name: three}
spec: {cluster: {name: test, endpoint: "https://0123"}, ttlSecondsUntilExpired: 60, taints: [{key: a, effect: NoSchedule}]}`)
	versions := func() map[string]string {
		all := map[string]string{}
		for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &awsv1.EC2NodeClassList{}, &karpv1alpha5.ProvisionerList{}, &awsv1alpha1.AWSNodeTemplateList{}} {
			w.must(w.List(w.t.Context(), list))
			items, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
			w.must(err)
			for _, item := range items["items"].([]any) {
				object := unstructured.Unstructured{Object: item.(map[string]any)}
				all[string(object.GetUID())] = object.GetResourceVersion()
			}
		}
		return all
	}
	settled := func() map[string]string {
		var last map[string]string
		same := 0
		w.until("nothing changes any more", func() bool {
			now := versions()
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
	// A pass is over when what it has to do is done: it is given something to do.
	w.apply(`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: zz-last}
spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	w.provisioner("zz-last", karpv1alpha5.ConditionApplied, "True", "")
	after := settled()
	for uid, version := range before {
		if after[uid] != version {
			w.t.Errorf("object %s has been written", uid)
		}
	}
	if apierrors.IsNotFound(w.Get(w.t.Context(), client.ObjectKey{Name: "zz-last"}, &karpv1.NodePool{})) {
		w.t.Error("the last one has no pool")
	}
}
