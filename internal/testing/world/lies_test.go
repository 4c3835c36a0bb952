package world_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

// lied holds texts that must occur in the traces of histories whose cloud gives wrong replies.
var lied = []string{"the cloud misses", "the cloud halves", "the cloud repeats", "the cloud foreign", "the cloud old", "the cloud blind",
	"the cloud fails", "the cloud searches", "falls silent", "reports again", "has a condition that calls for repair", "is well again",
	"the machine of", "involuntary removals are paused", "involuntary removals resume", "kept machines that belong to no claim",
	"terminated a machine that belongs to no claim", "deleted a claim whose machine is gone", "deleted a claim whose node is unhealthy"}

// TestLies plays histories whose cloud gives wrong replies, and checks that all of them occur.
func TestLies(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(24) {
		h := world.History{Seed: seed, Features: []string{world.Lies}}
		trace, err := h.Run(nil)
		if err != nil {
			report(t, h, trace, err)
		}
		for _, what := range lied {
			seen[what] = seen[what] || slices.ContainsFunc(trace, func(line string) bool { return strings.Contains(line, what) })
		}
	}
	for _, what := range lied {
		if !seen[what] {
			t.Errorf("no trace contains %q", what)
		}
	}
}

// wrong is a client with a bug, and reads the same.
type wrong struct {
	client.Client

	deaf, unlimited, idle, stuck, hasty bool
	at                                  func() time.Time
}

// Get implements client.Reader: what nodes report is hidden, or their conditions begin too early.
func (w wrong) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*coordinationv1.Lease); is && w.deaf {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, key.Name)
	}
	err := w.Client.Get(ctx, key, o, opts...)
	w.distort(o)
	return err
}

// List implements client.Reader.
func (w wrong) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := w.Client.List(ctx, list, opts...)
	switch l := list.(type) {
	case *corev1.NodeList:
		l.Items = slices.Clone(l.Items)
		for i := range l.Items {
			w.distort(&l.Items[i])
		}
	case *karpv1.NodePoolList:
		for i := range l.Items {
			w.distort(&l.Items[i])
		}
	}
	return err
}

func (w wrong) distort(o client.Object) {
	switch o := o.(type) {
	case *corev1.Node:
		o.Status.Conditions = slices.Clone(o.Status.Conditions)
		for i := range o.Status.Conditions {
			c := &o.Status.Conditions[i]
			switch {
			case w.deaf && c.Type == corev1.NodeReady:
				c.Status = corev1.ConditionUnknown
			case w.hasty && c.Status == corev1.ConditionTrue:
				c.LastTransitionTime.Time = c.LastTransitionTime.Add(-time.Hour)
			}
		}
	case *karpv1.NodePool:
		if w.unlimited {
			o.Annotations = map[string]string{karpv1.AnnotationRemovalsAllowedUntil: w.at().Add(time.Hour).Format(time.RFC3339)}
		}
	}
}

// Delete implements client.Writer.
func (w wrong) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if w.idle {
		return errors.New("refused")
	}
	return w.Client.Delete(ctx, o, opts...)
}

// Patch implements client.Writer: pauses do not end.
func (w wrong) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if list := pause.Parse(o.GetAnnotations()[karpv1.AnnotationPauses]); w.stuck && len(list) > 0 {
		for i := range list {
			list[i].Until = list[i].At.AddDate(1, 0, 0)
		}
		o.GetAnnotations()[karpv1.AnnotationPauses] = list.Text()
	}
	return w.Client.Patch(ctx, o, patch, opts...)
}

// plant gives the bug to what removes machines.
func (w wrong) plant(p *world.Parts) {
	with := func(c client.Client) client.Client {
		wrong := w
		wrong.Client, wrong.at = c, p.Limiter.Clock.Now
		return wrong
	}
	p.Limiter.Client, p.Limiter.Live = with(p.Limiter.Client), with(p.Limiter.Live.(client.Client))
	if !w.deaf { // else nodes are repaired that seem to be silent
		p.Collector.Client, p.Repair.Client, p.Repair.Live = with(p.Collector.Client), with(p.Repair.Client), with(p.Repair.Live.(client.Client))
	}
}

// TestPlantedRemovals checks that the properties of removals detect bugs.
func TestPlantedRemovals(t *testing.T) {
	for property, plant := range map[string]func(*world.Parts){
		"second look":       wrong{deaf: true}.plant,
		"only the ill":      wrong{hasty: true}.plant,
		"few at a time":     wrong{unlimited: true}.plant,
		"replaced soon":     wrong{idle: true}.plant,
		"resumes by itself": wrong{stuck: true}.plant,
		"provisions on":     func(p *world.Parts) { p.Provision.Writer = &tired{Writer: p.Provision.Writer} },
	} {
		t.Run(property, func(t *testing.T) {
			for seed := range uint64(60) {
				h := world.History{Seed: seed, Features: []string{world.Lies}}
				if _, err := h.Run(plant); err != nil && strings.Contains(err.Error(), property) {
					return
				}
			}
			t.Error("not detected")
		})
	}
}

// tired creates no claims after ten passes.
type tired struct {
	provision.Writer

	passes int
}

// Provision implements provision.Writer.
func (w *tired) Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned {
	if w.passes++; w.passes > 10 {
		without := *p
		without.Claims = nil
		p = &without
	}
	return w.Writer.Provision(ctx, newest, p)
}
