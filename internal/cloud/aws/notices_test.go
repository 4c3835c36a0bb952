package aws

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// A decision is applied to the claim that it is about, and not to another claim of the same name.
func TestAct(t *testing.T) {
	w := newWorld(t, "m5.large")
	var reported, disrupted []string
	p := w.provider(t, func(o *Options) {
		o.Observer.Event = func(object client.Object, e interruption.Event) {
			reported = append(reported, object.GetName()+" "+e.Reason)
		}
		o.Observer.Disrupted = func(claim *karpv1.NodeClaim, kind interruption.Kind) {
			disrupted = append(disrupted, claim.Name+" "+string(kind))
		}
	})
	claim := w.launched(t, p, "taken")
	id, _ := instanceOf(claim.Status.ProviderID)
	found, err := p.claimsOf(t.Context(), []string{id, "i-0aaaaaaaaaaaaaaaa"})
	check(t, err)
	switch {
	case len(found) != 1:
		t.Fatalf("claims of the instances: len(found) is %v, want 1, %+v", len(found), found)
	case found[id].Name != "taken":
		t.Fatalf(`claims of the instances: found[id].Name is %v, want "taken"`, found[id].Name)
	case found[id].Type != "m5.large":
		t.Fatalf(`claims of the instances: found[id].Type is %v, want "m5.large"`, found[id].Type)
	case found[id].Zone == "":
		t.Fatalf(`claims of the instances: found[id].Zone is "", %+v`, found)
	}
	for selector, other := range map[string]bool{"karpenter.sh/nodepool": false, "karpenter.sh/nodepool=none": true} {
		parsed, err := labels.Parse(selector)
		check(t, err)
		p.opts.Selection = karpv1.Selection{Selector: parsed}
		if again, err := p.claimsOf(t.Context(), []string{id}); err != nil || again[id].Other != other {
			t.Errorf("%s: the claim is %+v, error %v; want Other %v", selector, again[id], err, other)
		}
	}
	p.opts.Selection = karpv1.Selection{}
	deadline := time.Date(2026, 11, 20, 12, 2, 0, 0, time.UTC)
	d := interruption.Decision{Claim: found[id], Instance: id, Kind: interruption.SpotInterrupted, Replace: true, Deadline: deadline,
		Events: []interruption.Event{{Reason: "SpotInterrupted", Warning: true, Message: "taken"}}}

	stranger := d
	stranger.Claim.UID = "another"
	check(t, p.act(t.Context(), stranger))
	check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if len(reported)+len(disrupted) > 0 || claim.Annotations[karpv1.AnnotationTerminationTimestamp] != "" {
		t.Fatalf("a claim of the same name was changed: %v, %v", reported, disrupted)
	}

	claim.Finalizers = []string{karpv1.FinalizerTermination}
	check(t, w.api.Update(t.Context(), claim))
	check(t, p.act(t.Context(), d))
	check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if claim.DeletionTimestamp == nil || claim.Annotations[karpv1.AnnotationTerminationTimestamp] != "2026-11-20T12:02:00Z" {
		t.Errorf("deleted %v, deadline %q", claim.DeletionTimestamp, claim.Annotations[karpv1.AnnotationTerminationTimestamp])
	}
	if diff := cmp.Diff([]string{"taken SpotInterrupted"}, reported); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"taken spot_interrupted"}, disrupted); diff != "" {
		t.Errorf("disrupted (-want +got):\n%s", diff)
	}
	if again := noticed(claim); !again.Deleting || !again.Deadline.Equal(deadline) {
		t.Errorf("the next notice has %+v", again)
	}
	claim.Finalizers = nil
	check(t, w.api.Update(t.Context(), claim))
	check(t, p.act(t.Context(), d)) // a repeated decision that arrives late
}

// replacedClaim is a client for which each claim is replaced by one of the same name between its read and its patch.
type replacedClaim struct {
	client.Client
	patches []string
}

