package cloudtest

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

func wantInsufficient(t *testing.T, err error) {
	t.Helper()
	var insufficient *cloud.InsufficientCapacityError
	if !errors.As(err, &insufficient) {
		t.Errorf("Launch: %v, want an InsufficientCapacityError", err)
	} else if insufficient.Message == "" {
		t.Error("the InsufficientCapacityError says nothing")
	}
}

func testNextOffering(t *testing.T, w World) {
	if w.SellOut == nil {
		t.Skip("every offering is available")
	}
	p := w.Provider(t)
	types := catalog(t, w, p)
	c := claim(w.Class)
	choices := cloud.NeedOf(c).Choices(types)
	gone := 2
	if w.Chooses != CheapestFirst {
		gone = len(slices.DeleteFunc(slices.Clone(choices), func(o cloud.Choice) bool { return o.Offering.Price > choices[0].Offering.Price }))
	}
	var sold []Offering
	for _, choice := range choices[:gone] {
		sold = append(sold, offeringOf(choice))
	}
	w.SellOut(t, sold...)
	machine := launch(t, p, c)
	w.right(t, choices[gone:], choices[gone], machineOffering(machine))
	after := catalog(t, w, p)
	if len(after) != len(types) {
		t.Fatalf("the catalog has %d types once an offering is sold out, want %d as before", len(after), len(types))
	}
	if w.Chooses == AmongAll {
		return // the provider may not have tried the exhausted offering
	}
	for i, choice := range cloud.NeedOf(c).Choices(after)[:gone+1] {
		if choice.Offering.Available != (i == gone) {
			t.Errorf("offering %+v has available=%t after the launch", offeringOf(choice), choice.Offering.Available)
		}
	}
	for _, choice := range choices[:gone] {
		if !choice.Offering.Available {
			t.Errorf("the catalog that was handed out earlier has changed: %+v", offeringOf(choice))
		}
	}
}

func testInsufficientCapacity(t *testing.T, w World) {
	p := w.Provider(t)
	types := catalog(t, w, p)
	c := claim(w.Class, requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorIn, types[0].Name))
	var all []Offering
	for _, choice := range cloud.NeedOf(c).Choices(types) {
		all = append(all, offeringOf(choice))
	}
	if w.SellOut != nil {
		w.SellOut(t, all...)
		_, err := p.Launch(t.Context(), c)
		wantInsufficient(t, err)
	}
	for name, impossible := range map[string]karpv1.Requirement{
		"no such type":   requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorIn, "no-such-type"),
		"no such zone":   requirement(corev1.LabelTopologyZone, karpv1.OperatorIn, "no-such-zone"),
		"without a zone": requirement(corev1.LabelTopologyZone, karpv1.OperatorDoesNotExist),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Launch(t.Context(), claim(w.Class, impossible))
			wantInsufficient(t, err)
		})
	}
	onlyMachines(t, p)
	if w.SellOut != nil {
		w.SellOut(t)
	}
	onlyMachines(t, p, launch(t, p, c).ProviderID)
}

func testClassNotReady(t *testing.T, w World) {
	p := w.Provider(t)
	if err := p.Ready(t.Context(), w.Class); err != nil {
		t.Errorf("Ready of a ready class: %v", err)
	}
	if err := p.Ready(t.Context(), w.Missing); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("Ready of a missing class: %v, want ErrNotFound", err)
	}
	wantNotReady(t, "Ready", p.Ready(t.Context(), w.NotReady))
	for _, class := range []cloud.ClassRef{w.NotReady, w.Missing} {
		_, err := p.Launch(t.Context(), claim(class))
		wantNotReady(t, "Launch with class "+class.Name, err)
	}
	onlyMachines(t, p)
}

func wantNotReady(t *testing.T, call string, err error) {
	t.Helper()
	var notReady *cloud.NodeClassNotReadyError
	if !errors.As(err, &notReady) {
		t.Errorf("%s: %v, want a NodeClassNotReadyError", call, err)
	} else if notReady.Message == "" {
		t.Errorf("%s: the NodeClassNotReadyError says nothing", call)
	}
}
