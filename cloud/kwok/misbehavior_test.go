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

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// testDrifted verifies that a machine has drifted only if the pool names another class.
func testDrifted(t *testing.T, w *world) {
	p, claim := w.provider(t), w.claim()
	w.launch(t, p, claim)
	pool := &karpv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = claim.Spec.NodeClassRef
	if got, err := p.Drifted(t.Context(), claim, pool); got != "" || err != nil {
		t.Errorf("Drifted: %q, %v, want nothing", got, err)
	}
	pool.Spec.Template.Spec.NodeClassRef.Name = "another"
	if got, err := p.Drifted(t.Context(), claim, pool); got != karpv1.ReasonNodePoolDrifted || err != nil {
		t.Errorf("Drifted of a machine whose pool names another class: %q, %v", got, err)
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