func (r *replacedClaim) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	r.patches = append(r.patches, string(data))
	return apierrors.NewConflict(schema.GroupResource{Resource: "nodeclaims"}, o.GetName(), errors.New("precondition failed: UID"))
}

// TestDeadlineOfAnotherClaim checks that the end of a drain is written to the claim that the notice is about: the patch
// contains its UID, and a claim that was created under the same name meanwhile stays.
func TestDeadlineOfAnotherClaim(t *testing.T) {
	w := newWorld(t, "m5.large")
	claim := w.launched(t, w.provider(t), "taken")
	api := &replacedClaim{}
	p := w.provider(t, func(o *Options) {
		api.Client = o.Client
		o.Client = api
	})
	id, _ := instanceOf(claim.Status.ProviderID)
	check(t, p.act(t.Context(), interruption.Decision{Claim: noticed(claim), Instance: id, Kind: interruption.SpotInterrupted,
		Replace: true, Deadline: time.Date(2026, 11, 20, 12, 2, 0, 0, time.UTC)}))
	if len(api.patches) != 1 || !strings.Contains(api.patches[0], `"uid":"`+string(claim.UID)+`"`) {
		t.Errorf("the patches are %q, want one with the UID %s", api.patches, claim.UID)
	}
	check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if claim.DeletionTimestamp != nil {
		t.Error("the other claim is deleted")
	}
}

// If the account may not launch spot instances, this is reported once per claim, and claims launch on demand meanwhile.
func TestSpotRoleMissing(t *testing.T) {
	w := newWorld(t, "m5.large")
	var reported []interruption.Event
	p := w.provider(t, func(o *Options) {
		o.Observer.Event = func(_ client.Object, e interruption.Event) { reported = append(reported, e) }
	})
	check(t, w.sim.Reject("", "", karpv1.CapacityTypeSpot, awssim.Refusal{Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
		Message: "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances."}))
	claim := w.claim(t, "either")
	if _, err := p.Launch(t.Context(), claim); err == nil {
		t.Fatal("a spot instance was launched without the role")
	}
	switch {
	case len(reported) != 1:
		t.Errorf("len(told) is %v, want 1, events %+v", len(reported), reported)
	case reported[0].Reason != "SpotSLRCreationFailed":
		t.Errorf(`told[0].Reason is %v, want "SpotSLRCreationFailed"`, reported[0].Reason)
	case !reported[0].Warning:
		t.Errorf("told[0].Warning is false, events %+v", reported)
	case !strings.Contains(reported[0].Message, "AWSServiceRoleForEC2Spot"):
		t.Errorf(`told[0].Message lacks "AWSServiceRoleForEC2Spot", events %+v`, reported)
	}
	machine, err := p.Launch(t.Context(), claim)
	check(t, err)
	if machine.Labels[karpv1.LabelCapacityType] != karpv1.CapacityTypeOnDemand {
		t.Errorf("launched as %s", machine.Labels[karpv1.LabelCapacityType])
	}
}

