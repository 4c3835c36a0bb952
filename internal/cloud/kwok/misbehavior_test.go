package kwok

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

func testNeverRegister(t *testing.T, w *world) {
	w.annotate(t, map[string]string{AnnotationNeverRegister: "true"})
	p := w.provider(t)
	m := w.launch(t, p, w.claim())
	w.annotate(t, nil)
	advance(t, w.provider(t), m)
	if w.node(t, m) != nil {
		t.Error("the machine registered")
	}
	wantGone(t, p, m)
}

func testFailLaunch(t *testing.T, w *world) {
	w.annotate(t, map[string]string{AnnotationFailLaunch: "2"})
	p, claim := w.provider(t), w.claim()
	for range 2 {
		_, err := p.Launch(t.Context(), claim)
		var failed *cloud.CreateError
		switch {
		case !errors.As(err, &failed):
			t.Fatalf("Launch: error is %v, not failed", err)
		case failed.Reason == "":
			t.Fatalf(`Launch: failed.Reason is ""`)
		case failed.Message == "":
			t.Fatalf(`Launch: failed.Message is ""`)
		}
	}
	first := w.launch(t, p, claim)
	if again := w.launch(t, p, claim); again.ProviderID != first.ProviderID {
		t.Errorf("launched %s, then %s", first.ProviderID, again.ProviderID)
	}
}

func testImage(t *testing.T, w *world) {
	p := w.provider(t)
	launched := func() *karpv1.NodeClaim {
		claim := w.claim()
		claim.Status.ImageID = w.launch(t, p, claim).ImageID
		return claim
	}
	drifted := func(claim *karpv1.NodeClaim, want string) {
		t.Helper()
		pool := &karpv1.NodePool{}
		pool.Spec.Template.Spec.NodeClassRef = claim.Spec.NodeClassRef
		if got, err := w.provider(t).Drifted(t.Context(), claim, pool); got != want || err != nil {
			t.Errorf("Drifted of a machine with image %q: %q, %v, want %q", claim.Status.ImageID, got, err, want)
		}
	}
	plain := launched()
	drifted(plain, "")
	w.annotate(t, map[string]string{AnnotationImage: "image-2"})
	second := launched()
	if second.Status.ImageID != "image-2" {
		t.Errorf("launched with image %q, want that of the class", second.Status.ImageID)
	}
	drifted(plain, ImageDrift)
	drifted(second, "")
	renamed := &karpv1.NodePool{}
	renamed.Spec.Template.Spec.NodeClassRef = second.Spec.NodeClassRef
	renamed.Spec.Template.Spec.NodeClassRef.Name = "another"
	if got, err := w.provider(t).Drifted(t.Context(), second, renamed); got != karpv1.ReasonNodePoolDrifted || err != nil {
		t.Errorf("Drifted of a machine whose pool names another class: %q, %v", got, err)
	}
	if again := w.launch(t, p, plain); again.ImageID != "" {
		t.Errorf("launched again: image %q, want that of the first launch, none", again.ImageID)
	}
	w.annotate(t, nil)
	drifted(plain, "")
	drifted(second, ImageDrift)
}

func testLaunchDelay(t *testing.T, w *world) {
	w.annotate(t, map[string]string{AnnotationLaunchDelay: "1h"})
	p, claim := w.provider(t), w.claim()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := p.Launch(ctx, claim); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Launch: %v, want the context's error", err)
	}
	machines, err := p.Machines(t.Context())
	switch {
	case err != nil:
		t.Fatalf("Machines: error %v", err)
	case len(machines) != 1:
		t.Fatalf("Machines: len(machines) is %v, want 1, %+v", len(machines), machines)
	case machines[0].Claim != claim.Name:
		t.Fatalf("Machines: machines[0].Claim is %v, want %v", machines[0].Claim, claim.Name)
	}
	clock := clocktesting.NewFakeClock(machines[0].Created.Add(59 * time.Minute))
	late := w.provider(t, func(o *Options) { o.Clock = clock })
	advance(t, late, &machines[0])
	if w.node(t, &machines[0]) != nil {
		t.Error("the node exists before the launch would have returned")
	}
	clock.Step(time.Minute)
	advance(t, late, &machines[0])
	if w.node(t, &machines[0]) == nil {
		t.Error("there is no node when the launch would have returned")
	}
}