// A spot interruption notice marks the offering as unavailable for all pools and announces the change.
func TestInterruptedOfferingIsClosed(t *testing.T) {
	w := newWorld(t, "m5.large")
	changes := make(chan struct{}, 10)
	p := w.provider(t, func(o *Options) { o.Changed = func() { changes <- struct{}{} } })
	watcher, err := p.watcher()
	check(t, err)
	if watcher == nil || len(changes) != 0 {
		t.Fatalf("%d changes before any notice", len(changes))
	}
	open := func() int {
		return len(slices.DeleteFunc(p.offeringStates(), func(s offeringState) bool {
			return !s.Available ||
				s.CapacityType != karpv1.CapacityTypeSpot
		}))
	}
	before := open()
	p.markUnavailable(t.Context(), interruption.Offering{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"})
	if after := open(); after != before-1 || len(changes) != 1 {
		t.Errorf("%d of %d spot offerings are available, %d changes; want one less and one change", after, before, len(changes))
	}
	p.markUnavailable(t.Context(), interruption.Offering{ReservationID: "cr-1"})
	if len(changes) != 1 {
		t.Error("a reservation changed the offerings")
	}
}

// The memory of a node replaces the estimate for its type and image, and survives a restart.
func TestMemoryIsLearned(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	claim := w.launched(t, p, "first")
	estimate := memoryOf(t, p)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node",
		Labels: map[string]string{karpv1.LabelRegistered: "true", corev1.LabelInstanceTypeStable: "m5.large"}},
		Spec:   corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("7800Mi")}}}
	check(t, w.api.Create(t.Context(), node))
	check(t, w.api.Status().Update(t.Context(), node))
	_, err := observer{p}.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(node)})
	check(t, err)
	if seen := memoryOf(t, p); seen != 7800<<20 || seen == estimate {
		t.Errorf("the catalog has %d bytes after a node with 7800Mi was seen; before, %d", seen, estimate)
	}
	next := w.provider(t)
	if again := memoryOf(t, next); again != estimate {
		t.Errorf("a new process has %d bytes before it has read the ConfigMap", again)
	}
	check(t, next.restoreMemory(t.Context()))
	if again := memoryOf(t, next); again != 7800<<20 {
		t.Errorf("a new process has %d bytes, want those that the first one saw", again)
	}
}

// An observation that could not be stored is stored at the next reconciliation of the node, although it is not new by
// then. Observations that another process stored meanwhile are kept. Those of unused images are dropped.
func TestMemoryIsStored(t *testing.T) {
	w := newWorld(t, "m5.large")
	broken := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("away")
	}}
	p := w.provider(t)
	claim := w.launched(t, p, "first")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node",
		Labels: map[string]string{karpv1.LabelRegistered: "true", corev1.LabelInstanceTypeStable: "m5.large"}},
		Spec:   corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("7800Mi")}}}
	check(t, w.api.Create(t.Context(), node))
	check(t, w.api.Status().Update(t.Context(), node))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(node)}
	p.opts.Client = interceptor.NewClient(w.api, broken)
	if _, err := (observer{p}).Reconcile(t.Context(), request); err == nil {
		t.Error("no error although storing fails")
	}
	p.opts.Client = w.api
	mine := "m5.large_" + claim.Status.ImageID
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: MemoryConfigMap},
		Data: map[string]string{"m5.large_ami-gone": "8000000000"}}
	check(t, w.api.Create(t.Context(), theirs))
	_, err := observer{p}.Reconcile(t.Context(), request)
	check(t, err)
	stored := func(when string, want map[string]string) {
		t.Helper()
		found := &corev1.ConfigMap{}
		check(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(theirs), found))
		if diff := cmp.Diff(want, found.Data); diff != "" {
			t.Errorf("%s, stored (-want +got):\n%s", when, diff)
		}
	}
	bytes := strconv.Itoa(7800 << 20)
	stored("looked at again", map[string]string{mine: bytes, "m5.large_ami-gone": "8000000000"})
	check(t, p.forgetMemory(t.Context()))
	stored("after a round", map[string]string{mine: bytes})
	if _, known := p.memory.Least("m5.large", "ami-gone"); known {
		t.Error("the observation of an unused image is kept")
	}
}

func memoryOf(t *testing.T, p *Provider) int64 {
	t.Helper()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	types, err := p.Catalog(t.Context(), pool)
	check(t, err)
	for i := range types {
		if types[i].Name == "m5.large" {
			return types[i].Capacity["memory"]
		}
	}
	t.Fatal("m5.large is not offered")
	return 0
}

// A class that has not been reconciled yet has no instance types, and the error says so.
func TestCatalogOfAnUnreadyClass(t *testing.T) {
	w := newWorld(t, "m5.large")
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "unready"}
	if _, err := w.provider(t).Catalog(t.Context(), pool); err == nil || !strings.Contains(err.Error(),
		`EC2NodeClass "unready" is not ready`) {
		t.Errorf("%v, want an error that the class is not ready", err)
	}
}