func testBadAnnotations(t *testing.T, w *world) {
	p := w.provider(t)
	for annotation, value := range map[string]string{
		AnnotationUnavailable:      "c-1x-amd64-linux/spot",
		AnnotationLaunchDelay:      "soon",
		AnnotationTerminationDelay: "-1s",
		AnnotationNeverRegister:    "perhaps",
		AnnotationFailLaunch:       "-1",
	} {
		w.annotate(t, map[string]string{annotation: value})
		_, err := p.Launch(t.Context(), w.claim())
		var notReady *cloud.NodeClassNotReadyError
		switch {
		case !errors.As(err, &notReady):
			t.Errorf("error is %v, not notReady", err)
		case !strings.Contains(notReady.Message, annotation):
			t.Errorf("notReady.Message lacks %q", annotation)
		case !strings.Contains(notReady.Message, value):
			t.Errorf("notReady.Message lacks %q", value)
		case !strings.Contains(notReady.Message, "want"):
			t.Errorf(`notReady.Message lacks "want"`)
		}
		if err := p.Ready(t.Context(), w.class(w.namespace)); !errors.As(err, &notReady) {
			t.Errorf("%s=%q: Ready is %v, want a NodeClassNotReadyError", annotation, value, err)
		}
		if _, err := p.Catalog(t.Context(), nil); err != nil {
			t.Errorf("%s=%q: Catalog: %v", annotation, value, err)
		}
	}
}

// available reports whether the offering that w.claim requires is available to the world's pool.
func (w *world) available(t *testing.T, p *Provider) bool {
	t.Helper()
	pool := &karpv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = w.claim().Spec.NodeClassRef
	types, err := p.Catalog(t.Context(), pool)
	if err != nil {
		t.Fatalf("Catalog: %v", err)
	}
	choices := cloud.NeedOf(w.claim()).Choices(types)
	if len(choices) != 1 {
		t.Fatalf("%d choices, want the one that the claim requires", len(choices))
	}
	return choices[0].Offering.Available
}

func testSoldOutForgotten(t *testing.T, w *world) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	changed := make(chan struct{}, 10)
	p := w.provider(t, func(o *Options) { o.Clock, o.Changed = clock, func() { changed <- struct{}{} } })
	w.annotate(t, map[string]string{AnnotationUnavailable: "m-4x-*/*/*"})
	if !w.available(t, p) {
		t.Error("the offering is unavailable before a launch has tried it")
	}
	var insufficient *cloud.InsufficientCapacityError
	sellOut := func() {
		t.Helper()
		if _, err := p.Launch(t.Context(), w.claim()); !errors.As(err, &insufficient) {
			t.Fatalf("Launch: %v, want an InsufficientCapacityError", err)
		}
		if w.available(t, p) {
			t.Error("the offering is available although a launch found it unavailable")
		}
	}
	sellOut()
	if len(changed) > 0 {
		t.Error("a change was announced while the offering is unavailable")
	}
	clock.Step(3 * time.Minute)
	select {
	case <-changed:
	case <-t.Context().Done():
		t.Error("no announcement when the offering is tried again: catalogs are read again only minutes later")
	}
	if !w.available(t, p) {
		t.Error("the offering is not tried again after three minutes")
	}
	sellOut()
	w.annotate(t, nil)
	if !w.available(t, p) {
		t.Error("the offering is not available although the annotation is gone")
	}
	w.launch(t, p, w.claim())
}

func testUnavailableOption(t *testing.T, w *world) {
	p := w.provider(t, func(o *Options) { o.Unavailable = []string{"*/test-zone-b/on-demand"} })
	var insufficient *cloud.InsufficientCapacityError
	_, err := p.Launch(t.Context(), w.claim())
	if !errors.As(err, &insufficient) || !strings.Contains(insufficient.Message, "m-4x-arm64-linux/test-zone-b/on-demand") {
		t.Errorf("Launch: %v, want an InsufficientCapacityError with the offering", err)
	}
	if _, err := New(Options{Client: w.cluster, Unavailable: []string{"*"}}); err == nil || !strings.Contains(err.Error(),
		"type/zone/capacity-type") {
		t.Errorf("New with an invalid pattern: %v, want an error that shows the format of patterns", err)
	}
}

func testBusyServer(t *testing.T, w *world) {
	p, claim := w.provider(t), w.claim()
	failures := map[string]int{}
	w.faults.set(func(_ context.Context, verb string, object runtime.Object, send func() error) error {
		kind := verb + " " + typeName(object)
		failures[kind]++
		switch failures[kind] {
		case 1:
			return apierrors.NewTooManyRequests("busy", 0)
		case 2:
			if err := send(); err != nil {
				return err
			}
			return apierrors.NewTimeoutError("the answer is lost", 0)
		}
		return send()
	})
	m := w.launch(t, p, claim)
	advance(t, p, m)
	if w.node(t, m) == nil {
		t.Error("there is no node")
	}
	wantGone(t, p, m)
}

func testForbidden(t *testing.T, w *world) {
	p := w.provider(t)
	w.faults.set(func(_ context.Context, verb string, _ runtime.Object, send func() error) error {
		if verb == "create" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("no"))
		}
		return send()
	})
	_, err := p.Launch(t.Context(), w.claim())
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "creating the record of machine") {
		t.Errorf("Launch: %v, want Forbidden and the attempted operation", err)
	}
	creates := slices.DeleteFunc(w.faults.requests(), func(r string) bool { return r != "create *v1.ConfigMap" })
	if len(creates) != 1 {
		t.Errorf("the request was sent %d times, want once", len(creates))
	}
}

func testSpoiltRecord(t *testing.T, w *world) {
	p := w.provider(t)
	start(t, p)
	good := w.launch(t, p, w.claim())
	w.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "kwok-machine-spoilt", Labels: map[string]string{LabelRecord: "true"},
	}})
	machines, err := p.Machines(t.Context())
	switch {
	case err != nil:
		t.Fatalf("Machines: error %v", err)
	case len(machines) != 2:
		t.Fatalf("Machines: len(machines) is %v, want 2, %+v", len(machines), machines)
	case machines[1].ProviderID != "kwok://kwok-spoilt":
		t.Fatalf(`Machines: machines[1].ProviderID is %v, want "kwok://kwok-spoilt"`, machines[1].ProviderID)
	}
	if err := p.Terminate(t.Context(), machines[1].ProviderID); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("Terminate of the corrupted machine: %v, want ErrNotFound", err)
	}
	wantGone(t, p, good)
}

// The name of a machine contains a hash of its claim's UID. If two claims have the same machine name, neither gets the
// other's machine.
func testForeignRecord(t *testing.T, w *world) {
	p, claim := w.provider(t), w.claim()
	w.launch(t, p, claim)
	s, err := p.record(t.Context(), machineName(claim.Name, claim.UID))
	if err != nil {
		t.Fatal(err)
	}
	s.ClaimUID = "another"
	if err := p.save(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if m, err := p.Launch(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("Launch: %+v, %v, want an error with the UID", m, err)
	}
}

// A call whose context ends does not wait for an operation on the same machine that a slow server delays.
func testBusyMachine(t *testing.T, w *world) {
	p := w.provider(t)
	m := w.launch(t, p, w.claim())
	arrived := make(chan struct{})
	restore := w.faults.set(func(ctx context.Context, verb string, _ runtime.Object, send func() error) error {
		if verb == "create" {
			close(arrived)
			<-ctx.Done()
			return ctx.Err()
		}
		return send()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	advanced := make(chan error, 1)
	go func() { advanced <- p.advance(ctx, nodeName(m)) }()
	<-arrived
	short, cancelShort := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancelShort()
	answer := make(chan error, 1)
	go func() { answer <- p.Terminate(short, m.ProviderID) }()
	select {
	case err := <-answer:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Terminate: %v, want the context's error", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("Terminate waits for the other operation beyond its deadline")
	}
	cancel()
	if err := <-advanced; !errors.Is(err, context.Canceled) {
		t.Errorf("advance: %v, want the context's error", err)
	}
	restore()
	wantGone(t, p, m)
}
